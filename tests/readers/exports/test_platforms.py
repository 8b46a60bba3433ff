"""The traps of each platform, in small files written for these tests."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from softgold.errors import InputError
from softgold.readers import Export, read_export, read_votes

Rows = list[tuple[str, ...]]


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write a file: text, JSON, JSON lines for a `.jsonl`, or a table of rows for a `.csv` or `.tsv`."""

    def write(name: str, value: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(("jsonl", "manifest")):
            value = "\n".join(json.dumps(line) for line in value)
        elif name.endswith((".csv", ".tsv")) and not isinstance(value, str):
            value = table(value, "," if name.endswith(".csv") else "\t")
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    return write


def table(rows: Sequence[Sequence[object]], separator: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    return text.getvalue()


def rows(export: Export) -> Rows:
    """Item, annotator, question and value of each row."""
    return [
        (export.items[item], export.annotators[who], export.questions[question], export.values[value])
        for item, who, question, value in zip(
            export.item_codes, export.annotator_codes, export.question_codes, export.value_codes, strict=True
        )
    ]


def counts(export: Export) -> dict[str, int]:
    return {kind: count for kind, count in export.counts.items() if count}


def choice(name: str, *values: str) -> dict[str, Any]:
    return {"type": "choices", "from_name": name, "to_name": "text", "value": {"choices": list(values)}}


def test_label_studio_annotations_of_every_kind(put: Callable[..., Path]) -> None:
    box = {"type": "rectanglelabels", "from_name": "box", "value": {"x": 1, "y": 1, "rectanglelabels": ["Car"]}}
    tasks = [
        {
            "id": 7,
            "data": {"text": "a", "key": "k7"},
            "drafts": [{"result": [choice("q", "x")]}],
            "predictions": [{"result": [choice("q", "x")]}],
            "annotations": [
                {
                    "completed_by": 1,
                    "result": [choice("q", "yes"), {"type": "rating", "from_name": "r", "value": {"rating": 4}}],
                },
                {"completed_by": {"id": 2, "email": "b@example.org"}, "result": [choice("q", "no"), box]},
                {"completed_by": 3, "was_cancelled": True, "result": []},
                {"completed_by": 4, "ground_truth": True, "result": [choice("q", "yes")]},
                {"completed_by": None, "result": [choice("q", "no")]},
                {"result": [choice("q", "yes")]},
                {"completed_by": 5, "result": []},
                {
                    "completed_by": 6,
                    "result": [{**choice("q", "yes"), "value": {"choices": ["yes"], "start": 1, "end": 2}}],
                },
            ],
        },
        {"id": 8, "data": {"text": "b", "key": "k8"}, "annotations": []},
    ]
    read = read_export(put("export.json", tasks))
    assert rows(read) == [
        ("7", "1", "q", "yes"),
        ("7", "1", "r", "4"),
        ("7", "2", "q", "no"),
        ("7", "unknown_1", "q", "no"),
        ("7", "unknown_2", "q", "yes"),
    ]
    assert counts(read) == {
        "drafts": 1,
        "predictions": 1,
        "shapes": 1,
        "cancelled": 1,
        "nameless": 2,
        "empty": 1,
        "spans": 1,
        "unannotated": 1,
    }
    assert [(gold.item, gold.question, gold.value) for gold in read.gold] == [("7", "q", "yes")]
    assert read.whole_items
    assert read_export(put("export.json", tasks), item="key").items == ["k7"]
    assert rows(read_export(put("one.json", tasks[0]))) == rows(read)
    assert rows(read_export(put("lines.jsonl", tasks))) == rows(read)
    votes = read_votes(put("export.json", tasks), question="q")
    assert votes.to_frame()["item"].tolist() == [7, 7, 7, 7]


def test_label_studio_before_1_0(put: Callable[..., Path]) -> None:
    tasks = [
        {"id": 1, "completions": [{"aggregated_completed_by": [103], "result": [[choice("s", "Evil", "Neutral")]]}]}
    ]
    read = read_export(put("old.json", tasks))
    assert rows(read) == [("1", "103", "s", "Evil"), ("1", "103", "s", "Neutral")]
    assert read.multiple == {"s"}
    skipped = [{"id": 1, "completions": [{"completed_by": 1, "skipped": True, "result": []}]}]
    assert counts(read_export(put("old.json", skipped))) == {"cancelled": 1}


def test_label_studio_taxonomy_and_pairs(put: Callable[..., Path]) -> None:
    results = [
        {"type": "taxonomy", "from_name": "t", "value": {"taxonomy": [["Animal", "Cat"], ["Plant"]]}},
        {"type": "pairwise", "from_name": "p", "value": {"selected": "left"}},
        {"type": "textarea", "from_name": "c", "value": {"text": ["free"]}},
    ]
    read = read_export(
        put("t.json", [{"id": "a", "data": {}, "annotations": [{"completed_by": 1, "result": results}]}])
    )
    assert [value for *_, value in rows(read)] == ["Animal / Cat", "Plant", "left"]
    assert counts(read) == {"texts": 1}


def test_label_studio_flat_with_colliding_names(put: Callable[..., Path]) -> None:
    base = {"annotator": "ann@example.org", "annotation_id": 1, "created_at": "x", "updated_at": "x", "lead_time": 1.0}
    records = [
        {"image": "https://example.org/1.png", "text": "positive", "id": 1, "sure": {"choices": ["a", "b"]}, **base},
        {
            "image": "https://example.org/1.png",
            "text": "negative",
            "id": 1,
            "sure": "a",
            **base,
            "annotator": "bob@example.org",
        },
    ]
    read = read_export(put("min.json", records), keep_names=True)
    assert rows(read) == [
        ("1", "ann@example.org", "text", "positive"),
        ("1", "ann@example.org", "sure", "a"),
        ("1", "ann@example.org", "sure", "b"),
        ("1", "bob@example.org", "text", "negative"),
        ("1", "bob@example.org", "sure", "a"),
    ]
    boxes = [{"image": "x.png", "id": 1, "label": [{"x": 1, "y": 2, "rectanglelabels": ["Car"]}], **base}]
    with pytest.raises(InputError, match="use 'softgold convergence'"):
        read_votes(put("boxes.json", boxes), question=None)


def test_prodigy_binary_and_choice(put: Callable[..., Path]) -> None:
    def answer(number: int, who: str | None, said: str, **more: Any) -> dict[str, Any]:
        return {"_input_hash": number, "_task_hash": -number, "_annotator_id": who, "answer": said, **more}

    binary = [
        answer(1, "data-ann", "accept", label="POLITICS", spans=[]),
        answer(1, "data-bob", "reject", label="POLITICS"),
        answer(2, "data-ann", "ignore", label="POLITICS"),
        answer(2, None, "accept", label="SPORT"),
        answer(3, "data-ann", "accept", spans=[{"start": 0, "end": 3}]),
    ]
    read = read_export(put("a.jsonl", binary), keep_names=True)
    assert rows(read) == [
        ("1", "data-ann", "POLITICS", "accept"),
        ("1", "data-bob", "POLITICS", "reject"),
        ("2", "unknown", "SPORT", "accept"),
    ]
    assert counts(read) == {"skipped": 1, "nameless": 1, "spans": 1}
    assert read_votes(put("a.jsonl", binary), question="POLITICS").votes.tolist() == [1, 0]
    several = [
        answer(1, "a", "accept", options=[{"id": 1}], accept=[1, 2], _view_id="choice"),
        answer(1, "b", "accept", options=[{"id": 1}], accept=[2], _view_id="choice"),
        answer(2, "b", "accept", options=[{"id": 1}], accept=[]),
        answer(3, "b", "reject", options=[{"id": 1}], accept=[1]),
    ]
    read = read_export(put("b.jsonl", several))
    assert (read.multiple, counts(read)) == ({"choice"}, {"skipped": 1, "rejected": 1})
    assert read_votes(put("b.jsonl", several), positive="1").votes.tolist() == [1, 0]


def test_labelbox_two_versions(put: Callable[..., Path]) -> None:
    def label(who: str, answer: str, number: str, **performance: Any) -> dict[str, Any]:
        inner = {"name": "sure", "checklist_answers": [{"name": "very"}, {"name": "quite"}]}
        radio = {"name": "animal", "radio_answer": {"name": answer, "classifications": [inner]}}
        text = {"name": "why", "text_answer": {"content": "because"}}
        return {
            "id": number,
            "label_details": {"created_by": who},
            "performance_details": performance,
            "annotations": {"objects": [{}], "classifications": [radio, text]},
        }

    labels = [
        label("ann@example.org", "cat", "1"),
        label("bob@example.org", "dog", "2", skipped=True),
        label("eve@example.org", "dog", "3", benchmark_reference_label="3"),
    ]
    line = {"data_row": {"id": "d1", "global_key": "g1"}, "projects": {"p": {"name": "P", "labels": labels}}}
    empty = {"data_row": {"id": "d2"}, "projects": {"p": {"name": "P", "labels": []}}}
    read = read_export(put("export.jsonl", [line, empty]), keep_names=True)
    assert rows(read) == [
        ("d1", "ann@example.org", "animal", "cat"),
        ("d1", "ann@example.org", "animal / sure", "very"),
        ("d1", "ann@example.org", "animal / sure", "quite"),
    ]
    assert counts(read) == {"shapes": 2, "skipped": 1, "texts": 2, "unannotated": 1}
    assert [gold.value for gold in read.gold] == ["dog", "very", "quite"]
    assert read_export(put("export.jsonl", [line]), item="global_key").items == ["g1"]
    old = {
        "ID": "l1",
        "DataRow ID": "d1",
        "Created By": "ann@example.org",
        "Skipped": False,
        "Label": {"objects": [], "classifications": [{"title": "animal", "answer": {"title": "cat"}}]},
    }
    assert rows(read_export(put("old.json", [old]), keep_names=True)) == [("d1", "ann@example.org", "animal", "cat")]


def test_two_labelbox_projects_do_not_mix_their_questions(put: Callable[..., Path]) -> None:
    def project(name: str, answer: str) -> dict[str, Any]:
        part = {"name": "q", "radio_answer": {"name": answer}}
        return {
            "name": name,
            "labels": [{"id": "1", "label_details": {"created_by": "a"}, "annotations": {"classifications": [part]}}],
        }

    line = {"data_row": {"id": "d"}, "projects": {"1": project("First", "x"), "2": project("Second", "y")}}
    assert [question for _, _, question, _ in rows(read_export(put("e.jsonl", [line])))] == ["First / q", "Second / q"]


def test_potato_in_its_versions(put: Callable[..., Path]) -> None:
    pairs = [[{"schema": "mood", "name": "good"}, "true"], [{"schema": "scale", "name": "scale_1"}, "1"]]
    put("one/ann/user_state.json", {"user_id": "ann", "instance_id_to_label_to_value": {"r1": pairs}})
    put(
        "one/bob/user_state.json",
        {"instance_id_to_label_to_value": {"r1": {"mood": {"bad": "2"}, "scale": {"scale_3": "3"}}}},
    )
    put("one/ann/annotation_history.jsonl", [{"action": "x"}])
    folder = put("one/README.txt", "a readme").parent
    read = read_export(folder, keep_names=True)
    assert rows(read) == [
        ("r1", "ann", "mood", "good"),
        ("r1", "ann", "scale", "1"),
        ("r1", "bob", "mood", "bad"),
        ("r1", "bob", "scale", "3"),
    ]
    put(
        "two/ann/annotated_instances.jsonl",
        [{"id": "1", "label_annotations": {"mood": {"good": "true"}}, "span_annotations": {}}],
    )
    assert rows(read_export(folder.parent / "two", keep_names=True)) == [("1", "ann", "mood", "good")]
    text = {"id": "1", "label_annotations": {"why": {"text_box": "x " * 100}}, "span_annotations": {}}
    assert counts(read_export(put("three/ann/annotated_instances.jsonl", [text]))) == {"texts": 1}
    header = ["user", "instance_id", "mood:::good", "mood:::bad"]
    path = put("annotated_instances.tsv", [header, ["ann", "1", "true", ""], ["bob", "1", "", "true"]])
    assert rows(read_export(path, keep_names=True)) == [("1", "ann", "mood", "good"), ("1", "bob", "mood", "bad")]


def test_doccano_files_per_annotator(put: Callable[..., Path]) -> None:
    put("d/ann.jsonl", [{"id": 1, "text": "x", "label": ["A", "B"]}, {"id": 2, "text": "y", "label": []}])
    put("d/bob.jsonl", [{"id": 1, "text": "x", "label": ["A"]}, {"id": 2, "text": "y", "label": ["B"]}])
    folder = put("d/notes.txt", "no data").parent
    read = read_export(folder, keep_names=True)
    assert rows(read) == [
        ("1", "ann", "label", "A"),
        ("1", "ann", "label", "B"),
        ("1", "bob", "label", "A"),
        ("2", "bob", "label", "B"),
    ]
    assert (counts(read), read.whole_items) == ({"empty": 1}, True)
    assert read_votes(folder, positive="B").to_frame()["vote"].tolist() == [1, 0, 1]
    path = put("eve.csv", [["id", "text", "label"], [1, "x", "A#B"], [2, "y", ""]])
    assert rows(read_export(path, keep_names=True)) == [("1", "eve", "label", "A"), ("1", "eve", "label", "B")]
    with pytest.raises(InputError, match="does not say who chose a label"):
        read_export(put("all.jsonl", [{"id": 1, "text": "x", "label": ["A"]}]))
    old = [{"id": 1, "text": "x", "annotations": [{"label": 15, "user": 1}, {"label": 17, "user": 2}], "meta": {}}]
    read = read_export(put("old.jsonl", old))
    assert rows(read) == [("1", "1", "label", "15"), ("1", "2", "label", "17")]
    assert "labels are numbers" in read.notes[0]


def test_toloka_states_control_tasks_and_training(put: Callable[..., Path]) -> None:
    header = ["INPUT:image", "OUTPUT:result", "OUTPUT:area", "GOLDEN:result", "HINT:text"]
    header += ["ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"]
    lines = [
        ["1.png", "yes", '{"a":1}', "", "", "t1", "w1", "APPROVED"],
        ["1.png", "no", "", "", "", "t1", "w2", "REJECTED"],
        ["1.png", "no", "", "", "", "t1", "w3", "SUBMITTED"],
        ["2.png", "no", "", "yes", "", "t2", "w1", "APPROVED"],
        ["3.png", "no", "", "yes", "think", "t3", "w1", "APPROVED"],
        ["4.png", "", "", "", "", "t4", "w1", "SKIPPED"],
        ["4.png", "", "", "", "", "t4", "w2", "EXPIRED"],
    ]
    path = put("pool.tsv", [header, *lines])
    read = read_export(path)
    assert rows(read) == [("t1", "w1", "result", "yes"), ("t1", "w3", "result", "no"), ("t2", "w1", "result", "no")]
    assert counts(read) == {"texts": 1, "empty": 2, "rejected": 1, "training": 1, "skipped": 2}
    assert [(gold.item, gold.value) for gold in read.gold] == [("t2", "yes"), ("t3", "yes")]
    assert read_export(path, item="image").items == ["1.png", "2.png"]
    with pytest.raises(InputError, match="has no column 'film' to name the items by; it has 'INPUT:image'"):
        read_export(path, item="film")


def mturk(answers: Sequence[str], *lines: Sequence[str], inputs: Sequence[str] = ("Input.text",)) -> Rows:
    header = ["HITId", "WorkerId", "AssignmentStatus", *inputs, *answers, "Approve", "Reject"]
    return [tuple(header), *(tuple(line) for line in lines)]  # rows end before Approve and Reject, as the site's do


def test_mturk_radio_buttons_labels_and_rejections(put: Callable[..., Path]) -> None:
    batch = mturk(
        [
            "Answer.emotion.label",
            "Answer.sure.no",
            "Answer.sure.yes",
            "Answer.agree.on",
            "Answer.tags",
            "Answer.comment",
        ],
        ["h1", "w1", "Approved", "t1", "Fear", "false", "true", "true", "a|b", "{}"],
        ["h1", "w2", "Submitted", "t1", "Anger", "true", "false", "false", "a", "{}"],
        ["h1", "w3", "Rejected", "t1", "Anger", "true", "false", "false", "a", "{}"],
    )
    read = read_export(put("batch.csv", batch))
    assert rows(read) == [
        ("h1", "w1", "emotion", "Fear"),
        ("h1", "w1", "sure", "yes"),
        ("h1", "w1", "agree", "true"),
        ("h1", "w1", "tags", "a"),
        ("h1", "w1", "tags", "b"),
        ("h1", "w2", "emotion", "Anger"),
        ("h1", "w2", "sure", "no"),
        ("h1", "w2", "agree", "false"),
        ("h1", "w2", "tags", "a"),
    ]
    assert counts(read) == {"empty": 2, "rejected": 1}
    assert read_export(put("batch.csv", batch), item="Input.text").items == ["t1"]
    with pytest.raises(InputError, match=r"inputs: 'Input\.text'"):
        read_export(put("batch.csv", batch), item="Input.id")


def test_mturk_with_several_items_per_hit(put: Callable[..., Path]) -> None:
    columns = [
        f"Answer.{name}_{number}.option_{option}"
        for name in ("useful", "true")
        for number in (1, 2)
        for option in (1, 2)
    ]
    batch = mturk(columns, ["h1", "w1", "Approved", "t", *["true", "false"] * 4])
    read = read_export(put("batch.csv", batch))
    assert rows(read) == [
        ("h1_1", "w1", "useful", "option_1"),
        ("h1_2", "w1", "useful", "option_1"),
        ("h1_1", "w1", "true", "option_1"),
        ("h1_2", "w1", "true", "option_1"),
    ]
    assert read.notes == ("2 items per HIT: an item is the HITId and the number of the question",)
    by_inputs = mturk(
        ["Answer.q1", "Answer.q2"], ["h1", "w1", "Approved", "a", "b", "x", "y"], inputs=["Input.t1", "Input.t2"]
    )
    assert read_export(put("b.csv", by_inputs)).items == ["h1_1", "h1_2"]
    questions = mturk(["Answer.q1", "Answer.q2"], ["h1", "w1", "Approved", "a", "x", "y"])
    assert read_export(put("c.csv", questions)).questions == ["q1", "q2"]


def test_mturk_forms_in_one_cell(put: Callable[..., Path]) -> None:
    form = [{"animal": {"label": "Cat"}, "sure": {"yes": True, "no": False}, "all": {"labels": ["a", "b"]}, "n": 3}]
    batch = mturk(
        ["Answer.taskAnswers"],
        ["h1", "w1", "Approved", "t", json.dumps(form)],
        ["h1", "w2", "Approved", "t", "[broken"],
    )
    assert [(question, value) for _, _, question, value in rows(read_export(put("batch.csv", batch)))] == [
        ("animal", "Cat"),
        ("sure", "yes"),
        ("all", "a"),
        ("all", "b"),
        ("n", "3"),
    ]


def test_ground_truth_folders_multi_label_and_custom_jobs(put: Callable[..., Path]) -> None:
    def response(**content: Any) -> dict[str, Any]:
        return {
            "answers": [
                {
                    "workerId": "private.x.1",
                    "answerContent": content,
                    "workerMetadata": {"identityData": {"sub": "secret"}},
                }
            ]
        }

    path = put(
        "out/annotations/worker-response/iteration-1/7/2020-01-01_00:00:00.json",
        response(animals={"labels": ["cat", "dog"]}),
    )
    put("out/annotations/worker-response/iteration-1/8/2020-01-01_00:00:00.json", response(box={"boundingBoxes": [{}]}))
    put(
        "out/annotations/worker-response/iteration-2/9/2020-01-01_00:00:00.json",
        {"answers": [{"workerId": "w", "answerContent": {}}]},
    )
    folder = path.parents[4]
    read = read_export(folder)
    assert rows(read) == [("7", "private.x.1", "animals", "cat"), ("7", "private.x.1", "animals", "dog")]
    assert (counts(read), read.whole_items) == ({"shapes": 1, "empty": 1}, True)
    content = json.dumps({"sentiment": {"label": "good"}, "note": {"on": True}})
    workers = {"annotationsFromAllWorkers": [{"workerId": "w1", "annotationData": {"content": content}}]}
    manifest = [{"source-ref": "s3://a", "job": workers, "job-metadata": {"job-name": "x"}}]
    expected = [("0", "w1", "sentiment", "good"), ("0", "w1", "note", "true")]
    assert rows(read_export(put("output.manifest", manifest))) == expected
    before = [
        {"datasetObjectId": "0", "dataObject": {"s3Uri": "s3://a"}, "annotations": workers["annotationsFromAllWorkers"]}
    ]
    assert rows(read_export(put("before.json", before))) == expected
    assert read_export(put("before.json", before), item="s3Uri").items == ["s3://a"]


def test_appen_test_questions_tainted_rows_and_private_columns(put: Callable[..., Path]) -> None:
    header = [
        "_unit_id",
        "_golden",
        "_missed",
        "_tainted",
        "_worker_id",
        "_country",
        "_city",
        "_ip",
        "colour",
        "text",
        "colour_gold",
    ]
    lines = [
        ["1", "false", "", "false", "w1", "AUT", "Graz", "1.2.3.4", "red", "t1", ""],
        ["1", "false", "", "true", "w2", "AUT", "Linz", "1.2.3.5", "blue", "t1", ""],
        ["2", "true", "true", "false", "w1", "AUT", "Graz", "1.2.3.4", "red\nblue", "t2", "green\nblue"],
        ["2", "true", "false", "false", "w3", "AUT", "Wien", "1.2.3.6", "green", "t2", "green\nblue"],
    ]
    path = put("report.csv", [header, *lines])
    read = read_export(path)
    assert rows(read) == [
        ("1", "w1", "colour", "red"),
        ("2", "w1", "colour", "red"),
        ("2", "w1", "colour", "blue"),
        ("2", "w3", "colour", "green"),
    ]
    assert counts(read) == {"rejected": 1, "missed": 1}
    assert read.gold_frame().values.tolist() == [["2", "green"], ["2", "blue"]]
    for private in ("_ip", "_city", "_country"):
        with pytest.raises(InputError):
            read_export(path, question=private)
        with pytest.raises(InputError, match="that may name the items"):
            read_export(path, item=private)
    aggregated = put(
        "a.csv", [["_unit_id", "_trusted_judgments", "colour", "colour:confidence"], ["1", "3", "red", "0.9"]]
    )
    with pytest.raises(InputError, match="download the full report"):
        read_export(aggregated)


def test_argilla_version_1(put: Callable[..., Path], tmp_path: Path) -> None:
    responses = [
        {"user_id": "u1", "value": 4, "status": "submitted"},
        {"user_id": "u2", "value": 3, "status": "draft"},
        {"user_id": "u3", "value": None, "status": "discarded"},
    ]
    record = {"external_id": "e1", "text": "x", "quality": responses, "quality-suggestion": 3}
    expected = [("e1", "u1", "quality", "4")]
    assert rows(read_export(put("v1.jsonl", [record]))) == expected
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "v1.parquet")
    read = read_export(tmp_path / "v1.parquet")
    assert (rows(read), counts(read)) == (expected, {"drafts": 1, "rejected": 1, "predictions": 1})
    lists = {key: [response[key] for response in responses] for key in ("user_id", "value", "status")}
    pq.write_table(pa.Table.from_pylist([{**record, "quality": lists}]), tmp_path / "lists.parquet")
    assert rows(read_export(tmp_path / "lists.parquet")) == expected


def test_argilla_as_a_frame() -> None:
    flat = pa.table(
        {
            "id": ["r1", "r2"],
            "ok.responses": [["yes", "no"], ["no", "no"]],
            "ok.responses.users": [["u1", "u2"], ["u1", "u2"]],
            "ok.responses.status": [["submitted", "submitted"], ["submitted", "discarded"]],
        }
    )
    assert read_votes(flat).to_frame().values.tolist() == [["r1", "u1", 1], ["r1", "u2", 0], ["r2", "u1", 0]]


def test_lewidi_of_2025(put: Callable[..., Path]) -> None:
    items = {
        "a": {
            "annotation task": "nli",
            "annotators": "A1,A2,A2",
            "annotations": {"A1": "neutral", "A2": "entailment,neutral"},
        },
        "b": {
            "annotation task": "nli",
            "annotators": "A1",
            "annotations": {"A1": "entailment"},
            "hard_label": "entailment",
        },
    }
    path = put("dev.json", items)
    assert rows(read_export(path)) == [
        ("a", "A1", "nli", "neutral"),
        ("a", "A2", "nli", "entailment"),
        ("a", "A2", "nli", "neutral"),
        ("b", "A1", "nli", "entailment"),
    ]
    assert read_votes(path, positive="entailment").votes.tolist() == [0, 1, 1]
    with pytest.raises(InputError, match="2 annotations of 1 annotators"):
        read_export(put("bad.json", {"a": {"annotators": "A1", "annotations": "0,1"}}))


def test_peerannot_items_without_answers(put: Callable[..., Path]) -> None:
    read = read_export(put("answers.json", {"0": {"1": 2}, "1": {}, "2": {"0": 1, "1": 2}}))
    assert (rows(read), counts(read)) == (
        [("0", "1", "label", "2"), ("2", "0", "label", "1"), ("2", "1", "label", "2")],
        {"unannotated": 1},
    )


def test_cvat_names_of_labels_assignees_and_ground_truth(put: Callable[..., Path]) -> None:
    def job(
        number: int, kind: str, state: str = "completed", who: Any = None, parent: int | None = None
    ) -> dict[str, Any]:
        return {"id": number, "task_id": 3, "type": kind, "state": state, "assignee": who, "parent_job_id": parent}

    def tagged(*labels: int) -> dict[str, Any]:
        return {"tags": [{"frame": 0, "label_id": label} for label in labels], "shapes": [], "tracks": []}

    jobs = [
        job(1, "annotation"),
        job(2, "consensus_replica", who={"id": 5, "username": "ann"}, parent=1),
        job(3, "consensus_replica", "rejected", {"id": 6, "username": "bob"}, 1),
        job(4, "consensus_replica", "in progress", None, 1),
        job(5, "ground_truth"),
    ]
    put("c/jobs.json", {"count": 5, "results": jobs})
    put("c/labels.json", [{"id": 8, "name": "cat", "color": "#fff"}, {"id": 9, "name": "dog", "color": "#000"}])
    folder = put(
        "c/annotations.json", {"job": {"1": tagged(8), "2": tagged(8), "3": tagged(8), "4": tagged(9), "5": tagged(9)}}
    ).parent
    read = read_export(folder, keep_names=True)
    assert rows(read) == [("3/0", "ann", "tag", "cat"), ("3/0", "annotator_of_job_4", "tag", "dog")]
    assert counts(read) == {"merged": 1, "rejected": 1}
    assert [(gold.item, gold.value) for gold in read.gold] == [("3/0", "dog")]


def test_cvat_with_a_file_per_job(put: Callable[..., Path]) -> None:
    put("c/jobs.json", [{"id": 4, "task_id": 3, "type": "annotation", "state": "completed", "assignee": {"id": 5}}])
    tags = [{"frame": 2, "label_id": 8}]
    folder = put("c/4.json", {"version": 0, "tags": tags, "shapes": [], "tracks": []}).parent
    assert rows(read_export(folder)) == [("3/2", "5", "tag", "8")]


def test_cvat_xml_of_several_annotators(put: Callable[..., Path]) -> None:
    def xml(meta: str, label: str) -> str:
        images = f'<image id="0" name="a.png"><tag label="{label}"></tag></image><image id="1" name="b.png"/>'
        return f"<?xml version='1.0'?><annotations><meta><task>{meta}</task></meta>{images}</annotations>"

    put("x/one.xml", xml("<assignee><username>ann</username></assignee>", "cat"))
    folder = put("x/two.xml", xml("", "dog")).parent
    read = read_export(folder, keep_names=True)
    assert (rows(read), counts(read)) == (
        [("a.png", "ann", "tag", "cat"), ("a.png", "two", "tag", "dog")],
        {"unannotated": 2},
    )
    shapes = "<annotations><image id='0' name='a.png'><box label='car' xtl='0' ytl='0'/></image></annotations>"
    with pytest.raises(InputError, match="use 'softgold convergence'"):
        read_votes(put("boxes.xml", shapes))
    bomb = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'y'>]><annotations>&x;</annotations>"
    with pytest.raises(InputError, match="entities is not read"):
        read_votes(put("bomb.xml", bomb))


def test_a_file_of_two_tools_is_ambiguous(put: Callable[..., Path]) -> None:
    both = [{"_input_hash": 1, "answer": "accept", "label": "x", "data_row": {"id": 1}, "projects": {}}]
    with pytest.raises(InputError, match="several tools; choose one with --format: prodigy, labelbox"):
        read_export(put("both.jsonl", both))
    assert read_export(put("both.jsonl", both), format="prodigy").n_answers == 1
