"""The vote table: who voted what on which item, coded once, validated once, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from softgold.errors import InputError
from softgold.tables.description import VoteDescription, describe_votes

__all__ = ["Components", "VoteTable"]

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Components:
    """Connected components of the bipartite vote graph: annotators and items linked by votes.

    Attributes:
        count: Number of components.
        items: Component of each item, shape (I,). Components are numbered by the first item in them.
        annotators: Component of each annotator, shape (A,).
    """

    count: int
    items: IntArray
    annotators: IntArray


@dataclass(frozen=True, eq=False, repr=False)
class VoteTable:
    """Binary votes in sparse form, V votes of A annotators on I items.

    Rows keep the order of the source; items and annotators are coded in the order of first appearance.
    Abstentions are counted and not stored. Every item and every annotator has at least one vote.

    Attributes:
        item_codes: Item of each vote, shape (V,).
        annotator_codes: Annotator of each vote, shape (V,).
        votes: 0 or 1, int8, shape (V,).
        item_ids: Ids as text, exactly as written, length I.
        annotator_ids: Ids as text, length A.
        weights: Weight of each vote, or None when every vote counts 1. Only `duplicates="mean"` makes weights:
            an annotator who voted k times on an item has k votes of weight 1/k.
        n_abstentions: Number of empty votes in the source.
        abstained_items: Ids seen with abstentions only; they are not items of this table.
        abstained_annotators: Ids of annotators who only abstained.
        notes: What the reader had to decide, one sentence each.

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
        """Build a table from codes that are already valid, freezing its arrays."""
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

    def _check(self) -> None:
        lengths = {len(self.item_codes), len(self.annotator_codes), len(self.votes)}
        if len(lengths) != 1:
            raise InputError(f"item_codes, annotator_codes and votes must be equally long, got {sorted(lengths)}")
        if np.bincount(self.item_codes, minlength=self.n_items).min(initial=1) == 0:
            raise InputError("every item of a vote table needs a vote; leave out the items that have none")
        if np.bincount(self.annotator_codes, minlength=self.n_annotators).min(initial=1) == 0:
            raise InputError("every annotator of a vote table needs a vote; leave out those who have none")

    @property
    def n_votes(self) -> int:
        """Number of stored votes V, repeats included."""
        return len(self.votes)

    @property
    def n_items(self) -> int:
        """Number of items I."""
        return len(self.item_ids)

    @property
    def n_annotators(self) -> int:
        """Number of annotators A."""
        return len(self.annotator_ids)

    @cached_property
    def item_counts(self) -> NDArray[np.int64]:
        """Votes per item, shape (I,); a repeated vote that was averaged counts once."""
        return self._count(self.item_codes, self.n_items)

    @cached_property
    def annotator_counts(self) -> NDArray[np.int64]:
        """Votes per annotator, shape (A,)."""
        return self._count(self.annotator_codes, self.n_annotators)

    @cached_property
    def item_positives(self) -> FloatArray:
        """Positive votes per item, shape (I,); whole numbers unless repeats were averaged."""
        return self._positives(self.item_codes, self.n_items)

    @cached_property
    def annotator_positives(self) -> FloatArray:
        """Positive votes per annotator, shape (A,)."""
        return self._positives(self.annotator_codes, self.n_annotators)

    @property
    def item_shares(self) -> FloatArray:
        """Share of positive votes per item, shape (I,)."""
        return self.item_positives / self.item_counts

    def _count(self, codes: IntArray, length: int) -> NDArray[np.int64]:
        counts = np.bincount(codes, weights=self.weights, minlength=length)
        return np.rint(counts).astype(np.int64)

    def _positives(self, codes: IntArray, length: int) -> FloatArray:
        mass = self.votes if self.weights is None else self.votes * self.weights
        return np.bincount(codes, weights=mass, minlength=length).astype(np.float64)

    def _item_squares(self) -> FloatArray:
        """Sum over each item's annotators of the squared (mean) vote, shape (I,)."""
        if self.weights is None:
            return self.item_positives
        keys = self.item_codes.astype(np.int64) * self.n_annotators + self.annotator_codes
        pairs, pair_of = np.unique(keys, return_inverse=True)
        means = np.bincount(pair_of, weights=self.votes * self.weights)
        return np.bincount(pairs // self.n_annotators, weights=means**2, minlength=self.n_items).astype(np.float64)

    def describe(self) -> VoteDescription:
        """Describe the table: counts, distributions, components, agreement, and what to be warned of.

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

    def signed_csr(self) -> sparse.csr_array:
        """Items x annotators matrix of +1 (positive) and -1 (negative), times the weights; no vote is an absent entry.

        Signs are used because a stored zero is easily lost in sparse algebra. Repeats kept with `duplicates="all"`
        stay separate entries and add up in products.

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
        """Connected components of the vote graph, numbered by the first item in them."""
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
        """Bytes held by codes, votes, weights and ids (not by counts that are computed on demand)."""
        arrays: list[NDArray[Any]] = [self.item_codes, self.annotator_codes, self.votes]
        if self.weights is not None:
            arrays.append(self.weights)
        ids = self.item_ids.memory_usage(deep=True) + self.annotator_ids.memory_usage(deep=True)
        return int(sum(array.nbytes for array in arrays) + ids)

    def to_frame(self) -> pd.DataFrame:
        """Return the votes as a long table `item, annotator, vote`, in the order of the source."""
        return pd.DataFrame(
            {
                "item": self.item_ids.take(self.item_codes),
                "annotator": self.annotator_ids.take(self.annotator_codes),
                "vote": self.votes,
            }
        )
