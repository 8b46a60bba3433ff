"""Results as tables."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from softgold.errors import OutputError
from softgold.output.atomic import atomic_file, atomic_files
from softgold.output.targets import PathLike
from softgold.output.temporaries import public_path

if TYPE_CHECKING:
    import pandas as pd

ROWS_AT_ONCE = 100_000
# A cell that begins so is a formula to a spreadsheet.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_table(frame: pd.DataFrame, path: PathLike, *, force: bool = False) -> None:
    """Write a table atomically; the suffix chooses CSV, TSV, either with `.gz`, or Parquet.

    Text files are UTF-8 with `\\n` line ends; numbers are written so that they read back equal; a missing value is
    an empty cell.
    """
    if Path(path).suffix.lower() not in {".parquet", ".pq"}:
        starts = range(0, max(len(frame), 1), ROWS_AT_ONCE)
        write_rows((frame.iloc[start : start + ROWS_AT_ONCE] for start in starts), path, force=force)
        return
    with atomic_file(path, force=force) as temporary:
        try:
            with temporary.open("wb") as file:  # Arrow takes no path that is not UTF-8
                frame.to_parquet(file, index=False)
        except UnicodeEncodeError as error:
            raise _unwritable(error, Path(path)) from None


def write_rows(parts: Iterable[pd.DataFrame], path: PathLike, *, force: bool = False) -> None:
    """Write the parts of a table below each other as text, as `write_table` does, holding one at a time."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    separator = "\t" if ".tsv" in suffixes[-2:] else ","
    with atomic_file(path, force=force) as temporary, temporary.open("wb") as plain:
        # Without a time stamp the same table gives the same bytes.
        packed = suffixes[-1:] == [".gz"]
        with gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if packed else nullcontext(plain) as file:
            for number, part in enumerate(parts):
                try:
                    file.write(table_text(part, separator=separator, header=number == 0).encode())
                except UnicodeEncodeError as error:
                    raise _unwritable(error, Path(path)) from None


def write_tables(tables: Sequence[tuple[Path, pd.DataFrame]], *, force: bool = False) -> None:
    """Write any number of tables, all of them or none, each to its path as `write_table` does."""
    if len(tables) < 2:
        for path, frame in tables:
            write_table(frame, path, force=force)
        return
    with atomic_files([path for path, _ in tables], force=force) as temporaries:
        for (_, frame), temporary in zip(tables, temporaries, strict=True):
            write_table(frame, temporary)


def table_text(frame: pd.DataFrame, *, separator: str = ",", header: bool = True) -> str:
    """Return the table as the text that `write_table` writes, with or without the names of its columns.

    >>> import pandas as pd
    >>> table_text(pd.DataFrame({"item": ["007"], "p": [0.1], "b_mean": [float("nan")]}))
    'item,p,b_mean\\n007,0.1,\\n'
    """
    # The csv module of Python 3.11 leaves a lone carriage return unquoted, and readers then see a line end.
    returns = any(frame[name].astype("str").str.contains("\r", regex=False).any() for name in _text_columns(frame))
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return frame.to_csv(index=False, header=header, sep=separator, lineterminator="\n", quoting=quoting)


def excel_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people with a spreadsheet: an apostrophe before texts that it would take for formulas.

    Tables for programs are written without it, because ids must read back equal.

    >>> import pandas as pd
    >>> excel_safe(pd.DataFrame({"item": ["=1+1", "scan-7"], "p": [-0.5, 1.0]}))["item"].tolist()
    ["'=1+1", 'scan-7']
    """
    safe = {str(name): frame[name].map(_inert, na_action="ignore") for name in _text_columns(frame)}
    return frame.assign(**safe)


def _text_columns(frame: pd.DataFrame) -> list[Any]:
    """Return the columns that may hold text: objects, texts and categories, whatever pandas calls these types."""
    return [name for name, dtype in frame.dtypes.items() if dtype.kind == "O"]


def undo_excel_safe(text: str) -> str:
    """Return a text as it was before `excel_safe`.

    >>> undo_excel_safe("'=1+1"), undo_excel_safe("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text


def _inert(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def _unwritable(error: UnicodeEncodeError, path: Path) -> OutputError:
    text = error.object[max(0, error.start - 20) : error.end + 20]
    return OutputError(f"cannot write {public_path(path)}: {text!r} is not valid Unicode (a lone surrogate)")
