"""How far the posteriors can be trusted: against NUTS on small tables, and against the truth of simulated ones.

    python scripts/bench/posterior.py                   # both parts
    python scripts/bench/posterior.py --seeds 2 --draws 300 --json posterior.json

NUTS: 60 items, 12 annotators, 5 votes an item, one table a seed; largest and mean |p - p_NUTS| of each engine. Truth:
tables drawn from the model itself (abilities of N(0, 1) in size, nine of ten positive so that there is a right way up;
N(0, 3^2) difficulties); how often 95 % intervals hold the true value, the learned scale, rank correlations, and the gap
between p and the share of positives over tenths of [0, 1].
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import spearmanr

import softgold
from softgold.glad.nuts import draw_posterior
from softgold.metrics import expected_calibration_error
from softgold.votes import VoteTable

FloatArray = NDArray[np.float64]
ENGINES: dict[str, dict[str, Any]] = {
    "svi": {},
    "coordinate": {"engine": "coordinate"},
    "coordinate, Normal factors": {"engine": "coordinate", "family": "gaussian"},
    "coordinate, paper's prior": {"engine": "coordinate", "prior": "paper"},
}
ITEMS, ANNOTATORS, VOTES_PER_ITEM, SCALE = 2_000, 100, 8, 3.0


def against_nuts(seed: int, draws: int) -> list[dict[str, Any]]:
    """Return the differences of each engine, and of the vote share, to the exact posterior of one table."""
    votes = softgold.simulate(n_items=60, n_annotators=12, votes_per_item=5, seed=seed).votes
    exact = draw_posterior(votes, draws=draws, warmup=max(200, draws // 3), seed=seed)
    found = {name: softgold.fit(votes, **options).posterior.items.positive for name, options in ENGINES.items()}
    found["vote share"] = votes.item_shares
    rows = []
    for name, p in found.items():
        apart = np.abs(p - exact.positive)
        rows.append({"engine": name, "seed": seed, "largest": apart.max(), "mean": apart.mean(), "r_hat": exact.r_hat})
    return rows


def drawn_from_the_model(seed: int) -> tuple[VoteTable, FloatArray, FloatArray]:
    """Return votes with their true abilities and signed difficulties."""
    rng = np.random.default_rng(seed)
    c = np.abs(rng.normal(size=ANNOTATORS)) * np.where(rng.random(ANNOTATORS) < 0.9, 1, -1)
    b = SCALE * rng.normal(size=ITEMS)
    items = np.repeat(np.arange(ITEMS), VOTES_PER_ITEM)
    annotators = np.concatenate([rng.choice(ANNOTATORS, VOTES_PER_ITEM, replace=False) for _ in range(ITEMS)])
    votes = rng.random(len(items)) < expit(c[annotators] * b[items])
    table = VoteTable.from_codes(items, annotators, votes, map(str, range(ITEMS)), map(str, range(ANNOTATORS)))
    return table, c, b


def against_truth(seed: int) -> list[dict[str, Any]]:
    """Return coverage, scale, rank correlations and calibration of each engine on one table."""
    votes, c, b = drawn_from_the_model(seed)
    rows = []
    for name, options in ENGINES.items():
        posterior = softgold.fit(votes, **options).posterior
        items, people = posterior.items, posterior.abilities
        rows.append(
            {
                "engine": name,
                "seed": seed,
                "b in its interval": np.mean((items.low <= b) & (b <= items.high)),
                "c in its interval": np.mean((people.low <= c) & (c <= people.high)),
                "scale": posterior.prior.starting_scale,
                "rank correlation of b": spearmanr(items.mean, b).statistic,
                "of c": spearmanr(people.mean, c).statistic,
                "calibration gap": expected_calibration_error(b > 0, items.positive, n_bins=10),
            }
        )
    return rows


def main() -> None:
    """Run both parts and print a row an engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1500)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    seeds = range(options.seeds)
    nuts = pd.DataFrame([row for seed in seeds for row in against_nuts(seed, options.draws)])
    print(
        f"|p - p_NUTS|, {options.draws} draws, largest r_hat {nuts['r_hat'].max():.3f}; least and most over the tables"
    )
    print(nuts.groupby("engine", sort=False)[["largest", "mean"]].agg(["min", "max"]).round(3).to_string())
    truth = pd.DataFrame([row for seed in seeds for row in against_truth(seed)])
    print(f"\ntables drawn from the model, scale {SCALE:g}; mean over the tables")
    print(truth.drop(columns="seed").groupby("engine", sort=False).mean().round(3).T.to_string())
    if options.json:
        answer = {"nuts": nuts.to_dict("records"), "truth": truth.to_dict("records")}
        options.json.write_text(json.dumps(answer, indent=2) + "\n")


if __name__ == "__main__":
    main()
