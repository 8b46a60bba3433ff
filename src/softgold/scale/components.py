"""Connected components of votes on disk, by the annotators that share items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from softgold.models.crowd.mirror import VoteGraph
from softgold.tables.parts import PartVotes, StorePart


@dataclass(frozen=True, eq=False)
class StoreGraph:
    """The components, and which one each item is in.

    Attributes:
        graph: The components.
        items: Component of each item, shape (I,); None where there is only one.
    """

    graph: VoteGraph
    items: NDArray[np.int32] | None

    def of(self, part: StorePart) -> NDArray[np.int32]:
        """Return the components of a part's items."""
        if self.items is None:
            return np.zeros(part.n_items, np.int32)
        return self.items[part.first_item : part.first_item + part.n_items]


class JudgedItems(Protocol):
    """What components are found in: a `VoteStore`, or the votes of a run."""

    @property
    def n_items(self) -> int:
        """Number of items."""
        ...

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        ...

    @property
    def annotator_counts(self) -> NDArray[np.int64]:
        """Votes per annotator."""
        ...

    def each(self) -> Iterator[tuple[StorePart, PartVotes]]:
        """Give the votes part by part."""
        ...


def find_components(store: JudgedItems) -> StoreGraph:
    """Return the components, numbered by first item, as `VoteTable.components` does."""
    group, count = np.arange(store.n_annotators, dtype=np.int32), store.n_annotators
    for _, votes in store.each():
        if count == 1:  # nothing is left to join
            break
        count, group = _joined(votes, group)
    if count == 1:
        sizes = np.array([store.n_items], np.int64)
        return StoreGraph(VoteGraph(np.zeros(store.n_annotators, np.int32), store.annotator_counts, sizes), None)
    items = np.concatenate([group[votes.annotators[votes.starts[:-1]]] for _, votes in store.each()])
    raw, first = np.unique(items, return_index=True)
    number = np.empty(count, np.int32)
    number[raw[np.argsort(first)]] = np.arange(count)
    items = number[items]
    graph = VoteGraph(number[group], store.annotator_counts, np.bincount(items, minlength=count))
    return StoreGraph(graph, items)


def _joined(votes: PartVotes, group: NDArray[np.int32]) -> tuple[int, NDArray[np.int32]]:
    """Return the number of groups of annotators, and the group of each, with those who share an item joined."""
    size = len(group)
    links = sparse.coo_array(
        (np.ones(len(votes.votes), np.int8), (votes.items + size, group[votes.annotators])),
        shape=(size + len(votes.counts),) * 2,
    )
    _, labels = connected_components(links, directed=False)
    _, found = np.unique(labels[group], return_inverse=True)
    return int(found.max()) + 1, found.astype(np.int32)
