"""Votes in chunks of whole items: the coordinate engine holds nothing of size items x grid beyond one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from softgold.votes import VoteTable

__all__ = ["VoteChunk", "vote_chunks"]

MOST_VOTES_IN_SINGLE = 256  # an item with more votes gets tables in double precision
CHUNK_VOTES = 2**15


@dataclass(frozen=True, eq=False)
class VoteChunk:
    """The votes on some consecutive items: weights, and signed halves (y - 1/2) * weight, items x annotators.

    Single precision where no item has many votes: the tables then carry seven digits of sums of modest size. The
    weights are kept a second time, annotators x items, because sums over items are several times faster by row.
    """

    first_item: int
    weights: sparse.csr_array
    signed: sparse.csr_array
    weights_by_annotator: sparse.csr_array


def vote_chunks(votes: VoteTable, *, double: bool = False) -> tuple[VoteChunk, ...]:
    """Return the votes in chunks of whole items, in the order of the items; `double` precision even with few votes."""
    dtype = np.float64 if double or votes.item_counts.max() > MOST_VOTES_IN_SINGLE else np.float32
    order: NDArray[np.intp] | slice = slice(None)
    if (np.diff(votes.item_codes) < 0).any():
        order = np.argsort(votes.item_codes, kind="stable")
    annotators = votes.annotator_codes[order]
    weights = np.ones(votes.n_votes, dtype) if votes.weights is None else votes.weights[order].astype(dtype)
    halves = np.multiply(votes.votes[order] - 0.5, weights, dtype=dtype)
    starts = np.concatenate([[0], np.cumsum(np.bincount(votes.item_codes, minlength=votes.n_items))])
    size = max(CHUNK_VOTES, 4 * votes.n_annotators)  # so that an annotators x grid sum a chunk stays the lesser cost
    cuts = np.unique(np.searchsorted(starts, np.arange(0, votes.n_votes, size)))

    def chunk(first: int, last: int) -> VoteChunk:
        rows = slice(starts[first], starts[last])
        indptr = (starts[first : last + 1] - starts[first]).astype(np.int32)
        shape = (last - first, votes.n_annotators)
        whole = sparse.csr_array((weights[rows], annotators[rows], indptr), shape=shape)
        signed = sparse.csr_array((halves[rows], annotators[rows], indptr), shape=shape)
        return VoteChunk(int(first), whole, signed, whole.T.tocsr())

    return tuple(chunk(first, last) for first, last in zip(cuts, [*cuts[1:], votes.n_items], strict=True))
