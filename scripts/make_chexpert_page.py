"""Re-make docs/chexpert.md and its figures from a folder with the CheXpert test labels.

    python scripts/make_chexpert_page.py DATA/chexpert_test [--docs docs]

The folder holds `votes_all8.csv` (eight radiologists), `experts.csv` (the five of them who gave the reference labels),
`items.csv` (which finding an item asks about) and `scores.csv` (the models). Every number of the page is computed here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from softgold.evaluation import Evaluation, Lead, TaskEvaluation, evaluate, read_tasks
from softgold.evaluation.words import place_names
from softgold.models.baselines import Mean
from softgold.readers import read_scores, read_votes
from softgold.report.plots import Point, paired_bars, scatter, slope
from softgold.report.svg import standalone
from softgold.tables.soft_labels import SoftLabels

N_BOOTSTRAP, N_VOTE_BOOTSTRAP = 2000, 1000
SHOWN = {"auroc": "AUROC", "soft_auroc": "soft AUROC"}  # of each model; the page compares AP in its tables on top
PAIRS = (("auroc", "soft_auroc", "AUROC"), ("ap", "soft_ap", "AP"))


@dataclass(frozen=True)
class Study:
    """The models against the mean of eight readers, and against two kinds of hard label."""

    soft: SoftLabels
    majority: Evaluation
    reference: Evaluation

    def findings(self) -> list[tuple[TaskEvaluation, TaskEvaluation]]:
        """Return each finding twice: with the majority of eight, and with that of the reference readers."""
        return list(zip(self.majority.tasks, self.reference.tasks, strict=True))


def run_study(folder: Path, n_bootstrap: int = N_BOOTSTRAP, n_vote_bootstrap: int = N_VOTE_BOOTSTRAP) -> Study:
    """Read the folder and evaluate the models twice."""
    soft = Mean().aggregate(read_votes(folder / "votes_all8.csv"))
    readers = Mean().aggregate(read_votes(folder / "experts.csv"))
    scores, tasks = read_scores(folder / "scores.csv"), read_tasks(folder / "items.csv")
    # An even split is negative.
    majority = (soft.mean_vote > 0.5).astype(int)
    reference = pd.Series((readers.mean_vote > 0.5).astype(int), index=readers.item_ids)
    first, second = (
        evaluate(
            soft,
            scores,
            soft="mean_vote",
            labels=labels,
            tasks=tasks,
            missing="drop",
            n_bootstrap=n_bootstrap,
            n_vote_bootstrap=draws,
        )
        for labels, draws in ((majority, n_vote_bootstrap), (reference, 0))
    )
    return Study(soft, first, second)


def cells(task: TaskEvaluation) -> pd.DataFrame:
    """Return the rows by metric and model."""
    return task.table.set_index(["metric", "model"])


def markdown(rows: Sequence[dict[str, str]]) -> str:
    """Return a table in Markdown."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join(lines + ["| " + " | ".join(row[name] for name in names) + " |" for row in rows])


def stability(task: TaskEvaluation, metric: str, labels: str) -> float:
    """Return the mean rank correlation between draws of the votes."""
    rows = task.stability.set_index(["metric", "labels"])["mean_pairwise"]
    return float(rows[metric, labels])


def summary_table(study: Study) -> str:
    """Return one row per finding: how common and how doubtful it is, R^2, ceiling, stability."""
    rows = []
    for task, reference in study.findings():
        auroc, ap = task.comparisons[0], task.comparisons[1]
        rows.append(
            {
                "finding": str(task.task),
                "positive, of 8 / of 5": f"{task.base_rate:.1%} / {reference.base_rate:.1%}",
                "mean soft label": f"{task.soft_base_rate:.3f}",
                "ceiling": f"{cells(task).loc['soft_auroc']['ceiling'].iloc[0]:.3f}",
                "R² AUROC": f"{auroc.r_squared:.3f}",
                "R² AP": f"{ap.r_squared:.3f}",
                "stability AUROC": arrow(task, "AUROC"),
                "stability AP": arrow(task, "AP"),
            }
        )
    return markdown(rows)


