"""Re-make the tables of docs/calibration.md from the public vote tables.

The tables stand between marks in the page; the text around them is left alone. The study on simulated data takes
longer and comes from the file that `scripts/bench/calibration.py --json FILE` writes:

    python scripts/make_calibration_page.py DATA [--bench FILE] [--page docs/calibration.md]
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from softgold.errors import SoftgoldWarning
from softgold.experts import Calibration, calibrate
from softgold.readers import read_experts, read_votes
from softgold.tables.experts import ExpertLabels
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable

RULES = ("changepoint", "largest_jump", "onset", "f1", "youden")
SPLITS = 10


def soft_labels_of(votes: VoteTable) -> SoftLabels:
    """Fit the model, with the deterministic engine."""
    from softgold.models.base import fit

    return fit(votes, engine="coordinate").posterior.soft_labels()


def read_finding(folder: Path, finding: str, items: pd.DataFrame) -> tuple[SoftLabels, ExpertLabels]:
    """Return the soft labels of three radiologists and the labels of five others, for one finding."""
    chosen = set(items.loc[items["task"] == finding, "item"])
    frames = [pd.read_csv(folder / name, dtype=str) for name in ("votes.csv", "experts.csv")]
    votes, experts = (frame[frame["item"].isin(chosen)] for frame in frames)
    return soft_labels_of(read_votes(votes)), read_experts(experts)


def read_relations(folder: Path) -> tuple[SoftLabels, ExpertLabels]:
    """Return the soft labels of the crowd and the labels of the expert."""
    votes = read_votes(folder / "votes.csv", duplicates="first")
    return soft_labels_of(votes), read_experts(folder / "truth.csv")


def result_row(result: Calibration) -> dict[str, str]:
    """Return the figures that the tables share."""
    both, fitted = result.interval("both"), result.soft_map.fit
    losses = (
        (f"{fitted.log_loss_before:.3f}", f"{fitted.log_loss_after[fitted.name]:.3f} ({fitted.name})")
        if fitted
        else ("-", "too few labels")
    )
    return {
        "expert positives": f"{int(result.bins['positives'].sum())} of {int(result.bins['labelled'].sum())}",
        "alpha": f"{result.agreement.alpha:.2f}" if result.agreement else "one expert",
        "t": f"{result.threshold:.3f}",
        "interval over panels": _interval(result.interval("panel").low, result.interval("panel").high),
        "over both": _interval(both.low, both.high),
        "positives at 0.5": str(result.before.positives),
        "at t": str(result.after.positives),
        "agreement at 0.5": f"{result.before.agreement:.3f}",
        "agreement at t": f"{result.after.agreement:.3f}",
        "log loss of p": losses[0],
        "of p_calibrated": losses[1],
    }


def held_out(soft_labels: SoftLabels, experts: ExpertLabels, name: str) -> dict[str, object]:
    """Calibrate on a random half of the expert-labelled items and judge on the other half, several times."""
    majority = _majority(experts)
    rows = []
    for split in range(SPLITS):
        chosen = np.random.default_rng(split).permutation(len(majority)) < len(majority) // 2
        seen, unseen = _only(experts, majority.index[chosen]), majority[~chosen]
        results = {rule: calibrate(soft_labels, seen, rule=rule, replicates=2, seed=split) for rule in RULES}
        judged = {rule: _judged(result, unseen) for rule, result in results.items()}
        accuracy = {rule: values["t"] for rule, values in judged.items()}
        rows.append({**judged["changepoint"], **accuracy})
    table = pd.DataFrame(rows)
    means, mapped = table.mean(), table[table["p_calibrated"].notna()]
    return {
        "data": name,
        "accuracy at 0.5": _three(means["half"]),
        **{rule: _three(means[rule]) for rule in RULES},
        "p_calibrated >= 0.5": _three(mapped["mapped"].mean()),
        "log loss of p": _three(mapped["p"].mean()),
        "of p_calibrated": _three(mapped["p_calibrated"].mean()),
        "splits with enough labels": len(mapped),
    }


def mean_row(rows: list[dict[str, object]]) -> dict[str, object]:
    """Return the mean of held-out accuracies and losses over the rows that have a map, so that all columns compare."""
    frame = pd.DataFrame(rows)
    mapped = frame[frame["of p_calibrated"] != "-"]
    numbers = mapped.drop(columns=["data", "splits with enough labels"]).astype(float)
    means = {str(name): _three(value) for name, value in numbers.mean().items()}
    return {"data": f"mean of the {len(mapped)} with a map", **means, "splits with enough labels": ""}


def _three(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _majority(experts: ExpertLabels) -> pd.Series:
    table = experts.table
    return pd.Series((table.item_shares > 0.5).astype(int), index=table.item_ids)


def _only(experts: ExpertLabels, items: pd.Index) -> ExpertLabels:
    frame = experts.table.to_frame()
    return read_experts(frame[frame["item"].isin(items)])


def _judged(result: Calibration, truth: pd.Series) -> dict[str, float]:
    released = result.labels.to_frame().set_index("item").loc[truth.index]
    return {
        "half": float(((released["p"] >= 0.5) == truth).mean()),
        "t": float((released["label"] == truth).mean()),
        "mapped": float(((released["p_calibrated"] >= 0.5) == truth).mean()),
        "p": _log_loss(released["p"], truth),
        "p_calibrated": _log_loss(released["p_calibrated"], truth),
    }


def _log_loss(p: pd.Series, truth: pd.Series) -> float:
    inside = p.clip(1e-6, 1 - 1e-6).to_numpy()
    return float(-np.mean(np.where(truth == 1, np.log(inside), np.log1p(-inside))))


def _interval(low: float, high: float) -> str:
    return f"{low:.3f}" if low == high else f"{low:.3f} - {high:.3f}"


def chexpert_tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    """Calibrate one finding after the other."""
    items = pd.read_csv(folder / "items.csv", dtype=str)
    table, halves = [], []
    for finding in items["task"].unique():
        soft_labels, experts = read_finding(folder, finding, items)
        table.append({"finding": finding, **result_row(calibrate(soft_labels, experts))})
        halves.append(held_out(soft_labels, experts, finding))
    return {"chexpert": table, "chexpert-held-out": [*halves, mean_row(halves)]}


def relex_tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    """Calibrate the relations by every rule, and judge the labels by the adjudicated ones."""
    soft_labels, experts = read_relations(folder)
    adjudicated = _majority(read_experts(folder / "truth_adjudicated.csv"))
    adjudicated = adjudicated[adjudicated.index.isin(soft_labels.item_ids)]
    rules: list[dict[str, object]] = []
    for rule in RULES:
        result = calibrate(soft_labels, experts, rule=rule)
        row, judged = result_row(result), _judged(result, adjudicated)
        kept = ("t", "over both", "positives at 0.5", "at t", "agreement at 0.5", "agreement at t")
        accuracy = {"adjudicated at 0.5": _three(judged["half"]), "adjudicated at t": _three(judged["t"])}
        rules.append({"rule": rule, **{name: row[name] for name in kept}, **accuracy})
    losses = {
        "labels": "the expert's, cross-validated",
        "p": row["log loss of p"],
        "p_calibrated": row["of p_calibrated"],
    }
    against = {"labels": "adjudicated", "p": _three(judged["p"]), "p_calibrated": _three(judged["p_calibrated"])}
    held = [held_out(soft_labels, experts, "relex_cause")]
    return {"relex": rules, "relex-log-loss": [losses, against], "relex-held-out": held}


def bench_table(path: Path) -> dict[str, list[dict[str, object]]]:
    """Sum up the simulated studies, one row an issue type."""
    rows = pd.DataFrame(json.loads(path.read_text()))
    table: list[dict[str, object]] = []
    for issue, part in rows.groupby("issue", sort=False):
        not_worse = int((part["accuracy_at_t"] >= part["accuracy_at_half"]).sum())
        points = int((part["panel_high"] == part["panel_low"]).sum())
        table.append(
            {
                "issue type": issue,
                "studies": len(part),
                "labels at t no worse": not_worse,
                "accuracy at 0.5": f"{part['accuracy_at_half'].mean():.4f}",
                "at t": f"{part['accuracy_at_t'].mean():.4f}",
                "t, median": f"{part['threshold'].median():.3f}",
                "panel interval is a point": points,
                "its width, median": f"{(part['panel_high'] - part['panel_low']).median():.3f}",
                "alpha of the experts, median": f"{part['alpha'].median():.2f}",
                "log loss of p": f"{part['log_loss_p'].mean():.3f}",
                "of p_calibrated": f"{part['log_loss_p_calibrated'].mean():.3f}",
            }
        )
    return {"simulated": table}


def markdown(rows: list[dict[str, object]]) -> str:
    """Return a table in Markdown."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def insert(page: str, name: str, table: str) -> str:
    """Put a table between its marks."""
    pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"the page has no marks for the table {name!r}")
    return pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)


def main() -> None:
    """Parse the options, compute the tables, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with chexpert_test and relex_cause")
    parser.add_argument("--bench", type=Path, help="rows of scripts/bench/calibration.py")
    parser.add_argument("--page", type=Path, default=Path(__file__).parents[1] / "docs" / "calibration.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SoftgoldWarning)
    tables = {**chexpert_tables(options.data / "chexpert_test"), **relex_tables(options.data / "relex_cause")}
    if options.bench:
        tables |= bench_table(options.bench)
    page = options.page.read_text(encoding="utf-8")
    for name, rows in tables.items():
        page = insert(page, name, markdown(rows))
    options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
