"""Real exports, with counts made by hand: by looking at the files, or with grep and wc."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from softgold.errors import InputError
from softgold.readers import read_export, read_votes

HERE = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Counted:
    """What a sample has."""

    items: int
    annotators: int
    questions: int
    votes: int
    gold: int = 0
    not_votes: dict[str, int] = field(default_factory=dict)


COMMITTED = {
    "appen_full_report.csv": Counted(10, 67, 1, 150),
    "argilla_flat.parquet": Counted(4, 3, 1, 9, not_votes={"predictions": 4, "rejected": 1, "drafts": 1}),
    "argilla_nested.json": Counted(4, 3, 1, 11, not_votes={"predictions": 4}),
    "label_studio.json": Counted(3, 1, 12, 36),
    "label_studio.csv": Counted(3, 1, 12, 36),
    "label_studio_min.json": Counted(3, 1, 12, 36),
    "mturk_batch.csv": Counted(9, 18, 1, 27),
    "prodigy_choice.jsonl": Counted(122, 3, 1, 363, not_votes={"rejected": 2, "skipped": 1}),
    "ground_truth_response.json": Counted(1, 5, 1, 5),
    "toloka_control_tasks.tsv": Counted(0, 0, 0, 0, gold=50),
}
ELSEWHERE = {
    "crowdkit/bluebird_label.csv": Counted(108, 39, 1, 4212),
    "crowdkit/peerannot_toy-data_answers.json": Counted(3, 4, 1, 9),
    "cvat": Counted(2, 4, 1, 4, not_votes={"shapes": 52, "merged": 2, "drafts": 1}),
    "doccano/current_text_classification_example.jsonl": Counted(3, 1, 1, 3),
    "doccano/per_user_admin.jsonl": Counted(0, 0, 0, 0, not_votes={"spans": 131}),
    "label_studio/evalme_bbox_3_annotators.json": Counted(0, 0, 0, 0, not_votes={"predictions": 5, "shapes": 91}),
    "label_studio/sdk_test_export_csv_csv_test_colliding_keys_mixed.json": Counted(
        1, 1, 1, 1, not_votes={"unannotated": 1}
    ),
    "labelbox/prime_pagine_export_v2.ndjson": Counted(0, 0, 0, 0, not_votes={"shapes": 145}),
    "lewidi/HS-Brexit_dev.json": Counted(168, 6, 1, 1008, gold=168),
    "potato": Counted(6, 2, 2, 20),
    "potato/alice/user_state.json": Counted(6, 1, 2, 10),
    "sagemaker/birds_ic_data.tar.gz": Counted(302, 97, 1, 1510),
}


def check(path: Path, expected: Counted) -> None:
    read = read_export(path)
    found = Counted(
        len(read.items),
        len(read.annotators),
        len(read.questions),
        read.n_answers,
        len(read.gold),
        {kind: count for kind, count in read.counts.items() if count},
    )
    assert found == expected


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_samples(name: str) -> None:
    check(HERE / name, COMMITTED[name])


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_samples(real_exports: Path, name: str) -> None:
    check(real_exports / name, ELSEWHERE[name])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ground_truth_output.manifest", "is an output manifest, which holds consolidated labels and no votes"),
        ("toloka_control_tasks.tsv", "holds 50 gold labels and no answers"),
        ("label_studio.json", "has answers to 12 questions: 'turn1_user_intent', .*choose one with --question NAME"),
        ("prodigy_choice.jsonl", "name it with --positive .*: the values are 'no distorsión', 'distorsión'"),
    ],
)
def test_what_cannot_be_votes_gets_the_right_sentence(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_votes(HERE / name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("label_studio/evalme_bbox_3_annotators.json", "91 boxes, masks or other shapes .* use 'softgold convergence'"),
        ("labelbox/prime_pagine_export_v2.ndjson", "use 'softgold convergence'"),
        ("doccano/per_user_admin.jsonl", "131 text spans and no votes on whole items"),
        ("cvat/consensus_jobs.json", "lists jobs and has no annotations; give a folder with both files"),
        ("cvat/consensus_annotations.json", "has annotations and no list of jobs"),
        ("crowdkit/bluebird_truth.csv", "has no annotator column"),
        ("sagemaker/birds_output.manifest", "holds consolidated labels and no votes"),
    ],
)
def test_other_samples_that_are_refused(real_exports: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_votes(real_exports / name)


def test_soft_labels_that_lewidi_gives_itself(real_exports: Path) -> None:
    import json

    path = real_exports / "lewidi/HS-Brexit_dev.json"
    votes = read_votes(path)
    given = json.loads(path.read_text())
    shares = [given[item]["soft_label"]["1"] for item in votes.item_ids]
    assert votes.item_shares.tolist() == pytest.approx(shares, abs=0.0051)


@pytest.mark.slow
def test_worker_responses_in_a_folder_are_those_of_the_archive(real_exports: Path, tmp_path: Path) -> None:
    path = real_exports / "sagemaker/birds_ic_data.tar.gz"
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    packed, unpacked = read_export(path).frame(), read_export(tmp_path).frame()
    columns = ["item", "annotator", "vote"]
    assert packed.sort_values(columns, ignore_index=True).equals(unpacked.sort_values(columns, ignore_index=True))
    named = read_export(path, item="source-ref")
    assert len(named.items) == 302
    assert all(item.startswith("s3://") for item in named.items)
