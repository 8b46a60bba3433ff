"""`softgold import`, and commands that take an export directly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

SAMPLES = Path(__file__).parents[1] / "readers/exports/samples"
Cli = Callable[..., Any]


def test_votes_on_standard_output_and_what_was_found_on_standard_error(cli: Cli) -> None:
    answer = cli("import", SAMPLES / "mturk_batch.csv")
    assert answer.code == 0
    assert answer.out.splitlines()[:3] == ["item,annotator,vote", "1,W12,B", "1,W10,B"]
    assert len(answer.out.splitlines()) == 28
    assert answer.err == "Mechanical Turk batch: 9 items, 18 annotators, 1 question (output), 27 votes\n"
    assert cli("import", SAMPLES / "mturk_batch.csv", "-q").err == ""


def test_several_questions_become_tasks_and_several_values_yes_or_no(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    answer = cli("import", SAMPLES / "label_studio.json", "-o", path, "--json")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert (found["format"], found["items"], found["votes"]) == ("Label Studio JSON", 3, 36)
    assert found["several_values"] == ["turn2_response_action"]
    votes = pd.read_csv(path, dtype="str")
    assert list(votes.columns) == ["item", "annotator", "task", "vote"]
    chosen = votes[votes["task"] == "turn2_response_action: Redirect to a Different Team/Resource"]
    assert chosen["vote"].tolist() == ["1", "1", "0"]
    intents = ["Product Inquiry", "Return/Exchange Inquiry", "Order Status"]
    assert votes[votes["task"] == "turn1_user_intent"]["vote"].tolist() == intents
    one = cli("import", SAMPLES / "label_studio.json", "--question", "turn1_user_intent")
    assert one.out.splitlines()[0] == "item,annotator,vote"
    assert len(one.out.splitlines()) == 4


def test_a_question_or_format_that_is_not_there(cli: Cli) -> None:
    answer = cli("import", SAMPLES / "label_studio.json", "--question", "colour")
    assert answer.code == 2
    assert "has no answers to question 'colour'; its questions: 'turn1_user_intent'" in answer.err
    answer = cli("import", SAMPLES / "label_studio.json", "--format", "excel")
    assert answer.code == 2
    assert "there is no format 'excel'; choose one of label-studio, prodigy" in answer.err
    answer = cli("import", SAMPLES / "mturk_batch.csv", "--format", "toloka")
    assert (answer.code, answer.out) == (2, "")


def test_names_become_pseudonyms_unless_they_are_kept(cli: Cli, tmp_path: Path) -> None:
    votes, names = tmp_path / "votes.csv", tmp_path / "names.csv"
    answer = cli("import", SAMPLES / "prodigy_choice.jsonl", "-o", votes, "--names-out", names)
    assert answer.code == 0
    assert "pseudonyms stand for 3 names of annotators; --keep-names keeps them" in answer.err
    annotators = set(pd.read_csv(votes)["annotator"])
    assert all(re.fullmatch("annotator_[0-9a-f]{8}", name) for name in annotators)
    mapping = pd.read_csv(names)
    assert set(mapping["annotator"]) == annotators
    assert set(mapping["name"]) == {f"presto_distortion-annotator{number}" for number in (1, 2, 3)}
    kept = cli("import", SAMPLES / "prodigy_choice.jsonl", "--keep-names")
    assert "presto_distortion-annotator1" in kept.out
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["names.csv", "votes.csv"]
    refused = cli("import", SAMPLES / "prodigy_choice.jsonl", "--keep-names", "--names-out", tmp_path / "n.csv")
    assert refused.code == 2


def test_mail_addresses_of_a_plain_table_become_pseudonyms(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("image_id;worker_id;label\n1;ann@example.org;cat\n1;w2;dog\n")
    answer = cli("import", path)
    assert answer.out == "item,annotator,vote\n1,annotator_438c4c7a,cat\n1,w2,dog\n"
    assert "ann@example.org" in cli("import", path, "--keep-names").out
    named = cli("import", path, "--item-col", "label", "--annotator-col", "worker_id", "--vote-col", "image_id")
    assert named.out.splitlines()[1] == "cat,annotator_438c4c7a,1"


def test_gold_labels_become_a_table_of_experts(cli: Cli, tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    answer = cli("import", SAMPLES / "toloka_control_tasks.tsv", "--gold-out", gold)
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("Toloka: 0 items, 0 annotators, 0 questions, 0 votes, 50 gold labels\n")
    experts = pd.read_csv(gold)
    assert (list(experts.columns), len(experts)) == (["item", "label"], 50)
    assert experts["label"].value_counts().to_dict()["rel"] == 13
    refused = cli("import", SAMPLES / "mturk_batch.csv", "--gold-out", tmp_path / "none.csv", "-o", tmp_path / "v.csv")
    assert refused.code == 2
    assert "has no gold labels" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["gold.csv"]


def test_nothing_is_read_if_the_output_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    answer = cli("import", tmp_path / "missing.json", "-o", tmp_path / "no/folder.csv")
    assert answer.code == 2
    assert "does not exist" in answer.err
    assert cli("import", SAMPLES / "mturk_batch.csv", "--json").code == 2


def test_a_bomb_names_the_option(cli: Cli, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(b"item,annotator,vote\n" + b"x,a,1\n" * 100_000))
    for command in (["import"], ["describe"]):
        answer = cli(*command, path, "--max-bytes", 1000)
        assert (answer.code, answer.out) == (2, "")
        assert "unpacks to more than 1,000 bytes; if you trust it, allow more with --max-bytes" in answer.err


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["describe"], "votes                363 (41.6% positive)"),
        (["baseline"], "2028835571,0."),
        (["agreement"], "363 labels by 3 raters on 122 items"),
    ],
)
def test_commands_take_an_export_directly(cli: Cli, command: list[str], found: str) -> None:
    answer = cli(*command, SAMPLES / "prodigy_choice.jsonl", "--positive", "distorsión")
    assert answer.code == 0
    assert found in answer.out
    assert answer.err.startswith("Prodigy JSONL: 122 items, 3 annotators, 1 question (choice), 363 votes; not votes: ")
    assert answer.err.splitlines()[0].endswith("rejected 2, skipped 1")


def test_fit_takes_an_export_directly(cli: Cli, tmp_path: Path) -> None:
    run = tmp_path / "run"
    export = SAMPLES / "appen_full_report.csv"
    answer = cli("fit", export, "-o", run, "--model", "mean")
    assert answer.code == 0
    assert answer.err.startswith(
        "Appen full report: 10 items, 67 annotators, 1 question (top_member_employee), 150 votes\n"
    )
    assert len(pd.read_csv(run / "soft_labels.csv")) == 10


def test_agreement_on_categories_of_an_export(cli: Cli) -> None:
    answer = cli("agreement", SAMPLES / "prodigy_choice.jsonl", "--nominal")
    assert answer.code == 0
    assert "363 labels by 3 raters on 122 items" in answer.out


def test_imported_votes_read_back(cli: Cli, tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    assert cli("import", SAMPLES / "label_studio.json", "-o", votes).code == 0
    direct = cli(
        "baseline", SAMPLES / "label_studio.json", "--question", "turn1_user_intent", "--positive", "Product Inquiry"
    )
    again = cli("baseline", votes, "--question", "turn1_user_intent", "--positive", "Product Inquiry")
    assert direct.code == again.code == 0
    assert direct.out == again.out
