"""Label Studio's flat exports, JSON_MIN and CSV: one record per annotation, one field per control.

Fields of the data and controls lie side by side, and the file does not say which is which. JSON_MIN has the data
before the id and the controls after it; where that does not help, a control is a field whose values are short and
not a list of objects, an address or a long text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from softgold.errors import InputError
from softgold.readers.contents import Content, Member
from softgold.readers.exports.base import ReadOptions, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, text_of
from softgold.readers.exports.export import Export
from softgold.readers.exports.glimpse import Glimpse, look_at
from softgold.readers.exports.questions import no_such_question
from softgold.readers.jsonstream import open_json, parse_json
from softgold.readers.rows import read_rows

MARKS = {"annotation_id", "annotator"}
OTHERS = MARKS | {"id", "created_at", "updated_at", "lead_time", "agreement", "history", "inner_id"}
ADDRESSES = ("http://", "https://", "s3://", "gs://", "/data/", "data:")
LONGEST_CHOICE = 60
WHOLE_NUMBER = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)

Record = dict[str, Any]


def is_flat(file: Glimpse) -> bool:
    """Say whether a file is JSON_MIN or CSV of Label Studio."""
    return file.first.keys() >= MARKS or set(file.header) >= MARKS


def read(content: Content, options: ReadOptions) -> Export:
    """Read JSON_MIN or CSV."""
    records: list[Record] = []
    title = "Label Studio CSV"
    for member in content.members:
        if look_at(member).kind == "json":
            title = "Label Studio JSON_MIN"
            records += [as_dict(record) for record in open_json(member)]
        else:
            records += _from_table(member)
    builder = ExportBuilder(title, content.name, options, guess_texts=True)
    controls = _controls(records, options, content.name)
    for record in records:
        _read_record(builder, record, controls)
    return builder.finish()


def _from_table(member: Member) -> list[Record]:
    rows = read_rows(member)
    columns = [[_cell(cell) for cell in rows.columns[name]] for name in rows.columns]
    return [dict(zip(rows.columns, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _cell(cell: str) -> Any:
    """Return what a cell of the CSV stands for: lists and objects are written as JSON."""
    parsed = parse_json(cell) if cell[:1] in {"{", "["} else None
    return cell if parsed is None else parsed


def _controls(records: list[Record], options: ReadOptions, name: str) -> list[str]:
    fields = list(dict.fromkeys(field for record in records for field in record))
    if options.question is not None:
        base = next((f for f in fields if options.question == f or options.question.startswith(f"{f}: ")), None)
        if base is None or base in OTHERS:
            raise no_such_question(name, options.question, _guessed(records, fields))
        return [base]
    return _guessed(records, fields)


def _guessed(records: list[Record], fields: Sequence[str]) -> list[str]:
    after_id = [field for field in _after_id(records) if field not in OTHERS]
    candidates = [field for field in fields if field not in OTHERS]
    varying = _varying_within_item(records, candidates)
    likely = [field for field in candidates if field in after_id or field in varying]
    return [field for field in likely or candidates if _is_choice(record.get(field) for record in records)]


def _after_id(records: list[Record]) -> list[str]:
    """Fields between the id and the annotator, where JSON_MIN has the controls; a table is sorted by name instead."""
    fields: dict[str, None] = {}
    for record in records:
        names = list(record)
        if names == sorted(names) or not MARKS | {"id"} <= record.keys():
            continue
        fields.update(dict.fromkeys(names[names.index("id") + 1 : max(names.index("annotator"), 0)]))
    return list(fields)


def _varying_within_item(records: list[Record], fields: Sequence[str]) -> set[str]:
    """Fields that differ between annotations of one task, which no field of the data does."""
    first: dict[str, Record] = {}
    varying: set[str] = set()
    for record in records:
        before = first.setdefault(str(record.get("id")), record)
        varying |= {field for field in fields if before.get(field) != record.get(field)}
    return varying


def _is_choice(values: Iterable[Any]) -> bool:
    """Say whether the values of a field can be choices: some are there, and none is data of the task."""
    there = [value for value in values if value not in (None, "")]
    return bool(there) and not any(_is_data(value) for value in there)


def _is_data(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) > 4 * LONGEST_CHOICE or value.lower().startswith(ADDRESSES)
    if isinstance(value, dict):
        return not {"choices", "rating", "taxonomy"} & value.keys()
    return any(isinstance(part, dict) for part in as_list(value))


def _read_record(builder: ExportBuilder, record: Record, controls: Sequence[str]) -> None:
    item = record.get(builder.options.item or "id")
    if text_of(item) is None:
        raise InputError(f"{builder.name}: a record has no {builder.options.item or 'id'!r} to name its item by")
    if isinstance(item, str) and WHOLE_NUMBER.fullmatch(item):
        item = int(item)
    builder.counts["shapes"] += sum(map(_is_shape, record.values()))
    builder.counts["spans"] += sum(map(_is_span, record.values()))
    for control in controls:
        value = record.get(control)
        if value not in (None, "", [], {}):
            builder.answer(item, record.get("annotator"), control, _values(value))


def _is_shape(value: Any) -> bool:
    return any({"x", "points", "rle", "brush"} & as_dict(part).keys() for part in as_list(value))


def _is_span(value: Any) -> bool:
    return any({"start", "end", "labels"} <= as_dict(part).keys() for part in as_list(value))


def _values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        inner = next((value[key] for key in ("choices", "rating", "taxonomy") if key in value), None)
        return _values(inner)
    if isinstance(value, list):
        return [" / ".join(map(str, part)) if isinstance(part, list) else part for part in value]
    return [value]
