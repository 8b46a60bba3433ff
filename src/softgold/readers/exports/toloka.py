"""Toloka: the TSV of assignments, with columns INPUT:, OUTPUT:, GOLDEN:, HINT: and ASSIGNMENT:."""

from __future__ import annotations

from softgold.errors import InputError
from softgold.readers.base import shorten
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file
from softgold.readers.exports.builder import ExportBuilder, each_file
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.rows import Rows, read_rows

INPUT, OUTPUT, GOLDEN, HINT = "INPUT:", "OUTPUT:", "GOLDEN:", "HINT:text"
TASK, WORKER, STATUS = "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"
NOT_VOTES = {"REJECTED": "rejected", "SKIPPED": "skipped", "EXPIRED": "skipped", "ACTIVE": "drafts"}


def _is_pool(file: Glimpse) -> bool:
    has_inputs = any(name.startswith(INPUT) for name in file.header)
    return has_inputs and any(name.startswith((OUTPUT, GOLDEN)) for name in file.header)


def _read_pool(builder: ExportBuilder, member: Member) -> None:
    rows = read_rows(member)
    items = rows.columns[_item_column(rows, builder.options.item)]
    status, hints = rows.columns.get(STATUS), rows.columns.get(HINT)
    for row in range(rows.n_rows):
        _read_gold(builder, rows, row, items[row])
        kind = NOT_VOTES.get(status[row].strip().upper()) if status is not None else None
        if kind is None and hints is not None and hints[row].strip():
            kind = "training"
        if kind is not None:
            builder.counts[kind] += 1
        elif WORKER in rows.columns:
            _read_answers(builder, rows, row, items[row])


def _item_column(rows: Rows, chosen: str | None) -> str:
    if chosen is not None:
        for name in (chosen, INPUT + chosen):
            if name in rows.columns:
                return name
        raise InputError(f"{rows.name} has no column {chosen!r} to name the items by; it has {_inputs(rows)}")
    if any(cell.strip() for cell in rows.columns.get(TASK, ())):
        return TASK
    # Without an id of the task, an item is what its inputs are: the first input that tells all of them apart names it.
    inputs = [name for name in rows.columns if name.startswith(INPUT)]
    distinct = len(set(zip(*(rows.columns[name] for name in inputs), strict=True)))
    for name in inputs:
        if len(set(rows.columns[name])) == distinct and all(cell.strip() for cell in rows.columns[name]):
            return name
    raise InputError(f"{rows.name} has no column that names the items; choose one with --item-col: {_inputs(rows)}")


def _inputs(rows: Rows) -> str:
    return ", ".join(shorten(name) for name in rows.header if name.startswith(INPUT)) or "no inputs"


def _read_gold(builder: ExportBuilder, rows: Rows, row: int, item: str) -> None:
    for name, cells in rows.columns.items():
        if name.startswith(GOLDEN) and cells[row].strip():
            builder.gold(item, name.removeprefix(GOLDEN), [cells[row]])


def _read_answers(builder: ExportBuilder, rows: Rows, row: int, item: str) -> None:
    for name, cells in rows.columns.items():
        if name.startswith(OUTPUT):
            cell = cells[row]
            if cell.lstrip()[:1] in {"{", "["}:
                builder.counts["texts"] += 1  # marked text or an area, written as JSON
            else:
                builder.answer(item, rows.columns[WORKER][row], name.removeprefix(OUTPUT), [cell])


FORMAT = ExportFormat("toloka", "Toloka", any_file(_is_pool), each_file("Toloka", _read_pool, guess_texts=True))
