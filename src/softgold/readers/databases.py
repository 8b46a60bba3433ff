"""Tables of SQLite and DuckDB files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pandas as pd
import pyarrow as pa

from softgold.errors import InputError
from softgold.readers.base import Source, printable, shorten
from softgold.readers.contents import Member
from softgold.readers.frames import ArrowSource, FrameSource
from softgold.readers.limits import limited_rows, too_large

SQLITE = b"SQLite format 3\0"
DUCKDB = b"DUCK"
LONGEST_CELL = 10**8
BATCH_ROWS = 10_000


def is_database(member: Member) -> bool:
    """Say whether a file is a database of SQLite or DuckDB."""
    return member.head.startswith(SQLITE) or member.head[8:12] == DUCKDB


def open_database(member: Member, table: str | None) -> Source:
    """Open a table of a database; without a name the database must have one table only."""
    if member.path is None:
        raise InputError(f"{member.display} is a database in an archive; unpack it first")
    if member.head.startswith(SQLITE):
        return _open_sqlite(member, table)
    return _open_duckdb(member, table)


def _choose(member: Member, table: str | None, there: Sequence[str]) -> str:
    names = ", ".join(shorten(name) for name in there[:12]) or "none"
    if table is None and len(there) != 1:
        raise InputError(f"{member.display} has {len(there)} tables; choose one as {member.display}::TABLE: {names}")
    if table is not None and table not in there:
        raise InputError(f"{member.display} has no table {table!r}; its tables: {names}")
    return there[0] if table is None else table


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _open_sqlite(member: Member, table: str | None) -> Source:
    uri = f"file:{quote(os.fsencode(member.path or ''))}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(member.most_bytes, LONGEST_CELL))
            listing = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
            name = _choose(member, table, [str(row[0]) for row in listing])
            cursor = connection.execute(f"SELECT * FROM {_quoted(name)}")
            rows = limited_rows(cursor, member.display, member.most_bytes)
            return _as_source(member, name, [part[0] for part in cursor.description], rows)
    except InputError:
        raise
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise InputError(f"{member.display} cannot be read as SQLite: {printable(error)}") from None


def _as_source(member: Member, table: str, columns: list[str], rows: Iterable[Any]) -> Source:
    frame = pd.DataFrame(list(rows), columns=columns, dtype=object)
    return FrameSource(frame, f"{member.display}::{printable(table)}")


def _open_duckdb(member: Member, table: str | None) -> Source:
    try:
        import duckdb
    except ImportError:
        raise InputError(f"{member.display} is a DuckDB file; install duckdb to read it: pip install duckdb") from None
    try:
        with duckdb.connect(str(member.path), read_only=True, config={"enable_external_access": "false"}) as connection:
            listing = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name").fetchall()
            name = _choose(member, table, [row[0] for row in listing])
            rows = connection.sql(f"SELECT * FROM {_quoted(name)}")
            batches = getattr(rows, "to_arrow_reader", None) or rows.fetch_arrow_reader  # its name before DuckDB 2
            return ArrowSource(_limited_table(member, batches(BATCH_ROWS)), f"{member.display}::{printable(name)}")
    except duckdb.Error as error:
        raise InputError(f"{member.display} cannot be read as DuckDB: {printable(error)}") from None


def _limited_table(member: Member, batches: pa.RecordBatchReader) -> pa.Table:
    kept, size = [], 0
    for batch in batches:
        size += batch.nbytes
        if size > member.most_bytes:
            raise too_large(member.display, member.most_bytes)
        kept.append(batch)
    return pa.Table.from_batches(kept, batches.schema)
