"""Votes in chunks of whole items: nothing of size items x states is held beyond one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from softgold.models.base import FloatArray
from softgold.tables.votes import VoteTable

__all__ = ["CHUNK_VOTES", "VoteChunk", "vote_chunks"]

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


def vote_chunks(
    votes: VoteTable,
    item_weight: FloatArray | None = None,
    annotator_weight: FloatArray | None = None,
    size: int = CHUNK_VOTES,
) -> tuple[VoteChunk, ...]:
    """Return the votes in chunks of whole items with about `size` votes each, in the order of the items.

    Args:
        votes: The votes.
        item_weight: How many items each item stands for, shape (I,); see `classes`.
        annotator_weight: How many annotators each annotator stands for, shape (A,).
        size: Votes per chunk.
    """
    items = np.ones(votes.n_items) if item_weight is None else item_weight
    annotators = np.ones(votes.n_annotators) if annotator_weight is None else annotator_weight
    pairs = votes.votes.astype(np.int64) * votes.n_annotators + votes.annotator_codes
    order = np.argsort(votes.item_codes * np.int64(2 * votes.n_annotators) + pairs, kind="stable")
    pairs = pairs[order]
    weights = np.ones(votes.n_votes) if votes.weights is None else votes.weights[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(votes.item_codes, minlength=votes.n_items))])
    cuts = np.unique(np.searchsorted(starts, np.arange(0, votes.n_votes, size)))
    cuts = cuts[cuts < votes.n_items]  # the last item may be larger than a chunk

    def chunk(first: int, last: int) -> VoteChunk:
        rows = slice(starts[first], starts[last])
        columns, places = np.unique(pairs[rows], return_inverse=True)
        indptr = (starts[first : last + 1] - starts[first]).astype(np.int32)
        shape = (last - first, len(columns))
        by_item = sparse.csr_array((weights[rows], places.astype(np.int32), indptr), shape=shape)
        n_no = int(np.searchsorted(columns, votes.n_annotators))
        who, of = columns % votes.n_annotators, items[first:last]
        # The votes between two kinds are shared among the items of the one and the annotators of the other.
        by_column = sparse.diags_array(1 / annotators[who]) @ by_item.T.tocsr() @ sparse.diags_array(of)
        return VoteChunk(int(first), who, n_no, by_item, sparse.csr_array(by_column), of)

    ends: Iterable[int] = [*cuts[1:], votes.n_items]
    return tuple(chunk(first, last) for first, last in zip(cuts, ends, strict=True))
