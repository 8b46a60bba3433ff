"""`Ranking`: items sorted once by score, with the cumulative sums that all ranking metrics share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import check_choice, check_positive_int
from softgold.metrics.inputs import targets_and_scores
from softgold.metrics.sweep import Sweep, area_under_roc, average_precision, positives_in_top, rank, sweep_of

FloatArray = NDArray[np.float64]
Diagonal = Literal["half", "exclude", "include", "pairs"]
Ties = Literal["expected", "stable"]


@dataclass(frozen=True, eq=False)
class RocCurve:
    """Points of the soft ROC curve from (0, 0) to (1, 1), at descending thresholds; each of shape (G + 1,).

    Example:
        >>> from softgold.metrics import soft_roc_curve
        >>> soft_roc_curve([1, 0, 1], [0.9, 0.8, 0.1]).tpr.tolist()
        [0.0, 0.5, 0.5, 1.0]
    """

    fpr: FloatArray
    tpr: FloatArray
    thresholds: FloatArray


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Points of the soft precision-recall curve at descending thresholds, the artificial (recall 0, precision 1) first.

    Each of shape (G + 1,).

    Example:
        >>> from softgold.metrics import soft_precision_recall_curve
        >>> soft_precision_recall_curve([1, 0.5, 0], [0.9, 0.8, 0.1]).precision.tolist()
        [1.0, 1.0, 0.75, 0.5]
    """

    precision: FloatArray
    recall: FloatArray
    thresholds: FloatArray


@dataclass(frozen=True, eq=False)
class Ranking:
    """Items sorted once, with the cumulative sums that all the ranking metrics share.

    Attributes:
        thresholds: Distinct scores, descending, shape (G,).
        groups: Cumulative sums, one entry per distinct score.
        items: Cumulative sums, one entry per item, equal scores in their original order.
        diagonal: d = sum w p (1 - p), the mass of the pairs of an item with itself. Two copies of an item are two
            items, so a weight of 2 doubles it.

    >>> ranking = Ranking.from_scores([1, 0.5, 0], [0.9, 0.8, 0.1])
    >>> round(ranking.auroc(), 4), round(ranking.average_precision(), 4), ranking.recall_at(1)
    (0.9444, 0.9167, 0.6666666666666666)
    """

    thresholds: FloatArray
    groups: Sweep
    items: Sweep
    diagonal: float

    @classmethod
    def from_scores(cls, p: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Ranking:
        """Check the input and sort it: soft labels, scores and weights, each of shape (n,)."""
        targets, values, weights = targets_and_scores(p, scores, sample_weight)
        if not weights.all():
            kept = weights > 0
            targets, values, weights = targets[kept], values[kept], weights[kept]
        order = rank(values)
        weights, targets = weights[order.items], targets[order.items]
        positives = weights * targets
        items = sweep_of(weights, positives, None)
        groups = items if order.starts is None else sweep_of(weights, positives, order.starts)
        return cls(order.thresholds, groups, items, float(np.dot(positives, 1 - targets)))

    def __len__(self) -> int:
        return len(self.items.weight)

    @property
    def n_positive(self) -> float:
        """Weight of positives, n+."""
        return float(self.groups.n_positive) if len(self) else 0.0

    @property
    def n_negative(self) -> float:
        """Weight of negatives, n-."""
        return float(self.groups.n_negative) if len(self) else 0.0

    def auroc(self, diagonal: Diagonal = "half") -> float:
        """Soft AUROC; see `soft_auroc`."""
        check_choice(diagonal, ("half", "exclude", "include", "pairs"), "diagonal")
        if not len(self):
            return math.nan
        half = float(area_under_roc(self.groups))
        pairs = self.n_positive * self.n_negative
        if math.isnan(half) or diagonal == "half":
            return half
        if diagonal == "include":
            return half + self.diagonal / pairs / 2
        if diagonal == "exclude":
            return half - self.diagonal / pairs / 2
        distinct = pairs - self.diagonal
        return (half * pairs - self.diagonal / 2) / distinct if distinct > 1e-12 * pairs else math.nan

    def average_precision(self) -> float:
        """Soft average precision; see `soft_average_precision`."""
        return float(average_precision(self.groups)) if len(self) else math.nan

    def precision_at(self, k: int, ties: Ties = "expected") -> float:
        """Precision among the first k; see `precision_at_k`."""
        found = self._found(k, ties)
        return found / min(k, float(self.items.weight[-1])) if len(self) else math.nan

    def recall_at(self, k: int, ties: Ties = "expected") -> float:
        """Recall among the first k; see `recall_at_k`."""
        found = self._found(k, ties)
        return found / self.n_positive if self.n_positive > 0 else math.nan

    def roc_curve(self) -> RocCurve:
        """Soft ROC curve; see `soft_roc_curve`."""
        negatives = self.groups.weight - self.groups.positives
        return RocCurve(
            fpr=np.append(0.0, _share(negatives, self.n_negative)),
            tpr=np.append(0.0, _share(self.groups.positives, self.n_positive)),
            thresholds=np.append(np.inf, self.thresholds),
        )

    def precision_recall_curve(self) -> PrecisionRecallCurve:
        """Soft precision-recall curve; see `soft_precision_recall_curve`."""
        return PrecisionRecallCurve(
            precision=np.append(1.0, self.groups.positives / self.groups.weight),
            recall=np.append(0.0, _share(self.groups.positives, self.n_positive)),
            thresholds=np.append(np.inf, self.thresholds),
        )

    def auc_pr(self) -> float:
        """Trapezoid under the precision-recall curve; see `auc_pr`."""
        curve = self.precision_recall_curve()
        return float(np.trapezoid(curve.precision, curve.recall)) if self.n_positive > 0 else math.nan

    def _found(self, k: int, ties: Ties) -> float:
        check_positive_int(k, "k")
        check_choice(ties, ("expected", "stable"), "ties")
        sweep = self.groups if ties == "expected" else self.items
        return float(positives_in_top(sweep, k)) if len(self) else math.nan


def _share(values: FloatArray, total: float) -> FloatArray:
    return values / total if total > 0 else np.full(len(values), np.nan)
