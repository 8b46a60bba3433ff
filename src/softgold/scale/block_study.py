"""Votes in blocks of whole items on the workers of a cluster, and what the client knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from softgold.models.agreement import agreement_sums
from softgold.models.base import FloatArray
from softgold.models.crowd.mirror import VoteGraph
from softgold.scale.cluster import Cluster, Future
from softgold.scale.parts import Block
from softgold.tables.votes import VoteTable


@dataclass(frozen=True, eq=False)
class BlockStats:
    """What the client knows of the votes of a block; arrays of shape (A,) or (I,)."""

    votes: int
    positives: int
    surplus: float
    annotator_counts: FloatArray
    annotator_parts: NDArray[np.int32]
    agreement: tuple[FloatArray, FloatArray]
    item_counts: NDArray[np.int64]
    item_annotator: NDArray[np.int32]
    first_rows: NDArray[np.int64]


def block_stats(block: Block) -> BlockStats:
    """Count the votes of a block, on the worker that holds it."""
    votes = block.votes
    weights = np.ones(votes.n_votes) if votes.weights is None else votes.weights
    return BlockStats(
        votes.n_votes,
        int(votes.votes.sum()),
        float(np.dot(2.0 * votes.votes - 1, weights)),
        np.bincount(votes.annotator_codes, weights, votes.n_annotators).astype(np.float64),
        votes.components.annotators,
        agreement_sums(votes),
        votes.item_counts,
        votes.annotator_codes[block.starts[:-1]],
        block.first_rows,
    )


@dataclass(frozen=True, eq=False)
class BlockStudy:
    """Votes on the workers, in blocks of whole items, and what is known of them here.

    Items are numbered by first appearance; `order` gives the items of all blocks, one block after the other, in that
    order.
    """

    cluster: Cluster
    blocks: tuple[Future, ...] = field(repr=False)
    annotator_ids: pd.Index[str]
    stats: tuple[BlockStats, ...] = field(repr=False)
    n_abstentions: int = 0
    abstained_items: tuple[str, ...] = ()
    abstained_annotators: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def n_annotators(self) -> int:
        """Number of annotators A."""
        return len(self.annotator_ids)

    @property
    def n_votes(self) -> int:
        """Number of votes V."""
        return sum(stats.votes for stats in self.stats)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Position of each item among those of all blocks, by first appearance, shape (I,)."""
        return np.argsort(np.concatenate([stats.first_rows for stats in self.stats]), kind="stable")

    def by_item(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return arrays of the blocks as one, by first appearance of the items."""
        return np.concatenate(list(values))[self.order]

    def by_block(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Return an array by first appearance of the items as one array for each block."""
        placed = np.empty_like(values)
        placed[self.order] = values
        return np.split(placed, np.cumsum([len(stats.first_rows) for stats in self.stats])[:-1])

    @cached_property
    def item_counts(self) -> NDArray[np.int64]:
        """Votes per item, shape (I,)."""
        return self.by_item([stats.item_counts for stats in self.stats])

    @cached_property
    def annotator_counts(self) -> NDArray[np.int64]:
        """Votes per annotator, shape (A,)."""
        return np.rint(sum(stats.annotator_counts for stats in self.stats)).astype(np.int64)

    @cached_property
    def agreement(self) -> FloatArray:
        """Share of votes that agree with the majority of the others, shape (A,)."""
        hits, total = (sum(stats.agreement[at] for stats in self.stats) for at in (0, 1))
        shares = np.full(self.n_annotators, np.nan)
        np.divide(hits, total, out=shares, where=total > 0)
        return shares

    @cached_property
    def item_parts(self) -> NDArray[np.int32]:
        """Component of each item, numbered by first item, shape (I,)."""
        part = self.by_item([self._linked[stats.item_annotator] for stats in self.stats])
        numbered: NDArray[np.int32] = self._numbered[part]
        return numbered

    @cached_property
    def graph(self) -> VoteGraph:
        """The components of the vote graph."""
        return VoteGraph(self._numbered[self._linked], self.annotator_counts, np.bincount(self.item_parts))

    @cached_property
    def _linked(self) -> NDArray[np.int32]:
        """Component of each annotator, in no certain order."""
        count, links = self.n_annotators, []
        first = count
        for stats in self.stats:
            links.append(stats.annotator_parts + first)
            first += int(stats.annotator_parts.max(initial=-1)) + 1
        ends = np.concatenate(links)
        starts = np.tile(np.arange(count), len(links))
        graph = sparse.coo_array((np.ones(len(ends), np.int8), (starts, ends)), shape=(first, first))
        found: NDArray[np.int32] = connected_components(graph, directed=False)[1][:count]
        return found

    @cached_property
    def _numbered(self) -> NDArray[np.int32]:
        """Number by first item of each component."""
        part = self.by_item([self._linked[stats.item_annotator] for stats in self.stats])
        old, first = np.unique(part, return_index=True)
        new = np.zeros(int(self._linked.max()) + 1, np.int32)
        new[old[np.argsort(first)]] = np.arange(len(old), dtype=np.int32)
        return new

    def table(self) -> VoteTable:
        """Return all votes as one table, as `read_votes` gives it."""
        found = self.cluster.results([self.cluster.call(_rows, block) for block in self.blocks])
        codes = self.by_block(np.arange(len(self.order), dtype=np.int32))
        items = np.concatenate([code[votes.item_codes] for code, (votes, _) in zip(codes, found, strict=True)])
        order = np.argsort(np.concatenate([rows for _, rows in found]), kind="stable")
        weights = None
        if any(votes.weights is not None for votes, _ in found):
            weights = np.concatenate(
                [np.ones(votes.n_votes) if votes.weights is None else votes.weights for votes, _ in found]
            )[order]
        return VoteTable.from_codes(
            items[order],
            np.concatenate([votes.annotator_codes for votes, _ in found])[order],
            np.concatenate([votes.votes for votes, _ in found])[order],
            _joined([votes.item_ids for votes, _ in found], self.order),
            self.annotator_ids,
            weights=weights,
            n_abstentions=self.n_abstentions,
            abstained_items=self.abstained_items,
            abstained_annotators=self.abstained_annotators,
            notes=self.notes,
        )


def _rows(block: Block) -> tuple[VoteTable, NDArray[np.int64]]:
    return block.votes, block.rows


def _joined(ids: Sequence[pd.Index[str]], order: NDArray[np.intp]) -> pd.Index[str]:
    together = ids[0].append(list(ids[1:])) if len(ids) > 1 else ids[0]
    return together.rename(ids[0].name).take(order)
