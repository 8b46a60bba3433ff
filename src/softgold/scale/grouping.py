"""The kinds of items and annotators of votes on a cluster, and their chunks in groups on the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import FloatArray
from softgold.models.crowd.classes import MOST_ROUNDS, WORTHWHILE, Colours
from softgold.models.crowd.sums import FAN, GROUP_CHUNKS
from softgold.scale.block_study import BlockStudy
from softgold.scale.cluster import Cluster, Future, Share, in_pairs
from softgold.scale.kinds import (
    Bucket,
    bucket_cuts,
    bucket_pieces,
    bucket_rows,
    build_group,
    colour_items,
    count_distinct,
    distinct_pieces,
    first_colours,
    item_kinds,
    join_bucket,
    see_items,
)
from softgold.tables.hashing import mixed

ALL_COLOURS = float(2**64)
EVEN = 16  # least number of sums that a share is made of: shares differ by at most a sixteenth


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the kinds of a fit are.

    Attributes:
        shares: The chunks, on the workers.
        n_items: Number of kinds of items.
        item: Kind of each item, by first appearance, shape (I,).
        annotator: Kind of each annotator, shape (A,).
        annotator_weight: Number of annotators of each kind.
    """

    shares: tuple[Share, ...]
    n_items: int
    item: NDArray[np.int64]
    annotator: NDArray[np.intp]
    annotator_weight: FloatArray


@dataclass(frozen=True, eq=False)
class _Coloured:
    """Colours of the items of each block, on the workers, and of the annotators; `top` lies above those of items."""

    items: tuple[Future, ...]
    annotators: Colours
    n_kinds: int
    top: float


def turned_over(study: BlockStudy) -> bool:
    """Return whether the opposite votes are to be fitted; see `models.crowd.classes.oriented`."""
    surplus = sum(stats.surplus for stats in study.stats)
    if abs(surplus) >= 1e-9:
        return surplus > 0
    highest = [_highest(study, _refine(study, flip)) for flip in (False, True)]
    return highest[0] > highest[1]


def _highest(study: BlockStudy, coloured: _Coloured) -> int:
    cluster = study.cluster
    found: list[int] = cluster.results([cluster.call(_top, colours) for colours in coloured.items])
    return max(found)


def _top(colours: Colours) -> int:
    return int(colours.max(initial=0))


def _refine(study: BlockStudy, flip: bool) -> _Coloured:
    """Do what `models.crowd.classes.refine` does, by passes over the blocks."""
    cluster, blocks = study.cluster, study.blocks
    n_items, n_annotators = len(study.order), study.n_annotators
    items = tuple(cluster.call(first_colours, block) for block in blocks)
    annotators = np.zeros(n_annotators, np.uint64)
    count = (1, 1)
    for _ in range(MOST_ROUNDS):
        seen = [cluster.call(see_items, block, colours, flip) for block, colours in zip(blocks, items, strict=True)]
        total = cluster.results([in_pairs(cluster, _add, seen)])[0]
        annotators = mixed(annotators + mixed(total))
        sent = cluster.keep(annotators)
        items = tuple(
            cluster.call(colour_items, block, colours, sent, flip) for block, colours in zip(blocks, items, strict=True)
        )
        n_kinds = _distinct(cluster, items)
        now = n_kinds, len(np.unique(annotators))
        if now in {count, (n_items, n_annotators)}:
            return _Coloured(items, annotators, n_kinds, ALL_COLOURS)
        count = now
    numbers = study.by_block(np.arange(n_items, dtype=np.uint64))
    unsettled = tuple(cluster.keep(some) for some in numbers)
    return _Coloured(unsettled, np.arange(n_annotators, dtype=np.uint64), n_items, float(n_items))


def _add(left: Colours, right: Colours) -> Colours:
    return left + right


def _distinct(cluster: Cluster, items: Sequence[Future]) -> int:
    """Return how many different colours the items of all blocks have."""
    count = len(items)
    pieces = [cluster.call(distinct_pieces, colours, ALL_COLOURS, count) for colours in items]
    found: list[int] = cluster.results(
        [cluster.call(count_distinct, [cluster.call(_entry, piece, at) for piece in pieces]) for at in range(count)]
    )
    return sum(found)


def _entry(values: Sequence[Any], number: int) -> Any:
    return values[number]


