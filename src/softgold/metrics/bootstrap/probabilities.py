"""Brier scores, logarithmic loss and calibration error of many resamples at once.

Each is made of sums over items that are linear in the weights, so that a block of resamples is a matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlog1py, xlogy

from softgold.metrics.bootstrap.draws import Draw
from softgold.metrics.reliability import N_BINS, width_bins
from softgold.metrics.sweep import ratio

FloatArray = NDArray[np.float64]

ITEMS_AT_ONCE = 2048
# Of more predictions than these (items times models), losses and bins are not kept, but made again in every block.
MOST_KEPT = 1 << 23
# A class of less weight is absent from a resample: only rounding is left.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Bins:
    """Which of some items are in which bin, for K models: a sparse matrix of shape (K * N_BINS, items) without values.

    Attributes:
        items: Columns of the matrix, row by row.
        ends: Where each row begins, and the end of the last.
        order: Where the values of an array of shape (K, items) stand in the matrix.
    """

    items: NDArray[np.int32]
    ends: NDArray[np.intp]
    order: NDArray[np.int32]

    def add_up(self, by_item: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the sum in each bin of values (K, items) times weights (items, C), shape (K, N_BINS, C)."""
        values = by_item.ravel()[self.order]
        shape = (len(self.ends) - 1, len(weights))
        sums = csr_array((values, self.items, self.ends), shape=shape) @ weights
        return np.asarray(sums).reshape(len(by_item), N_BINS, -1)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Predicted probabilities of some items, prepared for sums.

    Attributes:
        predicted: The probabilities, shape (K, items).
        logarithmic: Logarithmic loss of each item if it is positive and if it is negative, shape (K, 2, items).
        bins: Bins of equal width.
    """

    predicted: FloatArray
    logarithmic: FloatArray
    bins: Bins

    @classmethod
    def of(cls, predicted: FloatArray) -> Chunk:
        """Prepare probabilities of shape (K, items)."""
        logarithmic = np.negative(np.stack([xlogy(1.0, predicted), xlog1py(1.0, -predicted)], axis=1))
        return cls(predicted, logarithmic, _bins(width_bins(predicted, N_BINS)))

    def losses(self) -> FloatArray:
        """Return losses of the items if they are positive and if they are negative, shape (K, 2, 3, items).

        They are squared, logarithmic where finite, and 1 where the logarithmic loss is infinite.
        """
        squared = np.stack([(1 - self.predicted) ** 2, self.predicted**2], axis=1)
        infinite = np.isinf(self.logarithmic)
        return np.stack([squared, np.where(infinite, 0.0, self.logarithmic), infinite.astype(np.float64)], axis=2)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted probabilities q of K models.

    Attributes:
        predicted: The probabilities, shape (K, n).
        kept: The chunks of items, prepared; None where there are too many to keep.
    """

    predicted: FloatArray
    kept: tuple[Chunk, ...] | None

    def chunks(self) -> Iterator[Chunk]:
        """Give the items in chunks, prepared."""
        if self.kept is not None:
            yield from self.kept
            return
        for start in range(0, self.predicted.shape[1], ITEMS_AT_ONCE):
            yield Chunk.of(self.predicted[:, start : start + ITEMS_AT_ONCE])


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums over the items of one model against one kind of label.

    Attributes:
        weight: Total weight, shape (C,).
        positive: Total weight of positives, shape (C,).
        negative: Total weight of negatives, shape (C,).
        loss_positive: Sum of the losses over positives, shape (3, C).
        loss_negative: Sum of the losses over negatives, shape (3, C).
        excess: Sum of prediction minus label in each bin, shape (bins, C).
    """

    weight: FloatArray
    positive: FloatArray
    negative: FloatArray
    loss_positive: FloatArray
    loss_negative: FloatArray
    excess: FloatArray

    def brier(self) -> FloatArray:
        """Brier score."""
        return ratio(self.loss_positive[0] + self.loss_negative[0], self.weight)

    def balanced_brier(self) -> FloatArray:
        """Balanced Brier score; NaN without either class."""
        positive = ratio(self.loss_positive[0], np.where(self.positive > NOTHING, self.positive, 0.0))
        return positive + ratio(self.loss_negative[0], np.where(self.negative > NOTHING, self.negative, 0.0))

    def log_loss(self) -> FloatArray:
        """Logarithmic loss; infinite where probability 0 was given to something that happened."""
        infinite = (self.loss_positive[2] > 0) | (self.loss_negative[2] > 0)
        return np.where(infinite, np.inf, ratio(self.loss_positive[1] + self.loss_negative[1], self.weight))

    def calibration_error(self) -> FloatArray:
        """Expected calibration error with bins of equal width."""
        return ratio(np.abs(self.excess).sum(axis=0), self.weight)


def predictions(predicted: FloatArray) -> Predictions:
    """Prepare the probabilities of K models, shape (K, n)."""
    unprepared = Predictions(predicted, None)
    return unprepared if predicted.size > MOST_KEPT else Predictions(predicted, tuple(unprepared.chunks()))


def _bins(bins: NDArray[np.intp]) -> Bins:
    """Sort the items of each model by bin; shape (K, items)."""
    rows = (bins + N_BINS * np.arange(len(bins))[:, None]).ravel()
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=N_BINS * len(bins))
    return Bins((order % bins.shape[1]).astype(np.int32), np.append(0, np.cumsum(counts)), order.astype(np.int32))


def score_sums(models: Predictions, draw: Draw, which: int) -> tuple[ScoreSums, ...]:
    """Return the sums of every model against one kind of label of the draw."""
    n_items, count, n_models = len(draw.weight), draw.n_resamples, len(models.predicted)
    losses = np.zeros((n_models, 2, 3, count))
    excess = np.zeros((n_models, N_BINS, count))
    totals = np.zeros((3, count))
    for chunk, start in zip(models.chunks(), range(0, n_items, ITEMS_AT_ONCE), strict=True):
        part = slice(start, min(start + ITEMS_AT_ONCE, n_items))
        weights = draw.weight[part].astype(np.float64)
        labels = draw.labels[which].take(np.arange(part.start, part.stop))
        classes = _by_class(weights, labels)
        totals[0] += weights.sum(axis=0)
        for side, (values, share) in enumerate(classes):
            totals[1 + side] += (share @ values)[0]
        losses += _losses_of(chunk.losses(), classes)
        excess += _excess(chunk.bins, chunk.predicted, weights, labels)
    weight, positive, negative = totals
    return tuple(
        ScoreSums(weight, positive, negative, of_class[0], of_class[1], in_bins)
        for of_class, in_bins in zip(losses, excess, strict=True)
    )


def _losses_of(losses: FloatArray, classes: tuple[tuple[FloatArray, FloatArray], ...]) -> FloatArray:
    """Return the sums of losses over positives and over negatives, shape (K, 2, 3, C)."""
    (positives, share), (negatives, other) = classes
    if positives is not negatives:
        return np.stack([losses[:, 0] @ positives, losses[:, 1] @ negatives], axis=1)
    rows = (losses * np.stack([share, other])).reshape(len(losses), 6, -1)
    return np.asarray(rows @ positives).reshape(len(losses), 2, 3, -1)


def _excess(bins: Bins, predicted: FloatArray, weights: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the sum of prediction minus label in each bin, shape (K, N_BINS, C)."""
    if labels.shape[1] == 1:
        return bins.add_up(predicted - labels[:, 0], weights)
    return bins.add_up(predicted, weights) - bins.add_up(np.ones(predicted.shape), weights * labels)


def _by_class(weights: FloatArray, labels: FloatArray) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Return weights of positives and of negatives, each with the shares (1, n) that losses are to be multiplied by.

    Labels that no resample changes are such shares, which saves a product with every weight.
    """
    if labels.shape[1] == 1:
        return (weights, labels.T), (weights, 1 - labels.T)
    positives, whole = weights * labels, np.ones((1, len(labels)))
    return (positives, whole), (weights - positives, whole)
