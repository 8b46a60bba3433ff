"""Sheets of Excel workbooks (.xlsx), with the extra `excel`."""

from __future__ import annotations

import io
import warnings
import zipfile
from typing import Any

import pandas as pd

from softgold.errors import InputError
from softgold.readers.base import Source, printable, shorten
from softgold.readers.contents import Member
from softgold.readers.frames import FrameSource
from softgold.readers.limits import limited_rows, too_large

ZIP = b"PK\x03\x04"
OLD_EXCEL = b"\xd0\xcf\x11\xe0"


def is_spreadsheet(member: Member) -> bool:
    """Say whether a file is a workbook; other archives were unpacked before."""
    return member.head.startswith((ZIP, OLD_EXCEL))


def open_sheet(member: Member, sheet: str | None) -> Source:
    """Open a sheet; without a name the workbook must have one sheet with cells only."""
    if member.head.startswith(OLD_EXCEL):
        raise InputError(f"{member.display} is an old Excel file (.xls); save it as .xlsx or CSV")
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{member.display} is an Excel file; install openpyxl to read it: pip install 'softgold[excel]'"
        ) from None
    data = member.read()
    _refuse_bomb(member, data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles and validations that it does not keep
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            sheets = {page.title: _rows(page, member) for page in book.worksheets}
    except InputError:
        raise
    except Exception as error:  # a damaged workbook raises whatever its first bad byte leads to
        raise InputError(f"{member.display} cannot be read as an Excel file: {printable(error)}") from None
    return _as_source(member, {name: rows for name, rows in sheets.items() if rows or name == sheet}, sheet)


def _refuse_bomb(member: Member, data: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            workbook = "[Content_Types].xml" in archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"{member.display} cannot be read as an Excel file: {printable(error)}") from None
    if not workbook:
        raise InputError(f"{member.display} is an archive and not a table; unpack it first")
    if size > member.most_bytes:
        raise too_large(member.display, member.most_bytes)


def _rows(page: Any, member: Member) -> list[tuple[Any, ...]]:
    """Return the rows that have a cell."""
    rows = (row for row in page.iter_rows(values_only=True) if any(cell is not None for cell in row))
    return list(limited_rows(rows, member.display, member.most_bytes))


def _as_source(member: Member, sheets: dict[str, list[tuple[Any, ...]]], chosen: str | None) -> Source:
    names = ", ".join(shorten(name) for name in sheets) or "none"
    if chosen is None and len(sheets) != 1:
        raise InputError(
            f"{member.display} has {len(sheets)} sheets with cells; choose one as {member.display}::SHEET: {names}"
        )
    if chosen is not None and chosen not in sheets:
        raise InputError(f"{member.display} has no sheet {chosen!r}; its sheets: {names}")
    name = next(iter(sheets)) if chosen is None else chosen
    header, *rows = sheets[name] or [()]
    columns = ["" if cell is None else str(cell) for cell in header]
    cells = [[_cell(cell) for cell in (*row, *[None] * len(columns))[: len(columns)]] for row in rows]
    return FrameSource(pd.DataFrame(cells, columns=columns, dtype=object), member.display)


def _cell(cell: Any) -> Any:
    return cell.isoformat() if hasattr(cell, "isoformat") else cell
