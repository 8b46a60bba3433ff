"""Write and run the notebooks, so that their outputs match the code.

    python scripts/make_notebooks.py [--folder notebooks] [03_evaluate_models ...]

The cells are kept here as text, which is easier to search and review.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FIT = """
# From votes to soft labels

Many people voted yes or no on the same items. Some are careful, some guess, some click the opposite. A majority vote
treats them alike and does not say how certain it is. Here we fit a model that estimates the ability of each annotator
together with a *soft label* of each item: the probability that the item is positive.

The data are simulated, so that we can compare with the truth at the end.
---
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import softgold

SAMPLES = Path("../data_samples")
votes = softgold.read_votes(SAMPLES / "votes.csv")
print(votes.describe())
---
The table has one row per vote: `item, annotator, vote`. Errors name the row and column. Now the fit:
`engine="coordinate"` is deterministic and fast; the default, `svi`, is Pyro's stochastic inference, started from the
coordinate solution.
---
fit = softgold.fit(votes, engine="coordinate")
print(fit.diagnostics.reason)
labels = fit.posterior.soft_labels()
labels.to_frame()[["item", "p", "expected_vote", "b_lo", "b_hi", "n_votes", "n_positive"]].head().round(3)
---
`p` is the soft label: the probability that the item *is* positive. `b` is what the item *looks like* (positive or
negative), with a 95 % credible interval from `b_lo` to `b_hi`; a tricky item looks like the other class.
`expected_vote` is the expected share of positive votes from these annotators.

Most items are clear. A hard label hides the doubt about the few in the middle.
---
softgold.plot.soft_labels(labels, threshold=0.5)
plt.show()
---
The annotators: sensitivity is P(votes yes | positive), specificity P(votes no | negative). Ability 0 is guessing; a
negative ability means voting the opposite of the truth. The model reverses such votes, which then inform as well as
good ones.
---
annotators = fit.posterior.annotators()
columns = ["annotator", "ability_mean", "lean_mean", "sensitivity", "specificity", "n_votes"]
annotators.nlargest(6, "p_adversarial")[columns].round(2)
---
Every figure of `softgold.plot` takes a result and, if you like, the Axes to draw on, and returns the Axes. The lines
are 95 % credible intervals; on the dashed line an annotator guesses.
---
softgold.plot.annotators(fit)
plt.show()
---
Comparison with the truth; a tie counts as half an error.
---
truth = pd.read_csv(SAMPLES / "truth.csv", dtype={"item": "str"}).set_index("item")["label"].reindex(labels.item_ids)
soft = {"share of votes": softgold.Mean().aggregate(votes).p, "fit": labels.p}
majority = softgold.Majority().aggregate(votes).p
print(f"majority vote: {abs(majority - truth.to_numpy()).mean():.1%} wrong")
for name, p in soft.items():
    wrong, distance = ((p >= 0.5) != truth.to_numpy()).mean(), ((p - truth.to_numpy()) ** 2).mean()
    print(f"{name}: {wrong:.1%} wrong when cut at 0.5, squared distance to the truth {distance:.3f}")
---
Save the run: tables for people, arrays for programs, no pickles. The next notebook adds experts.
---
import tempfile

folder = Path(tempfile.mkdtemp()) / "run"
fit.save(folder, source="votes.csv")
print(sorted(path.name for path in folder.iterdir()))
"""

CALIBRATE = """
# Thresholds from a few expert labels

A soft label of 0.6 is the belief of the crowd, not an expert's answer. Before labels are released, experts should look
at a few hundred items over the whole range of soft labels, to find where "positive" begins.
---
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import softgold
from softgold.experts import expect

SAMPLES = Path("../data_samples")
votes = softgold.read_votes(SAMPLES / "votes.csv")
labels = softgold.fit(votes, engine="coordinate").posterior.soft_labels()
---
A random sample would show experts mostly clear cases. `sample_for_experts` draws most items where labels change
decisions and some everywhere; the sheet that the experts get has no soft labels. `expect` says what to expect of it.
---
sample = softgold.sample_for_experts(labels, 400, seed=0)
print(expect(sample).sentence())
sample.sheet().head()
---
In this study three experts have labelled 400 items already. Their answers give a map from p to the rate at which they
say yes, and the threshold is where that rate reaches one half. The intervals say how far it would move had other
experts been asked, or had they been asked about other items.
---
experts = softgold.read_experts(SAMPLES / "experts.csv")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", softgold.errors.DataWarning)  # printed below
    result = softgold.calibrate(labels, experts)
