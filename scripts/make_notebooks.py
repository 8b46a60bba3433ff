"""Write the notebooks and run them, so that their outputs are what the code of this version gives.

    python scripts/make_notebooks.py [--folder notebooks]

The cells are kept here as text, where they can be read, searched and reviewed; a notebook is made from them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FIT = """
# From votes to soft labels

Many people looked at the same items and voted yes or no. Some are careful, some guess, some click the opposite. A
majority vote treats them alike, and says nothing about how sure it is. Here we fit a model that learns how able each
annotator is while it learns what each item is, and get a *soft label*: the probability that an item is positive.

The data are simulated, so that we can look up the truth at the end. A real study would start the same way.
---
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import softgold

SAMPLES = Path("../data_samples")
votes = softgold.read_votes(SAMPLES / "votes.csv")
print(votes.describe())
---
One row per vote: `item, annotator, vote`. Ids stay as they are written; what is wrong with a table is said with its row
and column. Now the fit. `engine="coordinate"` is deterministic and fast; the default, `svi`, is Pyro's stochastic
inference started from its solution.
---
fit = softgold.fit(votes, engine="coordinate")
print(fit.diagnostics.reason)
labels = fit.posterior.soft_labels()
labels.to_frame()[["item", "p", "expected_vote", "b_lo", "b_hi", "n_votes", "n_positive"]].head().round(3)
---
`p` is the soft label: the probability that the item *is* positive. `b` is what it *looks like* to those who can tell,
positive or negative, with a 95 % credible interval from `b_lo` to `b_hi`; a tricky item looks like the other class.
`expected_vote` is the share of positive votes to expect from this pool.

How sure is the crowd? Most items are clear. The few in the middle are those where a hard label would pretend.
---
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
left.hist(labels.p, bins=40, color="#0072b2")
left.set(xlabel="p, the probability of a positive", ylabel="items")
right.hist(labels.uncertainty, bins=25, color="#0072b2")
right.set(xlabel="min(p, 1 - p)", ylabel="items")
plt.show()
---
Who voted? Sensitivity is how often somebody says yes when the answer is yes, specificity how often no when it is no. An
ability of 0 is guessing, and a negative one means that somebody says the opposite of what is true. Such votes are as
telling as good ones once we know, and the model turns them around.
---
annotators = fit.posterior.annotators()
columns = ["annotator", "ability_mean", "lean_mean", "sensitivity", "specificity", "n_votes"]
annotators.nlargest(6, "p_adversarial")[columns].round(2)
---
Because the study is simulated we can compare with the truth. A tie of the votes counts as half a mistake.
---
truth = pd.read_csv(SAMPLES / "truth.csv", dtype={"item": "str"}).set_index("item")["label"].reindex(labels.item_ids)
soft = {"share of votes": softgold.Mean().aggregate(votes).p, "fit": labels.p}
majority = softgold.Majority().aggregate(votes).p
print(f"majority vote: {abs(majority - truth.to_numpy()).mean():.1%} wrong")
for name, p in soft.items():
    wrong, distance = ((p >= 0.5) != truth.to_numpy()).mean(), ((p - truth.to_numpy()) ** 2).mean()
    print(f"{name}: {wrong:.1%} wrong when cut at 0.5, squared distance to the truth {distance:.3f}")
---
Keep the run: tables for people, arrays for programs, nothing pickled. The next notebook takes it to the experts.
---
import tempfile

folder = Path(tempfile.mkdtemp()) / "run"
fit.save(folder, source="votes.csv")
print(sorted(path.name for path in folder.iterdir()))
"""

CALIBRATE = """
# Thresholds from a few expert labels

A soft label of 0.6 says what the crowd believes, not what an expert would say. Before labels are released somebody
should look at a few hundred items, spread over the whole range of soft labels, and tell where "positive" begins.
---
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import softgold

SAMPLES = Path("../data_samples")
votes = softgold.read_votes(SAMPLES / "votes.csv")
labels = softgold.fit(votes, engine="coordinate").posterior.soft_labels()
---
Whom to ask about what? A random sample would show experts mostly clear cases. `sample_for_experts` cuts the items
into 20 bins by their soft label and draws from each, and the sheet that the experts get says nothing of p.
---
sample = softgold.sample_for_experts(labels, bins=20, per_bin=20, seed=0)
sample.sheet().head()
---
In this study three experts have labelled 400 items already. The threshold is where their positives begin, and the
intervals say how far it would move had other experts been asked, or had they been asked about other items.
---
experts = softgold.read_experts(SAMPLES / "experts.csv")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", softgold.errors.DataWarning)  # they are in the result, and printed below
    result = softgold.calibrate(labels, experts)
print(f"threshold {result.threshold:.3f}, in bin {result.bin} of {len(result.bins)}")
asked = {"panel": "other experts", "items": "other items", "both": "other experts and items"}
for interval in result.intervals:
    positives = f"{interval.positives_low} to {interval.positives_high} positives"
    print(f"with {asked[interval.source]}: {interval.low:.3f} to {interval.high:.3f}, {positives}")
for sentence in result.warnings:
    print("note:", sentence)
