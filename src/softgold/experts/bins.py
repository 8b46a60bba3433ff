"""Bins of soft labels: cut by rank, by width or by uncertainty, and never between items of equal p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgold.checks import FloatArray, as_probabilities, check_choice, check_positive_int

IntArray = NDArray[np.intp]
Scheme = Literal["rank", "width", "neyman"]

# An item of p = 0 still has a chance to be positive, so that it is not left out of a sample.
SMALLEST_VARIANCE = 1e-6


def uncertainty_score(p: ArrayLike) -> FloatArray:
    """Return sqrt(p (1 - p)), the standard deviation of a label that is positive with chance p; same shape.

    >>> uncertainty_score([0.5, 0.1]).round(2).tolist()
    [0.5, 0.3]
    """
    values = np.asarray(p, dtype=np.float64)
    return np.sqrt(np.maximum(values * (1 - values), SMALLEST_VARIANCE))


def assign_bins(p: ArrayLike, bins: int, *, scheme: Scheme = "rank") -> IntArray:
    """Return the bin of each item, shape (I,), numbered from 0 at the lowest soft labels.

    Items of equal p are always in the same bin, so there may be fewer bins than asked for, and none is empty.

    Args:
        p: Soft labels, shape (I,).
        bins: Number of bins to aim at.
        scheme: "rank": equally many items in each bin (the quantile bins of CleanPatrick, section 3.4). "width": equal
            parts of [0, 1]. "neyman": equal sums of sqrt(p (1 - p)), so that doubtful items have narrower bins.

    Example:
        >>> assign_bins([0, 0, 0, 0.2, 0.9, 1], 3).tolist()
        [0, 0, 0, 1, 2, 2]
        >>> assign_bins([0, 0, 0, 0.2, 0.9, 1], 3, scheme="width").tolist()
        [0, 0, 0, 0, 1, 1]
        >>> assign_bins([0.5, 0.5, 0.5], 2).tolist()
        [0, 0, 0]
    """
    values = as_probabilities(p, "p")
    check_positive_int(bins, "bins", minimum=1)
    check_choice(scheme, get_args(Scheme), "scheme")
    distinct, of_item, count = np.unique(values, return_inverse=True, return_counts=True)
    if scheme == "width":
        place = distinct
    else:
        mass = count * (uncertainty_score(distinct) if scheme == "neyman" else 1.0)
        place = (np.cumsum(mass) - mass / 2) / mass.sum()
    bin_of_value = np.minimum((place * bins).astype(np.intp), bins - 1)
    return np.asarray(np.unique(bin_of_value, return_inverse=True)[1][of_item], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class BinTable:
    """Items of the whole data set in each of K bins.

    Attributes:
        scheme: How the bins were cut.
        n_items: Items in each bin, shape (K,).
        p_mean: Their mean soft label, shape (K,).
        p_low: Their lowest soft label, shape (K,).
        p_high: Their highest soft label, shape (K,).
    """

    scheme: str
    n_items: NDArray[np.int64]
    p_mean: FloatArray
    p_low: FloatArray
    p_high: FloatArray

    def __len__(self) -> int:
        return len(self.n_items)

    @classmethod
    def from_items(cls, p: FloatArray, index: IntArray, scheme: str, bins: int | None = None) -> BinTable:
        """Summarise soft labels by bin; a bin without items has 0 items and NaN elsewhere.

        >>> table = BinTable.from_items(np.array([0.0, 0.2, 0.9]), np.array([0, 0, 1]), "width")
        >>> table.n_items.tolist(), table.p_mean.tolist()
        ([2, 1], [0.1, 0.9])
        """
        total = int(index.max(initial=-1)) + 1 if bins is None else bins
        groups = pd.Series(p).groupby(index).agg(["size", "mean", "min", "max"]).reindex(range(total))
        n_items = groups["size"].fillna(0).to_numpy(dtype=np.int64)
        mean, low, high = (groups[name].to_numpy(dtype=np.float64) for name in ("mean", "min", "max"))
        # The mean of equal numbers may be off by rounding, and then [p >= mean] would cut them off.
        return cls(scheme, n_items, np.clip(mean, low, high), low, high)