print(f"threshold {result.threshold:.3f}, in bin {result.bin} of {len(result.bins)}")
asked = {"panel": "other experts", "items": "other items", "both": "other experts and items"}
for interval in result.intervals:
    positives = f"{interval.positives_low} to {interval.positives_high} positives"
    print(f"with {asked[interval.source]}: {interval.low:.3f} to {interval.high:.3f}, {positives}")
for sentence in result.warnings:
    print("note:", sentence)
---
Each dot is a bin: across, its mean soft label; upwards, how many of its items the experts called positive. The line
is the map from p to p_calibrated, with its credible band.
---
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
softgold.plot.expert_map(result, ax=left)
softgold.plot.soft_labels(result, ax=right)
plt.show()
---
What changes? `agreement` and `kappa` are with the experts, cross-validated and weighted to the whole data set;
`expected_wrong_calibrated` is the share of wrong labels to expect if p_calibrated is right.
---
rows = {"cut at 0.5": vars(result.before), "cut at the threshold": vars(result.after)}
pd.DataFrame(rows).loc[["positives", "prevalence", "expected_wrong_calibrated", "agreement", "kappa"]].round(3)
---
The sentence for a data sheet, with intervals over items and experts:
---
print(result.error_rates.sentence)
---
Agreement among the experts:
---
found = result.agreement
print(f"Krippendorff's alpha {found.alpha:.3f}: {found.landis_koch}")
result.experts[["expert", "n_labels", "positive_rate", "kappa_with_others", "threshold_without"]].round(3)
---
Comparison with the truth:
---
truth = pd.read_csv(SAMPLES / "truth.csv", dtype={"item": "str"}).set_index("item")["label"].reindex(labels.item_ids)
print(f"wrong at 0.5: {((labels.p >= 0.5) != truth.to_numpy()).mean():.1%}")
print(f"wrong as released: {(result.labels.label != truth.to_numpy()).mean():.1%}")
result.labels.to_frame().head().round(3)
"""

EVALUATE = """
# Models against uncertain labels

Five detectors score each item. Ordinary metrics compare the scores with hard labels, as if these were certain. Soft
metrics compare them with soft labels, so that an error on a doubtful item counts less than one on a clear item.
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
One call evaluates all models. Models and metrics share the same resamples of items, so that differences are comparable.
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
Soft values have their own scale: 1 cannot be reached when labels are uncertain. `ceiling` is what the soft labels
themselves score, and `share` how far a model is on the way from chance to there.
---
task.table.query("metric == 'soft_auroc'")[["model", "value", "chance", "ceiling", "share"]].round(3)
---
Who leads, and who changes places? Only what the resamples separate is called so.
---
from softgold.evaluation.words import both_leads, swap_words

for found in task.comparisons[:2]:
    print(both_leads(found, found.ordinary, found.soft))
    print(f"R^2 {found.r_squared:.3f}; {swap_words(found, found.ordinary, found.soft)}")
softgold.plot.ranks(result)
plt.show()
---
Are the scores probabilities that one may take at their word? Below the dashed line a model says too much.
---
softgold.plot.reliability(labels, scores)
plt.show()
---
Share of item resamples in which the row's model beats the column's:
---
pd.DataFrame(task.beats["soft_auroc"], index=result.models, columns=result.models).round(2)
---
Stability under other votes: each item's votes are resampled, the models are ranked again, and the rankings are
compared; 1 means that the ranking never changes. (This uses the majority and the share of votes, without a new fit.)
---
task.stability[["metric", "labels", "mean_pairwise", "mean_vs_observed"]].round(3)
---
A report: one HTML page made from the run, without network access.
---
import tempfile

from softgold.report import write_report

folder = Path(tempfile.mkdtemp()) / "run"
fit.save(folder)
page = write_report(folder)
print(page.name, f"{page.stat().st_size / 1000:.0f} kB")
---
## Several findings

Most studies ask more than one question. Here 25 readers vote on two findings, and three experts answer some items.
Five calls: read, fit each finding by itself, calibrate each with its own threshold, evaluate, draw. The next notebook
but one, `05_several_questions.ipynb`, goes through the steps.
---
parts = {
    name: softgold.simulate(
        issue=name,
        n_items=400,
        n_annotators=25,
        votes_per_item=5,
        prevalence=share,
        model_aurocs=(0.86, 0.85, 0.84, 0.8),
        model_ambiguity=(0.1, 0.9, 0.5, 0.9),
        seed=11,
    )
    for name, share in (("edema", 0.2), ("opacity", 0.45))
}


def below_each_other(get):
    tables = {name: get(part).to_frame() for name, part in parts.items()}
    return pd.concat([table.assign(item=name + "-" + table["item"], task=name) for name, table in tables.items()])


