"""Kinds of items on the workers of a cluster: colours by passes over blocks, then groups of chunks by colour.

The functions are pure and run on a worker; what they give is what `models.crowd.classes` gives for the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import FloatArray
from softgold.models.crowd.chunks import CHUNK_VOTES, VoteChunk, build_chunk
from softgold.models.crowd.classes import Colours
from softgold.scale.parts import Block
from softgold.tables.hashing import mixed

Ints = NDArray[np.int64]


def first_colours(block: Block) -> Colours:
    """Return the colours before the first round."""
    return np.zeros(block.votes.n_items, np.uint64)


def _signs(block: Block, flip: bool) -> Colours:
    votes = block.votes
    signs = mixed((votes.votes ^ np.int8(flip)).astype(np.uint64) + np.uint64(1))
    return signs if votes.weights is None else mixed(signs ^ votes.weights.view(np.uint64))


def see_items(block: Block, colours: Colours, flip: bool) -> Colours:
    """Return the sum over the votes of each annotator of what the items look like, shape (A,)."""
    votes = block.votes
    seen = mixed(colours[votes.item_codes] ^ _signs(block, flip))
    found = np.zeros(votes.n_annotators, np.uint64)
    order = np.argsort(votes.annotator_codes, kind="stable")
    who, starts = np.unique(votes.annotator_codes[order], return_index=True)
    if len(who):
        found[who] = np.add.reduceat(seen[order], starts)
    return found


def colour_items(block: Block, colours: Colours, annotators: Colours, flip: bool) -> Colours:
    """Return the next colours of the items."""
    votes = block.votes
    if votes.n_items == 0:
        return colours
    seen = mixed(annotators[votes.annotator_codes] ^ _signs(block, flip))
    return mixed(colours + mixed(np.add.reduceat(seen, block.starts[:-1])))


def _homes(colours: Colours, top: float, count: int) -> NDArray[np.intp]:
    """Return the bucket of each colour: buckets are ranges of colours, in their order."""
    return np.minimum((colours.astype(np.float64) * (count / top)).astype(np.intp), count - 1)


def distinct_pieces(colours: Colours, top: float, count: int) -> list[Colours]:
    """Return the different colours of a block, by bucket."""
    found = np.unique(colours)
    return np.split(found, np.searchsorted(_homes(found, top, count), np.arange(1, count)))


def count_distinct(pieces: Sequence[Colours]) -> int:
    """Return how many different colours there are in a bucket."""
    return len(np.unique(np.concatenate(pieces)))


@dataclass(frozen=True, eq=False)
class BucketPiece:
    """Items of a block, one of each colour where kinds are merged, k of them.

    Attributes:
        colours: Colours, ascending, shape (k,).
        first_rows: First row of each in the source, shape (k,).
        number: How many items each stands for, shape (k,).
        starts: Where the entries of each begin, and their number, shape (k + 1,).
        pairs: vote * kinds + kind of annotator of each entry, ascending within an item, shape (e,).
        weights: Weight of each entry, shape (e,).
    """

    colours: Colours
    first_rows: Ints
    number: FloatArray
    starts: Ints
    pairs: Ints
    weights: FloatArray

    def rows(self, first: int, last: int) -> BucketPiece:
        """Return some of the items."""
        entries = slice(self.starts[first], self.starts[last])
        items = slice(first, last)
        return BucketPiece(
            self.colours[items],
            self.first_rows[items],
            self.number[items],
            self.starts[first : last + 1] - self.starts[first],
            self.pairs[entries],
            self.weights[entries],
        )

    def take(self, items: NDArray[np.intp]) -> BucketPiece:
        """Return the items in another order."""
        sizes = np.diff(self.starts)[items]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[:-1][items] - starts[:-1], sizes)
        return BucketPiece(
            self.colours[items],
            self.first_rows[items],
            self.number[items],
            starts,
            self.pairs[entries],
            self.weights[entries],
        )


def _chosen(block: Block, colours: Colours, merge: bool) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the items that stand for all, by colour and then by first row, and for how many each stands."""
    order = np.lexsort((block.first_rows, colours))
    if not merge or len(order) == 0:
        return order, np.ones(len(order))
    _, first, number = np.unique(colours[order], return_index=True, return_counts=True)
    return order[first], number.astype(np.float64)


