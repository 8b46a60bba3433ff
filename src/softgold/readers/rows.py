"""Rows of delimited text that a platform wrote: quotes, line ends in cells, and rows shorter than their header."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from softgold.errors import InputError
from softgold.readers.base import printable, shorten
from softgold.readers.contents import Member

SEPARATORS = ",;\t|"
LONGEST_CELL = 1 << 26


@dataclass(frozen=True)
class Rows:
    """Columns of a table that were asked for, as text; a cell that a row lacks is empty.

    Attributes:
        name: What to call the table in an error.
        header: Names of all columns.
        columns: Cells of the columns asked for, by name.
        n_rows: Number of rows.
    """

    name: str
    header: tuple[str, ...]
    columns: dict[str, list[str]]
    n_rows: int


def find_separator(first_line: str) -> str:
    """Return the separator that occurs most often outside quotes; a comma if none does.

    >>> find_separator('"a,b,c";d;e')
    ';'
    """
    outside = "".join(first_line.split('"')[::2])
    return max(SEPARATORS, key=lambda mark: (outside.count(mark), mark == ","))


def read_header(member: Member) -> tuple[str, ...]:
    """Return the names of the columns."""
    with _records(member) as records:
        return tuple(next(records, ()))


def read_rows(member: Member, wanted: Sequence[str] | None = None) -> Rows:
    """Read the columns named in `wanted`, or all; names that are not in the header are left out."""
    with _records(member) as records:
        header = tuple(next(records, ()))
        places = {name: place for place, name in enumerate(header) if wanted is None or name in wanted}
        columns: dict[str, list[str]] = {name: [] for name in places}
        count = 0
        for row in records:
            if not row:
                continue
            count += 1
            if len(row) > len(header) and any(row[len(header) :]):
                raise InputError(
                    f"{member.display}, row {count}: the row has {len(row)} cells and the header {len(header)}: "
                    f"{shorten(row[0])}"
                )
            for name, place in places.items():
                columns[name].append(row[place] if place < len(row) else "")
    return Rows(member.display, header, columns, count)


@contextmanager
def _records(member: Member) -> Iterator[Iterator[list[str]]]:
    """Give the rows that are not blank, with a bound on cells that long texts do not reach."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        first_line = member.head.decode("utf-8-sig", "surrogateescape").lstrip("\r\n").split("\n", 1)[0]
        with io.TextIOWrapper(member.open(), encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
            yield filter(None, csv.reader(text, delimiter=find_separator(first_line)))
    except csv.Error as error:
        raise InputError(f"{member.display} cannot be read as a table: {printable(error)}") from None
    finally:
        csv.field_size_limit(before)
