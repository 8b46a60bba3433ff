"""Votes on disk, in parts of whole items: what a vote table is in memory, coded, checked and cleaned."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from softgold.readers.cells import as_index
from softgold.scale.disk import read_array, read_texts, write_array, write_texts
from softgold.tables.parts import PartVotes, StorePart

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class VoteStore:
    """A vote table on disk; see `softgold.tables.votes.VoteTable` for what the fields mean.

    Attributes:
        folder: Where the parts are.
        parts: The parts, items in the order of first appearance.
        annotator_texts: Ids of the annotators, A of them.
        kinds: Kinds of the ids of items and annotators.
        weighted: Whether votes have weights.
        item_counts: Rows per item, shape (I,).
        annotator_counts: Votes per annotator, averaged repeats counted once, shape (A,).
        n_positive: Number of positive votes.
        n_abstentions: Number of empty votes.
        abstained_items: Ids seen with abstentions only.
        abstained_annotators: Ids of annotators who only abstained.
        notes: What the reader decided.
        warnings: Those of the notes that nobody asked for.
    """

    folder: Path
    parts: tuple[StorePart, ...]
    annotator_texts: pa.Array = field(repr=False)
    kinds: tuple[str | None, str | None]
    weighted: bool
    item_counts: NDArray[np.int32]
    annotator_counts: NDArray[np.int64]
    n_positive: int
    n_abstentions: int
    abstained_items: tuple[str, ...]
    abstained_annotators: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def n_items(self) -> int:
        """Number of items I."""
        return self.parts[-1].first_item + self.parts[-1].n_items

    @property
    def n_votes(self) -> int:
        """Number of stored votes V."""
        return sum(part.n_votes for part in self.parts)

    @property
    def n_annotators(self) -> int:
        """Number of annotators A."""
        return len(self.annotator_texts)

    @cached_property
    def annotator_ids(self) -> pd.Index[str]:
        """Ids of the annotators."""
        return as_index(self.annotator_texts, self.kinds[1])

    def texts(self, part: StorePart) -> pa.Array:
        """Return the ids of a part's items."""
        return read_texts(part_path(self.folder, part.number, "ids"))

    def load(self, part: StorePart) -> PartVotes:
        """Return the votes of a part."""

        def read(name: str, kind: type[np.generic]) -> NDArray[np.generic]:
            return read_array(part_path(self.folder, part.number, name), kind)

        counts = self.item_counts[part.first_item : part.first_item + part.n_items]
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        weights = None
        if self.weighted:
            stored = part_path(self.folder, part.number, "weight")
            weights = read_array(stored, np.float64) if stored.exists() else np.ones(part.n_votes)
        return PartVotes(starts, read("annotator", np.int32), read("vote", np.int8), weights)  # type: ignore[arg-type]

    def each(self) -> Iterator[tuple[StorePart, PartVotes]]:
        """Give the parts in order with their votes."""
        for part in self.parts:
            yield part, self.load(part)

    def digest(self) -> str:
        """Return a SHA-256 of the votes and the ids."""
        found = hashlib.sha256(b"\0".join(str(text).encode() for text in self.annotator_texts.to_pylist()))
        for part, votes in self.each():
            texts = self.texts(part)
            for buffer in texts.buffers()[1:]:
                found.update(buffer if buffer is not None else b"")
            arrays = (votes.starts, votes.annotators, votes.votes, votes.weights)
            for array in arrays:
                found.update(b"" if array is None else array.data)
        return found.hexdigest()


def part_path(folder: Path, number: int, name: str) -> Path:
    """Return where an array of a part is."""
    return folder / f"part-{number}.{name}"


def write_part(
    folder: Path, number: int, annotators: NDArray[np.int32], votes: NDArray[np.int8], weights: FloatArray | None
) -> None:
    """Write the votes of a part."""
    write_array(part_path(folder, number, "annotator"), annotators)
    write_array(part_path(folder, number, "vote"), votes)
    if weights is not None:
        write_array(part_path(folder, number, "weight"), weights)


def write_ids(folder: Path, parts: tuple[StorePart, ...], texts: Iterator[pa.Array]) -> None:
    """Write the ids of the items, which come in their order, beside the votes of each part."""
    held: list[pa.Array] = []
    for part in parts:
        while sum(map(len, held)) < part.n_items:
            held.append(next(texts))
        whole = pa.concat_arrays(held) if len(held) > 1 else held[0]
        write_texts(part_path(folder, part.number, "ids"), pa.concat_arrays([whole.slice(0, part.n_items)]))
        held = [whole.slice(part.n_items)]
