"""The numbers of one task: every metric of every model on the same resamples, ranks, and ranking stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.evaluation.intake import TaskData
from softgold.evaluation.metrics import MetricSpec
from softgold.evaluation.result import RankComparison
from softgold.metrics import annotation_bootstrap, bootstrap_metrics, r_squared, wilson_interval

__all__ = ["Measured", "beat_matrix", "compare_ranks", "measure", "metric_table", "ranks", "vote_stability"]

FloatArray = NDArray[np.float64]

# Values closer than this are one value computed in another order.
TIE_TOLERANCE = 1e-12
STABILITY_METRICS = {"soft_auroc": "AUROC", "soft_average_precision": "AP"}


@dataclass(frozen=True, eq=False)
class Measured:
    """One metric of K models: value and interval, each of shape (K,), and replicates of shape (B, K).

    `weights` are the probabilities of the replicates, shape (B,).
    """

    spec: MetricSpec
    value: FloatArray
    low: FloatArray
    high: FloatArray
    interval: str
    replicates: FloatArray
    weights: FloatArray

    @property
    def n_undefined(self) -> NDArray[np.int64]:
        """Number of replicates in which the metric is undefined, shape (K,)."""
        return np.asarray(np.isnan(self.replicates).sum(axis=0), dtype=np.int64)


def measure(task: TaskData, specs: Sequence[MetricSpec], drawing: dict[str, Any]) -> list[Measured]:
    """Evaluate the metrics on the items as they are and on resamples of them, the same for all metrics and models.

    Models with scores outside [0, 1] have NaN for the metrics that need probabilities.
    """
    everyone = np.ones(task.scores.shape[1], dtype=bool)
    probable = np.asarray(((task.scores >= 0) & (task.scores <= 1)).all(axis=0))
    found = _measure(task.hard, task.scores, [s for s in specs if s.labels == "hard"], everyone, drawing)
    ranking = [spec for spec in specs if spec.labels == "soft" and not spec.needs_probability]
    found |= _measure(task.soft, task.scores, ranking, everyone, drawing)
    found |= _measure(task.soft, task.scores, [s for s in specs if s.needs_probability], probable, drawing)
    return [found[spec.name] for spec in specs if spec.name in found]


def _measure(
    targets: FloatArray,
    scores: FloatArray,
    specs: Sequence[MetricSpec],
    usable: NDArray[np.bool_],
    drawing: dict[str, Any],
) -> dict[str, Measured]:
    if not specs or not usable.any():
        return {}
    results = bootstrap_metrics([spec.engine for spec in specs], targets, scores[:, usable], **drawing)
    found = {}
    for spec in specs:
        result = results[spec.engine]
        value, low, high = (_spread(part, usable) for part in (result.estimate, result.low, result.high))
        kind = "exact" if result.exact else "bootstrap"
        if spec.length is not None:
            kind, (low, high) = "wilson", _wilson(value, spec.length, drawing["level"])
        found[spec.name] = Measured(spec, value, low, high, kind, _spread(result.replicates, usable), result.weights)
    return found


def _spread(values: FloatArray, usable: NDArray[np.bool_]) -> FloatArray:
    """Give the models that could not be measured NaN."""
    spread = np.full((*values.shape[:-1], len(usable)), np.nan)
    spread[..., usable] = values
    return spread


def _wilson(value: FloatArray, length: int, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the Wilson intervals of precisions among `length` items, as the intervals of CleanPatrick's table 10."""
    ends = [wilson_interval(min(max(share, 0.0), 1.0) * length, length, level=level) for share in value]
    return np.array([end.low for end in ends]), np.array([end.high for end in ends])


def ranks(value: FloatArray, lower_is_better: bool) -> FloatArray:
    """Return the rank of each model, 1 for the best, equal ones sharing the mean; NaN where there is no value."""
    rounded = np.round(value, 12)
    signed = rounded if lower_is_better else -rounded
    ahead = (signed[:, None] > signed).sum(axis=1)
    level_with = (signed[:, None] == signed).sum(axis=1)
    return np.where(np.isnan(signed), np.nan, ahead + (level_with + 1) / 2)


