"""One sweep down a ranking: the cumulative sums from which every ranking metric is computed.

The functions take any number of leading axes, so that one formula serves a single ranking (shape (G,)) and several
resamples of it (shape (C, G)). G is the number of groups of equal scores, best first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

TRACE = 1e-290


@dataclass(frozen=True, eq=False)
class Order:
    """The order of the items by score, best first, equal scores in their original order.

    Attributes:
        items: Position of each item in the input, shape (n,).
        starts: First place of every group of equal scores, shape (G,); None when no two scores are equal.
        thresholds: The distinct scores, descending, shape (G,).
    """

    items: NDArray[np.integer]
    starts: NDArray[np.integer] | None
    thresholds: FloatArray

    @property
    def n_groups(self) -> int:
        """Number of groups G."""
        return len(self.items) if self.starts is None else len(self.starts)

    def edges(self, first: int, last: int) -> NDArray[np.integer]:
        """Return where the groups from `first` to before `last` start, and where the last of them ends."""
        last = min(last, self.n_groups)
        if self.starts is None:
            return np.arange(first, last + 1)
        end = self.starts[last] if last < len(self.starts) else len(self.items)
        return np.append(self.starts[first:last], end)

    def groups_of(self, n_items: int) -> int:
        """Return how many groups hold the first `n_items`, or all of them."""
        places = min(n_items, len(self.items))
        if self.starts is None:
            return places
        return int(np.searchsorted(self.starts, self.starts.dtype.type(places)))  # a plain int would copy the starts


@dataclass(frozen=True, eq=False)
class Sweep:
    """Weight and weighted positives of each group of equal scores, and their running sums; shapes (..., G).

    An axis of length 1 stands for a row that all resamples share.
    """

    group_weight: FloatArray
    group_positives: FloatArray
    weight: FloatArray
    positives: FloatArray

    @property
    def n_positive(self) -> FloatArray:
        """Total weight of positives n+ = sum w p; shape (...)."""
        return self.positives[..., -1]

    @property
    def n_negative(self) -> FloatArray:
        """Total weight of negatives n- = sum w (1 - p); shape (...)."""
        return np.asarray(self.weight[..., -1] - self.positives[..., -1])


def rank(scores: FloatArray) -> Order:
    """Sort the items by descending score, once."""
    items = np.argsort(-scores, kind="stable")
    ordered = scores[items]
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    if is_first.all():
        return Order(items, None, ordered)
    return Order(items, np.flatnonzero(is_first), ordered[is_first])


def sweep_of(weight: FloatArray, positives: FloatArray, starts: NDArray[np.integer] | None) -> Sweep:
    """Return the running sums of rows in ranked order, one entry per group that begins at `starts`.

    Args:
        weight: Weight of each item, ranked; shape (..., n), or (1, n) when all resamples share it.
        positives: Weight times soft label, ranked; shape (..., n).
        starts: First place of each group of equal scores; None if every item is its own group.
    """
    if starts is not None:
        weight = np.add.reduceat(weight, starts, axis=-1)
        positives = np.add.reduceat(positives, starts, axis=-1)
    if weight.shape != positives.shape:
        return Sweep(weight, positives, weight.cumsum(axis=-1), positives.cumsum(axis=-1))
    # A running sum waits for the one before it, so two of them side by side in one complex array cost as much as one.
    both = np.empty(weight.shape, dtype=np.complex128)
    both.real, both.imag = weight, positives
    # A resample may begin with items of weight zero; a trace of weight, lost in the first sum with a whole one, gives
    # them a precision (of zero) without a special case.
    both.real[..., :1] += TRACE
    np.cumsum(both, axis=-1, out=both)
    return Sweep(weight, positives, both.real, both.imag)


def row_dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Sum of products over the last axis, rows of length 1 in front broadcast.

    Not by BLAS: it would split long rows over threads, which costs more than the sum and makes the last digit depend
    on the machine.
    """
    return np.asarray(np.einsum("...g,...g->...", a, b))


def area_under_roc(sweep: Sweep) -> FloatArray:
    """Area under the ROC polygon, half a pair for a tie and for an item with itself; NaN without either class.

    With steps (w, x) and running sums (W, X) of weight and positives, the polygon lies sum(x W - w X) / 2 below the
    diagonal (the shoelace formula) of the n- by n+ rectangle, and sum(x W) + sum(w X) = sum(w) sum(x) + sum(w x).
    """
    behind = row_dot(sweep.group_positives, sweep.weight)
    crossed = sweep.weight[..., -1] * sweep.n_positive + row_dot(sweep.group_weight, sweep.group_positives)
    return 0.5 + ratio(crossed - 2 * behind, 2 * sweep.n_positive * sweep.n_negative)


def average_precision(sweep: Sweep) -> FloatArray:
    """Sum of precision times the gain in recall over the groups; NaN without positives."""
    precision = sweep.positives / sweep.weight
    return ratio(row_dot(sweep.group_positives, precision), sweep.n_positive)


def positives_in_top(sweep: Sweep, k: float) -> FloatArray:
    """Expected weight of positives among the first `k` of weight, ties cut at random; shape (...)."""
    shape = np.broadcast_shapes(sweep.weight.shape, sweep.positives.shape)
    weight = np.broadcast_to(sweep.weight, shape)
    depth = np.minimum(k, weight[..., -1])[..., None]
    cut = np.minimum((weight < depth).sum(axis=-1, keepdims=True), shape[-1] - 1)

    def at_cut(values: FloatArray) -> FloatArray:
        return np.take_along_axis(np.broadcast_to(values, shape), cut, axis=-1)

    density = at_cut(sweep.group_positives) / at_cut(sweep.group_weight)
    inside = at_cut(sweep.positives) - density * (at_cut(weight) - depth)
    return np.asarray(inside[..., 0])


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide, with NaN where the denominator is not positive."""
    undefined = np.full(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=np.asarray(denominator) > 0))
