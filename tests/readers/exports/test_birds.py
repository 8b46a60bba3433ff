"""The real export in the sample data: its tables follow from the archive, and its licence is named."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pandas as pd

import softgold

BIRDS = Path(__file__).parents[3] / "data_samples" / "birds"


def member(name: str) -> str:
    with tarfile.open(BIRDS / "export.tar.gz") as archive:
        found = archive.extractfile(f"ic_data/{name}")
        assert found is not None
        return found.read().decode()


def test_truth_is_that_of_the_archive_and_has_every_item() -> None:
    truth = pd.read_csv(BIRDS / "truth.csv")
    lines = [json.loads(line) for line in member("output.manifest").splitlines()]
    labels = {record["ImageId"]: record["Label"] for record in json.loads(member("true_labels.json"))}
    assert truth["image"].tolist() == [Path(line["source-ref"]).stem for line in lines]
    assert truth["label"].tolist() == [labels[image] for image in truth["image"]]
    votes = softgold.read_votes(BIRDS / "export.tar.gz", positive="Duck")
    assert (votes.n_items, votes.n_annotators, votes.n_votes) == (302, 97, 1510)
    assert {str(item) for item in votes.item_ids} == set(truth["item"].astype(str))


def test_experts_say_the_truth() -> None:
    truth = pd.read_csv(BIRDS / "truth.csv", index_col="item")["label"]
    experts = pd.read_csv(BIRDS / "experts.csv", index_col="item")["label"]
    assert experts.index.is_unique
    assert len(experts) == 100
    assert experts.tolist() == ["yes" if truth[item] == "Duck" else "no" for item in experts.index]


def test_source_and_licence_are_named() -> None:
    text = (BIRDS / "README.md").read_text(encoding="utf-8")
    assert "aws/amazon-sagemaker-examples" in text
    assert "Apache License 2.0" in text
