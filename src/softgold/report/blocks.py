"""Parts of a report: sections with panels of figures, tables and sentences. The page only lays them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from softgold.report.svg import Canvas, shorten_text

LONGEST_NAME = 64


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what is shown, and the number that it is sorted by (None for text)."""

    text: str
    order: float | None = None
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """A table that can be sorted; `rest` says where to find rows that are not shown.

    A long table scrolls in a frame of its own, unless `is_whole` wants every row on the page.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    words: str = ""
    rest: str = ""
    is_whole: bool = False

    @property
    def is_compact(self) -> bool:
        """Whether it has room beside a figure."""
        return len(self.columns) <= 3


@dataclass(frozen=True)
class Figure:
    """A chart, a sentence that explains it, and the table that says the same."""

    title: str
    words: str
    svg: Markup
    table: Table | None = None
    wide: bool = False


@dataclass(frozen=True)
class Panel:
    """Figures and tables that belong together; a name lets the reader switch between panels."""

    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    words: str = ""
    name: str | None = None


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading; `key` is its anchor."""

    key: str
    title: str
    words: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Tile:
    """A key number at the top of the report."""

    value: str
    name: str
    words: str = ""


def named(text: object) -> Cell:
    """Return a name from the data, cut in the middle if it is very long.

    >>> len(named("x" * 500).text)
    64
    """
    return Cell(shorten_text(str(text), LONGEST_NAME))


def amount(value: float) -> Cell:
    """Return a whole number.

    >>> amount(12345).text
    '12,345'
    """
    return Cell(f"{value:,.0f}", float(value))


def real(value: float | None, digits: int = 3, *, strong: bool = False) -> Cell:
    """Return a number with some digits; a dash where there is none.

    >>> real(0.12345).text, real(None).text
    ('0.123', '–')
    """
    if value is None or math.isnan(value):
        return Cell("–", -math.inf)
    return Cell(f"{value:.{digits}f}", float(value), strong)


def percent(value: float | None, digits: int = 1) -> Cell:
    """Return a share as a percentage.

    >>> percent(0.0123).text
    '1.2 %'
    """
    if value is None or math.isnan(value):
        return Cell("–", -math.inf)
    return Cell(f"{100 * value:.{digits}f} %", float(value))


def interval(value: float | None, low: float | None, high: float | None, *, strong: bool = False) -> Cell:
    """Return a number with its interval.

    >>> interval(0.5, 0.4, 0.6).text
    '0.500 (0.400–0.600)'
    """
    if value is None or math.isnan(value):
        return Cell("–", -math.inf)
    ends = "" if low is None or high is None else f" ({low:.3f}–{high:.3f})"
    return Cell(f"{value:.3f}{ends}", float(value), strong)


def figure(
    title: str, words: str, chart: Canvas, told: str, table: Table | None = None, *, wide: bool = False
) -> Figure:
    """Return a figure; `told` describes the chart for screen readers."""
    return Figure(title, words, chart.render(title, told), table, wide)


def numbers(columns: Sequence[str], rows: Sequence[Sequence[Cell | str]], title: str = "", words: str = "") -> Table:
    """Return a table of cells and texts."""
    return Table(tuple(columns), tuple(tuple(_cell(entry) for entry in row) for row in rows), title, words)


def _cell(entry: Cell | str) -> Cell:
    return Cell(entry) if isinstance(entry, str) else entry
