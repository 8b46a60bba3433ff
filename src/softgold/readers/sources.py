"""Opening a table: a path, standard input, a data frame, or the export of a platform."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, cast

import pandas as pd

from softgold.errors import InputError
from softgold.readers.base import Source
from softgold.readers.contents import Content, Member, open_content
from softgold.readers.databases import is_database, open_database
from softgold.readers.export_source import ExportSource
from softgold.readers.exports.base import ReadOptions
from softgold.readers.exports.export import Export
from softgold.readers.exports.registry import TABLE, find_format, read_as, recognise
from softgold.readers.frames import ArrowSource, frame_source
from softgold.readers.jsonstream import looks_like_json
from softgold.readers.jsontable import JsonTable, looks_like_table
from softgold.readers.parquet import ParquetSource
from softgold.readers.sheets import is_spreadsheet, open_sheet
from softgold.readers.text import TextSource

# A path, "-", a pandas frame, or a frame of another library.
TableLike = str | os.PathLike[str] | pd.DataFrame | Any

PARQUET = b"PAR1"
INNER = re.compile(r"(.+?)::(.+)", re.DOTALL)


def open_source(
    source: TableLike,
    *,
    format: str | None = None,
    question: str | None = None,
    positive: str | None = None,
    item: str | None = None,
    keep_names: bool = False,
    max_bytes: int | None = None,
) -> Source:
    """Open a path, `-` for standard input, or a data frame; an export gives a table of item, annotator and vote.

    Args:
        source: What to open. `file.db::name` is a table of a database or a sheet of a workbook.
        format: Name of the export's format, or "table", where the content does not tell.
        question: Which question of an export to take, where it has several.
        positive: For a question with several choices per answer: the choice that counts as a vote of 1.
        item: Field of an export that names the items.
        keep_names: Leave names of annotators in an export as they are.
        max_bytes: Most bytes that packed input may unpack to.
    """
    if hasattr(source, "load") and hasattr(source, "where"):  # opened already
        return cast(Source, source)
    export_or_table = _open(source, format, ReadOptions(item, question, keep_names), max_bytes)
    if isinstance(export_or_table, Export):
        return ExportSource.of(export_or_table, question, positive)
    return export_or_table


def open_export(
    source: TableLike, *, format: str | None = None, options: ReadOptions, max_bytes: int | None = None
) -> Export | Source:
    """Return the export of a platform, or the plain table that it is instead."""
    return _open(source, format, options, max_bytes)


def _open(source: TableLike, format: str | None, options: ReadOptions, max_bytes: int | None) -> Export | Source:
    chosen = find_format(format) if format is not None else None
    if not isinstance(source, str | os.PathLike):
        table = frame_source(source)
        if format == TABLE or not isinstance(table, ArrowSource) or not _is_argilla(table):
            return table
        content = Content(table.name, (_as_parquet(table),))
    else:
        path, inner = _split_inner(source)
        content = open_content(path, max_bytes)
        first = content.members[0]
        if inner is not None or is_database(first) or is_spreadsheet(first):
            return _open_inner(content, first, inner)
    found = chosen if format is not None else recognise(content)
    return _open_table(content) if found is None else read_as(found, content, options)


def _split_inner(source: str | os.PathLike[str]) -> tuple[str | os.PathLike[str], str | None]:
    """Split `file.db::table`, unless a file of the whole name is there."""
    match = INNER.fullmatch(source) if isinstance(source, str) else None
    if match is None or _exists(source) or not _exists(match[1]):
        return source, None
    return match[1], match[2]


def _exists(path: str | os.PathLike[str]) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _open_inner(content: Content, first: Member, inner: str | None) -> Source:
    if is_database(first):
        return open_database(first, inner)
    if is_spreadsheet(first):
        return open_sheet(first, inner)
    for member in content.members:
        if content.several and member.name == inner:
            return _open_table(Content(member.display, (member,)))
    names = ", ".join(repr(member.name) for member in content.members[:12])
    raise InputError(f"{content.name} has no {inner!r} in it; it has {names}")


def _is_argilla(table: ArrowSource) -> bool:
    return any(name.endswith(".responses.users") for name in table.columns)


def _as_parquet(table: ArrowSource) -> Member:
    import io

    import pyarrow.parquet as arrow_parquet

    buffer = io.BytesIO()
    arrow_parquet.write_table(table.table, buffer)
    data = buffer.getvalue()
    return Member(table.name, table.name, lambda: io.BytesIO(data))


def _open_table(content: Content) -> Source:
    if len(content.members) > 1:
        names = ", ".join(repr(member.name) for member in content.members[:8])
        raise InputError(
            f"{content.name} holds {len(content.members)} files ({names}, ...) that are no export softgold knows; "
            "give one of them, or name the format with --format"
        )
    member = content.members[0]
    if member.head.startswith(PARQUET) or member.name.lower().endswith((".parquet", ".pq")):
        return ParquetSource.of(member)
    if looks_like_json(member.head) and looks_like_table(member):
        return JsonTable.of(member)
    return TextSource.of(member)
