"""The first pass over vote files: rows coded and written to disk as they come, some at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import Source, shorten
from softgold.readers.cells import MISSING_VOTE, CodedIds, code_ids, code_values, code_votes, votes_of_values
from softgold.scale.disk import read_array, read_texts, write_array, write_texts
from softgold.scale.files import Batch, RowsOfFile, VoteFiles
from softgold.tables.hashing import text_hashes

OnRows = Callable[[int], None]
MOST_VALUES = 100  # different values of a vote, where one of them is named as positive


@dataclass(frozen=True)
class RawPart:
    """Consecutive rows of one file.

    Attributes:
        number: Number of the part.
        name: Name of the file.
        first_row: Number of its first row in the file.
        rows: Number of rows.
        n_ids: Number of different items.
        first_slot: Number of different items of the parts before, each part counted by itself.
        grouped: Whether the rows of each item come one after the other.
    """

    number: int
    name: str
    first_row: int
    rows: int
    n_ids: int
    first_slot: int
    grouped: bool


@dataclass(frozen=True)
class RawVotes:
    """Rows as they came, abstentions included, coded and on disk.

    Attributes:
        folder: Where they are.
        name: What to call the whole.
        parts: The parts, in the order of the rows.
        annotator_texts: Ids of the annotators by code.
        kinds: Kinds of the ids of items and annotators; see `readers.cells.CodedIds`.
        votes: Vote of each value that was stored.
        notes: What had to be decided.
    """

    folder: Path
    name: str
    parts: tuple[RawPart, ...]
    annotator_texts: pa.Array = field(repr=False)
    kinds: tuple[str | None, str | None]
    votes: NDArray[np.int8]
    notes: tuple[str, ...]

    @property
    def n_slots(self) -> int:
        """Number of different items of each part, added up."""
        last = self.parts[-1]
        return last.first_slot + last.n_ids

    def load(self, part: RawPart) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
        """Return the item within the part, the annotator and the vote of each row."""
        items, annotators = (read_array(self._path(part, name), np.int32) for name in ("item", "annotator"))
        return items, annotators, self.votes[read_array(self._path(part, "vote"), np.int8)]

    def texts(self, part: RawPart) -> pa.Array:
        """Return the ids of the items of a part."""
        return read_texts(self._path(part, "ids"))

    def hashes(self, part: RawPart) -> NDArray[np.uint64]:
        """Return a hash of each id of a part."""
        return text_hashes(self.texts(part))

    def _path(self, part: RawPart, name: str) -> Path:
        return self.folder / f"raw-{part.number}.{name}"

    def remove(self, part: RawPart) -> None:
        """Remove the files of a part."""
        for name in ("item", "annotator", "vote", "ids"):
            self._path(part, name).unlink()

    def _part_of(self, row: int) -> tuple[RawPart, int]:
        """Return the part that a row is in, counted over all files from 0, and its place there."""
        starts = np.cumsum([0, *(part.rows for part in self.parts)])
        number = int(np.searchsorted(starts, row, side="right")) - 1
        return self.parts[number], row - int(starts[number])

    def row(self, row: int) -> tuple[str, str, int]:
        """Return item, annotator and vote of a row."""
        part, place = self._part_of(row)
        items, annotators, votes = self.load(part)
        item, annotator = self.texts(part)[int(items[place])], self.annotator_texts[int(annotators[place])]
        return item.as_py(), annotator.as_py(), int(votes[place])

    def where(self, row: int) -> str:
        """Say where a row is."""
        part, place = self._part_of(row)
        shown = f"row {part.first_row + place + 1}"
        return shown if len({part.name for part in self.parts}) == 1 else f"{part.name}, {shown}"


class _Coder:
    """Codes of annotators and votes that hold for all batches."""

    def __init__(self, positive: str | None) -> None:
        self._positive = positive
        self.annotators: dict[str, int] = {}
        self.values: dict[str, int] = {}
        self.kinds: list[tuple[str | None, str | None]] = []
        self.notes: list[str] = []

    def code(self, batch: Batch) -> tuple[CodedIds, NDArray[np.int32], NDArray[np.int8]]:
        at, cells = batch.positions, batch.columns
        items, people = code_ids(batch.source, at[0], cells[0]), code_ids(batch.source, at[1], cells[1])
        self.kinds.append((items.kind, people.kind))
        self.notes += [ids.warning for ids in (items, people) if ids.warning is not None]
        codes = self.annotators
        who = np.array([codes.setdefault(text, len(codes)) for text in people.texts.to_pylist()], np.int32)
        annotators = who[people.codes]
        votes = self._votes(batch)
        return items, annotators, votes

    def _votes(self, batch: Batch) -> NDArray[np.int8]:
        source, column, cells = batch.source, batch.positions[2], batch.columns[2]
        if self._positive is None:
            return code_votes(source, column, cells)
        codes, texts = code_values(source, column, cells)
        known = [self.values.setdefault(text, len(self.values)) for text in texts]
        if len(self.values) > MOST_VALUES:
            raise InputError(f"{source.name}, column {shorten(source.columns[column])}: more than {MOST_VALUES} values")
        return np.array([*known, MISSING_VOTE], np.int8)[codes]

    def lookup(self, source: Source, column: int) -> NDArray[np.int8]:
        """Return the vote of each stored value; the last entry is that of a missing one."""
        if self._positive is None:
            return np.array([0, 1, MISSING_VOTE], np.int8)
        coded = votes_of_values(source.name, source.columns[column], list(self.values), self._positive)
        return np.array([*coded, MISSING_VOTE], np.int8)


def code_files(
    files: VoteFiles, folder: Path, *, rows: int, positive: str | None = None, on_rows: OnRows = lambda count: None
) -> RawVotes:
    """Read files once, and write their rows, coded, to a folder.

    Args:
        files: The files.
        folder: Where to write.
        rows: Most rows of a part.
        positive: The value that counts as a vote of 1; see `read_votes`.
        on_rows: Called with the number of rows of each part.

    Raises:
        InputError: As `read_votes` does.
    """
    coder, slots = _Coder(positive), 0
    parts: list[RawPart] = []
    batch, name, first_row = None, "", 0
    for batch in files.batches(rows):
        items, annotators, votes = coder.code(batch)
        first_row = first_row if batch.source.name == name else 0
        name = batch.source.name
        grouped = np.count_nonzero(np.diff(items.codes)) + 1 == len(items.texts)
        part = RawPart(len(parts), name, first_row, len(votes), len(items.texts), slots, bool(grouped))
        for kind, array in (("item", items.codes), ("annotator", annotators), ("vote", votes)):
            write_array(folder / f"raw-{part.number}.{kind}", array)
        write_texts(folder / f"raw-{part.number}.ids", items.texts)
        parts.append(part)
        slots, first_row = slots + part.n_ids, first_row + part.rows
        on_rows(part.rows)
    if batch is None:
        raise InputError(f"{files.name} has no rows")
    lookup = coder.lookup(RowsOfFile(files.name, batch.source.columns, 0), batch.positions[2])
    kinds = _common_kinds(coder, files)
    texts = pa.array(list(coder.annotators), pa.large_string())
    return RawVotes(folder, files.name, tuple(parts), texts, kinds, lookup, tuple(dict.fromkeys(coder.notes)))


def _common_kinds(coder: _Coder, files: VoteFiles) -> tuple[str | None, str | None]:
    """Return the kinds of ids; whole numbers in one file and text in another are text."""
    items, annotators = ({pair[side] for pair in coder.kinds} for side in (0, 1))
    if coder.notes and (len(items) > 1 or len(annotators) > 1):
        raise InputError(f"{files.name}: ids are floats in some rows and something else in others; write them as text")
    return items.pop() if len(items) == 1 else None, annotators.pop() if len(annotators) == 1 else None