def arrow(task: TaskEvaluation, metric: str) -> str:
    """Return the stability of the ordinary and the soft ranking."""
    return f"{stability(task, metric, 'hard'):.3f} → {stability(task, metric, 'soft'):.3f}"


def names(lead: Lead) -> str:
    """Return the first model, in how many resamples it is ahead of the closest, and how many are not told apart."""
    share = f", {lead.probability:.0%}" if lead.closest not in lead.models else ""
    return f"{', '.join(lead.models)} (+{len(lead.rivals)}{share})"


def equal_models(found: pd.DataFrame) -> list[list[str]]:
    """Return the models, best by soft AUROC first; those with equal values of every metric together."""
    groups: dict[tuple[float, ...], list[str]] = {}
    for model in found.loc["soft_auroc"].sort_values("rank", kind="stable").index:
        values = tuple(float(found.loc[(metric, model), "value"]) for pair in PAIRS for metric in pair[:2])
        groups.setdefault(values, []).append(str(model))
    return list(groups.values())


def finding_table(task: TaskEvaluation) -> str:
    """Return one row per model, best by soft AUROC first; equal models share a row."""
    found = cells(task)
    rows = []
    for models in equal_models(found):
        values = {title: found.loc[(metric, models[0]), "value"] for metric, title in SHOWN.items()}
        rows.append({"model": ", ".join(models), **{title: f"{value:.4f}" for title, value in values.items()}})
    return markdown(rows)


def width_words(study: Study) -> str:
    """Say how wide the intervals of the soft metrics are."""
    parts = []
    for _, soft, title in PAIRS:
        tables = [cells(task).loc[soft] for task in study.majority.tasks]
        widths = np.concatenate([(table["high"] - table["low"]).to_numpy() for table in tables])
        parts.append(f"of soft {title} {widths.min():.3f} to {widths.max():.3f}")
    return " and ".join(parts)


def file_name(task: TaskEvaluation, what: str) -> str:
    """Return the name of a figure."""
    return f"chexpert_{str(task.task).lower().replace(' ', '_')}_{what}.svg"


def rank_figure(task: TaskEvaluation) -> str:
    """Draw the ranks by AUROC before and after."""
    found = cells(task)
    before = found.loc["auroc"].sort_values(["rank"], kind="stable")
    after = found.loc["soft_auroc"].loc[before.index]
    swaps = len(task.comparisons[0].swaps)
    return standalone(
        slope(
            list(before.index),
            before["rank"].tolist(),
            after["rank"].tolist(),
            place_names=(place_names(before["rank"].tolist()), place_names(after["rank"].tolist())),
            left_title="by AUROC",
            right_title="by soft AUROC",
        ).render(
            f"Ranks of the models on {task.task}",
            f"{swaps} pairs of models change places between AUROC and soft AUROC.",
        )
    )


def scatter_figure(task: TaskEvaluation) -> str:
    """Draw ordinary against soft AUROC."""
    found = cells(task)
    ordinary, soft = found.loc["auroc"]["value"], found.loc["soft_auroc"]["value"]
    return standalone(
        scatter(
            [Point(str(model), ordinary[model], soft[model]) for model in ordinary.index],
            x_title="AUROC against the majority of 8",
            y_title="soft AUROC against the mean of 8",
        ).render(f"Ordinary against soft AUROC on {task.task}", f"R squared is {task.comparisons[0].r_squared:.3f}.")
    )


def stability_figure(study: Study, metric: str) -> str:
    """Draw the stability of the ordinary and the soft ranking, finding by finding."""
    rows = [
        (str(task.task), stability(task, metric, "hard"), stability(task, metric, "soft"))
        for task in study.majority.tasks
    ]
    return standalone(
        paired_bars(
            rows,
            names=("ordinary", "soft"),
            x_title=f"stability of the ranking by {metric}",
        ).render(
            f"Stability of the ranking by {metric}",
            "; ".join(f"{name}: ordinary {hard:.3f}, soft {soft:.3f}" for name, hard, soft in rows),
        )
    )


