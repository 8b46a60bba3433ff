"""The annotation bootstrap: had other votes been cast, would the metrics and the ranking of the models be the same?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from softgold.checks import as_finite, check_choice
from softgold.metrics.bootstrap.engine import Method, Settings, resample
from softgold.metrics.bootstrap.replicates import Metric
from softgold.metrics.bootstrap.resamples import HardRule
from softgold.metrics.bootstrap.resampling import vote_plan
from softgold.metrics.bootstrap.result import BootstrapResult
from softgold.metrics.stability import RankingStability, ranking_stability

__all__ = ["AnnotationBootstrap", "annotation_bootstrap"]


@dataclass(frozen=True, eq=False)
class AnnotationBootstrap:
    """Metrics under resampled votes, by the name of the metric.

    Attributes:
        soft: Against the share of positive votes.
        hard: Against the majority of the same votes.
    """

    soft: Mapping[str, BootstrapResult]
    hard: Mapping[str, BootstrapResult]

    def stability(self, metric: str) -> tuple[RankingStability, RankingStability]:
        """Return how stable the ranking of the models is by a metric: against soft and against hard labels."""
        soft, hard = self.soft[metric], self.hard[metric]
        return _stability(soft), _stability(hard)


def annotation_bootstrap(
    n_positive: ArrayLike,
    n_votes: ArrayLike,
    scores: ArrayLike,
    *,
    metrics: Sequence[str | Metric] = ("soft_auroc", "soft_average_precision"),
    hard_rule: HardRule = ">",
    k: int | None = None,
    n_replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    workers: int = 1,
) -> AnnotationBootstrap:
    """Resample the votes of every item and evaluate K models against the soft and the hard labels that result.

    Args:
        n_positive: Positive votes of each item, shape (n,).
        n_votes: Votes of each item, shape (n,), at least 1.
        scores: Scores of the models, shape (n, K), which all see the same votes.
        metrics: Metrics by name, or functions of (p, scores, sample_weight=...).
        hard_rule: The hard label is 1 when the share of positive votes is `>` or `>=` one half; this decides what an
            even split means.
        k: Length of the list, for `precision_at_k` and `recall_at_k`.
        n_replicates: How many replicates to draw.
        level: Mass of the intervals.
        seed: Replicate number r with this seed is always the same.
        method: `sample`: draw; `enumerate`: every outcome with its probability; `auto`: enumerate if there are no more
            than `n_replicates` of them.
        workers: Threads; the result does not depend on their number.

    Returns:
        One result a metric and kind of label; resamples without positives or without negatives are dropped and counted.

    Reference:
        Lionetti et al., section 2.2 and figure 3.

    >>> result = annotation_bootstrap([2, 1, 1, 3], [3, 3, 3, 3], [[0.9, 0.2], [0.8, 0.9], [0.2, 0.8], [0.7, 0.3]])
    >>> result.soft["soft_auroc"].mean.round(4).tolist(), result.hard["soft_auroc"].mean.round(4).tolist()
    ([0.5467, 0.2735], [0.5965, 0.1836])
    """
    check_choice(hard_rule, (">", ">="), "hard_rule")
    settings = Settings(n_replicates, level, seed, method, workers)
    values = as_finite(scores, "scores", ndim=2)
    soft = vote_plan(n_positive, n_votes)
    hard = replace(soft, hard_rule=hard_rule)
    # The same seed draws the same votes for both kinds of label.
    return AnnotationBootstrap(
        resample(soft, metrics, values, k, settings), resample(hard, metrics, values, k, settings)
    )


def _stability(result: BootstrapResult) -> RankingStability:
    return ranking_stability(result.replicates, reference=result.estimate, probability=result.probability)
