"""Scores of probabilities on whole blocks of resamples: each is a ratio of sums that are linear in the weights.

A function takes the predictions of one model, shape (n,), does once what depends on them alone, and returns a function
of resamples that gives one value for each, equal to that of the function of the same name in `softgold.metrics` with
the weights of the resample.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from softgold.metrics.bootstrap.resamples import Draw
from softgold.metrics.reliability import width_bins
from softgold.metrics.sweep import row_dot

__all__ = ["BLOCKWISE", "BoundMetric", "balanced_brier_rows", "brier_rows", "calibration_error_rows", "log_loss_rows"]

FloatArray = NDArray[np.float64]
BoundMetric = Callable[[Draw], FloatArray]

# The number of bins that `expected_calibration_error` has by default.
N_BINS = 20


def brier_rows(predicted: FloatArray) -> BoundMetric:
    """Prepare the Brier score."""
    slope, square = 1 - 2 * predicted, predicted**2

    def values(draw: Draw) -> FloatArray:
        positives = row_dot(draw.weight * draw.targets, slope)
        return np.asarray((positives + row_dot(draw.weight, square)) / draw.weight.sum(axis=1))

    return values


def balanced_brier_rows(predicted: FloatArray) -> BoundMetric:
    """Prepare the balanced Brier score; NaN where a class is absent."""
    missed, raised = (1 - predicted) ** 2, predicted**2

    def values(draw: Draw) -> FloatArray:
        positives = draw.weight * draw.targets
        negatives = draw.weight - positives
        of_positives = _ratio(row_dot(positives, missed), positives.sum(axis=1))
        return of_positives + _ratio(row_dot(negatives, raised), negatives.sum(axis=1))

    return values


def log_loss_rows(predicted: FloatArray) -> BoundMetric:
    """Prepare the logarithmic loss; infinite where something possible was predicted impossible."""
    yes: FloatArray = np.negative(xlogy(1.0, predicted))
    no: FloatArray = np.negative(xlog1py(1.0, -predicted))
    never, always = np.flatnonzero(np.isinf(yes)), np.flatnonzero(np.isinf(no))
    yes[never], no[always] = 0.0, 0.0

    def values(draw: Draw) -> FloatArray:
        positives = draw.weight * draw.targets
        negatives = draw.weight - positives
        finite = row_dot(positives, yes) + row_dot(negatives, no)
        # An infinite loss of weight zero is no loss.
        surprised = (positives[:, never] > 0).any(axis=1) | (negatives[:, always] > 0).any(axis=1)
        return np.where(surprised, np.inf, finite / draw.weight.sum(axis=1))

    return values


def calibration_error_rows(predicted: FloatArray) -> BoundMetric:
    """Prepare the expected calibration error with bins of equal width: sum over bins of |sum w (q - p)| / sum w."""
    bins = width_bins(predicted, N_BINS)
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))

    def values(draw: Draw) -> FloatArray:
        excess = (draw.weight * (predicted - draw.targets)).take(order, axis=1)
        return np.asarray(np.abs(np.add.reduceat(excess, starts, axis=1)).sum(axis=1) / draw.weight.sum(axis=1))

    return values


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    # A class has left a resample when nothing but rounding is left of it.
    undefined = np.full(np.shape(denominator), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=denominator > 1e-12))


BLOCKWISE: dict[str, Callable[[FloatArray], BoundMetric]] = {
    "balanced_brier": balanced_brier_rows,
    "brier_score": brier_rows,
    "expected_calibration_error": calibration_error_rows,
    "log_loss": log_loss_rows,
}
