"""The interface of a table, and errors that name a place in it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from softgold.errors import InputError


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
        """Return the place of a row, counted from 0, in words."""
        ...


def cell_error(source: Source, row: int, column: int, message: str) -> InputError:
    """Build the error that names file, row and column, and then what is wrong there."""
    return InputError(f"{source.name}, {source.where(row)}, column {shorten(source.columns[column])}: {message}")


def shorten(value: object, limit: int = 60) -> str:
    """Return the value in quotes, cut when it is long, for an error message.

    >>> shorten("x" * 1_000_000, limit=5)
    "'xxxxx...'"
    """
    try:
        text = str(value)
    except ValueError:  # Python converts no integer of more than 4,300 digits
        text = "a number with thousands of digits"
    return repr(text if len(text) <= limit else text[:limit] + "...")


def counted(count: int, noun: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "vote"), counted(2_000, "vote")
    ('1 vote', '2,000 votes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def printable(value: object, limit: int = 300) -> str:
    """Return text on one line, without control characters or lone surrogates, cut when it is long.

    >>> printable("two\\nlines \\ud800")
    'two lines \\\\ud800'
    """
    text = " ".join(str(value).split())
    text = text if len(text) <= limit else text[:limit] + "..."
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return safe.encode("utf-8", "backslashreplace").decode()


def display_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file for a message; bytes that are not UTF-8 are written as escapes."""
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # a lone surrogate, which no file name has
        return os.fspath(path).encode("utf-8", "backslashreplace").decode()


def web_address(path: str | os.PathLike[str]) -> str:
    """Return the address (https://..., s3://...) that a path stands for, with both slashes; empty if it is none.

    >>> from pathlib import PurePosixPath
    >>> web_address(PurePosixPath("https://example.org/votes.csv")), web_address("C:/votes.csv")
    ('https://example.org/votes.csv', '')
    """
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}([^/].*)", os.fspath(path), re.DOTALL)
    return "" if found is None else f"{found[1]}://{found[2]}"