study = softgold.read_study(below_each_other(lambda part: part.votes))
fits = softgold.fit_tasks(study.votes, engine="coordinate")
experts = below_each_other(lambda part: part.experts.table)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", softgold.errors.DataWarning)
    calibrations = {
        name: softgold.calibrate(
            fits[name].posterior.soft_labels(), own.drop(columns="task"), n_bootstrap=200
        )
        for name, own in experts.groupby("task")
    }
soft = pd.concat([fit.posterior.soft_labels().to_frame() for fit in fits.values()])
hard = pd.concat([found.labels.to_frame() for found in calibrations.values()])
tasks = soft["item"].str.split("-").str[0].set_axis(soft["item"])
judged = softgold.evaluate(
    soft, below_each_other(lambda part: part.scores).drop(columns="task"), labels=hard, tasks=tasks, n_bootstrap=500
)
print({name: round(found.threshold, 3) for name, found in calibrations.items()})
judged.to_frame().query("metric == 'soft_auroc'")[["task", "model", "value", "low", "high", "rank"]].round(3)
---
Ranks on each finding, and on the average of both:
---
figure, axes = plt.subplots(1, 3, figsize=(11, 2.6), layout="constrained")
for axis, name in zip(axes, (*parts, None)):
    softgold.plot.ranks(judged, task=name, ax=axis).set_title(name or "average")
plt.show()
"""

PLAN = """
# Plan a campaign

Every vote costs money. Some items are clear after two votes, some need six, and some are ambiguous however many people
look at them. Here we run a campaign round by round: fit, ask where the next votes are worth most, buy them, fit again,
and stop when further votes would change little.

The study is simulated, so that votes can be "bought" and the truth looked up. It starts with two votes per item.
---
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import softgold

study = softgold.simulate(n_items=600, n_annotators=60, votes_per_item=12, prevalence=0.4, seed=7)
market = study.votes.to_frame()  # every vote that could be bought
market["turn"] = market.groupby("item").cumcount()
truth = pd.Series(study.truth.label, index=study.truth.item_ids)

run = Path(tempfile.mkdtemp()) / "run"
bought = market["turn"] < 2
fit = softgold.fit(market[bought], engine="coordinate")
fit.save(run)
print(f"{bought.sum():,} votes, {fit.posterior.soft_labels().uncertainty.mean():.1%} of the labels expected wrong")
---
What would more votes buy? Campaigns are simulated from the fitted model: with votes placed where they are worth most,
and with equally many votes for every item.
---
forecast = softgold.forecast(fit, target_error=0.17)
print(forecast)
softgold.plot.forecast(forecast).set_xlim(0, 3600)
plt.show()
---
A plan for the first 300 votes. `priority` is what the next vote on an item is worth: the expected fall of its Brier
score. Each further vote on an item is worth less. `annotators_suggested` names annotators: nobody twice on an item, the
most able ones on the most valuable items, and newcomers for a share of the votes.
---
plan = softgold.plan_votes(fit, 300)
print(plan)
plan.to_frame().head().round(4)
---
With a list of free annotators, the plan names only these. `to_votes()` has one row per vote.
---
crew = softgold.read_crew(pd.DataFrame({"annotator": [*fit.votes.annotator_ids[:20], "newcomer"], "capacity": 15}))
people = softgold.plan_votes(fit, 100, annotators=crew, explore=0.1).to_votes()
people[["item", "annotator", "explores", "priority", "p"]].head(8).round(4)
---
Now the loop: plan, buy, update. `update_run` adds the votes to the run, refits it from where it stood, and keeps the
history in `run.json`.
---
def buy(bought, wanted):
    turn = market["item"].map(wanted).fillna(0) + market["item"].map(bought.groupby(market["item"]).sum())
    return market["turn"] < turn


for _ in range(6):
    wanted = softgold.plan_votes(fit, 200, max_per_item=1).to_frame().set_index("item")["votes_suggested"]
    now = buy(bought, wanted)
    new_votes = softgold.read_votes(market[now & ~bought].drop(columns="turn"))
    update = softgold.update_run(run, new_votes, cost_per_vote=0.05)
    fit, bought = update.fit, now
history = pd.DataFrame([vars(entry) for entry in softgold.open_run(run).record.history])
history[["new_votes", "votes", "expected_error", "cost"]].round(4)
---
The same number of votes, spread evenly, for comparison, and the truth for both.
---
def wrong(fit):
    labels = fit.posterior.soft_labels()
    return float(((labels.p >= 0.5) != truth.reindex(labels.item_ids).to_numpy()).mean())


