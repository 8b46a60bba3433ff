"""Brier scores, logarithmic loss and calibration error of many resamples at once.

Each is made of sums over items that are linear in the weights, so that a block of resamples is a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlog1py, xlogy

from softgold.metrics.bootstrap.plans import Draw
from softgold.metrics.reliability import N_BINS, width_bins
from softgold.metrics.sweep import ratio

__all__ = ["Predictions", "ScoreSums", "predictions", "score_sums"]

FloatArray = NDArray[np.float64]

ITEMS_AT_ONCE = 2048
# A class has left a resample when nothing but rounding is left of it.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted probabilities q of one model, prepared for sums.

    Attributes:
        predicted: The probabilities, shape (n,).
        if_positive: Losses of an item if it is positive, shape (3, n): squared, logarithmic where finite, and 1 where
            the logarithmic loss is infinite.
        if_negative: The same if it is negative.
        bins: For each chunk of items, the matrix that adds them up to bins of equal width.
    """

    predicted: FloatArray
    if_positive: FloatArray
    if_negative: FloatArray
    bins: tuple[csr_array, ...]


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums over the items of one model against one kind of label.

    Attributes:
        weight: Total weight, shape (C,).
        positive: Total weight of positives, shape (C,).
        negative: Total weight of negatives, shape (C,).
        loss_positive: Sum of `Predictions.if_positive` over positives, shape (3, C).
        loss_negative: Sum of `Predictions.if_negative` over negatives, shape (3, C).
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
    """Prepare the probabilities of one model."""
    positive, negative = (1 - predicted) ** 2, predicted**2
    bins = width_bins(predicted, N_BINS)
    return Predictions(
        predicted,
        _losses(positive, np.negative(xlogy(1.0, predicted))),
        _losses(negative, np.negative(xlog1py(1.0, -predicted))),
        tuple(_bin_matrix(bins[start : start + ITEMS_AT_ONCE]) for start in range(0, len(bins), ITEMS_AT_ONCE)),
    )


def _losses(squared: FloatArray, logarithmic: FloatArray) -> FloatArray:
    infinite = np.isinf(logarithmic)
    return np.stack([squared, np.where(infinite, 0.0, logarithmic), infinite.astype(np.float64)])


def _bin_matrix(bins: NDArray[np.intp]) -> csr_array:
    return csr_array((np.ones(len(bins)), (bins, np.arange(len(bins)))), shape=(N_BINS, len(bins)))


def score_sums(models: tuple[Predictions, ...], draw: Draw, which: int) -> tuple[ScoreSums, ...]:
    """Return the sums of every model against one kind of label of the draw."""
    n_items, count = len(draw.weight), draw.n_resamples
    losses = np.zeros((len(models), 2, 3, count))
    excess = np.zeros((len(models), N_BINS, count))
    totals = np.zeros((3, count))
    for chunk, start in enumerate(range(0, n_items, ITEMS_AT_ONCE)):
        items = np.arange(start, min(start + ITEMS_AT_ONCE, n_items))
        weights = draw.weight[items].astype(np.float64)
        positives = weights * draw.labels[which].take(items)
        negatives = weights - positives
        totals += [np.broadcast_to(part.sum(axis=0), (count,)) for part in (weights, positives, negatives)]
        for at, model in enumerate(models):
            losses[at, 0] += model.if_positive[:, items] @ positives
            losses[at, 1] += model.if_negative[:, items] @ negatives
            excess[at] += model.bins[chunk] @ (weights * model.predicted[items][:, None] - positives)
    weight, positive, negative = totals
    return tuple(
        ScoreSums(weight, positive, negative, losses[at, 0], losses[at, 1], excess[at]) for at in range(len(models))
    )
