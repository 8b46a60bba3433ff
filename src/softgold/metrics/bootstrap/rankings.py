"""AUROC, average precision, precision and recall at k of many resamples at once.

The items of a model are sorted once; a resample is a column of weights. Running sums down the ranking are the whole
cost, so they are laid out for wide vector instructions: a slab of the ranking is cut into `SEGMENTS` segments of
`steps` groups each, and step j of all segments and resamples is one addition of contiguous arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from softgold.metrics.bootstrap.draws import Draw, DrawnLabels, FixedLabels
from softgold.metrics.sweep import Order, Sweep, positives_in_top, rank, ratio, sweep_of

FloatArray = NDArray[np.float64]
Items = NDArray[np.integer]

SEGMENTS = 64
MOST_STEPS = 32
# The slabs of more items than these are not kept, but laid out again in every block.
MOST_KEPT = 1 << 22
# A resample may begin with items of weight zero. This trace of weight, lost in the first sum with a whole one, gives
# them a precision of zero without a special case.
TRACE = 1e-290


@dataclass(frozen=True, eq=False)
class Piece:
    """Items of a slab, those of a group of equal scores next to each other.

    Attributes:
        items: Positions of the items.
        ends: First item of each group, and the end of the last; None without ties, when items are the groups in place.
        rows: Rows of the slab that these groups have; None for all of them.
    """

    items: Items
    ends: Items | None = None
    rows: Items | None = None

    def add_up(self, values: FloatArray, label: FloatArray | None = None) -> FloatArray:
        """Return the sum over each group of value, or label times value, from one row per item."""
        if self.ends is None:
            return values if label is None else values * label[:, None]
        factor = np.ones(len(self.items)) if label is None else label
        matrix = csr_array((factor, np.arange(len(factor)), self.ends), shape=(len(self.ends) - 1, len(factor)))
        return np.asarray(matrix @ values)


@dataclass(frozen=True, eq=False)
class RankedItems:
    """The items of one model, sorted once.

    Attributes:
        order: The sorted items and their groups of equal scores.
        steps: Groups in each segment of a slab.
        kept: The slabs; None where there are too many items to keep them.
    """

    order: Order
    steps: int
    kept: tuple[tuple[Piece, ...], ...] | None

    def slabs(self) -> Iterator[tuple[Piece, ...]]:
        """Give slabs of `SEGMENTS * steps` groups, best first; empty groups fill up the last."""
        if self.kept is not None:
            yield from self.kept
            return
        size = SEGMENTS * self.steps
        for first in range(0, self.order.n_groups, size):
            yield _slab(self.order, self.order.edges(first, first + size), self.steps)


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
    # Rankings of millions of items are held: half the bytes will do, and the scores are not needed.
    small: type[np.integer] = np.int32 if len(scores) < 2**31 else np.int64
    starts = None if order.starts is None else order.starts.astype(small)
    order = replace(order, items=order.items.astype(small), starts=starts, thresholds=np.empty(0))
    ranked = RankedItems(order, min(MOST_STEPS, -(-order.n_groups // SEGMENTS)), None)
    return ranked if len(scores) > MOST_KEPT else replace(ranked, kept=tuple(ranked.slabs()))


def _slab(order: Order, edges: Items, steps: int) -> tuple[Piece, ...]:
    """Lay out the groups that begin at `edges` (the last edge is their end): group s * steps + j in row j, column s."""
    size = SEGMENTS * steps
    first, last = int(edges[0]), int(edges[-1])
    place = np.arange(size).reshape(SEGMENTS, steps).T.ravel()
    if len(edges) == size + 1 and last - first == size:
        return (Piece(order.items[first:last][place]),)
    sizes = np.diff(edges)
    if last - first <= 2 * size:
        in_rows = np.append(sizes, np.zeros(size - len(sizes), dtype=np.intp))[place]
        starts = np.append(edges[:-1], np.full(size - len(sizes), last))[place]
        ends = np.append(0, np.cumsum(in_rows))
        return (Piece(order.items[np.arange(ends[-1]) + np.repeat(starts - ends[:-1], in_rows)], ends),)
    group = np.repeat(np.arange(len(sizes)), sizes)
    pieces = []
    for start in range(0, len(group), 2 * size):
        found, counts = np.unique(group[start : start + 2 * size], return_counts=True)
        rows = (found % steps) * SEGMENTS + found // steps
        items = order.items[first + start : first + start + 2 * size]
        pieces.append(Piece(items, np.append(0, np.cumsum(counts)), rows))
    return tuple(pieces)


def ranking_sums(ranked: RankedItems, draw: Draw, which: tuple[int, ...], longest: int) -> tuple[RankingSums, ...]:
    """Go down the ranking once and return its sums for some kinds of label of the draw.

    Args:
        ranked: The items of one model.
        draw: C resamples.
        which: Which of the draw's kinds of label.
        longest: Length of the longest list for precision and recall at k; 0 without lists.
    """
    labels = [draw.labels[at] for at in which]
    totals = _Totals.start(draw, len(which), (ranked.steps, SEGMENTS))
    for pieces in ranked.slabs():
        if pieces[0].ends is not None or any(isinstance(label, DrawnLabels) for label in labels):
            totals.add(*_load(pieces, draw, labels, ranked.steps * SEGMENTS))
        else:
            items = pieces[0].items
            values = np.stack([label.values[items] for label in labels if isinstance(label, FixedLabels)])
            totals.add_fixed(draw.weight.take(items, axis=0), values)
    weight = np.broadcast_to(totals.weight, (draw.n_resamples,))
    tops = _tops(ranked.order, draw, which, longest)
    sums = zip(totals.positive, totals.behind, totals.precision, tops, strict=True)
    return tuple(RankingSums(weight, *of_labels) for of_labels in sums)


@dataclass(eq=False)
class _Totals:
    """Sums down the ranking so far, for L kinds of label, and room for those of a slab.

    Attributes:
        weight: Weight, shape (C,), or (1,) if all resamples share it.
        positive: Weight of positives, shape (L, C).
        behind: See `RankingSums`, shape (L, C).
        precision: See `RankingSums`, shape (L, C).
        room: Four arrays that every slab uses again, since they stay in the cache; shape (4, steps, segments, C).
    """

    weight: FloatArray
    positive: FloatArray
    behind: FloatArray
    precision: FloatArray
    room: FloatArray

    @classmethod
    def start(cls, draw: Draw, n_labels: int, shape: tuple[int, int]) -> _Totals:
        nothing = np.zeros((3, n_labels, draw.n_resamples))
        room = np.empty((4, *shape, draw.n_resamples))
        weight = np.full(draw.weight.shape[1], TRACE)
        return cls(weight, nothing[0], nothing[1], nothing[2], room)

    def add_fixed(self, copies: NDArray[np.number], labels: FloatArray) -> None:
        """Add a slab without ties whose labels no resample changes: sums of positives are then matrix products.

        Args:
            copies: Weight of the items, shape (steps * segments, C).
            labels: Their labels, shape (L, steps * segments).
        """
        shape = self.room.shape[1:]
        weight, sums, other, positives = (part.reshape(copies.shape) for part in self.room)
        np.copyto(weight, copies)
        self.weight = _running(weight.reshape(shape), self.weight, out=sums.reshape(shape))
        # Weight times the weight scored above, ties with itself counting half.
        np.multiply(weight, -0.5, out=other)
        other += sums
        other *= weight
        self.behind += labels @ other
        share = np.divide(weight, sums, out=other)
        for at, label in enumerate(labels):
            np.multiply(weight, label[:, None], out=positives)
            rows = positives.reshape(shape)
            self.positive[at] = _running(rows, self.positive[at], out=rows)
            positives *= share
            self.precision[at] += label @ positives

    def add(self, weight: FloatArray, positives: list[FloatArray]) -> None:
        """Add a slab.

        Args:
            weight: Weight of each group, shape (steps * segments, 1 or C).
            positives: For each kind of label, the weight of positives in each group, shape (steps * segments, C).
        """
        shape = (*self.room.shape[1:3], -1)
        sums, middle = (
            self.room[:2].reshape(2, -1, self.room.shape[3]) if len(self.weight) > 1 else np.empty((2, *weight.shape))
        )
        self.weight = _running(weight.reshape(shape), self.weight, out=sums.reshape(shape))
        np.multiply(weight, -0.5, out=middle)
        middle += sums
        inverse = np.divide(1.0, sums, out=sums)
        gain_sums = self.room[2].reshape(positives[0].shape)
        for at, gain in enumerate(positives):
            self.positive[at] = _running(gain.reshape(shape), self.positive[at], out=gain_sums.reshape(shape))
            self.behind[at] += _total_product(gain, middle)
            gain_sums *= gain
            self.precision[at] += _total_product(gain_sums, inverse)


def _load(
    pieces: tuple[Piece, ...], draw: Draw, kinds: list[FixedLabels | DrawnLabels], n_rows: int
) -> tuple[FloatArray, list[FloatArray]]:
    """Return weight and weighted positives of the groups of a slab, shape (steps * SEGMENTS, 1 or C)."""
    if pieces[0].rows is None:
        return _load_piece(pieces[0], draw, kinds)
    widths = (draw.weight.shape[1], *[draw.n_resamples] * len(kinds))
    weight, *positives = (np.zeros((n_rows, width)) for width in widths)
    for piece in pieces:
        group_weight, gains = _load_piece(piece, draw, kinds)
        weight[piece.rows] += group_weight
        for positive, gain in zip(positives, gains, strict=True):
            positive[piece.rows] += gain
    return weight, positives


def _load_piece(
    piece: Piece, draw: Draw, kinds: list[FixedLabels | DrawnLabels]
) -> tuple[FloatArray, list[FloatArray]]:
    """Return weight and weighted positives of the groups of a piece."""
    copies = draw.weight.take(piece.items, axis=0).astype(np.float64)
    # Where only votes are redrawn, every weight is 1.
    is_one = copies.shape[1] == 1 and bool((copies == 1).all())
    gains = []
    for kind in kinds:
        label = kind.take(piece.items)
        if isinstance(kind, FixedLabels):
            gains.append(piece.add_up(copies, label[:, 0]))
        else:
            gains.append(piece.add_up(label if is_one else copies * label))
    return piece.add_up(copies), gains


def _running(values: FloatArray, before: FloatArray, *, out: FloatArray) -> FloatArray:
    """Write the running sums down a slab that begins at `before` to `out`, which may be `values`; return the last.

    Both have the shape (steps, SEGMENTS, C).
    """
    first = np.zeros(values.shape[1:])
    np.cumsum(values.sum(axis=0)[:-1], axis=0, out=first[1:])
    first += before
    np.add(first, values[0], out=out[0])
    for step in range(1, len(values)):
        np.add(out[step - 1], values[step], out=out[step])
    return np.array(out[-1, -1])


def _total_product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Sum of products over the rows, resample by resample; `b` may have one column for all resamples."""
    if b.shape[1] < a.shape[1]:
        return np.asarray(b[:, 0] @ a)
    # einsum keeps the long axis inside and forms no product.
    parts = (SEGMENTS, -1, a.shape[1])
    return np.asarray(np.einsum("jsc,jsc->sc", a.reshape(parts), b.reshape(parts)).sum(axis=0))


def _tops(order: Order, draw: Draw, which: tuple[int, ...], longest: int) -> list[Sweep]:
    """Return the first part of the ranking that holds `longest` copies of items in every resample, label by label."""
    if not longest:
        nothing = np.empty((1, 0))
        return [Sweep(nothing, nothing, nothing, nothing) for _ in which]
    wanted = longest + 6 * int(longest**0.5) + 8
    while True:
        n_groups = order.groups_of(wanted)
        items = order.items[: order.edges(n_groups, n_groups)[0]]
        weight = draw.weight.take(items, axis=0).T.astype(np.float64)
        if n_groups == order.n_groups or (weight.sum(axis=1) >= longest).all():
            break
        wanted *= 2
    cut = None if order.starts is None else order.starts[:n_groups]
    return [sweep_of(weight, weight * draw.labels[at].take(items).T, cut) for at in which]
