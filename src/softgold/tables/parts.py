"""Votes in parts of whole items, for tables that are gone through and not held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

PART_VOTES = 2**18


@dataclass(frozen=True)
class StorePart:
    """Some consecutive items: number of the part, of its first item, of its items and of its votes."""

    number: int
    first_item: int
    n_items: int
    n_votes: int

    @property
    def rows(self) -> slice:
        """Where the items are among all."""
        return slice(self.first_item, self.first_item + self.n_items)


@dataclass(frozen=True, eq=False)
class PartVotes:
    """The votes of a part, item by item.

    Attributes:
        starts: Where the votes of each item start, and their number, shape (n + 1,).
        annotators: Annotator of each vote, shape (v,).
        votes: 0 or 1, shape (v,).
        weights: Weight of each vote, or None where all votes of the table weigh 1.
    """

    starts: NDArray[np.int64]
    annotators: NDArray[np.int32]
    votes: NDArray[np.int8]
    weights: FloatArray | None

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of votes per item, shape (n,)."""
        return np.diff(self.starts)

    @property
    def items(self) -> NDArray[np.int64]:
        """Item of each vote within the part, shape (v,)."""
        return np.repeat(np.arange(len(self.starts) - 1), self.counts)

    def take(self, first: int, last: int) -> PartVotes:
        """Return the votes on the items from number `first` to before `last`."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        weights = None if self.weights is None else self.weights[begin:end]
        starts = self.starts[first : last + 1] - begin
        return PartVotes(starts, self.annotators[begin:end], self.votes[begin:end], weights)

    def select(self, items: NDArray[np.int64]) -> PartVotes:
        """Return the votes on some items, in the order given."""
        first = self.starts[items]
        starts = np.concatenate([[0], np.cumsum(self.starts[items + 1] - first)])
        rows = np.repeat(first - starts[:-1], np.diff(starts)) + np.arange(starts[-1])
        weights = None if self.weights is None else self.weights[rows]
        return PartVotes(starts, self.annotators[rows], self.votes[rows], weights)


class VotesInParts(Protocol):
    """A vote table that can be gone through part by part: in memory, or on disk."""

    @property
    def item_ids(self) -> pd.Index[str]:
        """Ids of the items, length I."""
        ...

    @property
    def annotator_ids(self) -> pd.Index[str]:
        """Ids of the annotators, length A."""
        ...

    @property
    def n_items(self) -> int:
        """Number of items I."""
        ...

    @property
    def n_annotators(self) -> int:
        """Number of annotators A."""
        ...

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        ...

    @property
    def item_counts(self) -> NDArray[np.int64]:
        """Votes per item, shape (I,)."""
        ...

    def each(self) -> Iterator[tuple[StorePart, PartVotes]]:
        """Give all parts in the order of the items, each with its votes."""
        ...


def chunk_cuts(starts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the first item of each chunk, and the number of items: shape (chunks + 1,).

    Args:
        starts: Position of each item's first vote, and the number of votes: shape (I + 1,).
        size: Votes per chunk.

    >>> chunk_cuts(np.array([0, 2, 4, 6, 7]), size=3).tolist()
    [0, 2, 3, 4]
    """
    n_items = len(starts) - 1
    cuts = np.unique(np.searchsorted(starts, np.arange(0, starts[-1], size)))
    return np.append(cuts[cuts < n_items], n_items)  # the last item may be larger than a chunk
