"""Prodigy: JSON lines of `prodigy db-out`, with answers of accept and reject, or with choices."""

from __future__ import annotations

from typing import Any

from softgold.errors import InputError
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, each_file, text_of
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.jsonstream import open_json

HASHES = ("_input_hash", "_task_hash")


def _is_prodigy(file: Glimpse) -> bool:
    return "answer" in file.first and any(name in file.first for name in HASHES)


def _read_file(builder: ExportBuilder, member: Member) -> None:
    for line, record in enumerate(open_json(member), start=1):
        _read_record(builder, as_dict(record), f"{member.display}, record {line}")


def _read_record(builder: ExportBuilder, record: dict[str, Any], where: str) -> None:
    answer = text_of(record.get("answer"))
    if answer not in {"accept", "reject"}:
        builder.counts["skipped"] += 1
        return
    item = record.get(builder.options.item) if builder.options.item else _first(record, *HASHES)
    if text_of(item) is None:
        raise InputError(f"{where}: the record has no {builder.options.item or '_input_hash'} to name its item by")
    annotator = _first(record, "_annotator_id", "_session_id")
    # With choices "accept" means that the choice was submitted; without, it means yes.
    if "options" in record or isinstance(record.get("accept"), list):
        _read_choice(builder, record, item, annotator)
    elif as_list(record.get("spans")) or as_list(record.get("relations")):
        builder.counts["shapes" if "image" in record else "spans"] += 1
    else:
        builder.answer(item, annotator, text_of(record.get("label")) or "answer", [answer])


def _first(record: dict[str, Any], *names: str) -> object:
    return next((record[name] for name in names if text_of(record.get(name)) is not None), None)


def _read_choice(builder: ExportBuilder, record: dict[str, Any], item: object, annotator: object) -> None:
    chosen = as_list(record.get("accept"))
    if record["answer"] == "reject":
        builder.counts["rejected"] += 1
    elif not chosen:
        builder.counts["skipped"] += 1
    else:
        builder.answer(item, annotator, text_of(record.get("label")) or "choice", chosen)


FORMAT = ExportFormat("prodigy", "Prodigy", any_file(_is_prodigy), each_file("Prodigy JSONL", _read_file, named=True))
