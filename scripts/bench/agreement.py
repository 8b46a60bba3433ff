"""Krippendorff's alpha from counts, beside one pass of `numpy.bincount` and a sort of the same votes, in one run.

Prints seconds and ratios; the bootstrap interval and the kappas of all pairs of raters are timed besides:

    python scripts/bench/agreement.py --votes 136970
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from softgold.agreement import NominalLabels, alpha_interval, cohen_kappas, krippendorff_alpha
from softgold.tables.votes import VoteTable


def make_votes(n_votes: int, n_items: int, n_annotators: int, seed: int) -> VoteTable:
    """Return votes in which every item and annotator has one, and no annotator votes twice on an item."""
    rng = np.random.default_rng(seed)
    items = np.concatenate([np.arange(n_items), rng.integers(n_items, size=2 * n_votes)])
    annotators = np.concatenate([np.arange(n_items) % n_annotators, rng.integers(n_annotators, size=2 * n_votes)])
    _, first = np.unique(items.astype(np.int64) * n_annotators + annotators, return_index=True)
    rows = np.sort(first)[:n_votes]
    votes = rng.random(n_votes) < 0.3
    item_ids, annotator_ids = np.arange(n_items).astype(str), np.arange(n_annotators).astype(str)
    return VoteTable.from_codes(items[rows], annotators[rows], votes, item_ids, annotator_ids)


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(table: VoteTable, rounds: int) -> dict[str, float]:
    """Time everything in turn, so that a busy machine slows all of it, and compare the medians."""
    codes = np.array(table.item_codes)

    def alpha() -> float:
        return krippendorff_alpha(NominalLabels.from_votes(table))

    actions: dict[str, Callable[[], object]] = {
        "bincount": lambda: np.bincount(codes),
        "sort": lambda: np.sort(codes),
        "alpha": alpha,
    }
    times = np.median([[seconds(action) for action in actions.values()] for _ in range(rounds)], axis=0)
    result = {f"{name}_seconds": float(f"{time:.3g}") for name, time in zip(actions, times, strict=True)}
    labels = NominalLabels.from_votes(table)
    return {
        "votes": table.n_votes,
        **result,
        "alpha_to_bincount_and_sort": round(float(times[2] / (times[0] + times[1])), 3),
        "interval_2000_seconds": round(seconds(lambda: alpha_interval(labels)), 3),
        "all_kappas_seconds": round(seconds(lambda: cohen_kappas(labels)), 3),
        "pairs_of_raters": len(cohen_kappas(labels)),
    }


def main() -> None:
    """Parse the options, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=136_970)
    parser.add_argument("--items", type=int, default=16_577)
    parser.add_argument("--annotators", type=int, default=933)
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = make_votes(options.votes, options.items, options.annotators, options.seed)
    print(json.dumps(measure(table, options.rounds), indent=2))


if __name__ == "__main__":
    main()
