"""Data frames: pandas, Arrow, Hugging Face datasets, and all that narwhals reads (Polars, DuckDB, Modin, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from softgold.errors import InputError, UsageError
from softgold.readers.base import Source, shorten


def frame_source(frame: Any) -> Source:
    """Open a data frame of any library."""
    if isinstance(frame, pd.DataFrame):
        return FrameSource.of(frame)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return ArrowSource(frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame]))
    if hasattr(frame, "with_format") and hasattr(frame, "features"):
        return ArrowSource(frame.with_format("arrow")[:], "the dataset")
    import narwhals as nw  # slow to import, and rarely needed

    try:
        native = nw.from_native(frame)
        eager = native.collect() if isinstance(native, nw.LazyFrame) else native
        return ArrowSource(eager.to_arrow())
    except TypeError:
        raise UsageError(
            f"a table must be a path, '-' or a data frame (pandas, Polars, Arrow, DuckDB, a split of a Hugging Face "
            f"dataset), got {type(frame).__name__}"
        ) from None


@dataclass(frozen=True)
class ArrowSource:
    """An Arrow table, or a frame that was turned into one."""

    table: pa.Table = field(repr=False)
    name: str = "the data frame"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions."""
        if self.table.num_rows == 0:
            raise InputError(f"{self.name} has no rows")
        return [self.table.column(position) for position in positions]

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {row + 1}"


@dataclass(frozen=True)
class FrameSource:
    """A pandas frame; a named index counts as columns."""

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
        return [_as_arrow(self.frame.iloc[:, position], self.columns[position], self.name) for position in positions]

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {row + 1}"


def _as_arrow(series: pd.Series, column: str, name: str) -> pa.ChunkedArray:
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        array = _objects_as_text(series, column, name)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _objects_as_text(series: pd.Series, column: str, name: str) -> pa.Array:
    """Return text for a column in which text and numbers are mixed, as in a hand-made frame."""
    texts: list[str | None] = []
    for row, value in enumerate(series):
        if not pd.api.types.is_scalar(value) or isinstance(value, bytes):
            raise InputError(f"{name}, row {row + 1}, column {column!r}: {shorten(value)} is no text or number")
        texts.append(None if pd.isna(value) else _text(value, f"{name}, row {row + 1}, column {column!r}"))
    try:
        return pa.array(texts, type=pa.string())
    except UnicodeEncodeError as error:
        raise InputError(f"{name}, column {column!r}: has text that is no valid Unicode: {error}") from None


def _text(value: Any, where: str) -> str:
    try:
        return str(value)
    except ValueError:  # Python converts no integer of more than 4,300 digits
        raise InputError(f"{where}: the number has too many digits") from None
