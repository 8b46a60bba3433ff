"""Amazon Mechanical Turk: the batch CSV of the requester's site."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from softgold.errors import InputError
from softgold.readers.base import shorten
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file, as_list
from softgold.readers.exports.builder import ExportBuilder, each_file
from softgold.readers.exports.forms import form_answers
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.jsonstream import parse_json
from softgold.readers.rows import Rows, read_rows

INPUT, ANSWER, FORM = "Input.", "Answer.", "Answer.taskAnswers"
STATUS = "AssignmentStatus"
BOOLEANS = {"true", "false"}
EMPTY = {"", "{}"}  # what the site writes for a text box that was left empty
NUMBERED = re.compile(r"(.+?)[_\-.]?(\d{1,4})")
NUMBERED_APART = re.compile(r"(.+)[_\-](\d{1,4})")


@dataclass(frozen=True)
class Question:
    """Where the answer to a question is.

    Attributes:
        name: Name of the question.
        columns: Column of each option, or the one column under "".
        number: Which of several items of the HIT it is about; empty where there is one.
    """

    name: str
    columns: Mapping[str, str]
    number: str = ""


def _is_batch(file: Glimpse) -> bool:
    return {"HITId", "WorkerId"} <= set(file.header) and bool(_answers(file.header))


def _answers(header: Sequence[str]) -> list[str]:
    return [name for name in header if name.startswith(ANSWER)]


def _read_batch(builder: ExportBuilder, member: Member) -> None:
    item = builder.options.item or "HITId"
    rows = read_rows(member)
    if item not in rows.columns:
        inputs = ", ".join(shorten(name) for name in rows.header if name.startswith(INPUT))
        raise InputError(f"{member.display} has no column {item!r} to name the items by; inputs: {inputs or 'none'}")
    questions = list(_questions(rows))
    numbered = {question.number for question in questions} - {""}
    if numbered:
        builder.note(f"{len(numbered)} items per HIT: an item is the {item} and the number of the question")
    for row in range(rows.n_rows):
        if _is_rejected(rows, row):
            builder.counts["rejected"] += 1
            continue
        _read_assignment(builder, rows, row, item, questions)


def _is_rejected(rows: Rows, row: int) -> bool:
    status = rows.columns.get(STATUS)
    mark = rows.columns.get("Reject")
    return (status is not None and status[row] == "Rejected") or (mark is not None and bool(mark[row].strip()))


def _questions(rows: Rows) -> Iterator[Question]:
    """Group the answer columns by question, and tell numbers of items from names of questions."""
    groups: dict[str, dict[str, str]] = {}
    for column in _answers(rows.header):
        if column != FORM:
            question, option = _split(column, rows)
            groups.setdefault(question, {})[option] = column
    numbers = _item_numbers(list(groups), rows.header)
    for name, columns in groups.items():
        base, number = numbers.get(name, (name, ""))
        yield Question(base, columns, number)


def _split(column: str, rows: Rows) -> tuple[str, str]:
    """Return question and option of a column; the option is empty where the cell is the answer."""
    name = column.removeprefix(ANSWER)
    question, dot, option = name.rpartition(".")
    if dot and option in {"label", "labels", "on"}:
        return question, ""
    cells = {cell.strip().lower() for cell in rows.columns[column]}
    is_option = bool(dot) and cells <= BOOLEANS | {""}
    return (question, option) if is_option else (name, "")


def _item_numbers(names: Sequence[str], header: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return name and item number of each numbered question where a HIT has several items.

    Questions `a_1, a_2, b_1, b_2` are a and b about two items. `q1, q2` are two questions, unless the inputs of the
    HIT are numbered alike.
    """
    inputs = {match[2] for name in header if name.startswith(INPUT) and (match := NUMBERED.fullmatch(name))}
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        match = NUMBERED_APART.fullmatch(name) or NUMBERED.fullmatch(name)
        if match and (NUMBERED_APART.fullmatch(name) or (len(inputs) > 1 and match[2] in inputs)):
            found[name] = (match[1], match[2])
    sizes = Counter(base for base, _ in found.values())
    return {name: pair for name, pair in found.items() if sizes[pair[0]] > 1}


def _read_assignment(builder: ExportBuilder, rows: Rows, row: int, item: str, questions: Sequence[Question]) -> None:
    hit, worker = rows.columns[item][row], rows.columns["WorkerId"][row]
    for question in questions:
        values = _values(rows, row, question.columns)
        builder.answer(f"{hit}_{question.number}" if question.number else hit, worker, question.name, values)
    for form in as_list(parse_json(rows.columns[FORM][row])) if FORM in rows.columns else []:
        for name, values in form_answers(builder, form):
            builder.answer(hit, worker, name, values)


def _values(rows: Rows, row: int, columns: Mapping[str, str]) -> list[str]:
    if columns.keys() == {""}:
        cell = rows.columns[columns[""]][row]
        return [] if cell.strip() in EMPTY else cell.split("|") if "|" in cell else [cell]
    return [option for option, column in columns.items() if rows.columns[column][row].strip().lower() == "true"]


FORMAT = ExportFormat(
    "mturk", "Mechanical Turk", any_file(_is_batch), each_file("Mechanical Turk batch", _read_batch, guess_texts=True)
)
