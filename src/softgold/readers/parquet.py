"""Parquet files, and their rows as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from softgold.errors import InputError, is_shortage
from softgold.readers.base import shorten
from softgold.readers.contents import Member
from softgold.readers.limits import too_large
from softgold.readers.parquet_footer import ColumnChunk, column_chunks

BATCH_ROWS = 10_000
VALUE_BYTES = 8
# How pages of text are encoded that Arrow can read as codes: plain, dictionary (of old), runs, packed bits, dictionary.
CODED = frozenset({0, 2, 3, 4, 8})
# Each value may repeat the start of the one before it: nothing says how long they all are before they are decoded.
BY_PREFIX = 7
PREFIX_ROWS = 1000


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; only the columns asked for are read."""

    name: str
    origin: Path | pa.Buffer = field(repr=False)
    columns: tuple[str, ...]
    most_bytes: int

    @classmethod
    def of(cls, member: Member) -> ParquetSource:
        """Open a file, or say that it is not Parquet."""
        origin = member.path or pa.py_buffer(member.read())
        try:
            columns = tuple(open_parquet(origin).schema_arrow.names)
            return cls(member.display, origin, columns, member.most_bytes)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise not_parquet(member.display, error) from None

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions."""
        names = [self.columns[position] for position in positions]
        try:
            table = self._read(names)
        except (pa.ArrowException, OSError) as error:
            raise not_parquet(self.name, error) from None
        if table.num_rows == 0:
            raise InputError(f"{self.name} has no rows")
        return [table.column(name) for name in names]

    def _read(self, names: list[str]) -> pa.Table:
        """Read columns, text as codes where that can be: a text that is repeated in all rows is held once."""
        with open_parquet(self.origin) as file:
            chunks = _chunks(self.origin, names)
            texts, size = _coded(file, names, chunks), sum(_decoded_bytes(file, chunk) for chunk in chunks)
        if size > self.most_bytes:
            raise self._too_large()
        with open_parquet(self.origin, texts) as file:
            if any(BY_PREFIX in chunk.encodings for chunk in chunks):
                batches = list(self._limited(file.iter_batches(PREFIX_ROWS, columns=names)))
                return pa.Table.from_batches(batches, batches[0].schema if batches else None)
            table = file.read(columns=names)
        check_codes(table)
        return table

    def _limited(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = self.most_bytes
        for batch in batches:
            left -= batch.nbytes
            if left < 0:
                raise self._too_large()
            yield batch

    def _too_large(self) -> InputError:
        return too_large(self.name, self.most_bytes, "decodes to")

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {row + 1}"


def open_parquet(origin: Path | pa.Buffer, texts: Sequence[str] = ()) -> arrow_parquet.ParquetFile:
    """Open a file to read it; the columns `texts` as codes."""
    file = origin if isinstance(origin, Path) else pa.BufferReader(origin)
    return arrow_parquet.ParquetFile(file, read_dictionary=list(texts))


def check_codes(found: pa.Table | pa.RecordBatch) -> None:
    """Raise `pa.ArrowInvalid` if a damaged file has codes without a text: Arrow does not look when it reads."""
    for column in found.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            if isinstance(chunk, pa.DictionaryArray):
                least, most = pc.min_max(chunk.indices).as_py().values()
                if most is not None and not 0 <= least <= most < len(chunk.dictionary):
                    raise pa.ArrowInvalid("it has codes without a text")


def coded_texts(origin: Path | pa.Buffer, names: Sequence[str]) -> list[str]:
    """Return those of the columns that are text and that Arrow can read as codes."""
    with open_parquet(origin) as file:
        return _coded(file, names, _chunks(origin, names))


def _coded(file: arrow_parquet.ParquetFile, names: Sequence[str], chunks: Sequence[ColumnChunk]) -> list[str]:
    schema = file.schema_arrow
    others = {chunk.path for chunk in chunks if not CODED.issuperset(chunk.encodings)}
    once = (name for name in names if name not in others and schema.names.count(name) == 1)
    return [name for name in once if _is_text(schema.field(name).type)]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def _chunks(origin: Path | pa.Buffer, names: Sequence[str]) -> list[ColumnChunk]:
    below = tuple(f"{name}." for name in names)
    return [chunk for chunk in column_chunks(origin) if chunk.path in names or chunk.path.startswith(below)]


def _decoded_bytes(file: arrow_parquet.ParquetFile, chunk: ColumnChunk) -> int:
    """Return the bytes that a chunk decodes to: its texts once, and a code or number for each value."""
    if chunk.place >= len(file.schema):
        raise pa.ArrowInvalid("its footer is damaged")
    length = int(file.schema.column(chunk.place).length)
    return chunk.n_bytes + chunk.n_values * max(VALUE_BYTES, length)


def parquet_records(member: Member) -> Iterator[dict[str, Any]]:
    """Give the rows as objects, a batch at a time."""
    source = ParquetSource.of(member)
    try:
        for batch in open_parquet(source.origin).iter_batches(batch_size=BATCH_ROWS):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise not_parquet(source.name, error) from None


def not_parquet(name: str, error: Exception) -> InputError:
    """Return the error of a file that Arrow cannot read, be it damaged or too large for the memory."""
    if is_shortage(error):
        return InputError(f"there is not enough memory to read {name} ({shorten(error, 200)})")
    return InputError(f"{name} cannot be read as Parquet: {shorten(error, 200)}")
