"""AUROC, average precision, precision and recall at k of many resamples at once.

The items of a model are sorted once; a resample is a column of weights. Running sums down the ranking are the whole
cost, so they are laid out for wide vector instructions: a slab of the ranking is cut into `SEGMENTS` segments of
`steps` groups each, and step j of all segments and resamples is one addition of contiguous arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from softgold.metrics.bootstrap.plans import Draw
from softgold.metrics.sweep import Order, Sweep, positives_in_top, rank, ratio, sweep_of

__all__ = ["RankedItems", "RankingSums", "rank_items", "ranking_sums"]

FloatArray = NDArray[np.float64]
Items = NDArray[np.intp]

SEGMENTS = 64
MOST_STEPS = 32
# A resample may begin with items of weight zero. This trace of weight, lost in the first sum with a whole one, gives
# them a precision of zero without a special case.
TRACE = 1e-290


@dataclass(frozen=True, eq=False)
class Piece:
    """Items of a slab, and the matrix that adds them up to its groups; without ties, items are the groups in place."""

    items: Items
    to_groups: csr_array | None

    def add_up(self, values: FloatArray) -> FloatArray:
        """Return the sum of each group, from one row per item."""
        return values if self.to_groups is None else np.asarray(self.to_groups @ values)


@dataclass(frozen=True, eq=False)
class RankedItems:
    """The items of one model, sorted once.

    Attributes:
        order: The sorted items and their groups of equal scores.
        steps: Groups in each segment of a slab.
        slabs: Slabs of `SEGMENTS * steps` groups, best first; empty groups fill up the last.
    """

    order: Order
    steps: int
    slabs: tuple[tuple[Piece, ...], ...]


@dataclass(frozen=True, eq=False)
class RankingSums:
    """Sums down the ranking of one model against one kind of label, from which the metrics are read; shapes (C,).

    Attributes:
        weight: Total weight.
        positive: Total weight of positives, n+.
        behind: Sum over positives of the weight scored above them, ties and the item itself counting half.
        precision: Sum over positives of the precision down to their group.
        top: The first part of the ranking, as long as the longest list for precision and recall at k; empty without.
    """

    weight: FloatArray
    positive: FloatArray
    behind: FloatArray
    precision: FloatArray
    top: Sweep

    def auroc(self) -> FloatArray:
        """Area under the ROC curve; NaN without either class."""
        pairs = 2 * self.positive * (self.weight - self.positive)
        return 0.5 + ratio(self.weight * self.positive - 2 * self.behind, pairs)

    def average_precision(self) -> FloatArray:
        """Average precision; NaN without positives."""
        return ratio(self.precision, self.positive)

    def precision_at(self, k: int) -> FloatArray:
        """Precision among the first k."""
        return positives_in_top(self.top, k) / np.minimum(k, self.weight)

    def recall_at(self, k: int) -> FloatArray:
        """Recall among the first k; NaN without positives."""
        return ratio(positives_in_top(self.top, k), self.positive)


def rank_items(scores: FloatArray) -> RankedItems:
    """Sort the items by descending score and cut the ranking into slabs."""
    order = rank(scores)
    n_items, n_groups = len(order.items), len(order.thresholds)
    edges = np.append(np.arange(n_items) if order.starts is None else order.starts, n_items)
    steps = min(MOST_STEPS, -(-n_groups // SEGMENTS))
    size = SEGMENTS * steps
    slabs = [_slab(order, edges[first : first + size + 1], steps) for first in range(0, n_groups, size)]
    return RankedItems(order, steps, tuple(slabs))


def _slab(order: Order, edges: NDArray[np.intp], steps: int) -> tuple[Piece, ...]:
    """Lay out the groups that begin at `edges` (the last edge is their end): group s * steps + j in row j, column s."""
    size = SEGMENTS * steps
    first, last = int(edges[0]), int(edges[-1])
    if len(edges) == size + 1 and last - first == size:
        in_place = order.items[first:last].reshape(SEGMENTS, steps).T
        return (Piece(np.ascontiguousarray(in_place).ravel(), None),)
    group = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    row = (group % steps) * SEGMENTS + group // steps
    pieces = []
    for start in range(0, len(row), size):
        rows = row[start : start + size]
        matrix = csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(size, len(rows)))
        pieces.append(Piece(order.items[first + start : first + start + len(rows)], matrix))
    return tuple(pieces)


def ranking_sums(ranked: RankedItems, draw: Draw, which: tuple[int, ...], longest: int) -> tuple[RankingSums, ...]:
    """Go down the ranking once and return its sums for some kinds of label of the draw.

    Args:
        ranked: The items of one model.
        draw: C resamples.
        which: Which of the draw's kinds of label.
        longest: Length of the longest list for precision and recall at k; 0 without lists.
    """
    weight_before = np.full(draw.weight.shape[1], TRACE)
    before = np.zeros((len(which), draw.n_resamples))
    behind, precision = np.zeros_like(before), np.zeros_like(before)
    for pieces in ranked.slabs:
        weight, positives = _load(pieces, draw, which, ranked.steps)
        weight_sums = _running(weight, weight_before)
        weight_before = weight_sums[-1, -1]
        weight /= 2
        middle = np.broadcast_to(np.subtract(weight_sums, weight, out=weight), (*weight.shape[:2], draw.n_resamples))
        for at, gain in enumerate(positives):
            gain_sums = _running(gain, before[at])
            before[at] = gain_sums[-1, -1]
            gain_sums /= weight_sums
            precision[at] += _total_product(gain, gain_sums)
            behind[at] += _total_product(gain, middle)
    total = np.broadcast_to(weight_before, (draw.n_resamples,))
    tops = _tops(ranked.order, draw, which, longest)
    return tuple(RankingSums(total, *sums) for sums in zip(before, behind, precision, tops, strict=True))


def _load(
    pieces: tuple[Piece, ...], draw: Draw, which: tuple[int, ...], steps: int
) -> tuple[FloatArray, list[FloatArray]]:
    """Return weight and weighted positives of the groups of a slab, shape (steps, SEGMENTS, 1 or C)."""
    weights, positives = [], []
    for piece in pieces:
        weight = draw.weight.take(piece.items, axis=0).astype(np.float64)
        labels = [draw.labels[at].take(piece.items) for at in which]
        # Where only votes are redrawn, every weight is 1.
        gains = labels if weight.shape[1] == 1 and (weight == 1).all() else [weight * label for label in labels]
        weights.append(piece.add_up(weight))
        positives.append([piece.add_up(gain) for gain in gains])
    shape = (steps, SEGMENTS, -1)
    summed = [sum(parts[1:], start=parts[0]) for parts in zip(*positives, strict=True)]
    return sum(weights[1:], start=weights[0]).reshape(shape), [gain.reshape(shape) for gain in summed]


def _running(values: FloatArray, before: FloatArray) -> FloatArray:
    """Running sums down a slab that begins at `before`; shape (steps, SEGMENTS, C), as the values."""
    totals = values.sum(axis=0)
    sums = np.empty_like(values)
    np.cumsum(totals[:-1], axis=0, out=sums[0, 1:])
    sums[0, 0] = 0.0
    sums[0] += before
    sums[0] += values[0]
    for step in range(1, len(values)):
        np.add(sums[step - 1], values[step], out=sums[step])
    return sums


def _total_product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Sum of products over a slab, resample by resample; einsum keeps the long axis inside and forms no product."""
    return np.asarray(np.einsum("jsc,jsc->sc", a, b).sum(axis=0))


def _tops(order: Order, draw: Draw, which: tuple[int, ...], longest: int) -> list[Sweep]:
    """Return the first part of the ranking that holds `longest` copies of items in every resample, label by label."""
    if not longest:
        nothing = np.empty((1, 0))
        return [Sweep(nothing, nothing, nothing, nothing) for _ in which]
    starts = np.arange(len(order.items)) if order.starts is None else order.starts
    edges = np.append(starts, len(order.items))
    wanted = longest + 6 * int(longest**0.5) + 8
    while True:
        n_groups = min(int(np.searchsorted(edges, wanted)), len(starts))
        items = order.items[: edges[n_groups]]
        weight = draw.weight.take(items, axis=0).T.astype(np.float64)
        if n_groups == len(starts) or (weight.sum(axis=1) >= longest).all():
            break
        wanted *= 2
    cut = None if order.starts is None else starts[:n_groups]
    return [sweep_of(weight, weight * draw.labels[at].take(items).T, cut) for at in which]
