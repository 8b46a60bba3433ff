"""`evaluate` beside a loop of scikit-learn's AUROC and average precision over the same number of resamples, in one run.

The loop draws the items of a resample and calls `roc_auc_score` and `average_precision_score` with hard labels for
every model; a few resamples of it are timed, before and after `evaluate`, and scaled to all. `evaluate` does all that
it does by default: soft and hard AUROC, AP, P@k and R@k, Brier scores, log loss, ECE, comparisons and ceilings, and the
stability of the ranking (`--n-vote-bootstrap`).

    python scripts/bench/evaluate.py [--items 185000] [--models 10] [--n-bootstrap 2000] [--n-vote-bootstrap 1000]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from softgold.evaluation import evaluate
from softgold.readers import read_soft_labels
from softgold.tables.scores import Scores

LOOP_RESAMPLES = 5


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes by the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def loop(hard: np.ndarray, values: np.ndarray, count: int) -> None:
    """Judge every model on resamples of the items, one call at a time."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        drawn = rng.integers(0, len(hard), len(hard))
        labels = hard[drawn]
        for model in values.T:
            scores = model[drawn]
            roc_auc_score(labels, scores)
            average_precision_score(labels, scores)


def main() -> None:
    """Parse the options, measure both side by side, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=185_000)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--n-bootstrap", type=int, default=2000)
    parser.add_argument("--n-vote-bootstrap", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n_positive = rng.binomial(5, rng.beta(0.5, 0.8, options.items))
    p = (n_positive + 0.5) / 6
    values = 1 / (1 + np.exp(-rng.normal(6 * p[:, None] - 3, 2.0, (options.items, options.models))))
    items = [f"i{number}" for number in range(options.items)]
    labels = read_soft_labels(pd.DataFrame({"item": items, "p": p, "n_votes": 5, "n_positive": n_positive}))
    scores = Scores(labels.item_ids, tuple(f"m{number}" for number in range(options.models)), values)
    hard = (p >= 0.5).astype(int)

    scale = options.n_bootstrap / LOOP_RESAMPLES
    first = scale * seconds(lambda: loop(hard, values, LOOP_RESAMPLES))
    ours = seconds(
        lambda: evaluate(
            labels,
            scores,
            n_bootstrap=options.n_bootstrap,
            n_vote_bootstrap=options.n_vote_bootstrap,
            workers=options.workers,
        )
    )
    last = scale * seconds(lambda: loop(hard, values, LOOP_RESAMPLES))
    print(
        f"loop of scikit-learn, scaled, {first:.0f} s before and {last:.0f} s after; evaluate {ours:.1f} s in "
        f"{options.workers} processes; ratio {first / ours:.1f} and {last / ours:.1f}"
    )


if __name__ == "__main__":
    main()
