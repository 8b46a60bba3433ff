"""Scores of probabilities on whole blocks of resamples: each is a ratio of sums that are linear in the weights.

A function takes the resamples and the predictions of one model, shape (n,), and returns one value a resample, equal to
that of the function of the same name in `softgold.metrics` with the weights of the resample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from softgold.metrics.reliability import width_bins
from softgold.metrics.resamples import Draw
from softgold.metrics.sweep import row_dot

__all__ = ["BLOCKWISE", "balanced_brier_rows", "brier_rows", "calibration_error_rows", "log_loss_rows"]

FloatArray = NDArray[np.float64]

# The number of bins that `expected_calibration_error` has by default.
N_BINS = 20


def brier_rows(draw: Draw, predicted: FloatArray) -> FloatArray:
    """Return the Brier scores."""
    positives = row_dot(draw.weight * draw.targets, 1 - 2 * predicted)
    return np.asarray((positives + row_dot(draw.weight, predicted**2)) / draw.weight.sum(axis=1))


def balanced_brier_rows(draw: Draw, predicted: FloatArray) -> FloatArray:
    """Return the balanced Brier scores; NaN where a class is absent."""
    positives = draw.weight * draw.targets
    negatives = draw.weight - positives
    of_positives = _ratio(row_dot(positives, (1 - predicted) ** 2), positives.sum(axis=1))
    return of_positives + _ratio(row_dot(negatives, predicted**2), negatives.sum(axis=1))


def log_loss_rows(draw: Draw, predicted: FloatArray) -> FloatArray:
    """Return the logarithmic losses; infinite where something possible was predicted impossible."""
    positives = draw.weight * draw.targets
    negatives = draw.weight - positives
    yes, no = -np.asarray(xlogy(1.0, predicted)), -np.asarray(xlog1py(1.0, -predicted))
    finite = row_dot(positives, np.where(np.isinf(yes), 0.0, yes)) + row_dot(negatives, np.where(np.isinf(no), 0.0, no))
    # An infinite loss of weight zero is no loss.
    surprised = (positives[:, np.isinf(yes)] > 0).any(axis=1) | (negatives[:, np.isinf(no)] > 0).any(axis=1)
    return np.where(surprised, np.inf, finite / draw.weight.sum(axis=1))


def calibration_error_rows(draw: Draw, predicted: FloatArray) -> FloatArray:
    """Return the expected calibration errors with bins of equal width: sum over bins of |sum w (q - p)| / sum w."""
    bins = width_bins(predicted, N_BINS)
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))
    excess = (draw.weight * (predicted - draw.targets)).take(order, axis=1)
    return np.asarray(np.abs(np.add.reduceat(excess, starts, axis=1)).sum(axis=1) / draw.weight.sum(axis=1))


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    # A class has left a resample when nothing but rounding is left of it.
    undefined = np.full(np.shape(denominator), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=denominator > 1e-12))


BLOCKWISE = {
    "balanced_brier": balanced_brier_rows,
    "brier_score": brier_rows,
    "expected_calibration_error": calibration_error_rows,
    "log_loss": log_loss_rows,
}
