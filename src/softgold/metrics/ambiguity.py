"""Ambiguity: do maps and samples show where, and how, people disagree? For masks and maps of any shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, check_choice
from softgold.errors import InputError

FloatArray = NDArray[np.float64]
Estimator = Literal["V", "U", "pooled"]

PIXELS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class ImageMean:
    """A metric over images: the value of each, the mean of those that are defined, and how many are not.

    Example:
        >>> found = over_images(dice, [[1, 1], [0, 0]], [[1, 0], [0, 0]])
        >>> found.values.round(3).tolist(), round(found.mean, 3), found.n_undefined
        ([0.667, 1.0], 0.833, 0)
    """

    values: FloatArray
    mean: float
    n_undefined: int


def over_images(metric: Callable[..., float], *batches: Iterable[ArrayLike], **options: Any) -> ImageMean:
    """Apply a metric image by image and average what is defined.

    Args:
        metric: A function of one entry of each batch, such as `ncc`, `dice` or `generalized_energy_distance`.
        *batches: As many sequences as the metric has arrays, one entry per image; images may differ in shape.
        **options: Options of the metric.

    Returns:
        All values, their mean without the undefined (NaN) ones, and the number of those.

    >>> over_images(ncc, [[0, 1, 2], [0, 0, 0]], [[0, 2, 4], [1, 2, 3]]).n_undefined
    1
    """
    values = np.array([metric(*images, **options) for images in _images_of(batches)], dtype=np.float64)
    defined = values[~np.isnan(values)]
    return ImageMean(values, float(defined.mean()) if len(defined) else math.nan, len(values) - len(defined))


def rater_variance(masks: ArrayLike) -> FloatArray:
    """Variance of the raters' masks at each pixel: the reference map of their disagreement.

    Args:
        masks: Masks of 0 and 1, one per rater, shape (R, ...).

    Returns:
        Shape (...), in [0, 1/4].

    Reference:
        Kahl et al., ValUES, equation 13.

    >>> rater_variance([[0, 1, 1], [0, 1, 0]]).tolist()
    [0.0, 0.0, 0.25]
    """
    return np.asarray(_as_masks(masks, "masks").var(axis=0, dtype=np.float64))


def ncc(reference: ArrayLike, predicted: ArrayLike) -> float:
    """Normalised cross-correlation of two maps of one shape: the mean product of their standardised values.

    Standard deviations divide by n, so that a map with itself has 1 (with n - 1, as in the published code, it would
    have (n - 1) / n).

    Args:
        reference: Reference map, such as `rater_variance`, any shape.
        predicted: Predicted uncertainty, same shape.

    Returns:
        The correlation in [-1, 1]; NaN if a map is constant.

    Reference:
        Kahl et al., ValUES, equation 12.

    >>> round(ncc([0, 0.1875, 0.1875, 0, 0.1875, 0], [0.1, 0.5, 0.6, 0.2, 0.3, 0.1]), 6)
    0.870388
    """
    a, b = as_finite(reference, "reference", ndim=None), as_finite(predicted, "predicted", ndim=None)
    if a.shape != b.shape:
        raise InputError(f"reference and predicted must have the same shape, got {a.shape} and {b.shape}")
    if a.size == 0 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    # Maps of tiny values must not lose their variance to underflow.
    a, b = (a - a.mean()) / np.ptp(a), (b - b.mean()) / np.ptp(b)
    return float(np.clip(np.vdot(a, b) / math.sqrt(np.vdot(a, a) * np.vdot(b, b)), -1, 1))


def dice(a: ArrayLike, b: ArrayLike) -> float:
    """Dice overlap of two masks of one shape, 2 |a and b| / (|a| + |b|); 1 for two empty masks, which are equal.

    >>> dice([1, 1, 0], [0, 1, 1]), dice([0, 0], [0, 0])
    (0.5, 1.0)
    """
    first, second = _as_masks(np.asarray(a)[None], "a"), _as_masks(np.asarray(b)[None], "b")
    _check_same_images(first, second, "a", "b")
    return float(1 - _distances(_overlaps(first, second), first, second)[0, 0])


def generalized_energy_distance(predicted: ArrayLike, reference: ArrayLike, *, estimator: Estimator = "V") -> float:
    """Generalised energy distance between predicted and reference masks, with d = 1 - Dice.

    2 E d(y, y') - E d(y, y~) - E d(y', y'~) for y, y~ among the references and y', y'~ among the predictions.

    Args:
        predicted: Masks of 0 and 1, one per sample, shape (S, ...).
        reference: Masks of 0 and 1, one per rater, shape (R, ...).
        estimator: `V`: all ordered pairs, a mask with itself included, 0 for equal sets; `U`: pairs of different
            masks only, unbiased, which may be negative and needs two masks on each side (otherwise NaN);
            `pooled`: one Dice from the counts of all pairs together, as in the published code.

    Returns:
        The squared distance.

    Reference:
        Kahl et al., ValUES, equation 14; Kohl et al. (2018) for the V-statistic.

    >>> masks = [[1, 1, 0, 0], [0, 1, 1, 0]]
    >>> generalized_energy_distance(masks, masks), generalized_energy_distance(masks, masks, estimator="U")
    (0.0, -0.5)
    """
    check_choice(estimator, ("V", "U", "pooled"), "estimator")
    samples, raters = _as_masks(predicted, "predicted"), _as_masks(reference, "reference")
    _check_same_images(samples, raters, "predicted", "reference")
    if estimator == "U" and min(len(samples), len(raters)) < 2:
        return math.nan
    cross, within_samples, within_raters = (
        _mean_distance(a, b, estimator) for a, b in ((samples, raters), (samples, samples), (raters, raters))
    )
    return 2 * cross - within_samples - within_raters


def _images_of(batches: Sequence[Iterable[ArrayLike]]) -> Iterator[tuple[Any, ...]]:
    """Go through the batches together; they may be streams, so their lengths show only at the end."""
    missing = object()
    for number, images in enumerate(itertools.zip_longest(*batches, fillvalue=missing)):
        if any(image is missing for image in images):
            raise InputError(f"all batches must have the same number of images, but one ends after {number}")
        yield images


def _mean_distance(a: NDArray[np.bool_], b: NDArray[np.bool_], estimator: Estimator) -> float:
    overlaps = _overlaps(a, b)
    if estimator == "pooled":
        sizes = a.sum() * len(b) + b.sum() * len(a)
        return float(1 - 2 * overlaps.sum() / sizes) if sizes else 0.0
    distances = _distances(overlaps, a, b)
    if estimator == "U" and a is b:
        # The distance of a mask to itself is zero, so only the number of pairs changes.
        return float(distances.sum() / (len(a) * (len(a) - 1)))
    return float(distances.mean())


def _overlaps(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> FloatArray:
    """|a and b| of every pair, shape (A, B), a slab of pixels at a time to bound the memory."""
    left, right = a.reshape(len(a), -1), b.reshape(len(b), -1)
    overlaps = np.zeros((len(a), len(b)))
    for start in range(0, left.shape[1], PIXELS_AT_ONCE):
        slab = slice(start, start + PIXELS_AT_ONCE)
        overlaps += left[:, slab].astype(np.float64) @ right[:, slab].astype(np.float64).T
    return overlaps


def _distances(overlaps: FloatArray, a: NDArray[np.bool_], b: NDArray[np.bool_]) -> FloatArray:
    sizes = a.reshape(len(a), -1).sum(axis=1)[:, None] + b.reshape(len(b), -1).sum(axis=1)[None, :]
    return np.asarray(1 - np.divide(2 * overlaps, sizes, out=np.ones(overlaps.shape), where=sizes > 0))


def _as_masks(masks: ArrayLike, name: str) -> NDArray[np.bool_]:
    array = np.asarray(masks)
    if array.dtype != np.bool_:
        values = as_finite(array, name, ndim=None)
        array = values != 0
        if not np.array_equal(values, array):
            raise InputError(f"{name} must be masks of 0 and 1, got {values[values != array][0]}")
    if array.ndim == 0 or not len(array):
        raise InputError(f"{name} must have at least one mask, got shape {array.shape}")
    return array


def _check_same_images(a: NDArray[np.bool_], b: NDArray[np.bool_], name_a: str, name_b: str) -> None:
    if a.shape[1:] != b.shape[1:]:
        raise InputError(f"masks of {name_a} and {name_b} must have one shape, got {a.shape[1:]} and {b.shape[1:]}")