def bucket_pieces(
    block: Block, colours: Colours, kinds: Ints, n_kinds: int, flip: bool, merge: bool, top: float, count: int
) -> list[BucketPiece]:
    """Return the items of a block by bucket.

    Args:
        block: The block.
        colours: Colours of its items.
        kinds: Kind of each annotator, shape (A,).
        n_kinds: Number of kinds of annotators.
        flip: Whether the opposite votes are fitted.
        merge: Whether one item stands for all of its colour.
        top: Above all colours.
        count: Number of buckets.
    """
    votes, starts = block.votes, block.starts
    chosen, number = _chosen(block, colours, merge)
    sizes = np.diff(starts)[chosen]
    rows = np.arange(sizes.sum()) + np.repeat(starts[:-1][chosen] - (np.cumsum(sizes) - sizes), sizes)
    item = np.repeat(np.arange(len(chosen)), sizes)
    vote = (votes.votes[rows] ^ np.int8(flip)).astype(np.int64)
    keys, place = np.unique((item * 2 + vote) * n_kinds + kinds[votes.annotator_codes[rows]], return_inverse=True)
    weights = np.bincount(place, None if votes.weights is None else votes.weights[rows], len(keys)).astype(np.float64)
    entries = np.searchsorted(keys // (2 * n_kinds), np.arange(len(chosen) + 1))
    whole = BucketPiece(colours[chosen], block.first_rows[chosen], number, entries, keys % (2 * n_kinds), weights)
    cuts = np.searchsorted(_homes(whole.colours, top, count), np.arange(count + 1))
    return [whole.rows(first, last) for first, last in pairwise(cuts.tolist())]


@dataclass(frozen=True, eq=False)
class Bucket:
    """The kinds of items of a range of colours, and which kind the items of each block are.

    Attributes:
        kinds: The kinds.
        of_blocks: For each block, the kind of each item of its `BucketPiece`.
    """

    kinds: BucketPiece
    of_blocks: tuple[NDArray[np.intp], ...]


def join_bucket(pieces: Sequence[BucketPiece], merge: bool) -> Bucket:
    """Put the pieces of all blocks together, by colour and then by first row."""

    def joined(name: str) -> Any:
        return np.concatenate([getattr(piece, name) for piece in pieces])

    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(piece.starts) for piece in pieces]))])
    together = BucketPiece(
        joined("colours"), joined("first_rows"), joined("number"), starts, joined("pairs"), joined("weights")
    )
    order = np.lexsort((together.first_rows, together.colours))
    kind = np.empty(len(order), np.intp)
    if merge and len(order):
        _, first, place = np.unique(together.colours[order], return_index=True, return_inverse=True)
        kind[order] = place
        number = np.bincount(kind, together.number).astype(np.float64)
        kinds = together.take(order[first])
        kinds = BucketPiece(kinds.colours, kinds.first_rows, number, kinds.starts, kinds.pairs, kinds.weights)
    else:
        kind[order] = np.arange(len(order))
        kinds = together.take(order)
    return Bucket(kinds, tuple(np.split(kind, np.cumsum([len(piece.colours) for piece in pieces])[:-1])))


def bucket_cuts(bucket: Bucket, kinds_before: int, entries_before: int) -> Ints:
    """Return the first kind of each chunk that begins in a bucket, counted over all buckets."""
    starts = bucket.kinds.starts + entries_before
    multiples = np.arange(-(-entries_before // CHUNK_VOTES) * CHUNK_VOTES, starts[-1], CHUNK_VOTES)
    return np.searchsorted(starts, multiples) + kinds_before


def bucket_rows(bucket: Bucket, first: int, last: int) -> BucketPiece:
    """Return some of the kinds of a bucket."""
    return bucket.kinds.rows(first, last)


def build_group(
    cuts: Sequence[int], pieces: Sequence[BucketPiece], annotator_weight: FloatArray
) -> tuple[VoteChunk, ...]:
    """Return the chunks of a group.

    Args:
        cuts: First kind of each chunk, and the kind after the last.
        pieces: These kinds, in order.
        annotator_weight: Number of annotators of each kind.
    """
    sizes = np.concatenate([np.diff(piece.starts) for piece in pieces])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs, weights, number = (
        np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("pairs", "weights", "number")
    )

    def chunk(first: int, last: int) -> VoteChunk:
        a, b = first - cuts[0], last - cuts[0]
        rows = slice(starts[a], starts[b])
        coded = np.unique(pairs[rows], return_inverse=True)
        return build_chunk(first, starts[a : b + 1] - starts[a], *coded, weights[rows], number[a:b], annotator_weight)

    return tuple(chunk(first, last) for first, last in pairwise(cuts))


def item_kinds(
    block: Block, colours: Colours, merge: bool, found: Sequence[NDArray[np.intp]], kinds_before: Sequence[int]
) -> Ints:
    """Return the kind of each item of a block, shape (I,), given those that each bucket found for it."""
    of_chosen = np.concatenate([kinds + first for kinds, first in zip(found, kinds_before, strict=True)])
    if len(of_chosen) == 0:
        return np.zeros(0, np.int64)
    if merge:
        kinds: Ints = of_chosen[np.unique(colours, return_inverse=True)[1]]
        return kinds
    kinds = np.empty(len(colours), np.int64)
    kinds[_chosen(block, colours, merge)[0]] = of_chosen
    return kinds
