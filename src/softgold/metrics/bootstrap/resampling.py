"""The bootstrap: intervals of metrics over items, over annotations, over experts, and over experts and items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from softgold.checks import as_finite, as_probabilities, check_choice, check_same_length
from softgold.errors import InputError, UsageError
from softgold.metrics.bootstrap.engine import Method, Settings, resample
from softgold.metrics.bootstrap.replicates import Metric
from softgold.metrics.bootstrap.resamples import ItemPlan, PanelPlan, Plan, VotePlan
from softgold.metrics.bootstrap.result import BootstrapResult

__all__ = ["Unit", "bootstrap", "bootstrap_metrics", "vote_plan"]

Unit = Literal["items", "annotations", "experts", "hierarchical"]


def bootstrap(
    metric: str | Metric,
    p: ArrayLike,
    scores: ArrayLike,
    *,
    unit: Unit = "items",
    n_votes: ArrayLike | None = None,
    k: int | None = None,
    n_replicates: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    workers: int = 1,
) -> BootstrapResult:
    """Percentile interval of a metric by the bootstrap.

    Args:
        metric: Name of a metric (`softgold.metrics.METRIC_NAMES`), which is fast, or any function of
            (p, scores, sample_weight=...), which is called once a replicate and model.
        p: What is resampled, by `unit`: soft labels of shape (n,) for `items`; shares of positive votes of shape (n,)
            for `annotations`; labels 0 and 1 of shape (experts, n) for `experts` and `hierarchical`.
        scores: Scores of one model, shape (n,), or of K models, shape (n, K), which share all resamples.
        unit: `items`: items are drawn with replacement. `annotations`: the votes of every item are drawn with
            replacement. `experts`: a panel is drawn from the experts with replacement and its strict majority taken
            (an even split is negative). `hierarchical`: such a panel, and items.
        n_votes: Votes of each item, shape (n,); for `annotations` only.
        k: Length of the list, for `precision_at_k` and `recall_at_k`; `precision_at_100` says its own.
        n_replicates: How many replicates to draw.
        level: Mass of the interval, inside (0, 1).
        seed: Replicate number r with this seed is always the same.
        method: `sample`: draw; `enumerate`: every distinct resample with its probability; `auto`: enumerate if that
            takes no more than `n_replicates` of them.
        workers: Threads; the result does not depend on their number.

    Returns:
        Estimate, interval, replicates and the number of undefined ones, which are dropped from the interval.

    Reference:
        Efron (1979); CleanPatrick, section 4 (items), Lionetti et al., section 2.2 (annotations).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> result = bootstrap("soft_auroc", p, p + rng.normal(0, 0.3, 200), n_replicates=500)
    >>> print(f"{result.estimate:.3f} [{result.low:.3f}, {result.high:.3f}]")
    0.747 [0.711, 0.776]
    """
    results = bootstrap_metrics(
        [metric],
        p,
        scores,
        unit=unit,
        n_votes=n_votes,
        k=k,
        n_replicates=n_replicates,
        level=level,
        seed=seed,
        method=method,
        workers=workers,
    )
    return next(iter(results.values()))


def bootstrap_metrics(
    metrics: Sequence[str | Metric],
    p: ArrayLike,
    scores: ArrayLike,
    *,
    unit: Unit = "items",
    n_votes: ArrayLike | None = None,
    k: int | None = None,
    n_replicates: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    workers: int = 1,
) -> dict[str, BootstrapResult]:
    """Bootstrap several metrics on the same resamples; arguments as in `bootstrap`, one result a metric, by its name.

    >>> results = bootstrap_metrics(["soft_auroc", "brier_score"], [0, 0.5, 1], [0.1, 0.7, 0.6])
    >>> sorted(results), results["soft_auroc"].exact
    (['brier_score', 'soft_auroc'], True)
    """
    check_choice(unit, ("items", "annotations", "experts", "hierarchical"), "unit")
    settings = Settings(n_replicates, level, seed, method, workers)
    return resample(_plan(unit, p, n_votes), metrics, as_finite(scores, "scores", ndim=None), k, settings)


def vote_plan(n_positive: ArrayLike, n_votes: ArrayLike) -> VotePlan:
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
    return VotePlan(positive.astype(np.int64), votes.astype(np.int64))


def _plan(unit: Unit, p: ArrayLike, n_votes: ArrayLike | None) -> Plan:
    if (n_votes is not None) != (unit == "annotations"):
        raise UsageError("n_votes must be given with unit='annotations', and only then")
    if n_votes is not None:
        share, votes = as_probabilities(p, "p"), as_finite(n_votes, "n_votes")
        check_same_length(len(share), n_votes=votes)
        positive = share * votes
        if (np.abs(positive - np.rint(positive)) > 1e-6).any():
            raise InputError("p must be the share of positive votes: p * n_votes is not a whole number everywhere")
        return vote_plan(np.rint(positive), votes)
    if unit == "items":
        return ItemPlan(as_probabilities(p, "p"))
    labels = as_probabilities(p, "p", ndim=2)
    if not len(labels) or not np.isin(labels, (0, 1)).all():
        raise InputError("labels of experts must be 0 or 1, one row an expert, at least one")
    return PanelPlan(labels, resample_items=unit == "hierarchical")
