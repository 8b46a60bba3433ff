"""The bootstrap for callers: intervals of metrics over items, groups, votes and experts, and of rankings over votes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, as_probabilities, check_choice, check_same_length
from softgold.errors import InputError, UsageError
from softgold.metrics.bootstrap.engine import Method, Metric, OnResamples, Settings, check_probabilities, resample
from softgold.metrics.bootstrap.plans import HardRule, ItemPlan, PanelPlan, Plan, VotePlan, VoteRule
from softgold.metrics.bootstrap.result import BootstrapResult
from softgold.metrics.stability import RankingStability, ranking_stability

Unit = Literal["items", "annotations", "experts", "hierarchical"]


class BootstrapOptions(TypedDict, total=False):
    """Options of `bootstrap`, which `bootstrap_metrics` explains."""

    unit: Unit
    groups: ArrayLike | None
    n_votes: ArrayLike | None
    k: int | None
    n_bootstrap: int
    level: float
    seed: int
    method: Method
    workers: int


def bootstrap(
    metric: str | Metric, p: ArrayLike, scores: ArrayLike, **options: Unpack[BootstrapOptions]
) -> BootstrapResult:
    """Percentile interval of one metric by the bootstrap; arguments as in `bootstrap_metrics`.

    Reference:
        Efron (1979); CleanPatrick, section 4 (items), Lionetti et al., section 2.2 (annotations).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> result = bootstrap("soft_auroc", p, p + rng.normal(0, 0.3, 200), n_bootstrap=500)
    >>> print(f"{result.estimate:.3f} [{result.low:.3f}, {result.high:.3f}]")
    0.747 [0.711, 0.776]
    """
    return next(iter(bootstrap_metrics([metric], p, scores, **options).values()))


def bootstrap_metrics(
    metrics: Sequence[str | Metric],
    p: ArrayLike,
    scores: ArrayLike,
    *,
    unit: Unit = "items",
    groups: ArrayLike | None = None,
    n_votes: ArrayLike | None = None,
    k: int | None = None,
    n_bootstrap: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    workers: int = 1,
) -> dict[str, BootstrapResult]:
    """Percentile intervals of several metrics on the same resamples.

    Args:
        metrics: Names of metrics (`softgold.metrics.METRIC_NAMES`), which are fast, or any functions of
            (p, scores, sample_weight=...), which are called once per resample and model.
        p: What is resampled, by `unit`: soft labels of shape (n,) for `items`; shares of positive votes of shape (n,)
            for `annotations`; labels 0 and 1 of shape (experts, n) for `experts` and `hierarchical`.
        scores: Scores of one model, shape (n,), or of K models, shape (n, K), which share all resamples.
        unit: `items`: items are drawn with replacement. `annotations`: the votes of every item are drawn with
            replacement. `experts`: a panel is drawn from the experts with replacement and its strict majority taken
            (an even split is negative). `hierarchical`: such a panel, and items.
        groups: Group of each item, such as the patient of an image, shape (n,); for `items` only. Groups are then drawn
            with replacement, each with all of its items.
        n_votes: Votes of each item, shape (n,); for `annotations` only.
        k: Length of the list, for `precision_at_k` and `recall_at_k`; `precision_at_100` names its own.
        n_bootstrap: How many resamples to draw.
        level: Mass of the interval, inside (0, 1).
        seed: Resample number r with this seed is always the same.
        method: `sample`: draw; `enumerate`: every distinct resample with its probability; `auto`: enumerate if there
            are no more than `n_bootstrap` of them.
        workers: Most processes at a time; the result does not depend on their number.

    Returns:
        One result per metric, by name: estimate, interval, replicates and the number of undefined ones, which are
        dropped from the interval.

    >>> results = bootstrap_metrics(["soft_auroc", "brier_score"], [0, 0.5, 1], [0.1, 0.7, 0.6])
    >>> sorted(results), results["soft_auroc"].exact
    (['brier_score', 'soft_auroc'], True)
    """
    settings = Settings(n_bootstrap, level, seed, method, workers)
    values = as_finite(scores, "scores", ndim=None)
    check_probabilities(metrics, values)
    return resample(_plan(unit, p, groups, n_votes), [metrics], values, settings, k=k)[0]


@dataclass(frozen=True, eq=False)
class AnnotationBootstrap:
    """Metrics under resampled votes, by the name of the metric.

    Attributes:
        soft: Against the share of positive votes.
        hard: Against the majority of the same votes.

    Example:
        >>> result = annotation_bootstrap([2, 1, 3], [3, 3, 3], [[0.9, 0.2], [0.2, 0.8], [0.7, 0.3]], n_bootstrap=50)
        >>> sorted(result.soft) == sorted(result.hard), result.soft["soft_auroc"].mean.shape
        (True, (2,))
    """

    soft: Mapping[str, BootstrapResult]
    hard: Mapping[str, BootstrapResult]

    def stability(self, metric: str) -> tuple[RankingStability, RankingStability]:
        """Return how stable the ranking of the models by a metric is: against soft and against hard labels."""
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
    n_bootstrap: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    workers: int = 1,
    on_resamples: OnResamples | None = None,
) -> AnnotationBootstrap:
    """Resample the votes of every item and evaluate K models against the soft and the hard labels that result.

    Args:
        n_positive: Positive votes of each item, shape (n,).
        n_votes: Votes of each item, shape (n,), at least 1.
        scores: Scores of the models, shape (n, K); all models see the same votes.
        metrics: Metrics by name, or functions of (p, scores, sample_weight=...).
        hard_rule: The hard label is 1 when the share of positive votes is `>` or `>=` one half; this decides what an
            even split means.
        k, n_bootstrap, level, seed, method, workers: As in `bootstrap_metrics`.
        on_resamples: Called with the number of resamples just finished, for a progress bar.

    Returns:
        One result per metric and kind of label. Resamples without positives or without negatives are dropped and
        counted.

    Reference:
        Lionetti et al., section 2.2 and figure 3.

    >>> result = annotation_bootstrap([2, 1, 1, 3], [3, 3, 3, 3], [[0.9, 0.2], [0.8, 0.9], [0.2, 0.8], [0.7, 0.3]])
    >>> result.soft["soft_auroc"].mean.round(4).tolist(), result.hard["soft_auroc"].mean.round(4).tolist()
    ([0.5467, 0.2735], [0.5965, 0.1836])
    """
    check_choice(hard_rule, (">", ">="), "hard_rule")
    settings = Settings(n_bootstrap, level, seed, method, workers)
    values = as_finite(scores, "scores", ndim=2)
    check_probabilities(metrics, values)
    plan = vote_plan(n_positive, n_votes, rules=("share", hard_rule))
    soft, hard = resample(plan, [metrics, metrics], values, settings, k=k, on_resamples=on_resamples)
    return AnnotationBootstrap(soft, hard)


def vote_plan(n_positive: ArrayLike, n_votes: ArrayLike, *, rules: tuple[VoteRule, ...] = ("share",)) -> VotePlan:
    """Check counts of votes and plan their resampling."""
    positive, votes = as_finite(n_positive, "n_positive"), as_finite(n_votes, "n_votes")
    check_same_length(len(votes), n_positive=positive)
    for name, values in (("n_positive", positive), ("n_votes", votes)):
        if not np.array_equal(values, np.rint(values)):
            raise InputError(f"{name} must be whole numbers of votes, got {values[values != np.rint(values)][0]}")
    if (votes < 1).any():
        raise InputError(f"every item needs at least one vote, got {votes.min():.0f} at position {int(votes.argmin())}")
    wrong = (positive < 0) | (positive > votes)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"n_positive must lie between 0 and n_votes, got {positive[at]} of {votes[at]} at position {at}"
        )
    kind = np.int32 if votes.max(initial=0) < 2**31 else np.int64
    return VotePlan(positive.astype(kind), votes.astype(kind), rules)


def _plan(unit: Unit, p: ArrayLike, groups: ArrayLike | None, n_votes: ArrayLike | None) -> Plan:
    check_choice(unit, ("items", "annotations", "experts", "hierarchical"), "unit")
    if (n_votes is not None) != (unit == "annotations"):
        raise UsageError("n_votes must be given with unit='annotations', and only then")
    if groups is not None and unit != "items":
        raise UsageError(f"groups can be redrawn with unit='items' only, got unit={unit!r}")
    if n_votes is not None:
        return _share_plan(p, n_votes)
    if unit == "items":
        return _item_plan(as_probabilities(p, "p"), groups)
    labels = as_probabilities(p, "p", ndim=2)
    if not len(labels) or not np.isin(labels, (0, 1)).all():
        raise InputError("labels of experts must be 0 or 1, one row per expert, at least one")
    return PanelPlan(labels, resample_items=unit == "hierarchical")


def _item_plan(p: NDArray[np.float64], groups: ArrayLike | None) -> ItemPlan:
    if groups is None:
        return ItemPlan.of_items(p)
    names = np.asarray(groups)
    check_same_length(len(p), groups=names)
    missing = np.array([name is None or (isinstance(name, float) and math.isnan(name)) for name in names.tolist()])
    if missing.any():
        raise InputError(f"every item needs a group, but position {int(missing.argmax())} has none")
    found, codes = np.unique(names, return_inverse=True)
    return ItemPlan((p,), codes, len(found))


def _share_plan(p: ArrayLike, n_votes: ArrayLike) -> VotePlan:
    share, votes = as_probabilities(p, "p"), as_finite(n_votes, "n_votes")
    check_same_length(len(share), n_votes=votes)
    positive = share * votes
    if (np.abs(positive - np.rint(positive)) > 1e-6).any():
        raise InputError("p must be the share of positive votes: p * n_votes is not a whole number everywhere")
    return vote_plan(np.rint(positive), votes)


def _stability(result: BootstrapResult) -> RankingStability:
    return ranking_stability(result.replicates, reference=result.estimate, probability=result.probability)
