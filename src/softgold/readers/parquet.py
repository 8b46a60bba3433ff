"""Parquet files, and their rows as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from softgold.errors import InputError
from softgold.readers.base import shorten
from softgold.readers.contents import Member

BATCH_ROWS = 10_000


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; only the columns asked for are read."""

    name: str
    origin: Path | pa.Buffer = field(repr=False)
    columns: tuple[str, ...]

    @classmethod
    def of(cls, member: Member) -> ParquetSource:
        """Open a file, or say that it is not Parquet."""
        origin = member.path or pa.py_buffer(member.read())
        try:
            return cls(member.display, origin, tuple(_open(origin).schema_arrow.names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _not_parquet(member.display, error) from None

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions."""
        names = [self.columns[position] for position in positions]
        try:
            table = _open(self.origin).read(columns=names)
        except (pa.ArrowException, OSError) as error:
            raise _not_parquet(self.name, error) from None
        if table.num_rows == 0:
            raise InputError(f"{self.name} has no rows")
        return [table.column(name) for name in names]

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {row + 1}"


def _open(origin: Path | pa.Buffer) -> arrow_parquet.ParquetFile:
    return arrow_parquet.ParquetFile(origin if isinstance(origin, Path) else pa.BufferReader(origin))


def parquet_records(member: Member) -> Iterator[dict[str, Any]]:
    """Give the rows as objects, a batch at a time."""
    source = ParquetSource.of(member)
    try:
        for batch in _open(source.origin).iter_batches(batch_size=BATCH_ROWS):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise _not_parquet(source.name, error) from None


def _not_parquet(name: str, error: Exception) -> InputError:
    return InputError(f"{name} cannot be read as Parquet: {shorten(error, 200)}")
