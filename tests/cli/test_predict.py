"""`softgold predict`."""

from __future__ import annotations

import io
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softgold.models.base import fit
from softgold.readers import read_votes
from softgold.runs import open_run
from softgold.simulation import simulate
from softgold.tables.soft_labels import COLUMNS


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return simulate(n_items=80, n_annotators=12, votes_per_item=5, seed=8).votes.to_frame()


@pytest.fixture(scope="module")
def stored(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    votes = read_votes(frame)
    path = tmp_path_factory.mktemp("stored") / "run"
    fit(votes, engine="coordinate").save(path)
    return path


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "run"))


@pytest.fixture
def votes(tmp_path: Path, frame: pd.DataFrame) -> Path:
    path = tmp_path / "votes.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_training_votes_give_the_fitted_labels(cli: Callable[..., Any], run: Path, votes: Path) -> None:
    answer = cli("predict", run, votes)
    assert answer.code == 0
    assert answer.err == "80 items; 0 of 12 annotators were not in the run\n"
    labels, fitted = pd.read_csv(io.StringIO(answer.out)), pd.read_csv(run / "soft_labels.csv")
    assert tuple(labels.columns) == COLUMNS
    for name in labels.columns.difference(["item"]):
        assert labels[name].to_numpy() == pytest.approx(fitted[name].to_numpy(), abs=1e-9), name
    assert labels["item"].tolist() == fitted["item"].tolist()


def test_new_items_and_strangers(cli: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    posterior = open_run(run).fit.posterior
    best = posterior.annotator_ids[int(posterior.annotators()["ability_mean"].argmax())]
    path, target = tmp_path / "new.csv", tmp_path / "out.csv"
    path.write_text(f"item,annotator,vote\nnew,{best},1\nnew,stranger,0\nodd,stranger,1\n")
    answer = cli("predict", run, path, "-o", target)
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("2 items; 1 of 2 annotators were not in the run\n")
    labels = pd.read_csv(target).set_index("item")
    assert labels.loc["odd", "p"] > posterior.soft_labels().p.mean()  # a stranger's vote counts, as the population's
    assert labels.loc["new", "p"] > 0.5  # the best annotator outweighs a stranger
    assert np.isfinite(labels.loc[:, "p":"b_hi"].to_numpy()).all()
    refused = cli("predict", run, path, "-o", target)
    assert refused.code == 2
    assert "give --force" in refused.err
    assert cli("predict", run, path, "-o", target, "--force", "--quiet").err == ""


DAMAGED_RECORDS = {"no record": "", "not an object": "[1]", "deep": "[" * 100_000, "other": '{"a": 1}'}


def damaged(run: Path, kind: str, target: Path) -> None:
    """Put something into the run that does not belong there; unpickling it would create `target`."""
    bomb = np.array([Bomb(target)], dtype=object)
    arrays, record = run / "posterior.npz", run / "run.json"
    whole = arrays.read_bytes()
    if kind == "truncated arrays":
        arrays.write_bytes(whole[: len(whole) // 2])
    elif kind == "no arrays":
        arrays.unlink()
    elif kind == "flipped bit":
        place = whole.index(b"item_mean.npy") + 200
        arrays.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    elif kind == "unknown compression":
        place = whole.rindex(b"PK\x01\x02") + 10
        arrays.write_bytes(whole[:place] + b"\x63" + whole[place + 1 :])
    elif kind == "pickle":
        arrays.write_bytes(pickle.dumps(Bomb(target)))
    elif kind == "pickled arrays":
        with arrays.open("wb") as file:
            np.savez(file, item_mean=bomb)
    elif kind == "foreign archive":
        with zipfile.ZipFile(arrays, "w") as packed:
            packed.writestr("thesis.txt", "years of work")
    elif kind == "single array":
        with arrays.open("wb") as file:
            np.save(file, np.arange(3))
    else:
        record.write_text(DAMAGED_RECORDS[kind])


class Bomb:
    """Unpickling this creates a folder."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        import os

        return (os.mkdir, (str(self.target),))


@pytest.mark.parametrize(
    "kind",
    [
        "truncated arrays",
        "no arrays",
        "flipped bit",
        "unknown compression",
        "pickle",
        "pickled arrays",
        "foreign archive",
        "single array",
        *DAMAGED_RECORDS,
    ],
)
def test_damaged_runs(cli: Callable[..., Any], run: Path, votes: Path, tmp_path: Path, kind: str) -> None:
    damaged(run, kind, tmp_path / "executed")
    answer = cli("predict", run, votes, "-o", tmp_path / "out.csv")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    if kind == "foreign archive":  # a sound archive, but not of a run
        assert f"{run} is not a run that this version can read" in answer.err
    else:
        assert str(run / ("run.json" if kind in DAMAGED_RECORDS else "posterior.npz")) in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "votes.csv"]


def test_what_is_not_a_run(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere", votes):
        answer = cli("predict", place, votes)
        assert (answer.code, answer.out) == (2, "")
        assert "'softgold fit' makes one" in answer.err


def test_bad_votes(cli: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("item,annotator,vote\nx,a,perhaps\n")
    answer = cli("predict", run, path, "-o", tmp_path / "out.csv")
    assert answer.code == 2
    assert "row 1 (line 2), column 'vote'" in answer.err
    assert not (tmp_path / "out.csv").exists()
