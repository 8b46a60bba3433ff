"""Subsets of images drawn without replacement, and the intervals of subsets and of the full data from their spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from softgold.checks import check_in_range, check_positive_int
from softgold.errors import InputError

FloatArray = NDArray[np.float64]

_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True)
class SubsetInterval:
    """95 % intervals of a statistic from subsets of the images.

    Attributes:
        mean: Mean over the subsets.
        sd: Standard deviation over the subsets (n - 1).
        low: Smallest value.
        high: Largest value.
        normal: Mean -+ 1.96 sd: where a *subset* of this size falls, as the published tables have it.
        percentile: 2.5 and 97.5 percentiles of the subsets, of a subset too.
        full_sd: Standard deviation to expect of the full data, sd * sqrt(f / (1 - f)) for a share f of the images.
            It holds for means over images, and nearly for the rest.
        full_normal: Mean -+ 1.96 full_sd: the interval of the full data.
        fraction: The share f.
        n_subsets: Subsets with a value.
        n_undefined: Subsets without one, left out.
    """

    mean: float
    sd: float
    low: float
    high: float
    normal: tuple[float, float]
    percentile: tuple[float, float]
    full_sd: float
    full_normal: tuple[float, float]
    fraction: float
    n_subsets: int
    n_undefined: int


def subset_interval(values: ArrayLike, fraction: float) -> SubsetInterval:
    """Summarise a statistic of subsets, and infer from it the interval of the full data.

    The subsets are drawn without replacement, so their spread is that of a sample of a finite population and shrinks
    to nothing as the share grows: Var(subset) = S^2 / m * (1 - f), while the full data, itself a sample of n = m / f
    images, has S^2 / n.

    Args:
        values: The statistic of each subset, shape (B,); NaN where it is undefined.
        fraction: Share of the images in a subset, in (0, 1).

    Example:
        >>> interval = subset_interval([61.2, 63.5, 64.8, 65.1, 65.9, 66.4, 67.0, 68.1], 0.1)
        >>> [round(end, 2) for end in interval.normal], [round(end, 2) for end in interval.full_normal]
        ([61.02, 69.48], [63.84, 66.66])
    """
    check_in_range(fraction, 0, 1, "fraction", ends="open")
    array = np.asarray(values, dtype=np.float64)
    known = array[np.isfinite(array)]
    if len(known) < 2:
        raise InputError(f"an interval needs two subsets with a value, got {len(known)}; take larger subsets")
    mean, sd = float(known.mean()), float(known.std(ddof=1))
    full_sd = sd * float(np.sqrt(fraction / (1 - fraction)))
    low, high = np.percentile(known, [2.5, 97.5])
    return SubsetInterval(
        mean=mean,
        sd=sd,
        low=float(known.min()),
        high=float(known.max()),
        normal=normal_interval(mean, sd),
        percentile=(float(low), float(high)),
        full_sd=full_sd,
        full_normal=normal_interval(mean, full_sd),
        fraction=fraction,
        n_subsets=len(known),
        n_undefined=len(array) - len(known),
    )


def normal_interval(mean: float, sd: float) -> tuple[float, float]:
    """Mean -+ 1.96 standard deviations.

    >>> [round(end, 2) for end in normal_interval(65.08, 1.25)]
    [62.63, 67.53]
    """
    return mean - 1.96 * sd, mean + 1.96 * sd


def subset_size(n_images: int, fraction: float) -> int:
    """Images in a subset: the share of all, rounded, at least 1 and fewer than all.

    >>> subset_size(2257, 0.1), subset_size(4, 0.1)
    (226, 1)
    """
    check_in_range(fraction, 0, 1, "fraction", ends="open")
    if n_images < 2:
        raise InputError(f"subsets need two images or more, got {n_images}")
    return min(max(round(n_images * fraction), 1), n_images - 1)


def draw_subsets(n_images: int, size: int, count: int, seed: int = 0) -> sparse.csr_array:
    """Draw subsets of `size` images without replacement, independently of each other.

    Returns:
        1 where a subset has an image, shape (count, n_images), images ascending within a subset.

    Example:
        >>> draw_subsets(10, 3, 4, seed=1).sum(axis=1).tolist()
        [3.0, 3.0, 3.0, 3.0]
    """
    check_positive_int(count, "number of subsets", minimum=2)
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK_CELLS // n_images)
    parts = [_draw(rng, n_images, size, min(step, count - start)) for start in range(0, count, step)]
    images = np.concatenate(parts).ravel()
    return sparse.csr_array(
        (np.ones(len(images)), images, np.arange(count + 1) * size),
        shape=(count, n_images),
    )


def _draw(rng: np.random.Generator, n_images: int, size: int, count: int) -> NDArray[np.int64]:
    keys = rng.random((count, n_images))
    return np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)
