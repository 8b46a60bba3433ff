"""Damaged exports: whatever was changed, the answer is a table or one of our errors, in one line."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from softgold.errors import SoftgoldError, SoftgoldWarning
from softgold.readers import read_export, read_votes

SAMPLES = sorted(path for path in (Path(__file__).parent / "samples").iterdir() if path.suffix != ".md")
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, float("nan"), float("inf"), 10**30, "", "\ud800", "ÿ", "x" * 20_000),
    *([], {}, [[]], [{}], [None], {"a": 1}, {"id": None}),
)
# One small document per platform that has no sample here.
DOCUMENTS: dict[str, Any] = {
    "user_state.json": {
        "user_id": "ann",
        "instance_id_to_label_to_value": {"r": [[{"schema": "q", "name": "a"}, "true"]]},
    },
    "labelbox.json": {
        "data_row": {"id": "d"},
        "projects": {
            "p": {
                "name": "P",
                "labels": [
                    {
                        "id": "1",
                        "label_details": {"created_by": "a"},
                        "performance_details": {"skipped": False},
                        "annotations": {"classifications": [{"name": "q", "radio_answer": {"name": "x"}}]},
                    }
                ],
            }
        },
    },
    "lewidi.json": {"1": {"annotation task": "t", "annotators": "A,B", "annotations": "0,1", "hard_label": "0"}},
    "answers.json": {"0": {"0": 1, "1": 0}, "1": {"0": 1}},
    "doccano.json": [{"id": 1, "text": "x", "label": ["A"]}, {"id": 2, "text": "y", "label": []}],
    "cvat.json": [
        {"id": 1, "task_id": 1, "type": "annotation", "state": "completed", "assignee": None, "parent_job_id": None},
        {"job": {"1": {"tags": [{"frame": 0, "label_id": 3}], "shapes": []}}},
    ],
    "ground_truth.json": {
        "answers": [{"workerId": "w", "answerContent": {"q": {"label": "x"}, "r": {"a": True, "b": False}}}]
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


def with_parts_changed(document: Any, rng: random.Random) -> Any:
    """Remove or replace some parts of a JSON value."""
    document = copy.deepcopy(document)
    for path in rng.sample(list(places(document)), k=1) + rng.choices(list(places(document)), k=rng.randint(0, 2)):
        part = document
        try:
            for key in path[:-1]:
                part = part[key]
            if rng.random() < 0.4:
                del part[path[-1]]
            else:
                part[path[-1]] = copy.deepcopy(rng.choice(JUNK))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change removed it
    return document


def with_bytes_changed(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        changed[rng.randrange(min(len(changed), rng.choice([300, 10**9])))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.3 else changed)


def check(path: Path) -> None:
    reads: tuple[Callable[[], object], ...] = (lambda: read_export(path).frame(), lambda: read_votes(path))
    for read in reads:
        message = ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SoftgoldWarning)
            try:
                read()
            except SoftgoldError as error:
                message = str(error)
        assert "\n" not in message
        assert len(message) < 2000
        message.encode()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_bytes_changed_and_files_cut_off(tmp_path: Path, sample: Path) -> None:
    rng = random.Random(sample.name)
    path = tmp_path / sample.name
    good = sample.read_bytes()
    for _ in range(15):
        path.write_bytes(with_bytes_changed(good[:60_000], rng))
        check(path)


@pytest.mark.parametrize("sample", [path for path in SAMPLES if "json" in path.suffix], ids=lambda path: path.name)
def test_keys_removed_and_types_swapped(tmp_path: Path, sample: Path) -> None:
    rng = random.Random(sample.name)
    text = sample.read_text(encoding="utf-8")
    records = json.loads(text) if sample.suffix == ".json" else [json.loads(line) for line in text.splitlines()[:4]]
    for _ in range(25):
        path = tmp_path / "export.json"
        path.write_text(json.dumps(with_parts_changed(records[:3] if isinstance(records, list) else records, rng)))
        check(path)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_other_platforms(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    path = tmp_path / name
    for _ in range(60):
        path.write_text(json.dumps(with_parts_changed(DOCUMENTS[name], rng)))
        check(path)
        path.write_bytes(with_bytes_changed(json.dumps(DOCUMENTS[name]).encode(), rng))
        check(path)
