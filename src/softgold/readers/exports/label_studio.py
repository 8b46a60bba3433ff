"""Label Studio: JSON, and the flat JSON_MIN and CSV (see `label_studio_flat`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgold.errors import InputError
from softgold.readers.contents import Content, Member
from softgold.readers.exports import label_studio_flat
from softgold.readers.exports.base import ExportFormat, ReadOptions, any_file, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, text_of
from softgold.readers.exports.export import Export
from softgold.readers.exports.glimpse import Glimpse, look_at
from softgold.readers.jsonstream import open_json

# Where the choice is in the value of a result, by the type of the control.
CHOICES = {"choices": "choices", "rating": "rating", "number": "number", "pairwise": "selected", "taxonomy": "taxonomy"}
SPANS = {"labels", "hypertextlabels", "paragraphlabels", "timeserieslabels", "timelinelabels", "relation"}
TEXTS = {"textarea", "datetime"}
# A choice that belongs to a region has the region's place in its value.
PLACES = {"x", "points", "start", "brush", "rle", "ranges", "sequence"}


def _is_label_studio(file: Glimpse) -> bool:
    return _is_task(file.first) or label_studio_flat.is_flat(file)


def _is_task(record: dict[str, Any]) -> bool:
    annotations = _annotations(record)
    if annotations is None:
        return False
    first = as_dict(annotations[0]) if annotations else {}
    return "result" in first if first else "data" in record or "completions" in record


def _annotations(task: dict[str, Any]) -> list[Any] | None:
    for key in ("annotations", "completions"):
        if isinstance(task.get(key), list):
            return list(task[key])
    return None


def _read(content: Content, options: ReadOptions) -> Export:
    if label_studio_flat.is_flat(look_at(content.members[0])):
        return label_studio_flat.read(content, options)
    builder = ExportBuilder("Label Studio JSON", content.name, options)
    for member in content.members:
        for position, task in enumerate(_tasks(member), start=1):
            _read_task(builder, task, f"{member.display}, task {position}")
    return builder.finish()


def _tasks(member: Member) -> Iterator[dict[str, Any]]:
    for position, task in enumerate(open_json(member), start=1):
        if not isinstance(task, dict):
            raise InputError(f"{member.display}, task {position}: a task must be an object")
        yield task


def _read_task(builder: ExportBuilder, task: dict[str, Any], where: str) -> None:
    annotations = _annotations(task) or []
    builder.counts["predictions"] += len(as_list(task.get("predictions")))
    builder.counts["drafts"] += len(as_list(task.get("drafts")))
    if not annotations:
        builder.counts["unannotated"] += 1
        return
    item = _item(task, builder.options.item, where)
    nameless = 0
    for annotation in map(as_dict, annotations):
        annotator = _annotator(annotation)
        if annotator is None:
            nameless += 1
        _read_annotation(builder, item, annotator or f"unknown_{nameless}", annotation, annotator is None)


def _item(task: dict[str, Any], key: str | None, where: str) -> object:
    if key is not None:
        found = as_dict(task.get("data")).get(key, task.get(key))
        if text_of(found) is None:
            raise InputError(f"{where}: there is no {key!r} in the data of the task to name the item by")
        return found
    for name in ("id", "inner_id"):
        if text_of(task.get(name)) is not None:
            return task[name]
    raise InputError(f"{where}: the task has no id; name its items by a field of its data with --item-col")


def _annotator(annotation: dict[str, Any]) -> object:
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = next((who[key] for key in ("id", "email", "username") if text_of(who.get(key)) is not None), None)
    if who is None:
        who = next(iter(as_list(annotation.get("aggregated_completed_by"))), None)
    return who if text_of(who) is not None else None


def _read_annotation(
    builder: ExportBuilder, item: object, annotator: object, annotation: dict[str, Any], nameless: bool
) -> None:
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        builder.counts["cancelled"] += 1
        return
    answers = _answers(builder, annotation)
    if not answers:
        builder.counts["empty"] += not as_list(annotation.get("result"))
        return
    builder.counts["nameless"] += nameless
    for question, values in answers.items():
        if annotation.get("ground_truth"):
            builder.gold(item, question, values)
        else:
            builder.answer(item, annotator, question, values)


def _answers(builder: ExportBuilder, annotation: dict[str, Any]) -> dict[str, list[object]]:
    """Return the values by question; what is drawn or written is counted."""
    answers: dict[str, list[object]] = {}
    for result in _results(annotation.get("result")):
        kind, value = str(result.get("type")), as_dict(result.get("value"))
        if kind in CHOICES and not PLACES & value.keys():
            answers.setdefault(_question(result, kind), []).extend(_values(kind, value))
        elif kind in TEXTS:
            builder.counts["texts"] += 1
        elif kind in SPANS or "start" in value:
            builder.counts["spans"] += 1
        else:
            builder.counts["shapes"] += 1
    return answers


def _results(results: Any) -> Iterator[dict[str, Any]]:
    """Give the results; an old export has lists of them within the list."""
    for result in as_list(results):
        if isinstance(result, list):
            yield from map(as_dict, result)
        else:
            yield as_dict(result)


def _question(result: dict[str, Any], kind: str) -> str:
    return text_of(result.get("from_name")) or kind


def _values(kind: str, value: dict[str, Any]) -> list[object]:
    found = value.get(CHOICES[kind])
    if kind == "taxonomy":
        return [" / ".join(map(str, path)) if isinstance(path, list) else path for path in as_list(found)]
    return list(found) if isinstance(found, list) else [found]


FORMAT = ExportFormat("label-studio", "Label Studio", any_file(_is_label_studio), _read)
