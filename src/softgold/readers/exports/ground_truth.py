"""SageMaker Ground Truth: worker responses (a folder, an archive, or one file), and output manifests.

The responses lie in `worker-response/iteration-N/<number of the object>/<time>.json`. An output manifest has
consolidated labels and no votes, unless a custom job kept the answers of all workers in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from softgold.errors import InputError
from softgold.readers.contents import Content, Member
from softgold.readers.exports.base import ExportFormat, ReadOptions, any_file, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, text_of
from softgold.readers.exports.export import Export
from softgold.readers.exports.forms import form_answers
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.jsonstream import open_json, parse_json

RESPONSE_PATH = re.compile(r"(?:^|/)iteration-\d+/([^/]+)/[^/]+\.json$")
METADATA = "-metadata"
SOURCES = ("source-ref", "source")
ALL_WORKERS = "annotationsFromAllWorkers"


def _is_ground_truth(file: Glimpse) -> bool:
    return bool(RESPONSE_PATH.search(file.name)) or _is_response(file.first) or _is_manifest(file.first)


def _is_response(record: dict[str, Any]) -> bool:
    answers = as_list(record.get("answers"))
    return bool(answers) and "workerId" in as_dict(answers[0])


def _is_manifest(record: dict[str, Any]) -> bool:
    if "datasetObjectId" in record and {"annotations", "consolidatedAnnotation"} & record.keys():
        return True
    job = any(name.endswith(METADATA) and "job-name" in as_dict(value) for name, value in record.items())
    return (job and any(name in record for name in SOURCES)) or any(_all_workers(record))


def _read(content: Content, options: ReadOptions) -> Export:
    builder = ExportBuilder("SageMaker Ground Truth", content.name, options, guess_texts=True)
    responses = [member for member in content.members if RESPONSE_PATH.search(member.name)]
    names = _names(content, options) if responses else {}
    for member in responses:
        _read_response(builder, member, names)
    for member in () if responses else content.members:
        _read_file(builder, member)
    return builder.finish()


def _names(content: Content, options: ReadOptions) -> Mapping[str, object]:
    """Return the name of each object by its number, where the user wants the source of the manifest."""
    if options.item is None:
        return {}
    for member in content.members:
        if member.name.endswith(".manifest"):
            records = map(as_dict, open_json(member))
            return {str(number): record.get(options.item) for number, record in enumerate(records)}
    raise InputError(f"{content.name} has no manifest whose {options.item!r} could name the items")


def _read_response(builder: ExportBuilder, member: Member, names: Mapping[str, object]) -> None:
    match = RESPONSE_PATH.search(member.name)
    number = match[1] if match else member.stem
    item: object = names.get(number) if names else int(number) if re.fullmatch(r"\d{1,18}", number) else number
    for record in map(as_dict, open_json(member)):
        _read_answers(builder, item, record)


def _read_answers(builder: ExportBuilder, item: object, record: dict[str, Any]) -> None:
    for answer in map(as_dict, as_list(record.get("answers"))):
        content = answer.get("answerContent")
        if not as_dict(content):
            builder.counts["empty"] += 1
        for question, values in form_answers(builder, content) if content else ():
            builder.answer(item, answer.get("workerId"), question, values)


def _read_file(builder: ExportBuilder, member: Member) -> None:
    """Read one response, a list of annotations before consolidation, or a manifest that kept them."""
    found = False
    for number, record in enumerate(map(as_dict, open_json(member))):
        if _is_response(record):
            found = True
            _read_answers(builder, text_of(record.get("datasetObjectId")) or member.stem, record)
            continue
        for annotation in _all_workers(record):
            found = True
            _read_annotation(builder, _object(record, number, builder.options.item), annotation)
    if not found:
        raise InputError(
            f"{member.display} is an output manifest, which holds consolidated labels and no votes; give the folder "
            "annotations/worker-response of the job's output, or an archive of it"
        )


def _all_workers(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "workerId" in as_dict(next(iter(as_list(record.get("annotations"))), None)):
        yield from map(as_dict, record["annotations"])
    inner = as_dict(as_dict(record.get("consolidatedAnnotation")).get("content"))
    for value in (*record.values(), *inner.values()):
        yield from map(as_dict, as_list(as_dict(value).get(ALL_WORKERS)))


def _object(record: dict[str, Any], number: int, key: str | None) -> object:
    if key is not None:
        return record.get(key, as_dict(record.get("dataObject")).get(key))
    return text_of(record.get("datasetObjectId")) or number


def _read_annotation(builder: ExportBuilder, item: object, annotation: dict[str, Any]) -> None:
    content = as_dict(annotation.get("annotationData")).get("content")
    form = parse_json(content) if isinstance(content, str) else content
    for question, values in form_answers(builder, form) if isinstance(form, dict) else ():
        builder.answer(item, annotation.get("workerId"), question, values)


FORMAT = ExportFormat("ground-truth", "SageMaker Ground Truth", any_file(_is_ground_truth), _read, whole_folder=True)
