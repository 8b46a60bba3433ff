"""Opening a table: a path, standard input, or a data frame, each with the same few abilities."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from softgold.errors import InputError, UsageError
from softgold.readers.base import Source, shorten
from softgold.readers.text import TextSource

__all__ = ["FrameSource", "ParquetSource", "TableLike", "open_source"]

TableLike = str | os.PathLike[str] | pd.DataFrame

FORMATS = "CSV (.csv), TSV (.tsv), either with .gz, or Parquet (.parquet)"


def open_source(source: TableLike) -> Source:
    """Open a path, `-` for standard input, or a data frame."""
    if isinstance(source, pd.DataFrame):
        return FrameSource.of(source)
    if isinstance(source, str) and source == "-":
        return _open_bytes(_read_interruptibly(sys.stdin.buffer), "standard input")
    if isinstance(source, str | os.PathLike):
        return _open_path(Path(source))
    raise UsageError(f"a table must be a path, '-' or a pandas DataFrame, got {type(source).__name__}")


def _read_interruptibly(stream: Any) -> bytes:
    """Read a buffered stream to its end in pieces: Python looks for Ctrl-C between them, not within one long read."""
    pieces = []
    while piece := stream.read1(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def _open_path(path: Path) -> Source:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    name = str(path)
    try:
        data = path.read_bytes() if suffixes[-1:] not in ([".parquet"], [".pq"]) or not path.is_file() else None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {shorten(name, 300)}: {reason}") from None
    if data is None:
        return ParquetSource.of(path, name)
    if not path.is_file():
        return _open_bytes(data, name)  # a pipe, such as the shell's <(...), has no suffix
    if suffixes[-1:] == [".gz"]:
        data = _decompress(data, name)
        suffixes.pop()
    if suffixes[-1:] not in ([".csv"], [".tsv"]):
        raise InputError(f"cannot tell the format of {name} from its name; it may be {FORMATS}")
    return TextSource(name, data, "\t" if suffixes[-1] == ".tsv" else ",")


def _open_bytes(data: bytes, name: str) -> Source:
    """Open bytes that have no suffix; the first line tells tabs from commas."""
    if data.startswith(b"\x1f\x8b"):
        data = _decompress(data, name)
    if data.startswith(b"PAR1"):
        return ParquetSource.of(pa.BufferReader(data), name)
    first_line = data.lstrip(b"\r\n").split(b"\n", 1)[0]
    return TextSource(name, data, "\t" if b"\t" in first_line and b"," not in first_line else ",")


def _decompress(data: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name} is not a whole gzip file: {error}") from None


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; only the columns asked for are read."""

    name: str
    origin: Path | pa.BufferReader = field(repr=False)
    columns: tuple[str, ...]

    @classmethod
    def of(cls, origin: Path | pa.BufferReader, name: str) -> ParquetSource:
        """Open a file, or say that it is none."""
        try:
            return cls(name, origin, tuple(arrow_parquet.ParquetFile(origin).schema_arrow.names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _not_parquet(name, error) from None

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions."""
        names = [self.columns[position] for position in positions]
        try:
            table = arrow_parquet.ParquetFile(self.origin).read(columns=names)
        except (pa.ArrowException, OSError) as error:
            raise _not_parquet(self.name, error) from None
        if table.num_rows == 0:
            raise InputError(f"{self.name} has no rows")
        return [table.column(name) for name in names]

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {row + 1}"


def _not_parquet(name: str, error: Exception) -> InputError:
    return InputError(f"{name} cannot be read as Parquet: {shorten(error, 200)}")


@dataclass(frozen=True)
class FrameSource:
    """A data frame; a named index counts as columns."""

    frame: pd.DataFrame = field(repr=False)
    name: str = "the data frame"

    @classmethod
    def of(cls, frame: pd.DataFrame) -> FrameSource:
        """Take a frame with its named index levels as columns, as `groupby` and `pivot` leave them."""
        levels = [name for name in frame.index.names if name is not None]
        flat = frame.reset_index(level=levels) if levels and not set(levels) & set(frame.columns) else frame
        return cls(flat)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns as text."""
        return tuple(str(name) for name in self.frame.columns)

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions; a column of mixed objects becomes text."""
        if len(self.frame) == 0:
            raise InputError(f"{self.name} has no rows")
        return [_as_arrow(self.frame.iloc[:, position], self.columns[position]) for position in positions]

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {row + 1}"


def _as_arrow(series: pd.Series, name: str) -> pa.ChunkedArray:
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        array = _objects_as_text(series, name)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _objects_as_text(series: pd.Series, name: str) -> pa.Array:
    """Return text for a column in which text and numbers are mixed, as in a hand-made frame."""
    texts: list[str | None] = []
    for row, value in enumerate(series):
        if not pd.api.types.is_scalar(value) or isinstance(value, bytes):
            raise InputError(f"the data frame, row {row + 1}, column {name!r}: {shorten(value)} is no text or number")
        texts.append(None if pd.isna(value) else str(value))
    try:
        return pa.array(texts, type=pa.string())
    except UnicodeEncodeError as error:
        raise InputError(f"the data frame, column {name!r}: has text that is no valid Unicode: {error}") from None