---
Each dot is a bin: across, its mean soft label; upwards, how many of its items the experts called positive.
---
bins = result.bins[result.bins["labelled"] > 0]
figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
error = [bins["rate"] - bins["rate_lo"], bins["rate_hi"] - bins["rate"]]
axis.errorbar(bins["p_mean"], bins["rate"], yerr=error, fmt="o", color="#0072b2", ecolor="#7fb8d8")
axis.plot([0, 1], [0, 1], "--", color="grey", linewidth=1)
axis.axvline(result.threshold, color="#8a3a6e", linestyle="--")
axis.set(xlabel="mean soft label of the bin", ylabel="experts' share of positives")
plt.show()
---
What changes? `expected_wrong` is the share of wrong labels to expect if p is right; `agreement` and `kappa` are with
the experts.
---
rows = {"cut at 0.5": vars(result.before), "cut at the threshold": vars(result.after)}
pd.DataFrame(rows).loc[["positives", "prevalence", "expected_wrong", "agreement", "kappa"]].round(3)
---
How far do the experts agree among themselves? No label can be better than that.
---
found = result.agreement
print(f"Krippendorff's alpha {found.alpha:.3f}: {found.landis_koch}")
result.experts[["expert", "n_labels", "positive_rate", "kappa_with_others", "threshold_without"]].round(3)
---
The study is simulated, so the truth can judge the labels, before and after.
---
truth = pd.read_csv(SAMPLES / "truth.csv", dtype={"item": "str"}).set_index("item")["label"].reindex(labels.item_ids)
print(f"wrong at 0.5: {((labels.p >= 0.5) != truth.to_numpy()).mean():.1%}")
print(f"wrong as released: {(result.labels.label != truth.to_numpy()).mean():.1%}")
result.labels.to_frame().head().round(3)
"""

EVALUATE = """
# Models against uncertain labels

Five detectors give each item a score. Which is best? Ordinary metrics compare with hard labels, as if these were
certain. Soft metrics compare with the soft labels, so that a mistake on a doubtful item counts less than one on a
clear item.
---
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import softgold

SAMPLES = Path("../data_samples")
votes = softgold.read_votes(SAMPLES / "votes.csv")
fit = softgold.fit(votes, engine="coordinate")
labels = fit.posterior.soft_labels()
with warnings.catch_warnings():
    warnings.simplefilter("ignore", softgold.errors.DataWarning)  # the second notebook shows them
    released = softgold.calibrate(labels, softgold.read_experts(SAMPLES / "experts.csv")).labels
scores = softgold.read_scores(SAMPLES / "scores.csv")
---
One call. All models and metrics see the same resamples of the items, so that their differences can be compared.
---
result = softgold.evaluate(labels, scores, labels=released, seed=0)
task = result.only
print(f"hard labels: {result.hard}; {task.base_rate:.1%} positive, mean soft label {task.soft_base_rate:.3f}")
task.wide()[["auroc", "soft_auroc", "ap", "soft_ap", "precision_at_100", "brier", "log_loss", "ece"]].round(3)
---
Every value has an interval and a rank.
---
task.table.query("metric == 'soft_auroc'")[["model", "value", "low", "high", "rank"]].sort_values("rank").round(3)
---
Who changes places? Soft values are on a scale of their own (1 cannot be reached when labels are uncertain), so
compare the order and not the level.
---
for found in task.comparisons[:2]:
    print(f"{found.ordinary} -> {found.soft}: R^2 {found.r_squared:.3f}, pairs that swap: {list(found.swapped)}")
wide = task.wide()
figure, axis = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
axis.scatter(wide["auroc"], wide["soft_auroc"], color="#0072b2")
for model, row in wide.iterrows():
    axis.annotate(model, (row["auroc"], row["soft_auroc"]), xytext=(4, 4), textcoords="offset points", fontsize=8)
axis.set(xlabel="AUROC against hard labels", ylabel="soft AUROC")
plt.show()
---
How sure is an order? The share of item resamples in which the model of the row beats that of the column.
---
pd.DataFrame(task.beats["soft_auroc"], index=result.models, columns=result.models).round(2)
---
And had other people voted? Each item's votes are drawn anew, the models are ranked again, and rankings are compared:
1 means that the ranking never changes. (This uses the majority and the share of the votes; the model is not fitted
again.)
---
task.stability[["metric", "labels", "mean_pairwise", "mean_vs_observed"]].round(3)
---
A report for those who do not open notebooks: one page, no network, from the files of the run.
---
import tempfile

from softgold.report import write_report

folder = Path(tempfile.mkdtemp()) / "run"
fit.save(folder)
page = write_report(folder)
print(page.name, f"{page.stat().st_size / 1000:.0f} kB")
"""

NOTEBOOKS = {"01_fit_votes": FIT, "02_calibrate_with_experts": CALIBRATE, "03_evaluate_models": EVALUATE}


def build(text: str) -> nbformat.NotebookNode:
    """Return a notebook of cells that alternate between words and code."""
    parts = [part.strip() for part in text.strip().split("\n---\n")]
    cells = [new_code_cell(part) if number % 2 else new_markdown_cell(part) for number, part in enumerate(parts)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number:02d}"  # ids are random otherwise, and the file never the same
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def execute(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a clean kernel and return it with its outputs."""
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main() -> None:
    """Parse the options, run the notebooks, write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "notebooks")
    folder = parser.parse_args().folder
    for name, text in NOTEBOOKS.items():
        nbformat.write(execute(build(text), folder), folder / f"{name}.ipynb")


if __name__ == "__main__":
    main()
