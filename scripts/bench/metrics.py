"""Metrics, bootstrap and map aggregation, each beside what it replaces, in one run.

Prints seconds and ratios. Whatever is compared is timed in turn, so that a busy machine slows both sides; the loop over
scikit-learn is timed on a few replicates and scaled to all of them:

    python scripts/bench/metrics.py --rounds 5
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from softgold.imaging.segmentation import aggregate_patch
from softgold.metrics import Ranking, annotation_bootstrap, bootstrap_metrics

BOTH = ["soft_auroc", "soft_average_precision"]


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def side_by_side(rounds: int, **actions: Callable[[], object]) -> dict[str, float]:
    """Time the actions in turn and return the median of each."""
    times = np.median([[seconds(action) for action in actions.values()] for _ in range(rounds)], axis=0)
    return dict(zip(actions, times.tolist(), strict=True))


def large_ranking(rounds: int, n_items: int) -> dict[str, float]:
    """Time AUROC, AP, P@k and R@k with soft labels beside scikit-learn's AUROC and AP with hard ones."""
    rng = np.random.default_rng(0)
    p = rng.random(n_items)
    scores, hard = p + rng.normal(size=n_items), (p > 0.5).astype(int)

    def ours() -> None:
        ranking = Ranking.from_scores(p, scores)
        ranking.auroc(), ranking.average_precision(), ranking.precision_at(1000), ranking.recall_at(1000)

    def sklearn() -> None:
        roc_auc_score(hard, scores), average_precision_score(hard, scores)

    times = side_by_side(rounds, ours=ours, sklearn=sklearn)
    return {**times, "ratio_at_most_0.8": times["ours"] / times["sklearn"]}


def item_bootstrap(rounds: int, n_items: int, n_bootstrap: int, workers: int) -> dict[str, float]:
    """Time the item bootstrap of soft AUROC and AP beside a loop over scikit-learn with weights."""
    rng = np.random.default_rng(1)
    p = rng.random(n_items)
    scores, hard = p + rng.normal(size=n_items), (p > 0.5).astype(int)
    labels, twice = np.repeat([1, 0], n_items), np.tile(scores, 2)

    def sklearn(*, soft: bool) -> None:
        for _ in range(5):
            w = np.bincount(rng.integers(0, n_items, n_items), minlength=n_items)
            y, s, weights = (labels, twice, np.append(w * p, w * (1 - p))) if soft else (hard, scores, w)
            roc_auc_score(y, s, sample_weight=weights), average_precision_score(y, s, sample_weight=weights)

    times = side_by_side(
        rounds,
        ours=lambda: bootstrap_metrics(BOTH, p, scores, n_bootstrap=n_bootstrap),
        ours_threads=lambda: bootstrap_metrics(BOTH, p, scores, n_bootstrap=n_bootstrap, workers=workers),
        sklearn_soft=lambda: sklearn(soft=True),
        sklearn_hard=lambda: sklearn(soft=False),
    )
    for name in ("sklearn_soft", "sklearn_hard"):
        times[name] *= n_bootstrap / 5
    return {
        **times,
        "speedup_at_least_40": times["sklearn_soft"] / times["ours"],
        "speedup_threads": times["sklearn_soft"] / times["ours_threads"],
        "speedup_over_hard_labels": times["sklearn_hard"] / times["ours"],
    }


def vote_bootstrap(rounds: int, n_items: int, n_models: int, n_annotators: int, n_bootstrap: int) -> dict[str, float]:
    """Time the annotation bootstrap, soft and hard, beside the item bootstrap of the same size."""
    rng = np.random.default_rng(2)
    p = rng.random(n_items)
    scores = p[:, None] + rng.normal(size=(n_items, n_models))
    n_votes, n_positive = np.full(n_items, n_annotators), rng.binomial(n_annotators, p)
    share = n_positive / n_votes
    times = side_by_side(
        rounds,
        annotations=lambda: annotation_bootstrap(n_positive, n_votes, scores, n_bootstrap=n_bootstrap),
        items=lambda: bootstrap_metrics(BOTH, share, scores, n_bootstrap=n_bootstrap),
    )
    return {**times, "ratio_at_most_2": times["annotations"] / times["items"]}


def patches(rounds: int, shape: tuple[int, int, int], size: int) -> dict[str, float]:
    """Time the patch aggregation beside one cumulative sum along each axis."""
    values = np.random.default_rng(3).random(shape)
    times = side_by_side(
        rounds,
        patch=lambda: aggregate_patch(values, size=size),
        cumsum=lambda: [np.cumsum(values, axis=axis) for axis in range(3)],
    )
    return {**times, "ratio_at_most_3": times["patch"] / times["cumsum"]}


def peak_memory(n_items: int, n_bootstrap: int) -> float:
    """Return the peak of what the item bootstrap allocates, in MB."""
    rng = np.random.default_rng(4)
    p, scores = rng.random(n_items), rng.random(n_items)
    tracemalloc.start()
    bootstrap_metrics(BOTH, p, scores, n_bootstrap=n_bootstrap)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Keep three digits."""
    return {name: float(f"{value:.3g}") for name, value in values.items()}


def main() -> None:
    """Measure everything and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often to time each side")
    parser.add_argument("--workers", type=int, default=2, help="threads of the threaded bootstrap")
    options = parser.parse_args()
    result = {
        "ranking of 1,000,000 items": rounded(large_ranking(options.rounds, 1_000_000)),
        "2,000 item replicates of 16,577": rounded(item_bootstrap(options.rounds, 16_577, 2000, options.workers)),
        "1,000 annotation replicates of 500, 10 models": rounded(vote_bootstrap(options.rounds, 500, 10, 8, 1000)),
        "patches of 10^3 in 256 x 256 x 128": rounded(patches(options.rounds, (256, 256, 128), 10)),
        "peak megabytes, below 500": rounded(
            {
                "16577 items, 2000 replicates": peak_memory(16_577, 2000),
                "16577 items, 8000 replicates": peak_memory(16_577, 8000),
                "1000000 items, 20 replicates": peak_memory(1_000_000, 20),
            }
        ),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
