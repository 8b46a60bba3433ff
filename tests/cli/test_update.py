"""`softgold update`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import softgold


@pytest.fixture(scope="module")
def votes() -> pd.DataFrame:
    return softgold.simulate(n_items=100, n_annotators=15, votes_per_item=5, seed=9).votes.to_frame()


@pytest.fixture(scope="module")
def stored(votes: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "run"
    softgold.fit(votes[:-40], engine="coordinate").save(path)
    return path


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "run"))


@pytest.fixture
def new(votes: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    votes[-40:].to_csv(path, index=False)
    return path


def test_votes_are_added_and_the_history_grows(
    cli: Callable[..., Any], run: Path, new: Path, votes: pd.DataFrame
) -> None:
    answer = cli("update", run, new, "--cost", 0.1)
    assert answer.code == 0, answer.err
    assert answer.err.startswith("40 new votes, 500 in all; ")
    history = json.loads((run / "run.json").read_text())["history"]
    assert [entry["new_votes"] for entry in history] == [460, 40]
    assert history[1]["cost"] == pytest.approx(4.0)
    assert history[1]["source"] == str(new)
    assert softgold.open_run(run).votes.n_votes == len(votes)
    assert len(pd.read_csv(run / "soft_labels.csv")) == 100


def test_the_answer_as_json(cli: Callable[..., Any], run: Path, new: Path) -> None:
    found = json.loads(cli("update", run, new, "--json", "--quiet").out)
    assert set(found) == {"history", "new_items", "new_annotators", "largest_change", "sweeps"}
    assert 0 <= found["largest_change"] <= 1


def test_what_cannot_be_added_leaves_the_run_as_it_was(
    cli: Callable[..., Any], run: Path, new: Path, tmp_path: Path, votes: pd.DataFrame
) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    conflict, known, bad = tmp_path / "conflict.csv", tmp_path / "known.csv", tmp_path / "bad.csv"
    votes[:3].assign(vote=1 - votes["vote"][:3]).to_csv(conflict, index=False)
    votes[:3].to_csv(known, index=False)
    bad.write_text("item,annotator,vote\nx,y,7\n")
    for path, words in (
        (conflict, "3 new votes differ from votes of the same annotator in the run"),
        (known, "there is no new vote: all 3 are in the run already"),
        (bad, "a vote must be 0 or 1"),
        (tmp_path / "missing.csv", "missing.csv"),
    ):
        answer = cli("update", run, path)
        assert answer.code == 2
        assert words in answer.err
        assert {file.name: file.read_bytes() for file in run.iterdir()} == before
    assert cli("update", tmp_path / "nothing", new).code == 2
    assert cli("update", run, conflict, "--duplicates", "last").code == 0
