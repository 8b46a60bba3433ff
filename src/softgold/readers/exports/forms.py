"""Answers of HTML forms, as Mechanical Turk and Ground Truth write them: names, and values of several shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgold.readers.exports.base import as_list
from softgold.readers.exports.builder import ExportBuilder

Answer = tuple[str, list[Any]]
SHAPES = {
    *("boundingBoxes", "polygons", "polylines", "keypoints"),
    *("labeledImage", "instances", "cuboids", "inputImageProperties"),
}
SPANS = {"entities"}
WRAPPERS = {"annotatedResult"}
DEEPEST = 8


def form_answers(builder: ExportBuilder, form: Any, name: str = "", depth: int = 0) -> Iterator[Answer]:
    """Give question and values of each field; boxes, masks and spans are counted.

    A field is a text or number; `{"label": x}` or `{"labels": [x, y]}` of a classifier; `{"x": true, "y": false}` of
    radio buttons or checkboxes; `{"on": true}` of one checkbox; or an object of further fields.
    """
    if not isinstance(form, dict):
        yield name or "answer", _values(builder, form)
        return
    if SHAPES & form.keys() or SPANS & form.keys():
        builder.counts["shapes" if SHAPES & form.keys() else "spans"] += 1
        return
    answer = _classifier(form)
    if answer is not None and name:
        yield name, answer
        return
    for key, value in form.items() if depth < DEEPEST else ():
        inner = name if key in WRAPPERS else f"{name}.{key}" if name else str(key)
        yield from form_answers(builder, value, inner, depth + 1)


def _classifier(form: dict[str, Any]) -> list[Any] | None:
    """Return the values of a field that is an object, or None where it holds further fields."""
    if "label" in form and not isinstance(form["label"], dict | list):
        return [form["label"]]
    if isinstance(form.get("labels"), list):
        return list(form["labels"])
    if not form or not all(isinstance(value, bool) for value in form.values()):
        return None
    return [form["on"]] if form.keys() == {"on"} else [key for key, value in form.items() if value]


def _values(builder: ExportBuilder, value: Any) -> list[Any]:
    if any(isinstance(part, dict) for part in as_list(value)):
        builder.counts["shapes"] += len(value)
        return []
    return value if isinstance(value, list) else [value]
