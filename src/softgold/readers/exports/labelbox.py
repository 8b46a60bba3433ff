"""Labelbox: export v2 (NDJSON), and the retired v1 (JSON)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgold.errors import InputError
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, each_file, text_of
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.jsonstream import open_json

Answers = Iterator[tuple[str, list[object]]]


def _is_labelbox(file: Glimpse) -> bool:
    return {"data_row", "projects"} <= file.first.keys() or _is_v1(file.first)


def _is_v1(record: dict[str, Any]) -> bool:
    return {"DataRow ID", "Label"} <= record.keys()


def _read_file(builder: ExportBuilder, member: Member) -> None:
    for row, record in enumerate(map(as_dict, open_json(member)), start=1):
        read = _read_v1 if _is_v1(record) else _read_row
        read(builder, record, f"{member.display}, data row {row}")


def _read_row(builder: ExportBuilder, record: dict[str, Any], where: str) -> None:
    row, projects = as_dict(record.get("data_row")), as_dict(record.get("projects"))
    name = builder.options.item or "id"
    labels = [
        (project, as_dict(label)) for project in projects.values() for label in as_list(as_dict(project).get("labels"))
    ]
    if not labels:
        builder.counts["unannotated"] += 1
        return
    if text_of(row.get(name)) is None:
        raise InputError(f"{where}: the data row has no {name!r} to name the item by")
    for project, label in labels:
        prefix = f"{text_of(as_dict(project).get('name')) or 'project'} / " if len(projects) > 1 else ""
        _read_label(builder, row[name], label, prefix)


def _read_label(builder: ExportBuilder, item: object, label: dict[str, Any], prefix: str) -> None:
    performance, annotations = as_dict(label.get("performance_details")), as_dict(label.get("annotations"))
    if performance.get("skipped"):
        builder.counts["skipped"] += 1
        return
    builder.counts["shapes"] += len(as_list(annotations.get("objects")))
    is_gold = label.get("id") is not None and performance.get("benchmark_reference_label") == label["id"]
    annotator = as_dict(label.get("label_details")).get("created_by")
    for question, values in _classifications(annotations.get("classifications"), builder):
        if is_gold:
            builder.gold(item, prefix + question, values)
        else:
            builder.answer(item, annotator, prefix + question, values)


def _classifications(found: Any, builder: ExportBuilder, above: str = "") -> Answers:
    """Give questions and answers, those nested below an answer too."""
    for part in map(as_dict, as_list(found)):
        question = above + (text_of(part.get("name")) or "classification")
        answers = [as_dict(part.get("radio_answer"))] if "radio_answer" in part else []
        answers += map(as_dict, as_list(part.get("checklist_answers")))
        if "text_answer" in part:
            builder.counts["texts"] += 1
        else:
            yield question, [answer.get("name") for answer in answers]
        for answer in answers:
            yield from _classifications(answer.get("classifications"), builder, f"{question} / ")


def _read_v1(builder: ExportBuilder, record: dict[str, Any], where: str) -> None:
    if record.get("Skipped"):
        builder.counts["skipped"] += 1
        return
    item = record.get(builder.options.item or "DataRow ID")
    if text_of(item) is None:
        raise InputError(f"{where}: the record has no {builder.options.item or 'DataRow ID'!r} to name the item by")
    label = as_dict(record.get("Label"))
    builder.counts["shapes"] += len(as_list(label.get("objects")))
    is_gold = record.get("ID") is not None and record.get("Benchmark Reference ID") == record["ID"]
    for part in map(as_dict, as_list(label.get("classifications"))):
        question = text_of(part.get("title")) or text_of(part.get("value")) or "classification"
        answer = part.get("answer", part.get("answers"))
        if isinstance(answer, str):
            builder.counts["texts"] += 1
            continue
        parts = answer if isinstance(answer, list) else [answer]
        values = [as_dict(choice).get("title", as_dict(choice).get("value")) for choice in parts]
        if is_gold:
            builder.gold(item, question, values)
        else:
            builder.answer(item, record.get("Created By"), question, values)


FORMAT = ExportFormat("labelbox", "Labelbox", any_file(_is_labelbox), each_file("Labelbox", _read_file, named=True))