def changes(study: Study) -> str:
    """Return one row per finding and metric: who leads before and after, and how many pairs change places."""
    rows = []
    for task, reference in study.findings():
        for at, (_, _, title) in enumerate(PAIRS):
            found = task.comparisons[at]
            rows.append(
                {
                    "finding": str(task.task),
                    "metric": title,
                    "first by majority of 8": names(found.best_ordinary),
                    "of 5": names(reference.comparisons[at].best_ordinary),
                    "by soft labels": names(found.best_soft),
                    "changes": str(len(found.swaps)),
                }
            )
    return markdown(rows)


def change_words(study: Study) -> str:
    """Say how many changes of places are between models that are told apart."""
    swaps = [swap for task in study.majority.tasks for found in task.comparisons[: len(PAIRS)] for swap in found.swaps]
    apart = sum(swap.is_separated for swap in swaps)
    return f"{apart} of the {len(swaps)}"


def stability_words(study: Study) -> str:
    """Say where the soft ranking is the more stable one, and where not."""
    average = study.majority.average.stability.set_index(["metric", "labels"])["mean_pairwise"]
    parts = []
    for metric in ("AUROC", "AP"):
        worse = [
            f"{task.task} ({arrow(task, metric)})"
            for task in study.majority.tasks
            if stability(task, metric, "soft") <= stability(task, metric, "hard")
        ]
        count = len(study.majority.tasks)
        but = f", but not on {' and '.join(worse)}" if worse else ""
        parts.append(
            f"By {metric} the soft ranking is more stable on {count - len(worse)} of {count} findings{but}; on average "
            f"{average[metric, 'hard']:.3f} → {average[metric, 'soft']:.3f}."
        )
    return " ".join(parts)


def doubt_words(study: Study) -> str:
    """Say how many items the readers are split on."""
    used = {str(task.task) for task in study.majority.tasks}
    chosen = np.array([str(item).rsplit("|", 1)[-1] in used for item in study.soft.item_ids])
    share = study.soft.mean_vote[chosen]
    split = ((share > 0) & (share < 1)).mean()
    ties = int((share == 0.5).sum())
    return (
        f"The eight readers disagree on {split:.1%} of the {chosen.sum():,} items (a study and a finding), "
        f"and are split four to four on {ties}."
    )


def reference_words(study: Study) -> str:
    """Say how much the choice of the hard labels alone moves."""
    moved = []
    for task, reference in study.findings():
        ranks = [cells(each).loc["auroc"]["rank"] for each in (task, reference)]
        swapped = sum(
            (ranks[0][a] < ranks[0][b]) and (ranks[1][a] > ranks[1][b]) for a in ranks[0].index for b in ranks[0].index
        )
        moved.append(f"{task.task} {swapped}")
    listed = ", ".join(moved)
    return f"Pairs that change places by AUROC from the majority of eight to that of five: {listed}."


def level_words(study: Study) -> str:
    """Say how often a soft value is below the ordinary one."""
    parts = []
    for ordinary, soft, title in PAIRS:
        tables = [cells(task) for task in study.majority.tasks]
        below = np.concatenate([(t.loc[soft]["value"] < t.loc[ordinary]["value"]).to_numpy() for t in tables])
        parts.append(f"soft {title} is below {title} in {below.sum()} of {len(below)} cases")
    return ", ".join(parts)