def lay_out(study: BlockStudy, flip: bool) -> Layout:
    """Find the kinds, sort them by colour, and build their chunks in groups, spread evenly over the workers."""
    cluster, count = study.cluster, len(study.blocks)
    coloured = _refine(study, flip)
    annotator = np.unique(coloured.annotators, return_inverse=True)[1]
    merge = coloured.n_kinds + annotator.max() + 1 <= WORTHWHILE * (len(study.order) + study.n_annotators)
    if not merge:
        annotator = np.argsort(np.argsort(coloured.annotators, kind="stable"))
    weight = np.bincount(annotator).astype(np.float64)
    sent = cluster.keep(annotator)
    pieces = [
        cluster.call(bucket_pieces, block, colours, sent, len(weight), flip, merge, coloured.top, count)
        for block, colours in zip(study.blocks, coloured.items, strict=True)
    ]
    buckets = [
        cluster.call(join_bucket, [cluster.call(_entry, piece, at) for piece in pieces], merge) for at in range(count)
    ]
    sizes = np.array(cluster.results([cluster.call(_size, bucket) for bucket in buckets]))
    before = np.concatenate([[[0, 0]], np.cumsum(sizes, axis=0)])
    item = _item_kinds(study, coloured, buckets, before[:-1, 0], merge)
    return Layout(_shares(cluster, buckets, before, weight), int(before[-1, 0]), item, annotator, weight)


def _size(bucket: Bucket) -> tuple[int, int]:
    return len(bucket.kinds.colours), len(bucket.kinds.pairs)


def _shares(
    cluster: Cluster, buckets: Sequence[Future], before: NDArray[np.int64], weight: FloatArray
) -> tuple[Share, ...]:
    """Build the chunks of every group from the buckets that have its kinds, as many groups on every thread."""
    n_items = int(before[-1, 0])
    found = cluster.results(
        [cluster.call(bucket_cuts, bucket, *map(int, first)) for bucket, first in zip(buckets, before, strict=False)]
    )
    cuts = np.unique(np.concatenate(found))
    cuts = np.append(cuts[cuts < n_items], n_items)
    sent, first_chunks = cluster.keep(weight), range(0, len(cuts) - 1, GROUP_CHUNKS)

    def group(number: int, worker: str | None) -> Future:
        first = first_chunks[number]
        mine = cuts[first : first + GROUP_CHUNKS + 1].tolist()
        pieces = _pieces(cluster, buckets, before[:, 0], mine[0], mine[-1])
        return cluster.call(build_group, mine, pieces, sent, worker=worker)

    threads = cluster.threads
    ends = share_ends(len(first_chunks), len(threads))
    return tuple(
        Share(first, tuple(group(number, worker) for number in range(first, last)), worker)
        for (first, last), worker in zip(pairwise(ends), threads, strict=True)
        if first < last
    )


def share_ends(n_groups: int, n_threads: int) -> list[int]:
    """Return where the shares of the threads begin, and the number of groups; large shares end with a whole sum.

    >>> share_ends(20, 3), share_ends(1000, 3)
    ([0, 7, 13, 20], [0, 336, 672, 1000])
    """
    unit = 1
    while EVEN * unit * FAN * n_threads <= n_groups:
        unit *= FAN
    cuts = np.rint(np.arange(1, n_threads) * n_groups / n_threads / unit).astype(int) * unit
    return [0, *cuts.tolist(), n_groups]


def _pieces(
    cluster: Cluster, buckets: Sequence[Future], before: NDArray[np.int64], first: int, last: int
) -> list[Future]:
    """Return the kinds from `first` up to `last` of the buckets that have them."""
    pieces = []
    for bucket, begin, end in zip(buckets, before[:-1].tolist(), before[1:].tolist(), strict=True):
        low, high = max(first, begin), min(last, end)
        if low < high:
            pieces.append(cluster.call(bucket_rows, bucket, low - begin, high - begin))
    return pieces


def _item_kinds(
    study: BlockStudy, coloured: _Coloured, buckets: Sequence[Future], before: NDArray[np.int64], merge: bool
) -> NDArray[np.int64]:
    """Return the kind of each item, by first appearance."""
    cluster, starts = study.cluster, before.tolist()
    found = [
        cluster.call(
            item_kinds, block, colours, merge, [cluster.call(_of_block, bucket, at) for bucket in buckets], starts
        )
        for at, (block, colours) in enumerate(zip(study.blocks, coloured.items, strict=True))
    ]
    return study.by_item(cluster.results(found))


def _of_block(bucket: Bucket, number: int) -> NDArray[np.intp]:
    return bucket.of_blocks[number]
