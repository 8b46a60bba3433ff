"""Appen, Figure Eight, CrowdFlower: the full report. IP address, city, region and country are never read."""

from __future__ import annotations

from collections.abc import Sequence

from softgold.errors import InputError
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file
from softgold.readers.exports.builder import ExportBuilder, each_file
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.rows import Rows, read_header, read_rows

UNIT, WORKER, TAINTED, MISSED, GOLDEN = "_unit_id", "_worker_id", "_tainted", "_missed", "_golden"
GOLD, REASON, CONFIDENCE = "_gold", "_gold_reason", ":confidence"


def _is_report(file: Glimpse) -> bool:
    return UNIT in file.header and (WORKER in file.header or _is_aggregated(file.header))


def _is_aggregated(header: Sequence[str]) -> bool:
    return "_trusted_judgments" in header or any(name.endswith(CONFIDENCE) for name in header)


def _read_report(builder: ExportBuilder, member: Member) -> None:
    header = read_header(member)
    if WORKER not in header:
        raise InputError(
            f"{member.display} is the aggregated report, in which the judgments are already merged; "
            "download the full report, which has one row per judgment"
        )
    item = builder.options.item or UNIT
    rows = read_rows(member, _readable(header, item))
    if item not in rows.columns:
        raise InputError(f"{member.display} has no column {item!r} that may name the items")
    questions = _questions(rows, builder.options.question)
    for row in range(rows.n_rows):
        unit = rows.columns[item][row]
        for question in questions:
            _read_gold(builder, rows, row, unit, question)
        if _is_true(rows, TAINTED, row):
            builder.counts["rejected"] += 1
            continue
        builder.counts["missed"] += _is_true(rows, MISSED, row)
        for question in questions:
            values = rows.columns[question][row].split("\n")
            builder.answer(unit, rows.columns[WORKER][row], question, [value.strip() for value in values])


def _readable(header: Sequence[str], item: str) -> list[str]:
    """Return the columns to read: of those that begin with a dash, which Appen adds, only the ones that are needed."""
    own = {UNIT, WORKER, TAINTED, MISSED, GOLDEN}
    private = {"ip", "city", "country", "region"}
    return [
        name
        for name in header
        if name in own
        or (not name.startswith("_") and name.casefold() not in private)
        or (name == item and name == "_id")
    ]


def _questions(rows: Rows, chosen: str | None) -> list[str]:
    """Return the columns with answers: they have a gold column, or differ between judgments on one unit."""
    names = [name for name in rows.columns if not name.startswith("_")]
    golds = {name for name in names if name.endswith((GOLD, REASON)) and name.removesuffix(GOLD) in names}
    golds |= {name for name in names if name.endswith(REASON)}
    if chosen is not None:
        return [name for name in names if chosen == name or chosen.startswith(f"{name}: ")]
    candidates = [name for name in names if name not in golds]
    first = _first_rows(rows.columns[UNIT])
    return [name for name in candidates if f"{name}{GOLD}" in golds or _varies(rows.columns[name], first)]


def _first_rows(units: Sequence[str]) -> list[int]:
    """For each row, the first row of the same unit."""
    first: dict[str, int] = {}
    return [first.setdefault(unit, row) for row, unit in enumerate(units)]


def _varies(cells: Sequence[str], first: Sequence[int]) -> bool:
    return any(cells[row] != cells[start] for row, start in enumerate(first))


def _is_true(rows: Rows, name: str, row: int) -> bool:
    return name in rows.columns and rows.columns[name][row].strip().lower() == "true"


def _read_gold(builder: ExportBuilder, rows: Rows, row: int, unit: str, question: str) -> None:
    cells = rows.columns.get(f"{question}{GOLD}")
    if cells is not None and cells[row].strip() and (GOLDEN not in rows.columns or _is_true(rows, GOLDEN, row)):
        builder.gold(unit, question, [value.strip() for value in cells[row].split("\n")])


FORMAT = ExportFormat(
    "appen", "Appen", any_file(_is_report), each_file("Appen full report", _read_report, guess_texts=True)
)
