"""LeWiDi (Learning with Disagreements) 2023 and 2025: one JSON object, items by key."""

from __future__ import annotations

from typing import Any

from softgold.errors import InputError
from softgold.readers.base import shorten
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file, as_dict
from softgold.readers.exports.builder import ExportBuilder, each_file, text_of
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.jsonstream import open_json


def _is_lewidi(file: Glimpse) -> bool:
    first = as_dict(next(iter(file.first.values()), None))
    return {"annotations", "annotators"} <= first.keys() and isinstance(first["annotations"], str | dict)


def _read_file(builder: ExportBuilder, member: Member) -> None:
    for document in map(as_dict, open_json(member)):
        for key, record in document.items():
            _read_item(builder, key, as_dict(record), f"{member.display}, item {shorten(key)}")


def _read_item(builder: ExportBuilder, key: str, record: dict[str, Any], where: str) -> None:
    item: object = key if builder.options.item is None else record.get(builder.options.item)
    question = text_of(record.get("annotation task")) or "annotation"
    annotations = record.get("annotations")
    if isinstance(annotations, dict):  # since 2025
        for annotator, said in annotations.items():
            values = said.split(",") if isinstance(said, str) else [said]
            builder.answer(item, annotator, question, [_stripped(value) for value in values])
    elif isinstance(annotations, str):
        who = str(record.get("annotators", "")).split(",")
        said_by_all = annotations.split(",")
        if len(who) != len(said_by_all):
            raise InputError(f"{where}: {len(said_by_all)} annotations of {len(who)} annotators")
        for annotator, said in zip(who, said_by_all, strict=True):
            builder.answer(item, annotator.strip(), question, [said.strip()])
    else:
        builder.counts["unannotated"] += 1
    if text_of(record.get("hard_label")) is not None:
        builder.gold(item, question, [record["hard_label"]])
        builder.note(
            "the gold labels are LeWiDi's hard_label, the majority of the same votes, not a judgement of experts"
        )


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


FORMAT = ExportFormat("lewidi", "LeWiDi", any_file(_is_lewidi), each_file("LeWiDi", _read_file))
