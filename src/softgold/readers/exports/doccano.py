"""doccano: JSONL, JSON or CSV; the name of a file is its annotator."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from softgold.errors import InputError
from softgold.readers.columns import ANNOTATOR
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, each_file, text_of
from softgold.readers.exports.glimpse import Glimpse, look_at
from softgold.readers.jsonstream import open_json
from softgold.readers.rows import read_rows

TEXTS = ("text", "data")
LABELS = ("label", "labels")
# Columns of doccano's own CSV, beside those of the metadata.
OWN_COLUMNS = {"id", "text", "data", "label", "labels", "comments", "meta"}
# In a project that shares annotations, all of them are in this file, without a name.
SHARED = "all"
LONGEST_TEXT_AS_ID = 200


def _is_doccano(file: Glimpse) -> bool:
    if file.kind == "table":
        names = {name.strip().casefold() for name in file.header}
        own = any(text in names for text in TEXTS) and any(label in names for label in LABELS)
        return own and names <= OWN_COLUMNS | {""}
    record = file.first
    if not any(text in record for text in TEXTS) or set(record) & set(ANNOTATOR):
        return False
    return any(isinstance(record.get(label), list) for label in LABELS) or _is_old(record)


def _is_old(record: dict[str, Any]) -> bool:
    annotations = record.get("annotations")
    return isinstance(annotations, list) and all({"label", "user"} <= as_dict(part).keys() for part in annotations)


def _read_file(builder: ExportBuilder, member: Member) -> None:
    for position, record in enumerate(_records(member), start=1):
        where = f"{member.display}, record {position}"
        if _is_old(record) and record.get("annotations"):
            _read_old(builder, record, where)
        else:
            _read_record(builder, record, member, where)


def _records(member: Member) -> Iterator[dict[str, Any]]:
    if look_at(member).kind == "json":
        yield from map(as_dict, open_json(member))
        return
    rows = read_rows(member)
    for cells in zip(*rows.columns.values(), strict=True):
        record: dict[str, Any] = dict(zip((name.strip().casefold() for name in rows.columns), cells, strict=True))
        for label in LABELS:
            if label in record:
                record[label] = [part for part in record[label].split("#") if part]
        yield record


def _read_record(builder: ExportBuilder, record: dict[str, Any], member: Member, where: str) -> None:
    labels: list[Any] = next((record[name] for name in LABELS if isinstance(record.get(name), list)), [])
    if not labels:
        builder.counts["empty"] += 1
    elif any(isinstance(label, list | dict) for label in labels):
        builder.counts["spans"] += len(labels)
    else:
        builder.answer(_item(record, builder.options.item, where), _annotator(member), "label", labels)


def _annotator(member: Member) -> str:
    if member.stem == SHARED:
        raise InputError(
            f"{member.display} is the export of a project that shares annotations: it does not say who chose a label; "
            "export a project without shared annotations, which gives one file per annotator"
        )
    return member.stem


def _item(record: dict[str, Any], key: str | None, where: str) -> object:
    found = record.get(key or "id")
    if text_of(found) is not None:
        return found
    text = next((text_of(record.get(name)) for name in TEXTS if text_of(record.get(name))), None)
    if key is not None or text is None:
        raise InputError(f"{where}: the record has no {key or 'id'!r} to name its item by")
    if len(text) <= LONGEST_TEXT_AS_ID:
        return text
    return f"text_{sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _read_old(builder: ExportBuilder, record: dict[str, Any], where: str) -> None:
    """Read a record of an export that has label numbers, whose names are in the project's settings."""
    item = _item(record, builder.options.item, where)
    answers: dict[str, list[object]] = {}
    for part in map(as_dict, as_list(record["annotations"])):
        if {"start_offset", "end_offset"} & part.keys():
            builder.counts["spans"] += 1
        else:
            answers.setdefault(text_of(part.get("user")) or "", []).append(part.get("label"))
    for user, labels in answers.items():
        builder.answer(item, user or None, "label", labels)
    if answers:
        builder.note("labels are numbers in this old doccano export; their names are in the project's label settings")


FORMAT = ExportFormat("doccano", "doccano", any_file(_is_doccano), each_file("doccano", _read_file, named=True))
