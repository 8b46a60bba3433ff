"""What every source of a table can do, and how an error says where in it something is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from softgold.errors import InputError

__all__ = ["Source", "cell_error", "shorten"]


class Source(Protocol):
    """A table that can be read column by column."""

    @property
    def name(self) -> str:
        """What to call the table in an error."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        ...

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions; a table without rows is an error."""
        ...

    def where(self, row: int) -> str:
        """Say where a row, counted from 0, is found by a person."""
        ...


def cell_error(source: Source, row: int, column: int, message: str) -> InputError:
    """Build the error that names file, row and column, and then what is wrong there."""
    return InputError(f"{source.name}, {source.where(row)}, column {shorten(source.columns[column])}: {message}")


def shorten(value: object, limit: int = 60) -> str:
    """Return the value in quotes, cut when it is long, for an error message.

    >>> shorten("x" * 1_000_000, limit=5)
    "'xxxxx...'"
    """
    text = str(value)
    return repr(text if len(text) <= limit else text[:limit] + "...")
