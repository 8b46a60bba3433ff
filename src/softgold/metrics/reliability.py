"""Reliability of probabilities: calibration curves and errors by bins, with soft labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import check_choice, check_positive_int
from softgold.metrics.inputs import targets_and_predictions

FloatArray = NDArray[np.float64]
Binning = Literal["width", "count"]

N_BINS = 20


class BinOptions(TypedDict, total=False):
    """Options of the calibration errors, which `calibration_curve` explains."""

    n_bins: int
    binning: Binning
    sample_weight: ArrayLike | None


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """One entry per bin that is not empty, in ascending order; each of shape (M,).

    Attributes:
        predicted: Mean prediction in the bin.
        observed: Mean soft label in the bin.
        weight: Weight of the items in the bin (their number, if none was given).

    Example:
        >>> calibration_curve([0, 1, 1, 1], [0.1, 0.2, 0.6, 0.9], n_bins=2).observed.tolist()
        [0.5, 1.0]
    """

    predicted: FloatArray
    observed: FloatArray
    weight: FloatArray

    @property
    def gap(self) -> FloatArray:
        """|predicted - observed| in each bin."""
        return np.abs(self.predicted - self.observed)


def calibration_curve(
    p: ArrayLike,
    predicted: ArrayLike,
    *,
    n_bins: int = N_BINS,
    binning: Binning = "width",
    sample_weight: ArrayLike | None = None,
) -> CalibrationCurve:
    """Mean soft label against mean prediction, bin by bin.

    Args:
        p: Soft labels (or correctness) in [0, 1], shape (n,).
        predicted: Predicted probabilities (or confidences) in [0, 1], shape (n,).
        n_bins: Number of bins; empty ones are left out of the result.
        binning: `width`: equal bins of [0, 1 + 1e-8], closed on the left, so that 1 falls into the last;
            `count`: bins of equal weight, in which equal predictions stay together (at the middle of their ranks).
        sample_weight: Weight of each item, shape (n,).

    Returns:
        The curve; empty without items.

    Reference:
        Kahl et al., ValUES, appendix A.5, and its published code for the edges.

    >>> curve = calibration_curve([0, 1, 1, 1], [0.1, 0.2, 0.6, 0.9], n_bins=2)
    >>> curve.observed.tolist(), curve.predicted.round(3).tolist(), curve.weight.tolist()
    ([0.5, 1.0], [0.15, 0.75], [2.0, 2.0])
    """
    check_choice(binning, ("width", "count"), "binning")
    check_positive_int(n_bins, "n_bins")
    targets, q, weights = targets_and_predictions(p, predicted, sample_weight)
    bins = width_bins(q, n_bins) if binning == "width" else _count_bins(q, weights, n_bins)
    weight: FloatArray = np.bincount(bins, weights, n_bins).astype(np.float64)
    filled = weight > 0
    sums = [np.bincount(bins, weights * values, n_bins)[filled] for values in (q, targets)]
    return CalibrationCurve(sums[0] / weight[filled], sums[1] / weight[filled], weight[filled])


def expected_calibration_error(p: ArrayLike, predicted: ArrayLike, **options: Unpack[BinOptions]) -> float:
    """Expected calibration error: mean gap between prediction and soft label over the bins, weighted by their items.

    Args:
        p, predicted: As in `calibration_curve`.
        **options: `n_bins`, `binning` and `sample_weight`, as in `calibration_curve`.

    Returns:
        The error in [0, 1]; NaN without items.

    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.2, 0.6, 0.9], n_bins=2), 4)
    0.3
    """
    curve = calibration_curve(p, predicted, **options)
    return float(np.average(curve.gap, weights=curve.weight)) if len(curve.gap) else math.nan


def average_calibration_error(p: ArrayLike, predicted: ArrayLike, **options: Unpack[BinOptions]) -> float:
    """Average calibration error: mean gap between prediction and soft label over the bins that are not empty.

    Every bin counts the same, so that a mass of easy background pixels cannot hide the rest. For the mean over images
    call it through `over_images`.

    Args:
        p, predicted: As in `calibration_curve`.
        **options: `n_bins`, `binning` and `sample_weight`, as in `calibration_curve`.

    Returns:
        The error in [0, 1]; NaN without items.

    Reference:
        Kahl et al., ValUES, equation 11. Its code scores an image that is right throughout as wrong throughout; here
        such an image has the error that the equation says.

    >>> round(average_calibration_error([1, 1, 1], [0.9, 0.95, 0.99]), 6)
    0.053333
    """
    curve = calibration_curve(p, predicted, **options)
    return float(curve.gap.mean()) if len(curve.gap) else math.nan


def width_bins(predicted: FloatArray, n_bins: int) -> NDArray[np.intp]:
    """Return the bin of each prediction: equal bins of [0, 1 + 1e-8], closed on the left."""
    edges = np.linspace(0, 1 + 1e-8, n_bins + 1)
    return np.searchsorted(edges[1:-1], predicted, side="right")


def _count_bins(predicted: FloatArray, weights: FloatArray, n_bins: int) -> NDArray[np.intp]:
    """Cut the ranks into equal parts by the middle rank of each distinct prediction: order-free, weights as copies."""
    values, group = np.unique(predicted, return_inverse=True)
    mass = np.bincount(group, weights, len(values))
    middle = np.cumsum(mass) - mass / 2
    bins: NDArray[np.intp] = np.minimum((n_bins * middle / mass.sum()).astype(np.intp), n_bins - 1)
    return bins[group]
