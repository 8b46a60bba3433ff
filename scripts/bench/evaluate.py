"""What an evaluation costs beside the bootstraps that it rests on, called directly, in one run.

python scripts/bench/evaluate.py [--items 500] [--models 10] [--repeats 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from softgold.evaluation import evaluate
from softgold.metrics import annotation_bootstrap, bootstrap_metrics
from softgold.readers import read_soft_labels
from softgold.tables.scores import Scores

RANKING = ["soft_auroc", "soft_average_precision"]


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Parse the options, measure both side by side, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n_positive = rng.binomial(8, rng.beta(0.5, 0.8, options.items))
    p = (n_positive + 0.5) / 9
    values = np.clip(p[:, None] + rng.normal(0, 0.3, (options.items, options.models)), 0.001, 0.999)
    items = [f"i{number}" for number in range(options.items)]
    labels = read_soft_labels(pd.DataFrame({"item": items, "p": p, "n_votes": 8, "n_positive": n_positive}))
    scores = Scores(labels.item_ids, tuple(f"m{number}" for number in range(options.models)), values)

    def directly() -> None:
        for targets in ((p >= 0.5).astype(float), p):
            bootstrap_metrics(RANKING, targets, values, n_bootstrap=2000)
        annotation_bootstrap(n_positive, np.full(options.items, 8), values, n_bootstrap=1000)

    ratios = []
    for _ in range(options.repeats):
        whole, parts = seconds(lambda: evaluate(labels, scores)), seconds(directly)
        ratios.append(whole / parts)
        print(f"evaluate {whole:.2f} s, AUROC and AP bootstraps alone {parts:.2f} s, ratio {ratios[-1]:.2f}")
    print(f"median ratio {np.median(ratios):.2f} (evaluate has P@k, R@k, Brier, log loss, ECE and comparisons besides)")


if __name__ == "__main__":
    main()
