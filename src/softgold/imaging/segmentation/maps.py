"""Pixel maps of uncertainty, in any number of dimensions, aggregated to one number per image."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, check_in_range, check_positive_int
from softgold.errors import InputError

FloatArray = NDArray[np.float64]

# Sums that differ by less than this share of the largest possible one are equal but for rounding.
TIE_TOLERANCE = 1e-12


@dataclass(frozen=True)
class PatchMaximum:
    """The window with the largest sum: that sum, and the first corner of the window."""

    total: float
    position: tuple[int, ...]


def aggregate_image(uncertainty: ArrayLike) -> float:
    """Sum of the map. It grows with the object in the image: compare only images of similar content.

    Args:
        uncertainty: Map, any shape.

    Returns:
        The sum.

    Reference:
        Kahl et al., ValUES, section 4.3 (image level aggregation).

    >>> aggregate_image([[0.5, 0.25], [0.25, 0.0]])
    1.0
    """
    return float(as_finite(uncertainty, "uncertainty", ndim=None).sum())


def aggregate_patch(uncertainty: ArrayLike, *, size: int = 10) -> PatchMaximum:
    """Largest sum of the map in a window of `size` pixels along every axis.

    Args:
        uncertainty: Map with at least one axis, for instance (H, W) or (D, H, W).
        size: Length of the window along each axis; where the map is shorter the window is cut to it, as if the
            map were padded with zeros.

    Returns:
        The sum, and where the window begins; of windows that tie, the first in row-major order.

    Reference:
        Kahl et al., ValUES, section 4.3 (patch level aggregation).

    >>> aggregate_patch([[0, 1, 0], [0, 2, 3], [0, 0, 0]], size=2)
    PatchMaximum(total=6.0, position=(0, 1))
    """
    check_positive_int(size, "size")
    values = as_finite(uncertainty, "uncertainty", ndim=None)
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"uncertainty must have at least one pixel along an axis, got shape {values.shape}")
    window = tuple(min(size, length) for length in values.shape)
    tolerance = TIE_TOLERANCE * math.prod(window) * float(max(values.max(), -values.min()))
    best, position = -math.inf, (0,) * values.ndim
    for start, sums in enumerate(_window_sums(values, window)):
        highest = float(sums.max())
        if highest > best + tolerance:
            inner = np.unravel_index(int(np.argmax(sums >= highest - tolerance)), sums.shape)
            position = (start, *(int(at) for at in inner))
        best = max(best, highest)
    return PatchMaximum(best, position)


def aggregate_threshold(uncertainty: ArrayLike, threshold: float) -> float:
    """Mean of the pixels at or above a threshold; 0 when there is none, since then nothing is uncertain.

    Args:
        uncertainty: Map, any shape.
        threshold: For instance from `foreground_threshold`.

    Returns:
        The mean.

    Reference:
        Kahl et al., ValUES, section 4.3 (threshold level aggregation), with the code's "at or above".

    >>> aggregate_threshold([[0.1, 0.2], [0.3, 0.5]], 0.3), aggregate_threshold([[0.1]], 0.9)
    (0.4, 0.0)
    """
    values = as_finite(uncertainty, "uncertainty", ndim=None)
    level = check_in_range(threshold, -math.inf, math.inf, "threshold")
    above = values[values >= level]
    return float(above.mean()) if above.size else 0.0


def foreground_threshold(validation_maps: Iterable[ArrayLike], foreground_ratio: float) -> float:
    """Threshold above which the share of validation pixels equals the share of foreground.

    Args:
        validation_maps: Uncertainty maps of the validation images, of any shapes.
        foreground_ratio: Mean share of foreground pixels in the predicted segmentations there, in [0, 1].

    Returns:
        The quantile 1 - foreground_ratio of all the pixels together.

    Reference:
        Kahl et al., ValUES, equations 21 and 22.

    >>> foreground_threshold([[[0.0, 0.1, 0.2]], [[0.3, 0.4]]], 0.25)
    0.3
    """
    ratio = check_in_range(foreground_ratio, 0, 1, "foreground_ratio")
    pixels = [as_finite(values, "validation_maps", ndim=None).ravel() for values in validation_maps]
    if not sum(len(values) for values in pixels):
        raise InputError("validation_maps must have at least one pixel")
    return float(np.quantile(np.concatenate(pixels), 1 - ratio))


def _window_sums(values: FloatArray, window: tuple[int, ...]) -> Iterable[FloatArray]:
    """Sums of all windows, one array for each place of the window along the first axis.

    Slices are summed over the other axes by running sums and differences, a slice at a time so that it stays in the
    cache, and added into a window that slides along the first axis.
    """
    slices: list[FloatArray] = []
    total = np.zeros(tuple(length - w + 1 for length, w in zip(values.shape[1:], window[1:], strict=True)))
    for at, values_at in enumerate(values):
        slices.append(_slice_sums(np.asarray(values_at), window[1:]))
        total += slices[-1]
        if at >= window[0]:
            total -= slices.pop(0)
        if at >= window[0] - 1:
            yield total


def _slice_sums(values: FloatArray, window: tuple[int, ...]) -> FloatArray:
    for axis, width in reversed(list(enumerate(window))):
        running = np.moveaxis(np.cumsum(values, axis=axis), axis, 0)
        sums = running[width - 1 :].copy()
        sums[1:] -= running[:-width]
        values = np.moveaxis(sums, 0, axis)
    return values
