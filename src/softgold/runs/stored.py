"""The votes of a run that were fitted on disk, read part by part: no more than one part is held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as arrow_parquet
from numpy.typing import NDArray

from softgold.errors import StorageError
from softgold.runs.files import cause
from softgold.tables.description import VoteDescription, describe_votes
from softgold.tables.ids import as_arrow, find_ids
from softgold.tables.parts import PART_VOTES, FloatArray, PartVotes, StorePart

TEXT = pa.large_string()


@dataclass(frozen=True, eq=False)
class StoredVotes:
    """The votes of a run on disk, item by item; see `softgold.tables.votes.VoteTable` for what the fields mean.

    Attributes:
        path: The Parquet file.
        item_ids: Ids of the items, in the order of the file.
        annotator_ids: Ids of the annotators, in the order of their codes.
        item_counts: Votes per item, shape (I,).
        item_positives: Positive votes per item, shape (I,).
        n_votes: Number of rows.
        n_abstentions: Number of empty votes.
        n_silent: Numbers of items and annotators with empty votes only.
        notes: What the reader decided.
    """

    path: Path
    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    item_counts: NDArray[np.int64]
    item_positives: FloatArray
    n_votes: int
    n_abstentions: int
    n_silent: tuple[int, int]
    notes: tuple[str, ...]

    @property
    def n_items(self) -> int:
        """Number of items I."""
        return len(self.item_ids)

    @property
    def n_annotators(self) -> int:
        """Number of annotators A."""
        return len(self.annotator_ids)

    @cached_property
    def annotator_counts(self) -> NDArray[np.int64]:
        """Votes per annotator, averaged repeats counted once, shape (A,)."""
        return np.rint(self._by_annotator[0]).astype(np.int64)

    def each(self) -> Iterator[tuple[StorePart, PartVotes]]:
        """Give all parts in the order of the items, each with its votes.

        Raises:
            StorageError: The file is missing or damaged, or has the votes of other items.
        """
        if not self.path.is_file():
            raise StorageError(f"there is no {self.path}; fit the votes again")
        try:
            yield from self._parts()
        except (pa.ArrowException, OSError, ValueError, LookupError) as error:
            raise StorageError(f"{self.path} is damaged or not ours: {cause(error)}") from None

    def _parts(self) -> Iterator[tuple[StorePart, PartVotes]]:
        first, number = 0, 0
        with self.path.open("rb") as file:  # Arrow takes no path that is not UTF-8
            for rows in _whole_items(arrow_parquet.ParquetFile(file, read_dictionary=["annotator"])):
                starts, ids = _item_starts(rows["item"])
                part = StorePart(number, first, len(ids), rows.num_rows)
                if not ids.equals(as_arrow(self.item_ids[part.rows]).cast(TEXT)):
                    raise ValueError("its items are not those of the soft labels")
                yield part, self._votes(rows, starts)
                first, number = first + part.n_items, number + 1
        if first != self.n_items:
            raise ValueError(f"it has votes on {first} items, and there are {self.n_items} soft labels")

    def _votes(self, rows: pa.Table, starts: NDArray[np.int64]) -> PartVotes:
        votes = rows["vote"].to_numpy()
        if not np.isin(votes, (0, 1)).all():
            raise ValueError("a vote is neither 0 nor 1")
        annotators = self._annotators(rows["annotator"])
        weights = rows["weight"].to_numpy() if "weight" in rows.column_names else None
        return PartVotes(starts, annotators, votes.astype(np.int8), weights)

    def _annotators(self, column: pa.ChunkedArray) -> NDArray[np.int32]:
        coded = column.unify_dictionaries().combine_chunks() if pa.types.is_dictionary(column.type) else column
        coded = coded if pa.types.is_dictionary(coded.type) else coded.combine_chunks().dictionary_encode()
        coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
        known = find_ids(self.annotator_ids, pd.Index(coded.dictionary.cast(TEXT).to_pandas(), dtype="str"))
        codes = known[coded.indices.to_numpy(zero_copy_only=False)]
        if (codes < 0).any():
            raise ValueError("it has annotators that the fit does not know")
        return np.asarray(codes, dtype=np.int32)

    @cached_property
    def _by_annotator(self) -> tuple[FloatArray, FloatArray]:
        """Votes and positive votes of each annotator."""
        counts, positives = np.zeros(self.n_annotators), np.zeros(self.n_annotators)
        for _, part in self.each():
            mass = np.ones(len(part.votes)) if part.weights is None else part.weights
            counts += np.bincount(part.annotators, mass, self.n_annotators)
            positives += np.bincount(part.annotators, mass * part.votes, self.n_annotators)
        return counts, positives

    def describe(self) -> VoteDescription:
        """Describe the votes, as `VoteTable.describe` does."""
        from softgold.scale.components import find_components

        squares, weighted = self.item_positives, False
        for part, votes in self.each():
            if votes.weights is None:
                break
            squares = squares if weighted else squares.copy()
            weighted = True
            squares[part.rows] = _squares(votes, votes.weights, self.n_annotators)
        graph = find_components(self)
        components = np.zeros(self.n_items, np.int32) if graph.items is None else graph.items
        return describe_votes(
            item_counts=self.item_counts,
            item_positives=self.item_positives,
            item_squares=squares,
            annotator_counts=self.annotator_counts,
            annotator_positives=self._by_annotator[1],
            item_components=components,
            n_abstentions=self.n_abstentions,
            n_silent_items=self.n_silent[0],
            n_silent_annotators=self.n_silent[1],
            notes=self.notes,
        )


def _whole_items(file: arrow_parquet.ParquetFile) -> Iterator[pa.Table]:
    """Give the rows in tables of whole items."""
    left: pa.Table | None = None
    for batch in file.iter_batches(batch_size=PART_VOTES):
        rows = pa.Table.from_batches([batch])
        rows = rows if left is None else pa.concat_tables([left, rows])
        starts, _ = _item_starts(rows["item"])
        cut = int(starts[-2])  # the last item may go on in the next batch
        left = rows.slice(cut)
        if cut:
            yield rows.slice(0, cut)
    if left is not None:
        yield left


def _item_starts(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], Any]:
    """Return where the votes of each item start, and their number; and the ids of the items as text."""
    items = column.combine_chunks()
    items = items.chunk(0) if isinstance(items, pa.ChunkedArray) else items
    if items.null_count:
        raise ValueError("an item is missing")
    changes = pa.compute.not_equal(items[1:], items[:-1]).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], 1 + np.flatnonzero(changes), [len(items)]]).astype(np.int64)
    return starts, items.take(pa.array(starts[:-1])).cast(TEXT)


def _squares(votes: PartVotes, weights: FloatArray, n_annotators: int) -> FloatArray:
    """Return the sum per item of its annotators' squared mean votes, shape (n,)."""
    pairs, pair_of = np.unique(votes.items * n_annotators + votes.annotators, return_inverse=True)
    means = np.bincount(pair_of, weights=votes.votes * weights)
    return np.bincount(pairs // n_annotators, weights=means**2, minlength=len(votes.counts)).astype(np.float64)
