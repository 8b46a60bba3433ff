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
        losses: Losses of each item if it is positive and if it is negative, shape (2, 3, n): squared, logarithmic where
            finite, and 1 where the logarithmic loss is infinite.
        bins: For each chunk of items, the matrix that adds them up to bins of equal width.
    """

    predicted: FloatArray
    losses: FloatArray
    bins: tuple[csr_array, ...]


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums over the items of one model against one kind of label.

    Attributes:
        weight: Total weight, shape (C,).
        positive: Total weight of positives, shape (C,).
        negative: Total weight of negatives, shape (C,).
        loss_positive: Sum of `Predictions.losses` over positives, shape (3, C).
        loss_negative: Sum of `Predictions.losses` over negatives, shape (3, C).
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
    positive = _losses((1 - predicted) ** 2, np.negative(xlogy(1.0, predicted)))
    negative = _losses(predicted**2, np.negative(xlog1py(1.0, -predicted)))
    bins = width_bins(predicted, N_BINS)
    return Predictions(
        predicted,
        np.stack([positive, negative]),
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
        part = slice(start, min(start + ITEMS_AT_ONCE, n_items))
        weights = draw.weight[part].astype(np.float64)
        labels = draw.labels[which].take(np.arange(part.start, part.stop))
        classes = _by_class(weights, labels)
        totals[0] += weights.sum(axis=0)
        for side, (values, share) in enumerate(classes):
            totals[1 + side] += (share @ values)[0]
        for at, model in enumerate(models):
            for side, (values, share) in enumerate(classes):
                losses[at, side] += (model.losses[side, :, part] * share) @ values
            excess[at] += model.bins[chunk] @ (weights * (model.predicted[part, None] - labels))
    weight, positive, negative = totals
    return tuple(
        ScoreSums(weight, positive, negative, losses[at, 0], losses[at, 1], excess[at]) for at in range(len(models))
    )


def _by_class(weights: FloatArray, labels: FloatArray) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Return weights of positives and of negatives, each with the shares (1, n) that losses are to be multiplied by.

    Labels that no resample changes are such shares, which saves a product with every weight.
    """
    if labels.shape[1] == 1:
        return (weights, labels.T), (weights, 1 - labels.T)
    positives, whole = weights * labels, np.ones((1, len(labels)))
    return (positives, whole), (weights - positives, whole)
