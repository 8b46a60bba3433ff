"""CVAT: jobs and their annotations as its API gives them, and "CVAT for images" XML (see `cvat_xml`).

Tags of whole frames are votes. In a task with consensus the replicas vote, their parent job has the merged result,
and jobs of type ground_truth are gold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softgold.errors import InputError
from softgold.readers.contents import Content, Member
from softgold.readers.exports import cvat_xml
from softgold.readers.exports.base import ExportFormat, ReadOptions, as_dict, as_list
from softgold.readers.exports.builder import ExportBuilder, text_of
from softgold.readers.exports.export import Export
from softgold.readers.exports.glimpse import Glimpse, look_at
from softgold.readers.jsonstream import open_json

QUESTION = "tag"
JOB_KEYS = {"id", "task_id", "type", "state"}
ANNOTATION_KEYS = {"tags", "shapes", "tracks", "version"}
NOT_VOTES = {"new": "drafts", "rejected": "rejected"}


@dataclass
class Parts:
    """What the files of an export have, by kind: jobs, annotations of each job, and names of labels."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    annotations: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


def _recognise(files: Sequence[Glimpse]) -> bool:
    if cvat_xml.recognise(files):
        return True
    return any(_is_job(file.first) or _is_annotations(file.first) or _is_one_job(file.first) for file in files)


def _is_job(record: dict[str, Any]) -> bool:
    return record.keys() >= JOB_KEYS or _is_job_page(record)


def _is_job_page(record: dict[str, Any]) -> bool:
    """Say whether it is a page of the API's list."""
    return "results" in record and as_dict(next(iter(as_list(record["results"])), None)).keys() >= JOB_KEYS


def _is_annotations(record: dict[str, Any]) -> bool:
    jobs = as_dict(record.get("job"))
    return bool(jobs) and all({"tags", "shapes"} <= as_dict(value).keys() for value in list(jobs.values())[:5])


def _is_one_job(record: dict[str, Any]) -> bool:
    """Say whether it is what the API gives for one job, whose number is the name of the file then."""
    return record.keys() >= ANNOTATION_KEYS


def _read(content: Content, options: ReadOptions) -> Export:
    if cvat_xml.recognise([look_at(member) for member in content.members]):
        return cvat_xml.read(content, options)
    builder = ExportBuilder("CVAT", content.name, options, named=True)
    parts = _parts(content)
    if not parts.annotations:
        raise InputError(f"{content.name} lists jobs and has no annotations; give a folder with both files")
    if not parts.jobs:
        raise InputError(
            f"{content.name} has annotations and no list of jobs, which says whose they are; give a folder with both "
            "files"
        )
    parents = {text_of(job.get("parent_job_id")) for job in parts.jobs.values()} - {None}
    for number, drawn in parts.annotations.items():
        _read_job(builder, parts.jobs.get(number, {}), number, drawn, parts.labels, number in parents)
    return builder.finish()


def _parts(content: Content) -> Parts:
    parts = Parts()
    for member in content.members:
        for record in _records(member):
            if record.keys() >= JOB_KEYS:
                parts.jobs[str(record["id"])] = record
            elif _is_annotations(record):
                parts.annotations.update({number: as_dict(value) for number, value in record["job"].items()})
            elif _is_one_job(record):
                parts.annotations[member.stem.removeprefix("job_")] = record
            elif {"id", "name", "color"} <= record.keys():
                parts.labels[str(record["id"])] = str(record["name"])
    return parts


def _records(member: Member) -> Iterator[dict[str, Any]]:
    if look_at(member).kind != "json":
        return
    for record in map(as_dict, open_json(member)):
        if "results" in record:
            yield from map(as_dict, as_list(record["results"]))
        else:
            yield record


def _read_job(
    builder: ExportBuilder,
    job: Mapping[str, Any],
    number: str,
    drawn: Mapping[str, Any],
    labels: Mapping[str, str],
    is_parent: bool,
) -> None:
    tags = [as_dict(tag) for tag in as_list(drawn.get("tags"))]
    builder.counts["shapes"] += len(as_list(drawn.get("shapes"))) + len(as_list(drawn.get("tracks")))
    kind = "merged" if is_parent else NOT_VOTES.get(str(job.get("state")))
    is_gold = job.get("type") == "ground_truth"
    if kind is not None and not is_gold:
        builder.counts[kind] += len(tags)
        return
    frames: dict[str, list[object]] = {}
    for tag in tags:
        label = str(tag.get("label_id"))
        frames.setdefault(str(tag.get("frame")), []).append(labels.get(label, label))
    for frame, values in frames.items():
        item = f"{job.get('task_id', 'task')}/{frame}"
        if is_gold:
            builder.gold(item, QUESTION, values)
        else:
            builder.answer(item, _assignee(job, number), QUESTION, values)


def _assignee(job: Mapping[str, Any], number: str) -> str:
    who = job.get("assignee")
    names = [as_dict(who).get(key) for key in ("username", "id")] if isinstance(who, dict) else [who]
    return next((text for text in map(text_of, names) if text is not None), f"annotator_of_job_{number}")


FORMAT = ExportFormat("cvat", "CVAT", _recognise, _read, whole_folder=True)
