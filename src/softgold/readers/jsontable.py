"""JSON lines, or an array of objects, as a table: one object per row, one key per column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from softgold.errors import InputError
from softgold.readers.base import printable, shorten
from softgold.readers.contents import Member
from softgold.readers.jsonstream import open_json

LOOKED_AT = 1000


def looks_like_table(member: Member) -> bool:
    """Say whether the first value of a file is an object, or there is none."""
    try:
        with closing(iter(open_json(member))) as values:  # type: ignore[type-var]
            return isinstance(next(values, {}), dict)
    except InputError:
        return member.name.lower().endswith((".json", ".jsonl", ".ndjson"))


@dataclass(frozen=True)
class JsonTable:
    """Objects of JSON; the file is read again for the columns that are needed, and never held as a whole."""

    name: str
    member: Member = field(repr=False)
    columns: tuple[str, ...]

    @classmethod
    def of(cls, member: Member) -> JsonTable:
        """Take the keys of the first objects for columns."""
        with closing(iter(open_json(member))) as values:  # type: ignore[type-var]
            first = list(islice(values, LOOKED_AT))
        keys = dict.fromkeys(key for record in first if isinstance(record, dict) for key in record)
        return cls(member.display, member, tuple(keys))

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions; a key that an object lacks is a missing cell."""
        names = [self.columns[position] for position in positions]
        columns: list[list[Any]] = [[] for _ in names]
        for row, record in enumerate(open_json(self.member), start=1):
            if not isinstance(record, dict):
                raise InputError(f"{self.name}, row {row}: a row must be an object, got {shorten(record)}")
            for column, name in zip(columns, names, strict=True):
                column.append(record.get(name))
        if not columns or not columns[0]:
            raise InputError(f"{self.name} has no rows")
        return [self._as_arrow(name, column) for name, column in zip(names, columns, strict=True)]

    def _as_arrow(self, name: str, cells: list[Any]) -> pa.ChunkedArray:
        """Return whole numbers as such, and all else as text."""
        where = f"{self.name}, column {shorten(name)}"
        for row, cell in enumerate(cells, start=1):
            if isinstance(cell, dict | list):
                raise InputError(f"{where}, row {row}: a cell must be text or a number, got {shorten(cell)}")
        try:
            if all(cell is None or (isinstance(cell, int) and not isinstance(cell, bool)) for cell in cells):
                return pa.chunked_array([pa.array(cells, pa.int64())])
            return pa.chunked_array([pa.array([_text(cell) for cell in cells], pa.string())])
        except (pa.ArrowInvalid, OverflowError):
            raise InputError(f"{where}: a number is larger than 64 bits") from None
        except UnicodeEncodeError as error:
            raise InputError(f"{where}: {printable(error.object)!r} is not valid UTF-8 text") from None

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {row + 1}"


def _text(cell: Any) -> str | None:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return None if cell is None else str(cell)