even = softgold.fit(market[market["turn"] < bought.sum() / 600], engine="coordinate")
spent = int(bought.sum()) - 1200
print(f"{spent:,} further votes where they are worth most: {wrong(fit):.1%} wrong")
print(f"{even.votes.n_votes - 1200:,} further votes spread evenly: {wrong(even):.1%} wrong")
for name, curve, found in (("adaptive", forecast.adaptive, fit), ("uniform", forecast.uniform, even)):
    expected, low, high = curve.error_at(found.votes.n_votes - 1200)
    print(f"forecast, {name}: {expected:.1%} ({low:.1%} - {high:.1%})")
---
When to stop? Ambiguous items stay ambiguous: ask an expert about them.
---
forecast = softgold.forecast(fit)
print(forecast)
forecast.ambiguous.to_frame().head().round(3)
---
Control questions tell most about an annotator whom we hardly know: clear items of both classes.
---
controls = softgold.plan_controls(fit, "newcomer", 10)
print(controls)
controls.to_frame()[["item", "answer", "p", "gain"]].head().round(3)
"""

SEVERAL = """
# Several questions, several classes

A radiologist does not only ask "is there an opacity?". A study may have several questions (findings, issues) about
its images, or one question with several classes. softgold fits each by itself, with its own abilities, prevalence and
threshold, and keeps all of them in one folder. The data are simulated.
---
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import softgold

warnings.simplefilter("ignore", softgold.errors.DataWarning)  # the second notebook shows them
findings = {"effusion": 0.3, "edema": 0.15, "opacity": 0.5}
parts = {
    name: softgold.simulate(
        issue=name,
        n_items=300,
        n_annotators=30,
        votes_per_item=6,
        prevalence=share,
        lean_mean=0.4,
        model_aurocs=(0.86, 0.85, 0.84, 0.8),
        model_ambiguity=(0.1, 0.9, 0.5, 0.9),
        seed=2,
    )
    for name, share in findings.items()
}


def below_each_other(get):
    tables = {name: get(part).to_frame() for name, part in parts.items()}
    tables = [table.assign(item=name + "-" + table["item"], finding=name) for name, table in tables.items()]
    return pd.concat(tables, ignore_index=True)


votes = below_each_other(lambda part: part.votes)
votes.groupby("finding")["vote"].agg(["size", "mean"]).round(3)
---
## Questions

`read_study` splits the votes by question. A column `task` is found by itself, others are named. Item ids must differ
between questions if models are to be evaluated on all of them.
---
study = softgold.read_study(votes, task="finding")
fits = softgold.fit_tasks(study.votes, engine="coordinate")
folder = Path(tempfile.mkdtemp()) / "study"
softgold.save_study(fits, folder, kind="tasks")
study = softgold.open_study(folder)
print(study.kind, list(study.tasks))
print(sorted(path.name for path in folder.iterdir()))
---
The same people are not equally good at each question. A figure draws one question; Axes that you make yourself put
them side by side.
---
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), dpi=70, layout="constrained", sharey=True)
for axis, (name, run) in zip(axes, study.tasks.items()):
    softgold.plot.annotators(run, ax=axis).set(title=name, ylabel="" if axis is not axes[0] else axis.get_ylabel())
plt.show()
---
Experts answered some items of each question. Each question gets its own threshold; `study.add` keeps the results in
the folder of their question, and tables of all questions on top.
---
experts = below_each_other(lambda part: part.experts.table)
experts = experts[experts["item"].isin(experts["item"].drop_duplicates().sample(400, random_state=0))]
calibrations = {
    name: softgold.calibrate(
        study.tasks[name].soft_labels, own[["item", "annotator", "vote"]], n_bootstrap=300
    )
    for name, own in experts.groupby("finding", sort=False)
}
study.add(calibrations)
pd.DataFrame(
    {
        name: {"threshold": found.threshold, "positive": found.after.prevalence, "at 0.5": found.before.prevalence}
        for name, found in calibrations.items()
    }
).T.round(3)
---
The map from p to the experts' rate, question by question:
---
figure, axes = plt.subplots(1, 3, figsize=(9, 3), dpi=70, layout="constrained", sharey=True)
for axis, (name, run) in zip(axes, study.tasks.items()):
    softgold.plot.expert_map(run, ax=axis).set(title=name, ylabel="" if axis is not axes[0] else axis.get_ylabel())
