"""Argilla: 2.x flat (Hugging Face datasets, Parquet, JSON), 2.x nested JSON, and 1.x with lists of responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from softgold.errors import InputError
from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, each_file, text_of
from softgold.readers.exports.glimpse import Glimpse, look_at
from softgold.readers.jsonstream import open_json
from softgold.readers.parquet import parquet_records

RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
NOT_VOTES = {"draft": "drafts", "discarded": "rejected", "pending": "drafts"}
OLD_KEYS = {"user_id", "value", "status"}

# Who answered, what, and in which state; the state is None where the export has none.
Response = tuple[object, Any, object]


def _is_argilla(file: Glimpse) -> bool:
    return _is_flat(file) or _is_nested(file.first) or _is_old(file)


def _is_flat(file: Glimpse) -> bool:
    names = set(file.first) | set(file.header)
    return any(name.endswith(USERS) and name.removesuffix(".users") in names for name in names)


def _is_nested(record: dict[str, Any]) -> bool:
    return "fields" in record and isinstance(record.get("responses"), dict)


def _is_old(file: Glimpse) -> bool:
    in_types = any(all(key in kind for key in OLD_KEYS) for kind in file.types)
    return in_types or any(_is_old_answer(value) for value in file.first.values())


def _is_old_answer(value: Any) -> bool:
    first = value if isinstance(value, dict) else as_dict(next(iter(as_list(value)), None))
    return first.keys() >= OLD_KEYS


def _read_file(builder: ExportBuilder, member: Member) -> None:
    for position, record in enumerate(_records(member), start=1):
        item = _item(record, builder.options.item, f"{member.display}, record {position}", position)
        for question, responses in _questions(record):
            _read_responses(builder, item, question, responses)
        builder.counts["predictions"] += _suggestions(record)
    if _is_nested(look_at(member).first):
        builder.note(
            "Argilla's nested JSON does not say which responses are drafts or discarded: all are taken as votes; "
            "export to datasets (records.to_datasets()) to have their status"
        )


def _records(member: Member) -> Iterator[dict[str, Any]]:
    if look_at(member).kind == "parquet":
        yield from parquet_records(member)
    else:
        yield from map(as_dict, open_json(member))


def _item(record: dict[str, Any], key: str | None, where: str, position: int) -> object:
    if key is not None:
        found = record.get(key, as_dict(record.get("fields")).get(key, as_dict(record.get("metadata")).get(key)))
        if text_of(found) is None:
            raise InputError(f"{where}: the record has no {key!r} to name its item by")
        return found
    names = ("id", "external_id", "_server_id")
    return next((record[name] for name in names if text_of(record.get(name)) is not None), f"record_{position}")


def _questions(record: dict[str, Any]) -> Iterator[tuple[str, list[Response]]]:
    if _is_nested(record):
        for question, responses in record["responses"].items():
            yield question, _of_objects(as_list(responses))
        return
    for name, value in record.items():
        if name.endswith(RESPONSES) and f"{name}.users" in record:
            yield name.removesuffix(RESPONSES), _flat(record, name)
        elif _is_old_answer(value):
            yield name, _old(value)


def _flat(record: dict[str, Any], name: str) -> list[Response]:
    values, users, states = (as_list(record.get(key)) for key in (name, f"{name}.users", f"{name}.status"))
    states = states + [None] * (len(values) - len(states))
    return list(zip(users, values, states, strict=False))


def _old(value: Any) -> list[Response]:
    """Return responses of 1.x: a list of objects, or an object of lists, as Hugging Face stores it."""
    if isinstance(value, dict):
        lists = [as_list(value.get(key)) for key in ("user_id", "value", "status")]
        return list(zip(*lists, strict=False))
    return _of_objects(value)


def _of_objects(values: list[Any]) -> list[Response]:
    return [(part.get("user_id"), part.get("value"), part.get("status")) for part in map(as_dict, values)]


def _read_responses(builder: ExportBuilder, item: object, question: str, responses: Sequence[Response]) -> None:
    for user, value, status in responses:
        kind = NOT_VOTES.get(str(status))
        if kind is not None:
            builder.counts[kind] += 1
        elif any(isinstance(part, dict) for part in (value if isinstance(value, list) else [value])):
            builder.counts["spans"] += 1
        else:
            builder.answer(item, user, question, value if isinstance(value, list) else [value])


def _suggestions(record: dict[str, Any]) -> int:
    flat = sum(name.endswith((".suggestion", "-suggestion")) and value is not None for name, value in record.items())
    return flat + len(as_dict(record.get("suggestions")))


FORMAT = ExportFormat("argilla", "Argilla", any_file(_is_argilla), each_file("Argilla", _read_file))
