"""How far the posteriors can be trusted: against NUTS on small tables, and against the truth of simulated ones.

    python scripts/bench/posterior.py                   # both parts
    python scripts/bench/posterior.py --seeds 2 --draws 300

NUTS: two-class tables of 60 items, 12 annotators and 5 votes per item, one per seed, at the hyper-parameters of the
fit. Truth: 2,000 items, 100 annotators, 8 votes per item from the two-class model at 10 to 70 % positives, at 30 % also
with annotators who all lean towards yes or no, with the prevalence found by the default rule and given; how often 95 %
intervals of sensitivity and specificity hold the true value, their mean width, rank correlations, and the gap between p
and the share of positives. "as if known": without what the intervals add because the prevalence is not known.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import softgold
from softgold.metrics import expected_calibration_error
from softgold.models.crowd.nuts import draw_posterior
from softgold.models.crowd.prevalence import PrevalenceDoubt

ENGINES = ("svi", "coordinate")
STUDIES = ((0.1, 0.0), (0.3, 0.0), (0.3, 0.3), (0.3, -0.3), (0.5, 0.0), (0.7, 0.0))  # share of positives, mean lean


def against_nuts(seed: int, draws: int) -> list[dict[str, Any]]:
    """Return the differences of each engine to NUTS on one table."""
    votes = softgold.simulate(n_items=60, n_annotators=12, votes_per_item=5, seed=seed).votes
    rows = []
    for engine in ENGINES:
        fitted = softgold.fit(votes, engine=engine).posterior
        exact = draw_posterior(votes, fitted, draws=draws, warmup=max(200, draws // 3), seed=seed)
        apart = np.abs(fitted.soft_labels().p - exact.positive)
        rows.append({"engine": engine, "largest": apart.max(), "mean": apart.mean(), "r_hat": exact.r_hat})
    return rows


def against_truth(seed: int, positives: float, lean: float) -> list[dict[str, Any]]:
    """Return coverage, rank correlations and calibration of each engine on one table."""
    sizes: dict[str, Any] = {"n_items": 2_000, "n_annotators": 100, "votes_per_item": 8}
    study = softgold.simulate(**sizes, prevalence=positives, lean_mean=lean, seed=seed)
    truth = study.truth
    rows = []
    for engine, prevalence in product(ENGINES, ("able", positives)):
        posterior = softgold.fit(study.votes, engine=engine, prevalence=prevalence).posterior
        people, p = posterior.annotators(), posterior.soft_labels().p
        row: dict[str, Any] = {"engine": engine, "positives": positives, "lean": lean}
        row["prevalence"] = prevalence if prevalence == "able" else "given"
        row |= coverage(people, truth, "")
        known = replace(posterior, doubt=PrevalenceDoubt.none(len(people)))
        row |= coverage(known.annotators(), truth, ", as if known")
        row["rank correlation of ability"] = spearmanr(people["ability_mean"], truth.ability).statistic
        row["of lean"] = spearmanr(people["lean_mean"], truth.lean).statistic
        row["calibration gap"] = expected_calibration_error(truth.label, p, n_bins=10)
        rows.append(row)
    return rows


def coverage(people: pd.DataFrame, truth: Any, note: str) -> dict[str, float]:
    """Return how often intervals hold the true rate, and how wide they are."""
    found = {}
    for name in ("sensitivity", "specificity"):
        true, low, high = getattr(truth, name), people[f"{name}_lo"], people[f"{name}_hi"]
        found[f"{name} held{note}"] = np.mean((low <= true) & (true <= high))
        found[f"width{note} ({name})"] = np.mean(high - low)
    return found


def main() -> None:
    """Run both parts and print one row per engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=600)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    studies = product(range(options.seeds), STUDIES)
    truth = pd.DataFrame([row for seed, study in studies for row in against_truth(seed, *study)])
    print("tables drawn from the two-class model; mean over the tables")
    groups = truth.groupby(["positives", "lean", "engine", "prevalence"], sort=False)
    print(groups.mean().round(3).T.to_string(), flush=True)
    nuts = pd.DataFrame([row for seed in range(options.seeds) for row in against_nuts(seed, options.draws)])
    mixed = f"largest r_hat {nuts['r_hat'].max():.3f}"
    print(f"\n|p - p_NUTS|, {options.draws} draws, {mixed}; least and most over the tables")
    print(nuts.groupby("engine", sort=False)[["largest", "mean"]].agg(["min", "max"]).round(4).to_string())


if __name__ == "__main__":
    main()
