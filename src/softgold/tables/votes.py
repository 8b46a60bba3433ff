"""Vote table: votes coded and checked once, then frozen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from softgold.errors import InputError
from softgold.tables.coded import CodedTable, FloatArray, IntArray
from softgold.tables.description import VoteDescription, describe_votes
from softgold.tables.ids import restore_ids
from softgold.tables.parts import PART_VOTES, PartVotes, StorePart, chunk_cuts


@dataclass(frozen=True, eq=False)
class Components:
    """Connected components of the vote graph, in which votes link annotators and items.

    Attributes:
        count: Number of components.
        items: Component of each item, shape (I,), numbered by first item.
        annotators: Component of each annotator, shape (A,).
    """

    count: int
    items: IntArray
    annotators: IntArray


@dataclass(frozen=True, eq=False, repr=False)
class VoteTable(CodedTable):
    """Binary votes in long form: V votes by A annotators on I items.

    Rows keep the order of the source; items and annotators are coded in order of first appearance.
    Abstentions are counted, not stored. Every item and every annotator has at least one vote.

    Attributes:
        item_codes: Item of each vote, shape (V,).
        annotator_codes: Annotator of each vote, shape (V,).
        votes: 0 or 1, int8, shape (V,).
        item_ids: Ids as text, exactly as written, length I; `to_frame` gives whole numbers back as such.
        annotator_ids: Ids as text, length A.
        weights: Weight of each vote, or None if all are 1. Only `duplicates="mean"` makes weights: an annotator
            who voted k times on an item has k votes of weight 1/k.
        n_abstentions: Number of empty votes in the source.
        abstained_items: Ids seen with abstentions only; not items of this table.
        abstained_annotators: Ids of annotators who only abstained.
        notes: What the reader decided, one sentence each.
        origin: What an export was and had, in one sentence; empty for a plain table.

    Example:
        >>> table = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 1, 0], ["x", "y"], ["ann", "bob"])
        >>> table.n_votes, table.n_items, table.item_positives.tolist()
        (3, 2, [2.0, 0.0])
    """

    item_codes: IntArray
    annotator_codes: IntArray
    votes: NDArray[np.int8]
    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    weights: FloatArray | None = None
    n_abstentions: int = 0
    abstained_items: tuple[str, ...] = ()
    abstained_annotators: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    origin: str = ""

    def __repr__(self) -> str:
        return f"VoteTable: {self.n_votes:,} votes on {self.n_items:,} items by {self.n_annotators:,} annotators"

    @classmethod
    def from_codes(
        cls,
        item_codes: Any,
        annotator_codes: Any,
        votes: Any,
        item_ids: Any,
        annotator_ids: Any,
        **extra: Any,
    ) -> VoteTable:
        """Build a table from valid codes; its arrays become read-only."""
        arrays: dict[str, Any] = {
            "item_codes": np.ascontiguousarray(item_codes, dtype=np.int32),
            "annotator_codes": np.ascontiguousarray(annotator_codes, dtype=np.int32),
            "votes": np.ascontiguousarray(votes, dtype=np.int8),
        }
        if extra.get("weights") is not None:
            arrays["weights"] = extra["weights"] = np.ascontiguousarray(extra["weights"], dtype=np.float64)
        for array in arrays.values():
            array.setflags(write=False)
        table = cls(
            item_ids=pd.Index(item_ids, dtype="str"),
            annotator_ids=pd.Index(annotator_ids, dtype="str"),
            **{**extra, **arrays},
        )
        table._check()
        return table

    def select(self, rows: NDArray[np.bool_]) -> VoteTable:
        """Return some of the votes, with the items and annotators that they have; shape of `rows` (V,)."""
        items, item_codes = np.unique(self.item_codes[rows], return_inverse=True)
        annotators, annotator_codes = np.unique(self.annotator_codes[rows], return_inverse=True)
        return VoteTable.from_codes(
            item_codes,
            annotator_codes,
            self.votes[rows],
            self.item_ids[items],
            self.annotator_ids[annotators],
            weights=None if self.weights is None else self.weights[rows],
            notes=self.notes,
            origin=self.origin,
        )

    def _check(self) -> None:
        lengths = {len(self.item_codes), len(self.annotator_codes), len(self.votes)}
        if len(lengths) != 1:
            raise InputError(f"item_codes, annotator_codes and votes must be equally long, got {sorted(lengths)}")
        if np.bincount(self.item_codes, minlength=self.n_items).min(initial=1) == 0:
            raise InputError("every item of a vote table needs a vote; leave out items without votes")
        if np.bincount(self.annotator_codes, minlength=self.n_annotators).min(initial=1) == 0:
            raise InputError("every annotator of a vote table needs a vote; leave out annotators without votes")

    @property
    def n_votes(self) -> int:
        """Number of stored votes V, repeats included."""
        return len(self.votes)

    @cached_property
    def item_positives(self) -> FloatArray:
        """Positive votes per item, shape (I,); whole numbers unless repeats were averaged."""
        return self.item_sums(self.votes)

    @cached_property
    def annotator_positives(self) -> FloatArray:
        """Positive votes per annotator, shape (A,)."""
        return self.annotator_sums(self.votes)

    @property
    def item_shares(self) -> FloatArray:
        """Share of positive votes per item, shape (I,)."""
        return self.item_positives / self.item_counts

    def _item_squares(self) -> FloatArray:
        """Return the sum per item of its annotators' squared (mean) votes, shape (I,)."""
        if self.weights is None:
            return self.item_positives
        keys = self.item_codes.astype(np.int64) * self.n_annotators + self.annotator_codes
        pairs, pair_of = np.unique(keys, return_inverse=True)
        means = np.bincount(pair_of, weights=self.votes * self.weights)
        return np.bincount(pairs // self.n_annotators, weights=means**2, minlength=self.n_items).astype(np.float64)

    def describe(self) -> VoteDescription:
        """Describe the table: counts, distributions, components, agreement, problems found.

        >>> table = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 1, 0], ["x", "y"], ["ann", "bob"])
        >>> print(table.describe())
        items                2 (1 with one vote)
        annotators           2
        votes                3 (66.7% positive)
        ...
        """
        return describe_votes(
            item_counts=self.item_counts,
            item_positives=self.item_positives,
            item_squares=self._item_squares(),
            annotator_counts=self.annotator_counts,
            annotator_positives=self.annotator_positives,
            item_components=self.components.items,
            n_abstentions=self.n_abstentions,
            n_silent_items=len(self.abstained_items),
            n_silent_annotators=len(self.abstained_annotators),
            notes=self.notes,
        )

    def by_item(self) -> PartVotes:
        """Return all votes, item by item."""
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.item_codes, minlength=self.n_items))])
        if (self.item_codes[1:] >= self.item_codes[:-1]).all():
            return PartVotes(starts, self.annotator_codes, self.votes, self.weights)
        order = np.argsort(self.item_codes, kind="stable")
        weights = None if self.weights is None else self.weights[order]
        return PartVotes(starts, self.annotator_codes[order], self.votes[order], weights)

    def each(self) -> Iterator[tuple[StorePart, PartVotes]]:
        """Give the votes in parts of whole items, in the order of the items."""
        votes = self.by_item()
        for number, (first, last) in enumerate(pairwise(chunk_cuts(votes.starts, PART_VOTES).tolist())):
            some = votes.take(first, last)
            yield StorePart(number, first, last - first, len(some.votes)), some

    def signed_csr(self) -> sparse.csr_array:
        """Return the items x annotators matrix of +1 (positive) and -1 (negative), times the weights.

        No entry means no vote. Repeats kept with `duplicates="all"` stay separate entries and add up in products.

        >>> table = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 1, 0], ["x", "y"], ["ann", "bob"])
        >>> table.signed_csr().toarray().tolist()
        [[1.0, 1.0], [-1.0, 0.0]]
        """
        signs = 2.0 * self.votes.astype(np.float32) - 1.0
        data = signs if self.weights is None else signs * self.weights
        order = np.argsort(self.item_codes, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self.item_codes, minlength=self.n_items))])
        return sparse.csr_array(
            (data[order], self.annotator_codes[order], indptr), shape=(self.n_items, self.n_annotators)
        )

    @cached_property
    def components(self) -> Components:
        """Connected components of the vote graph, numbered by first item."""
        from scipy.sparse.csgraph import connected_components  # slow to import, and few commands need it

        links = sparse.coo_array(
            (
                np.ones(self.n_votes, dtype=np.int8),
                (self.item_codes, self.annotator_codes + np.int32(self.n_items)),
            ),
            shape=(self.n_items + self.n_annotators,) * 2,
        )
        count, labels = connected_components(links, directed=False)
        return Components(int(count), labels[: self.n_items], labels[self.n_items :])

    @property
    def nbytes(self) -> int:
        """Bytes of codes, votes, weights and ids, without cached counts."""
        arrays: list[NDArray[Any]] = [self.item_codes, self.annotator_codes, self.votes]
        if self.weights is not None:
            arrays.append(self.weights)
        ids = self.item_ids.memory_usage(deep=True) + self.annotator_ids.memory_usage(deep=True)
        return int(sum(array.nbytes for array in arrays) + ids)

    def to_frame(self) -> pd.DataFrame:
        """Return the long table `item, annotator, vote`, in the order of the source."""
        return pd.DataFrame(
            {
                "item": restore_ids(self.item_ids).take(self.item_codes),
                "annotator": restore_ids(self.annotator_ids).take(self.annotator_codes),
                "vote": self.votes,
            }
        )
