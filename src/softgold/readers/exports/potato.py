"""potato: one folder per annotator, with `user_state.json` (2.x) or `annotated_instances.jsonl` (1.x), or a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from softgold.readers.contents import Content, Member
from softgold.readers.exports.base import ExportFormat, ReadOptions, any_file, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, text_of
from softgold.readers.exports.export import Export
from softgold.readers.exports.glimpse import Glimpse, look_at
from softgold.readers.jsonstream import open_json
from softgold.readers.rows import read_rows

LABELS, SPANS = "instance_id_to_label_to_value", "instance_id_to_span_to_value"
JOIN = ":::"  # between question and option in the name of a table's column
TICKED = {"true", "on"}
NOT_TICKED = {"false", "off"}
SCALE = "scale_"


@dataclass(frozen=True)
class Field:
    """A field of the form as one annotator left it: an option that was ticked, or a value that was entered."""

    item: Any
    annotator: str
    question: str
    name: str
    value: str


def _is_potato(file: Glimpse) -> bool:
    options = "instance_id" in file.header and any(JOIN in name for name in file.header)
    return LABELS in file.first or {"id", "label_annotations"} <= file.first.keys() or options


def _read(content: Content, options: ReadOptions) -> Export:
    builder = ExportBuilder("potato", content.name, options, named=True, guess_texts=True)
    fields = [field for member in content.members for field in _fields(builder, member)]
    names: dict[str, set[str]] = {}
    for field in fields:
        names.setdefault(field.question, set()).add(field.name)
    answers: dict[tuple[str, str, str], list[object]] = {}
    items: dict[str, Any] = {}
    for field in fields:
        items[str(field.item)] = field.item
        key = (str(field.item), field.annotator, field.question)
        answers.setdefault(key, []).append(_choice(field, names[field.question]))
    for (item, annotator, question), values in answers.items():
        builder.answer(items[item], annotator, question, values)
    return builder.finish()


def _choice(field: Field, names: set[str]) -> str:
    """Return the option if there are several to tick, whatever its value; else the value entered."""
    ticked = field.value.lower() in TICKED or field.value == field.name
    several = len(names) > 1 and not field.name.startswith(SCALE)
    return field.name if field.name and (ticked or several) else field.value


def _fields(builder: ExportBuilder, member: Member) -> Iterator[Field]:
    seen = look_at(member)
    if not _is_potato(seen):
        return  # the folder also has histories, logs and the items themselves
    if seen.kind == "table":
        yield from _from_table(member)
        return
    for record in map(as_dict, open_json(member)):
        annotator = text_of(record.get("user_id")) or _folder(member)
        if LABELS in record:
            labelled: dict[Any, Any] = as_dict(record[LABELS])
            spans = list(as_dict(record.get(SPANS)).values())
        else:
            labelled, spans = {record.get("id"): record.get("label_annotations")}, [record.get("span_annotations")]
        builder.counts["spans"] += sum(len(span) for span in spans if isinstance(span, dict | list))
        for item, labels in labelled.items():
            yield from _labels(item, annotator, labels)


def _folder(member: Member) -> str:
    """The folder above the file is the annotator."""
    parts = member.name.split("/")
    return parts[-2] if len(parts) > 1 else member.path.parent.name if member.path else member.stem


def _labels(item: Any, annotator: str, labels: Any) -> Iterator[Field]:
    """Give the fields; files have a list of pairs, the documentation shows an object."""
    for pair in as_list(labels):
        if isinstance(pair, list) and len(pair) == 2:
            label = as_dict(pair[0])
            yield from _field(item, annotator, label.get("schema"), label.get("name"), pair[1])
    for schema, options in as_dict(labels).items():
        for name, value in as_dict(options).items():
            yield from _field(item, annotator, schema, name, value)


def _field(item: Any, annotator: str, question: Any, name: Any, value: Any) -> Iterator[Field]:
    text = text_of(value)
    if text is not None and text.lower() not in NOT_TICKED:
        yield Field(item, annotator, text_of(question) or "label", text_of(name) or "", text)


def _from_table(member: Member) -> Iterator[Field]:
    rows = read_rows(member)
    users = next((rows.columns[name] for name in ("user", "user_id", "annotator") if name in rows.columns), None)
    for row in range(rows.n_rows):
        annotator = users[row] if users else _folder(member)
        for column, cells in rows.columns.items():
            if JOIN in column:
                question, name = column.split(JOIN, 1)
                yield from _field(rows.columns["instance_id"][row], annotator, question, name, cells[row])


FORMAT = ExportFormat("potato", "potato", any_file(_is_potato), _read, whole_folder=True)
