"""peerannot: `answers.json`, one object of tasks, each an object of workers and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softgold.readers.contents import Content
from softgold.readers.exports.base import Export, ExportFormat, ReadOptions, as_dict
from softgold.readers.exports.builder import ExportBuilder
from softgold.readers.exports.glimpse import Glimpse
from softgold.readers.jsonstream import open_json

__all__ = ["FORMAT"]


def _recognise(files: Sequence[Glimpse]) -> bool:
    return any(_is_answers(file) for file in files)


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


def _read(content: Content, options: ReadOptions) -> Export:
    builder = ExportBuilder("peerannot", content.name, options)
    for member in content.members:
        for document in map(as_dict, open_json(member)):
            for item, answers in document.items():
                builder.counts["unannotated"] += not as_dict(answers)
                for worker, label in as_dict(answers).items():
                    builder.answer(item, worker, "label", [label])
    return builder.finish()


FORMAT = ExportFormat("peerannot", "peerannot", _recognise, _read)
