"""Metrics of many resamples at once: the items of a model are sorted once, and a resample is a row of weights.

Ranking metrics are read off the running sums of whole blocks of resamples, scores of probabilities are sums over such a
block; a metric without such a form is called once a resample, with the weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_probabilities, check_choice, check_positive_int
from softgold.errors import UsageError
from softgold.metrics.bootstrap.blockwise import BLOCKWISE, BoundMetric
from softgold.metrics.bootstrap.resamples import Draw
from softgold.metrics.ranking import auc_pr
from softgold.metrics.reliability import average_calibration_error
from softgold.metrics.sweep import Order, Sweep, area_under_roc, average_precision, positives_in_top, rank, sweep_of

__all__ = ["METRIC_NAMES", "Evaluator", "Metric", "evaluator"]

FloatArray = NDArray[np.float64]


class Metric(Protocol):
    """Any metric of soft labels and scores that knows weights, such as the functions of `softgold.metrics`."""

    def __call__(self, p: ArrayLike, scores: ArrayLike, /, *, sample_weight: ArrayLike | None = ...) -> float:
        """Return the value of one model."""
        ...


SweepMetric = Callable[[Sweep], FloatArray]

SWEPT: dict[str, Callable[[Sweep, int], FloatArray]] = {
    "soft_auroc": lambda sweep, k: area_under_roc(sweep),
    "soft_average_precision": lambda sweep, k: average_precision(sweep),
    "precision_at_k": lambda sweep, k: positives_in_top(sweep, k) / np.minimum(k, sweep.weight[..., -1]),
    "recall_at_k": lambda sweep, k: _share(positives_in_top(sweep, k), sweep.n_positive),
}
CALLED: dict[str, Metric] = {
    "auc_pr": auc_pr,
    "average_calibration_error": average_calibration_error,
}
METRIC_NAMES = tuple(sorted([*SWEPT, *CALLED, *BLOCKWISE]))
# A list of its own length: precision_at_100 is precision_at_k with k = 100, so that one sweep serves several lengths.
AT_LENGTH = re.compile(r"(precision|recall)_at_([1-9][0-9]{0,17})")


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Values of several metrics of K models on blocks of resamples.

    Attributes:
        scores: Scores of the models, shape (n, K).
        orders: Order of the items by each model; empty if no metric needs it.
        swept: Metrics that are read off the running sums, by name.
        rowwise: The other metrics, by name, each prepared for every model.
    """

    scores: FloatArray
    orders: tuple[Order, ...]
    swept: dict[str, SweepMetric]
    rowwise: dict[str, tuple[BoundMetric, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the metrics, in the order of the values."""
        return (*self.swept, *self.rowwise)

    def __call__(self, draw: Draw) -> FloatArray:
        """Return the values of each resample, model and metric; shape (C, K, M)."""
        values = np.empty((len(draw), self.scores.shape[1], len(self.names)))
        for model, order in enumerate(self.orders):
            sweep = _sweep(draw, order)
            for at, metric in enumerate(self.swept.values()):
                values[:, model, at] = metric(sweep)
        for at, of_models in enumerate(self.rowwise.values(), start=len(self.swept)):
            for model, bound in enumerate(of_models):
                values[:, model, at] = bound(draw)
        return values


def evaluator(metrics: Sequence[str | Metric], scores: FloatArray, k: int | None) -> Evaluator:
    """Prepare metrics, by name or as functions, for the models in the columns of `scores`."""
    swept: dict[str, SweepMetric] = {}
    rowwise: dict[str, tuple[BoundMetric, ...]] = {}
    columns = [np.ascontiguousarray(column) for column in scores.T]
    names = [metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric)) for metric in metrics]
    if len(set(names)) < len(names):
        raise UsageError(f"metrics must have different names, got {', '.join(names)}")
    for name, metric in zip(names, metrics, strict=True):
        if not isinstance(metric, str):
            rowwise[name] = tuple(_row_by_row(metric, column) for column in columns)
        elif metric in SWEPT:
            swept[metric] = _with_k(metric, k)
        elif (own := AT_LENGTH.fullmatch(metric)) is not None:
            swept[metric] = _with_k(f"{own[1]}_at_k", int(own[2]))
        elif metric in BLOCKWISE:
            as_probabilities(scores, "scores", ndim=2)
            rowwise[metric] = tuple(BLOCKWISE[metric](column) for column in columns)
        else:
            check_choice(metric, METRIC_NAMES, "metric")
            rowwise[metric] = tuple(_row_by_row(CALLED[metric], column) for column in columns)
    orders = tuple(rank(column) for column in columns) if swept else ()
    return Evaluator(scores, orders, swept, rowwise)


def _sweep(draw: Draw, order: Order) -> Sweep:
    weight, targets = draw.weight.take(order.items, axis=1), draw.targets.take(order.items, axis=1)
    positives = targets if len(weight) == 1 and (weight == 1).all() else weight * targets
    return sweep_of(weight, positives, order.starts)


def _with_k(name: str, k: int | None) -> SweepMetric:
    if not name.endswith("_at_k"):
        return lambda sweep: SWEPT[name](sweep, 0)
    if k is None:
        raise UsageError(f"{name} needs k, the length of the list")
    length = check_positive_int(k, "k")
    return lambda sweep: SWEPT[name](sweep, length)


def _row_by_row(metric: Metric, scores: FloatArray) -> BoundMetric:
    def values(draw: Draw) -> FloatArray:
        weight = np.broadcast_to(draw.weight, (len(draw), len(scores)))
        targets = np.broadcast_to(draw.targets, (len(draw), len(scores)))
        rows = zip(targets, weight, strict=True)
        return np.array([metric(row, scores, sample_weight=w) for row, w in rows], dtype=np.float64)

    return values


def _share(found: FloatArray, total: FloatArray) -> FloatArray:
    undefined = np.full(np.shape(found), np.nan)
    return np.asarray(np.divide(found, total, out=undefined, where=total > 0))