plt.show()
---
Models are judged on each question and on the average. The hard labels are those released at the threshold of each
question.
---
soft = study.soft_labels_frame()
result = softgold.evaluate(
    soft.drop(columns="task"),
    below_each_other(lambda part: part.scores).drop(columns="finding"),
    labels=study.labels,
    tasks=soft.set_index("item")["task"],
    n_bootstrap=500,
)
print(result.hard)
table = result.to_frame().query("metric in ('auroc', 'soft_auroc')")
table.pivot(index=["task", "model"], columns="metric", values="value").round(3)
---
Models change places on some findings and not on others:
---
figure, axes = plt.subplots(1, 4, figsize=(12, 2.2), dpi=70, layout="constrained")
for axis, name in zip(axes, (*findings, None)):
    softgold.plot.ranks(result, task=name, ax=axis).set_title(name or "average")
plt.show()
---
On the command line these are five commands:

    softgold fit votes.csv --task-col finding -o study
    softgold sample-experts study --budget 300 -o sheet.csv
    softgold calibrate study --experts answers.csv --key sheet.key.csv
    softgold evaluate study --scores scores.csv
    softgold report study

## Classes

One question, three answers. Each class is fitted against the rest, and the probabilities of an item are divided by
their sum.
---
rng = np.random.default_rng(5)
names = np.array(["clear", "mild", "severe"])
truth = rng.choice(3, size=200, p=[0.5, 0.3, 0.2])
skill = rng.uniform(0.55, 0.95, size=15)
rows = []
for item, grade in enumerate(truth):
    for who in rng.choice(15, size=5, replace=False):
        near = rng.choice([grade, 1]) if grade != 1 else rng.integers(3)  # neighbours are mixed up more often
        rows.append((f"scan{item:03d}", f"reader{who:02d}", names[grade if rng.random() < skill[who] else near]))
grades = pd.DataFrame(rows, columns=["item", "annotator", "vote"])
votes = softgold.read_study(grades)
print(votes.kind, list(votes.votes))
---
`p_clear`, `p_mild` and `p_severe` sum to 1; `label` is the most probable class, and `uncertainty` the chance that it is
wrong.
---
fits = softgold.fit_tasks(votes.votes, engine="coordinate")
folder = Path(tempfile.mkdtemp()) / "grades"
softgold.save_study(fits, folder, kind="classes")
study = softgold.open_study(folder)
labels = study.class_labels
wrong = (labels.label != pd.Series(names[truth], index=[f"scan{i:03d}" for i in range(200)])[labels.item_ids]).mean()
print(f"expected wrong {labels.uncertainty.mean():.1%}, wrong {wrong:.1%}")
labels.to_frame().head().round(3)
---
A figure with a soft label p is about one class against the rest:
---
figure, axes = plt.subplots(1, 3, figsize=(10, 2.6), dpi=70, layout="constrained", sharey=True)
for axis, (name, run) in zip(axes, study.tasks.items()):
    softgold.plot.soft_labels(run, bins=20, ax=axis).set_title(f"{name} against the rest")
plt.show()
---
Models give one probability per class. `evaluate_classes` judges each class against the rest, their average, and all
classes at once.
---
from softgold.evaluation import evaluate_classes


def model(sharpness):
    q = rng.dirichlet([0.6] * 3, size=200) + sharpness * np.eye(3)[truth]
    q = pd.DataFrame(q / q.sum(axis=1, keepdims=True), columns=[f"p_{name}" for name in names])
    return q.assign(item=[f"scan{i:03d}" for i in range(200)])


judged = evaluate_classes(labels.to_frame(), {"net": model(1.5), "small": model(0.5)}, n_bootstrap=500)
judged.overall[["model", "title", "value", "low", "high", "ceiling"]].round(3)
"""

NOTEBOOKS = {
    "01_fit_votes": FIT,
    "02_calibrate_with_experts": CALIBRATE,
    "03_evaluate_models": EVALUATE,
    "04_plan_a_campaign": PLAN,
    "05_several_questions": SEVERAL,
}


def build(text: str) -> nbformat.NotebookNode:
    """Return a notebook whose cells alternate between text and code."""
    parts = [part.strip() for part in text.strip().split("\n---\n")]
    cells = [new_code_cell(part) if number % 2 else new_markdown_cell(part) for number, part in enumerate(parts)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number:02d}"  # random ids would change the file each time
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
    parser.add_argument("names", nargs="*", help="notebooks to make; all if left out")
    given = parser.parse_args()
    folder = given.folder
    for name, text in NOTEBOOKS.items():
        if given.names and name not in given.names:
            continue
        nbformat.write(execute(build(text), folder), folder / f"{name}.ipynb")


if __name__ == "__main__":
    main()
