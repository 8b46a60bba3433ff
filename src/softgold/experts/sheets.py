"""Sheets for experts: items with context and an empty answer column, without soft labels."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from softgold.errors import InputError, OutputError
from softgold.output import PathLike, atomic_file, write_table
from softgold.readers.base import Source, shorten
from softgold.readers.columns import ITEM, VOTE, find_column
from softgold.readers.sources import TableLike, open_source
from softgold.tables.soft_labels import COLUMNS
from softgold.tables.text import as_text

ANSWER = "answer"
CHOICES = ("yes", "no", "unsure")
# Columns that would show the experts what the crowd thinks.
REVEALING = frozenset(COLUMNS) - {"item"} | {"p_calibrated"}
WORKBOOKS = (".xlsx", ".xlsm")
LONGEST_LIST = 255
NEEDS_EXTRA = "an Excel sheet needs openpyxl: pip install 'softgold[excel]', or write the sheet as .csv"


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
        source: A path or a data frame with one row per item.
        item: Name of the item column, where it is not one of the common names.
    """
    table = open_source(source, format="table")
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
    columns = [as_text(column.to_pandas()) for column in table.load([at, *others])]
    frame = pd.DataFrame(dict(zip(["item", *(names[position] for position in others)], columns, strict=True)))
    if frame["item"].duplicated().any():
        raise InputError(
            f"{table.name}: item {shorten(frame['item'][frame['item'].duplicated()].iloc[0])} is duplicated"
        )
    return frame


def write_sheet(sheet: pd.DataFrame, path: PathLike, *, choices: Sequence[str] = CHOICES, force: bool = False) -> None:
    """Write a sheet atomically; `.xlsx` gets a list to choose the answer from, other suffixes are those of tables.

    Spreadsheets separate a list by commas and take 255 characters of it; answers that do not fit are typed.
    """
    if Path(path).suffix.lower() not in WORKBOOKS:
        write_table(sheet, path, force=force)
        return
    openpyxl = _openpyxl()
    from openpyxl.utils.exceptions import IllegalCharacterError
    from openpyxl.worksheet.datavalidation import DataValidation

    book = openpyxl.Workbook()
    page = book.active
    for row in [list(sheet.columns), *sheet.to_numpy(dtype=object).tolist()]:
        try:
            page.append(row)
        except IllegalCharacterError:
            cells = ", ".join(shorten(cell) for cell in row)
            raise OutputError(f"cannot write {path}: no workbook holds the text {cells}; write it as .csv") from None
    for cell in (cell for row in page.iter_rows() for cell in row):
        cell.number_format = "@"  # text, so that 007 stays 007
        cell.data_type = "s"  # and a text that begins with = is no formula
    column = openpyxl.utils.get_column_letter(list(sheet.columns).index(ANSWER) + 1)
    listed = ",".join(choices)
    if len(listed) <= LONGEST_LIST and not any("," in choice or '"' in choice for choice in choices):
        choice = DataValidation(type="list", formula1=f'"{listed}"', allow_blank=True)
        choice.add(f"{column}2:{column}{len(sheet) + 1}")
        page.add_data_validation(choice)
    page.freeze_panes = "A2"
    with atomic_file(path, force=force) as temporary:
        _save_undated(book, temporary)


class _Undated(zipfile.ZipFile):
    """An archive whose files carry no time: the same sheet gives the same bytes, whatever the clock says."""

    def writestr(self, zinfo_or_arcname: str | zipfile.ZipInfo, data: Any, *_: Any) -> None:
        """Add a file with the earliest time that there is."""
        name = zinfo_or_arcname if isinstance(zinfo_or_arcname, str) else zinfo_or_arcname.filename
        super().writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

    def write(self, filename: Any, arcname: Any = None, *_: Any) -> None:
        """Add a file from disk in the same way."""
        self.writestr(str(arcname), Path(filename).read_bytes())


def _save_undated(book: Any, path: Path) -> None:
    from openpyxl.writer.excel import ExcelWriter

    book.properties.created = book.properties.modified = datetime(1980, 1, 1)
    with _Undated(path, "w") as archive:
        ExcelWriter(book, archive).write_data()


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
