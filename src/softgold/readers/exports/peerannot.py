"""peerannot: `answers.json`, one object of tasks, each an object of workers and their labels."""

from __future__ import annotations

from typing import Any

from softgold.readers.contents import Member
from softgold.readers.exports.base import ExportFormat, any_file, as_dict
from softgold.readers.exports.builder import ExportBuilder, each_file
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.jsonstream import open_json


def _is_answers(file: Glimpse) -> bool:
    tasks = list(file.first.values())
    return not file.is_array and any(tasks) and all(_is_task(task) for task in tasks[:100])


def _is_task(task: Any) -> bool:
    if not isinstance(task, dict) or {"annotations", "annotators"} <= task.keys():
        return False
    return all(
        isinstance(label, int | str) and not isinstance(label, bool) and len(str(worker)) < 200
        for worker, label in task.items()
    )


def _read_file(builder: ExportBuilder, member: Member) -> None:
    for document in map(as_dict, open_json(member)):
        for item, answers in document.items():
            builder.counts["unannotated"] += not as_dict(answers)
            for worker, label in as_dict(answers).items():
                builder.answer(item, worker, "label", [label])


FORMAT = ExportFormat("peerannot", "peerannot", any_file(_is_answers), each_file("peerannot", _read_file))
