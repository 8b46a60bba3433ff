"""Sheets for experts: written with context and an answer column, and read back as spreadsheets leave them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from softgold.errors import InputError, SoftgoldError
from softgold.output import PathLike, atomic_file, write_table
from softgold.readers.base import Source, shorten
from softgold.readers.columns import ITEM, VOTE, find_column
from softgold.readers.frames import FrameSource
from softgold.readers.sources import TableLike, open_source
from softgold.readers.text import TextSource
from softgold.tables.soft_labels import COLUMNS

__all__ = ["ANSWER", "CHOICES", "make_sheet", "open_sheet", "read_context", "write_sheet"]

ANSWER = "answer"
CHOICES = ("yes", "no", "unsure")
# Columns that would show the experts what the crowd thinks.
REVEALING = frozenset(COLUMNS) - {"item"} | {"p_calibrated"}
WORKBOOKS = (".xlsx", ".xlsm")
NEEDS_EXTRA = "Excel files need openpyxl: pip install 'softgold[excel]', or save the sheet as CSV"


def make_sheet(item_ids: pd.Index[Any], context: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return what the experts see: `item`, the context columns, and an empty column `answer`; no soft labels.

    >>> context = pd.DataFrame({"item": ["y", "x"], "text": ["a cat", "a dog"]})
    >>> make_sheet(pd.Index(["x"]), context).to_dict(orient="records")
    [{'item': 'x', 'text': 'a dog', 'answer': ''}]
    """
    items = pd.Index(item_ids.astype("str"), name="item")
    sheet = pd.DataFrame(index=items)
    if context is not None:
        absent = ~items.isin(context["item"])
        if absent.any():
            more = f" and {int(absent.sum()) - 1} more" if absent.sum() > 1 else ""
            raise InputError(f"the context has no row for item {shorten(items[int(absent.argmax())])}{more}")
        sheet = context.set_index("item").loc[items]
    return sheet.assign(**{ANSWER: ""}).reset_index()


def read_context(source: TableLike, *, item: str | None = None) -> pd.DataFrame:
    """Read columns to show beside each item, such as a text, the path of an image, or a link; all as text.

    Args:
        source: As in `open_sheet`, with one row per item.
        item: Name of the item column, where it is not one of the common names.
    """
    table = open_sheet(source)
    items = _named(table, "item") if item is None else None
    at = find_column(table, ITEM, item) if items is None else items
    names = [str(name).strip() for name in table.columns]
    others = [position for position in range(len(names)) if position != at]
    for position in others:
        name = names[position].casefold()
        if name in REVEALING:
            raise InputError(
                f"{table.name}: column {names[position]!r} would show the experts the soft labels; drop it"
            )
        if name in VOTE or name == "item":
            raise InputError(f"{table.name}: column {names[position]!r} could be taken for the answer; rename it")
    columns = [column.to_pandas().astype("str") for column in table.load([at, *others])]
    frame = pd.DataFrame(dict(zip(["item", *(names[position] for position in others)], columns, strict=True)))
    if frame["item"].duplicated().any():
        raise InputError(
            f"{table.name}: item {shorten(frame['item'][frame['item'].duplicated()].iloc[0])} is duplicated"
        )
    return frame


def write_sheet(sheet: pd.DataFrame, path: PathLike, *, force: bool = False) -> None:
    """Write a sheet atomically; `.xlsx` gets a list to choose the answer from, other suffixes are those of tables."""
    if Path(path).suffix.lower() not in WORKBOOKS:
        write_table(sheet, path, force=force)
        return
    openpyxl = _openpyxl()
    from openpyxl.worksheet.datavalidation import DataValidation

    book = openpyxl.Workbook()
    page = book.active
    for row in [list(sheet.columns), *sheet.to_numpy(dtype=object).tolist()]:
        page.append(row)
    for cell in (cell for row in page.iter_rows() for cell in row):
        cell.number_format = "@"  # text, so that 007 stays 007
        cell.data_type = "s"  # and a text that begins with = is no formula
    column = openpyxl.utils.get_column_letter(list(sheet.columns).index(ANSWER) + 1)
    choice = DataValidation(type="list", formula1=f'"{",".join(CHOICES)}"', allow_blank=True)
    choice.add(f"{column}2:{column}{len(sheet) + 1}")
    page.add_data_validation(choice)
    page.freeze_panes = "A2"
    with atomic_file(path, force=force) as temporary:
        book.save(temporary)


def open_sheet(source: TableLike) -> Source:
    """Open a table as a spreadsheet program saves it: CSV with commas, semicolons or tabs, or an Excel workbook.

    Rows without any text are left out. Everything else is as in `open_source`.
    """
    if not isinstance(source, str | Path) or str(source) == "-":
        return open_source(source)
    path = Path(source)
    if path.suffix.lower() in WORKBOOKS and path.is_file():
        return _open_workbook(path)
    if path.suffix.lower() in (".csv", ".txt") and path.is_file():
        return _open_text(path)
    return open_source(source)


def _open_text(path: Path) -> Source:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # "Unicode text" of Excel
        data = _as_utf8(data, "utf-16", path)
    header = data.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0]
    separator = max(",;\t", key=lambda mark: header.count(mark.encode()))
    kept = (
        [line for line in data.splitlines(keepends=True) if line.strip(b'",;\t \r\n')] if b'"' not in data else [data]
    )
    return TextSource(str(path), b"".join(kept), separator)


def _as_utf8(data: bytes, encoding: str, path: Path) -> bytes:
    try:
        return data.decode(encoding).encode()
    except UnicodeError:
        raise InputError(f"{path} is neither UTF-8 nor UTF-16 text; save the file as UTF-8") from None


def _open_workbook(path: Path) -> Source:
    openpyxl = _openpyxl()
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = [[_cell_text(value) for value in row] for row in book.worksheets[0].iter_rows(values_only=True)]
        book.close()
    except SoftgoldError:
        raise
    except (OSError, KeyError, ValueError, IndexError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read as an Excel workbook: {shorten(error, 200)}") from None
    return FrameSource(_frame(rows, str(path)), str(path))


def _frame(rows: Sequence[Sequence[str]], name: str) -> pd.DataFrame:
    filled = [row for row in rows if any(text.strip() for text in row)]
    if not filled:
        raise InputError(f"{name} is empty; it needs a header and at least one row")
    width = max(place + 1 for row in filled for place, text in enumerate(row) if text.strip())
    table = [[*row[:width], *[""] * (width - len(row))] for row in filled]
    return pd.DataFrame(table[1:], columns=_header(table[0]), dtype="str")


def _header(names: Iterable[str]) -> list[str]:
    return [name.strip() or f"column {place + 1}" for place, name in enumerate(names)]


def _cell_text(value: object) -> str:
    """Return a cell as text; a spreadsheet keeps the whole number 12 as 12.0."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _named(table: Source, name: str) -> int | None:
    """Return the position of the one column of exactly this name, if there is one."""
    found = [position for position, column in enumerate(table.columns) if column.strip().casefold() == name]
    return found[0] if len(found) == 1 else None


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise InputError(NEEDS_EXTRA) from None
    return openpyxl
