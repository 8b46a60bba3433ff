"""What expert labels are worth: log loss of p_calibrated and accuracy of labels on the items that were not labelled.

    python scripts/bench/experts.py DIR [--draws 20] [--json FILE]

DIR holds one folder per data set with `votes.csv` (item, annotator, vote) and `truth.csv` (item, label). Soft labels
are those of the `coordinate` engine on all votes; items without a truth are left out. For every budget and every draw
a sheet is drawn ("neyman", ours, and "paper", 20 rank bins), its items get their true label, and every rule chooses a
threshold. A folder with `items.csv` (item, task) is also taken one task at a time: a threshold from a random half of
the truth is judged on the other half.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import softgold
from softgold.errors import SoftgoldWarning
from softgold.experts import ExpertPanel, ThresholdRule, fit_soft_map, logit_map, sample_for_experts
from softgold.experts.alignment import AlignedExperts, align_experts
from softgold.experts.rules import choose
from softgold.tables.soft_labels import SoftLabels

BUDGETS = (10, 25, 50, 100, 200, 400)
SCHEMES = ("neyman", "paper")
RULES = ("map", "bins", "changepoint", "largest_jump", "onset", "f1", "youden")
CLIP = 1e-4
SPLITS = 20
PRIORS = ((0.5, 0.25), (1.0, 0.5), (2.0, 0.7))  # standard deviations of a and log s
PRIOR_BUDGETS = (10, 25, 50, 100)


def read_table(folder: Path) -> tuple[SoftLabels, pd.Series]:
    """Fit the votes and return soft labels and truth of the items that have one."""
    votes = softgold.read_votes(folder / "votes.csv", duplicates="first")
    truth = pd.read_csv(folder / "truth.csv", dtype={"item": "str"}).set_index("item")["label"]
    return _with_truth(softgold.fit(votes, engine="coordinate").posterior.soft_labels(), truth)


def read_tasks(folder: Path) -> Iterator[tuple[str, SoftLabels, pd.Series]]:
    """Fit every task of a study on its own."""
    items = pd.read_csv(folder / "items.csv", dtype="str")
    truth = pd.read_csv(folder / "truth.csv", dtype={"item": "str"}).set_index("item")["label"]
    votes = pd.read_csv(folder / "votes.csv", dtype="str")
    for task, members in items.groupby("task", sort=False)["item"]:
        table = softgold.read_votes(votes[votes["item"].isin(set(members))])
        yield (str(task), *_with_truth(softgold.fit(table, engine="coordinate").posterior.soft_labels(), truth))


def _with_truth(labels: SoftLabels, truth: pd.Series) -> tuple[SoftLabels, pd.Series]:
    known = truth.reindex(labels.item_ids).dropna().astype(int)
    frame = labels.to_frame()
    return softgold.read_soft_labels(frame[frame["item"].isin(known.index)][["item", "p"]]), known


def ask(truth: pd.Series, items: pd.Index) -> ExpertPanel:
    """Let one expert who is always right label some items."""
    answers = truth.reindex(items).to_numpy(dtype=np.int8)[None, :]
    return ExpertPanel(pd.Index(["expert"]), items, answers, np.zeros(answers.shape, dtype=bool))


def judge(aligned: AlignedExperts, soft: SoftLabels, truth: pd.Series, judged: np.ndarray) -> dict[str, float]:
    """Return log losses and accuracies on the items of a mask."""
    evidence, majority = aligned.evidence, aligned.panel.majority()
    weight = evidence.design_weight(majority[None, :])[0]
    fit = fit_soft_map(evidence.p, majority, weight=weight)
    p, label = soft.p[judged], truth.to_numpy()[judged]
    row = {"log loss of p": _log_loss(p, label), "log loss of p_calibrated": _log_loss(fit.apply(p), label)}
    row["0.5"] = float(((p >= 0.5) == label).mean())
    for name in RULES:
        threshold = choose(evidence, ThresholdRule(name), majority[None, :]).threshold[0]
        row[name] = float(((p >= threshold) == label).mean())
    return row


def _log_loss(p: np.ndarray, label: np.ndarray) -> float:
    inside = np.clip(p, CLIP, 1 - CLIP)
    return float(-np.mean(np.where(label == 1, np.log(inside), np.log1p(-inside))))


def by_budget(name: str, soft: SoftLabels, truth: pd.Series, draws: int) -> Iterator[dict[str, Any]]:
    """Judge the unlabelled items of one data set for every budget, sheet and draw."""
    for budget in (budget for budget in BUDGETS if budget < len(soft)):
        for scheme in SCHEMES:
            for draw in range(draws):
                sample = sample_for_experts(soft, budget, scheme=scheme, seed=draw)
                aligned = align_experts(soft, ask(truth, sample.item_ids), ThresholdRule(), sample=sample)
                rest = ~soft.item_ids.isin(sample.item_ids)
                where = {"data": name, "items": len(soft), "budget": budget, "sheet": scheme, "draw": draw}
                yield {**where, **judge(aligned, soft, truth, rest)}


def by_task(name: str, soft: SoftLabels, truth: pd.Series) -> Iterator[dict[str, Any]]:
    """Calibrate with a random half of the truth and judge on the other half."""
    for split in range(SPLITS):
        chosen = np.random.default_rng(split).permutation(len(soft)) < len(soft) // 2
        aligned = align_experts(soft, ask(truth, soft.item_ids[chosen]), ThresholdRule())
        yield {"data": name, "split": split, **judge(aligned, soft, truth, ~chosen)}


def by_prior(name: str, soft: SoftLabels, truth: pd.Series, draws: int) -> Iterator[dict[str, Any]]:
    """Measure the log loss of the map on unlabelled items under narrower and wider priors."""
    for prior in PRIORS:
        for budget in (budget for budget in PRIOR_BUDGETS if budget < len(soft)):
            for draw in range(draws):
                sample = sample_for_experts(soft, budget, seed=draw)
                evidence = align_experts(soft, ask(truth, sample.item_ids), ThresholdRule(), sample=sample).evidence
                labels = truth.reindex(sample.item_ids).to_numpy(dtype=np.int8)[None, :]
                with patch.object(logit_map, "PRIOR_PRECISION", np.array(prior) ** -2.0):
                    (theta,), _ = logit_map.fit_logit_maps(evidence.p, labels, evidence.map_weight(labels))
                rest = ~soft.item_ids.isin(sample.item_ids)
                p, label = soft.p[rest], truth.to_numpy()[rest]
                mapped = expit(theta[0] + np.exp(theta[1]) * logit_map.log_odds(p))
                gain = _log_loss(mapped, label) - _log_loss(p, label)
                yield {"data": name, "prior": list(prior), "budget": budget, "draw": draw, "change": gain}


def full_map(name: str, soft: SoftLabels, truth: pd.Series) -> dict[str, Any]:
    """Fit the map without a prior to all labels."""
    fitted = LogisticRegression(C=np.inf, max_iter=1000).fit(logit_map.log_odds(soft.p)[:, None], truth.to_numpy())
    return {"data": name, "a": float(fitted.intercept_[0]), "log_s": float(np.log(fitted.coef_[0, 0]))}


def main() -> None:
    """Parse the options, measure, print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--json", type=Path, help="also write all rows here, for scripts/make_calibration_page.py")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SoftgoldWarning)
    budgets: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    priors: list[dict[str, Any]] = []
    maps: list[dict[str, Any]] = []
    for folder in sorted(path.parent for path in options.folder.glob("*/truth.csv")):
        table = read_table(folder)
        budgets += by_budget(folder.name, *table, options.draws)
        priors += by_prior(folder.name, *table, options.draws)
        maps.append(full_map(folder.name, *table))
        print(f"{folder.name}: {len(budgets):,} rows", flush=True)
        if (folder / "items.csv").is_file():
            studies = list(read_tasks(folder))
            tasks += [row for study in studies for row in by_task(*study)]
            maps += [full_map(*study) for study in studies]
    means = pd.DataFrame(budgets).groupby(["sheet", "budget", "data"]).mean(numeric_only=True)
    numbers = ["0.5", *RULES, "log loss of p", "log loss of p_calibrated"]
    print(means.groupby(["sheet", "budget"])[numbers].mean().round(4).to_string())
    at_100 = means.loc[("neyman", 100)]
    print(at_100.assign(gain=at_100["map"] - at_100["0.5"])[["0.5", "map", "gain"]].round(4).to_string())
    if tasks:
        halves = pd.DataFrame(tasks).groupby("data", sort=False).mean(numeric_only=True)
        print(halves.assign(gain=halves["map"] - halves["0.5"])[["gain", *numbers]].round(4).to_string())
    print(
        "root mean square of a and log s:", np.sqrt((pd.DataFrame(maps)[["a", "log_s"]] ** 2).mean()).round(2).tolist()
    )
    if options.json:
        rows = {"budgets": budgets, "tasks": tasks, "priors": priors, "maps": maps}
        options.json.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
