"""Votes in chunks of whole items: nothing of size items x states is held beyond one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from softgold.models.base import FloatArray
from softgold.tables.parts import PartVotes, chunk_cuts
from softgold.tables.votes import VoteTable

CHUNK_VOTES = 2**14


@dataclass(frozen=True, eq=False)
class VoteChunk:
    """The votes on some consecutive items.

    A column is a pair (vote, annotator) that occurs in the chunk, so that one sparse product adds up the log
    likelihoods of no and yes votes together. Columns ascend, so that an item's terms are always added in one order.

    Attributes:
        first_item: Number of the chunk's first item.
        annotators: Annotator of each column, shape (C,); first those of no votes, then those of yes votes.
        n_no: Number of columns of no votes.
        by_item: Vote weights of an item of each kind, items x columns.
        by_column: Vote weights of an annotator of each kind, columns x items.
        item_weight: Number of items of each kind, shape (n,).
    """

    first_item: int
    annotators: NDArray[np.int64]
    n_no: int
    by_item: sparse.csr_array
    by_column: sparse.csr_array
    item_weight: FloatArray

    @property
    def no(self) -> slice:
        """The columns of no votes."""
        return slice(0, self.n_no)

    @property
    def yes(self) -> slice:
        """The columns of yes votes."""
        return slice(self.n_no, len(self.annotators))

    @property
    def rows(self) -> slice:
        """Where the chunk's items are among all items."""
        return slice(self.first_item, self.first_item + self.by_item.shape[0])


def vote_chunks(votes: VoteTable, size: int = CHUNK_VOTES) -> tuple[VoteChunk, ...]:
    """Return the votes in chunks of whole items with about `size` votes each, in the order of the items."""
    return tuple(part_chunks(votes.by_item(), np.ones(votes.n_annotators), size=size))


def part_chunks(
    votes: PartVotes,
    annotator_weight: FloatArray,
    item_weight: FloatArray | None = None,
    *,
    first_item: int = 0,
    size: int = CHUNK_VOTES,
) -> Iterator[VoteChunk]:
    """Give the votes of a part in chunks of whole items, in the order of the items.

    Args:
        votes: The votes.
        annotator_weight: How many annotators each annotator stands for, shape (A,); see `classes`.
        item_weight: How many items each item stands for, shape (n,); None where each stands for itself.
        first_item: Number of the first item.
        size: About how many votes a chunk has.
    """
    count = np.int64(len(annotator_weight))
    for first, last in pairwise(chunk_cuts(votes.starts, size).tolist()):
        some = votes.take(first, last)
        pairs = some.votes * count + some.annotators
        order = np.argsort(some.items * (2 * count) + pairs, kind="stable")
        weights = None if some.weights is None else some.weights[order]
        columns, places = np.unique(pairs[order], return_inverse=True)
        of = np.ones(last - first) if item_weight is None else item_weight[first:last]
        yield build_chunk(first_item + first, some.starts, columns, places, weights, of, annotator_weight)


def build_chunk(
    first_item: int,
    starts: NDArray[np.integer],
    columns: NDArray[np.int64],
    places: NDArray[np.integer],
    weights: FloatArray | None,
    item_weight: FloatArray,
    annotator_weight: FloatArray,
) -> VoteChunk:
    """Return a chunk of n items, with columns as in `VoteChunk`.

    Args:
        first_item: Number of the first item.
        starts: Where the votes of each item start, and the number of votes, shape (n + 1,).
        columns: vote * A + annotator of each column, ascending, shape (C,).
        places: Column of each vote, ascending within an item, shape (v,).
        weights: Weight of each vote, shape (v,); None where all are 1.
        item_weight: How many items each item stands for, shape (n,).
        annotator_weight: How many annotators each annotator stands for, shape (A,).
    """
    count, shape = len(annotator_weight), (len(starts) - 1, len(columns))
    data = np.ones(len(places)) if weights is None else weights
    by_item = sparse.csr_array((data, places.astype(np.int32), starts.astype(np.int32)), shape=shape)
    who = columns % count
    # The votes between two kinds are shared among the items of the one and the annotators of the other.
    by_column = by_item.T.tocsr()
    share = np.repeat(1 / annotator_weight[who], np.diff(by_column.indptr))
    by_column.data = share * by_column.data * item_weight[by_column.indices]
    n_no = int(np.searchsorted(columns, count))
    return VoteChunk(int(first_item), who, n_no, by_item, by_column, item_weight)