def metric_table(measured: Sequence[Measured], models: tuple[str, ...]) -> pd.DataFrame:
    """Return one row a metric and model; see `TaskEvaluation.table`."""
    parts = [
        pd.DataFrame(
            {
                "model": models,
                "metric": one.spec.name,
                "title": one.spec.title,
                "labels": one.spec.labels,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "interval": one.interval,
                "n_undefined": one.n_undefined,
                "rank": ranks(one.value, one.spec.lower_is_better),
            }
        )
        for one in measured
    ]
    return pd.concat(parts, ignore_index=True)


def beat_matrix(measured: Measured) -> FloatArray:
    """Return the share of the resamples in which the model of the row is better than that of the column."""
    signed = -measured.replicates if measured.spec.lower_is_better else measured.replicates
    beats = np.full((signed.shape[1], signed.shape[1]), np.nan)
    for first in range(len(beats)):
        # Two infinite losses have no difference: undefined, as if one of them were.
        with np.errstate(invalid="ignore"):
            difference = signed[:, [first]] - signed
        mass = np.where(np.isnan(difference), 0.0, measured.weights[:, None])
        total, won = mass.sum(axis=0), (mass * (difference > TIE_TOLERANCE)).sum(axis=0)
        np.divide(won, total, out=beats[first], where=total > 0)
    np.fill_diagonal(beats, np.nan)
    return beats


def compare_ranks(measured: Sequence[Measured], models: tuple[str, ...]) -> tuple[RankComparison, ...]:
    """Return how each ordinary metric compares with its soft twin."""
    by_name = {one.spec.name: one for one in measured}
    pairs = [(one, by_name.get(one.spec.soft_twin or "")) for one in measured]
    return tuple(_compare(hard, soft, models) for hard, soft in pairs if soft is not None)


def _compare(ordinary: Measured, soft: Measured, models: tuple[str, ...]) -> RankComparison:
    before, after = ranks(ordinary.value, False), ranks(soft.value, False)
    defined = np.isfinite(ordinary.value) & np.isfinite(soft.value)
    leads = (before[:, None] < before[None, :]) & (after[:, None] > after[None, :])
    return RankComparison(
        ordinary=ordinary.spec.name,
        soft=soft.spec.name,
        r_squared=r_squared(ordinary.value[defined], soft.value[defined]),
        best_ordinary=_first(models, before),
        best_soft=_first(models, after),
        moved=_at(models, defined & (before != after)),
        swapped=tuple((models[first], models[second]) for first, second in np.argwhere(leads)),
    )


def _first(models: tuple[str, ...], places: FloatArray) -> tuple[str, ...]:
    """Return who shares the first place; nobody where nothing is defined."""
    return () if np.isnan(places).all() else _at(models, places == np.nanmin(places))


def _at(models: tuple[str, ...], chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(model for model, is_chosen in zip(models, chosen, strict=True) if is_chosen)


def vote_stability(task: TaskData, n_replicates: int, drawing: dict[str, Any]) -> pd.DataFrame | str:
    """Return how stable rankings are when the votes are drawn anew, or the reason why that cannot be said."""
    if task.scores.shape[1] < 2:
        return "ranking stability needs at least two models"
    if (task.n_votes < 1).any():
        return f"ranking stability needs the votes: {int((task.n_votes < 1).sum())} items have none in the soft labels"
    if (task.n_positive != np.rint(task.n_positive)).any():
        return "ranking stability needs whole votes: repeated votes were averaged here"
    drawn = annotation_bootstrap(
        task.n_positive, task.n_votes, task.scores, **{**drawing, "n_replicates": n_replicates}
    )
    rows = []
    for metric, title in STABILITY_METRICS.items():
        soft, hard = drawn.stability(metric)
        for labels, found in (("hard", hard), ("soft", soft)):
            rows.append(
                {
                    "metric": title,
                    "labels": labels,
                    "mean_pairwise": found.mean_pairwise,
                    "mean_vs_observed": found.mean_vs_reference,
                    "n_used": found.n_used,
                    "n_dropped": found.n_dropped,
                }
            )
    return pd.DataFrame(rows)
