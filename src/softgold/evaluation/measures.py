"""The numbers of one task: every metric of every model on the same resamples, ranks, and ranking stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from softgold.evaluation.alignment import TaskData
from softgold.evaluation.ceilings import Reference, references
from softgold.evaluation.metrics import MetricSpec
from softgold.metrics import annotation_bootstrap, wilson_interval
from softgold.metrics.bootstrap.engine import OnResamples, Settings, resample
from softgold.metrics.bootstrap.plans import ItemPlan
from softgold.metrics.bootstrap.result import TIE_TOLERANCE, BootstrapResult
from softgold.metrics.intervals import percentile_interval

FloatArray = NDArray[np.float64]

STABILITY_METRICS = {"soft_auroc": "AUROC", "soft_average_precision": "AP"}
STABILITY_COLUMNS = ("metric", "labels", "mean_pairwise", "mean_vs_observed", "n_used", "n_dropped")


@dataclass(frozen=True, eq=False)
class Measured:
    """One metric of K models.

    Attributes:
        spec: The metric.
        value: Its values, shape (K,).
        low: Lower ends of the intervals, shape (K,).
        high: Upper ends, shape (K,).
        interval: Kind of the intervals: bootstrap, exact or wilson.
        replicates: Values on the resamples, shape (B, K).
        weights: Probabilities of the resamples, shape (B,).
        reference: Chance and ceiling.
    """

    spec: MetricSpec
    value: FloatArray
    low: FloatArray
    high: FloatArray
    interval: str
    replicates: FloatArray
    weights: FloatArray
    reference: Reference

    @property
    def n_undefined(self) -> NDArray[np.int64]:
        """Number of resamples in which the metric is undefined, shape (K,)."""
        return np.asarray(np.isnan(self.replicates).sum(axis=0), dtype=np.int64)


def measure(
    task: TaskData, n_groups: int, specs: tuple[MetricSpec, ...], settings: Settings, on_resamples: OnResamples
) -> list[Measured]:
    """Evaluate the metrics on the items as they are and on resamples, the same for all metrics and models.

    Models with scores outside [0, 1] have NaN for the metrics that need probabilities; a metric that no model has is
    left out.
    """
    probable = ((task.scores >= 0) & (task.scores <= 1)).all(axis=0)
    wanted = [spec for spec in specs if not spec.needs_probability or probable.any()]
    kinds = [[spec for spec in wanted if spec.labels == labels] for labels in ("hard", "soft")]
    plan = ItemPlan((task.hard, task.soft), task.groups, n_groups or len(task))
    results = resample(
        plan, [[spec.engine for spec in kind] for kind in kinds], task.scores, settings, on_resamples=on_resamples
    )
    ends = references(specs, task.soft)
    found = {
        spec.name: _measured(spec, result[spec.engine], ends[spec.name])
        for kind, result in zip(kinds, results, strict=True)
        for spec in kind
    }
    return [found[spec.name] for spec in wanted]


def _measured(spec: MetricSpec, result: BootstrapResult, reference: Reference) -> Measured:
    kind = "exact" if result.exact else "bootstrap"
    measured = Measured(
        spec, result.estimate, result.low, result.high, kind, result.replicates, result.weights, reference
    )
    if not spec.name.startswith(("precision", "soft_precision")):
        return measured
    # As the intervals of CleanPatrick's table 10.
    shares = np.clip(result.estimate, 0.0, 1.0)
    ends = np.array([wilson_interval(share * spec.length, spec.length, level=result.level) for share in shares])
    return replace(measured, low=ends[:, 0], high=ends[:, 1], interval="wilson")


def mean_over_tasks(parts: Sequence[Measured], level: float) -> Measured:
    """Average one metric over tasks; a resample in which a task is undefined is undefined."""
    replicates = np.mean([part.replicates for part in parts], axis=0)
    ends = np.array([percentile_interval(column, level) for column in replicates.T])
    chance = float(np.mean([part.reference.chance for part in parts]))
    ceiling = float(np.mean([part.reference.ceiling for part in parts]))
    return Measured(
        spec=parts[0].spec,
        value=np.mean([part.value for part in parts], axis=0),
        low=ends[:, 0],
        high=ends[:, 1],
        interval="bootstrap",
        replicates=replicates,
        weights=parts[0].weights,
        reference=Reference(chance, ceiling),
    )


def ranks(value: FloatArray, lower_is_better: bool) -> FloatArray:
    """Return the rank of each model, 1 for the best, equal ones sharing the mean; NaN where there is no value."""
    # Models that are equal must not be ranked by the rounding of their sums.
    signed = np.round(value if lower_is_better else -value, 12)
    return np.asarray(rankdata(signed, nan_policy="omit"), dtype=np.float64)


def metric_table(measured: Sequence[Measured], models: tuple[str, ...]) -> pd.DataFrame:
    """Return one row per metric and model; see `TaskEvaluation.table`."""
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
                "chance": one.reference.chance,
                "ceiling": one.reference.ceiling,
                "share": one.reference.share(one.value),
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


def why_no_stability(task: TaskData) -> str:
    """Return why the stability of the ranking cannot be measured; empty if it can."""
    if task.scores.shape[1] < 2:
        return "ranking stability needs at least two models"
    if (task.n_votes < 1).any():
        return "ranking stability needs the votes of every item, and the soft labels do not have them"
    if (task.n_positive != np.rint(task.n_positive)).any():
        return "ranking stability needs whole votes, and repeated votes were averaged here"
    return ""


def vote_stability(task: TaskData, settings: Settings, on_resamples: OnResamples) -> pd.DataFrame:
    """Return how stable the rankings by AUROC and AP are when the votes of each item are resampled."""
    drawn = annotation_bootstrap(
        task.n_positive,
        task.n_votes,
        task.scores,
        metrics=list(STABILITY_METRICS),
        n_bootstrap=settings.n_bootstrap,
        level=settings.level,
        seed=settings.seed,
        method=settings.method,
        workers=settings.workers,
        on_resamples=on_resamples,
    )
    rows = []
    for metric, title in STABILITY_METRICS.items():
        soft, hard = drawn.stability(metric)
        for labels, found in (("hard", hard), ("soft", soft)):
            rows.append((title, labels, found.mean_pairwise, found.mean_vs_reference, found.n_used, found.n_dropped))
    return pd.DataFrame(rows, columns=list(STABILITY_COLUMNS))