PAGE = """# Ten chest X-ray models, eight radiologists

<!-- Written by scripts/make_chexpert_page.py: change the script, not this page. -->

Does it matter whether models are judged against the majority of the radiologists or against their votes? This repeats
Lionetti et al. ("Clinical Uncertainty Impacts Machine Learning Evaluations") on public data.

- **Data**: [CheXpert test set labels](https://github.com/rajpurkarlab/cheXpert-test-set-labels), commit a03eb34, not
  part of softgold: eight radiologists, {studies} studies, {n_findings} findings, ten models of the leaderboard.
- **Soft label**: the mean of the eight readers. **Hard label**: their majority, an even split being negative; or that
  of the five reference readers among them, CheXpert's own ground truth.
- **Intervals**: {n_bootstrap:,} resamples of the items, shared by all models. **Stability**: the mean Spearman
  correlation between rankings in two of {n_vote_bootstrap:,} resamples of each item's eight votes.
- **To repeat it**: `python scripts/make_chexpert_page.py DATA/chexpert_test`.

## What it shows

{doubt} Arrows go from
ordinary to soft metrics; R² is between the two, over models; the ceiling is that of soft AUROC.

{summary}

**Who leads.** In brackets: how many models are not told apart from the first (it is ahead in fewer than {needed:g} % of
the resamples), and how often it is ahead of the closest. Models named together are equal. Changes are pairs that change
places from the majority of 8 to soft labels; {apart} are between models told apart both times.

{changes}

**Stability.** {stability}

**The panel moves ranks too.** {reference}

**Soft values have their own scale**: {levels}. Even a model that knows every p only reaches the
[ceiling](metrics.md#ceilings).

![Ordinary against soft AUROC on {scatter_task}](figures/{scatter_file})

![Stability of the ranking by AUROC](figures/chexpert_stability_auroc.svg)

![Stability of the ranking by AP](figures/chexpert_stability_ap.svg)

The paper's R² of AUROC, over four backbones, is 0.840 on Cardiomegaly and 0.897 on Pleural Effusion (its figure 1). Ten
models of similar strength leave less to correlate.

Below, AUROC is against the majority of 8, best by soft AUROC first. Widths of {level:.0%} intervals: {widths}.

{findings}"""

FINDING = """## {task}

![Ranks of the models on {task}](figures/{figure})

{table}
"""


def finding_part(task: TaskEvaluation) -> str:
    """Return the part of the page on one finding."""
    return FINDING.format(task=task.task, figure=file_name(task, "ranks"), table=finding_table(task))


def figures(study: Study) -> dict[str, str]:
    """Return every figure by its file name."""
    found = {file_name(task, "ranks"): rank_figure(task) for task in study.majority.tasks}
    first = most_moved(study)
    found[file_name(first, "scatter")] = scatter_figure(first)
    return {
        **found,
        "chexpert_stability_auroc.svg": stability_figure(study, "AUROC"),
        "chexpert_stability_ap.svg": stability_figure(study, "AP"),
    }


def most_moved(study: Study) -> TaskEvaluation:
    """Return the finding on which ordinary and soft AUROC agree least."""
    return min(study.majority.tasks, key=lambda task: task.comparisons[0].r_squared)


def page(study: Study) -> str:
    """Return the page."""
    shown = most_moved(study)
    return PAGE.format(
        studies=study.majority.only.n_items,
        n_findings=len(study.majority.tasks),
        n_bootstrap=study.majority.settings.n_bootstrap,
        n_vote_bootstrap=study.majority.settings.n_vote_bootstrap,
        needed=50 * (1 + study.majority.settings.level),
        doubt=doubt_words(study),
        summary=summary_table(study),
        changes=changes(study),
        apart=change_words(study),
        widths=width_words(study),
        stability=stability_words(study),
        reference=reference_words(study),
        level=study.majority.settings.level,
        levels=level_words(study),
        scatter_task=shown.task,
        scatter_file=file_name(shown, "scatter"),
        findings="\n".join(finding_part(task) for task in study.majority.tasks),
    )


def main() -> None:
    """Parse the options, evaluate, write page and figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with votes_all8.csv, experts.csv, items.csv and scores.csv")
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    study = run_study(options.data)
    (options.docs / "figures").mkdir(parents=True, exist_ok=True)
    (options.docs / "chexpert.md").write_text(page(study), encoding="utf-8")
    for name, text in figures(study).items():
        (options.docs / "figures" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
