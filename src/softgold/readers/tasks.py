"""Tables with votes on several questions: a column `task` says which one a vote answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import Source
from softgold.readers.cells import code_ids
from softgold.readers.columns import find_task, listed
from softgold.readers.export_source import ExportSource


@dataclass(frozen=True)
class SomeRows:
    """Some rows of a table, with their places in the whole table for messages."""

    table: Source = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.table.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.table.columns

    @property
    def separator(self) -> str:
        """What lies between two cells of the table's text."""
        return str(getattr(self.table, "separator", ","))

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return these rows of the columns at the positions."""
        return [_without_unused(column.take(pa.array(self.rows))) for column in self.table.load(positions)]

    def where(self, row: int) -> str:
        """Say where in the whole table a row is."""
        return self.table.where(int(self.rows[row]))


def _without_unused(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Drop the dictionary entries that no row has, so that a message does not list values of other tasks."""
    if not pa.types.is_dictionary(column.type):
        return column
    return column.cast(column.type.value_type).dictionary_encode()


def task_names(table: Source, items: int) -> tuple[str, ...]:
    """Return the names in the column of tasks by first appearance; none without such a column."""
    at = find_task(table, items)
    return () if at is None else tuple(code_ids(table, at, table.load([at])[0]).texts.to_pylist())


def select_task(table: Source, items: int, question: str | None) -> Source:
    """Return the rows of one task, or the table as it is where it has no column of tasks."""
    at = find_task(table, items)
    if at is None:
        if question is not None and not isinstance(table, ExportSource):
            raise InputError(f"{table.name} has no column 'task' in which to look for question {question!r}")
        return table
    tasks = code_ids(table, at, table.load([at])[0])
    names = tasks.texts.to_pylist()
    if question is None and len(names) == 1:
        return table
    if question is None:
        raise InputError(
            f"{table.name} has votes on {len(names)} tasks: {listed(tuple(names))}; choose one with --question NAME "
            "(question=)"
        )
    if question not in names:
        raise InputError(f"{table.name} has no task {question!r}; its tasks: {listed(tuple(names))}")
    return SomeRows(table, np.flatnonzero(tasks.codes == names.index(question)))
