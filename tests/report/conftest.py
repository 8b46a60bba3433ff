"""A small run with everything in it, made by the library itself."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import softgold
from softgold.cli import main

SAMPLES = Path(__file__).parents[2] / "data_samples"


@pytest.fixture(scope="session")
def full_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was fitted, calibrated and evaluated."""
    folder = tmp_path_factory.mktemp("report") / "run"
    votes = softgold.read_votes(SAMPLES / "votes.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
        softgold.fit(votes, engine="coordinate").save(folder, source="votes.csv")
        assert (
            main(["calibrate", str(folder), "--experts", str(SAMPLES / "experts.csv"), "-q", "--n-bootstrap", "100"])
            == 0
        )
    options = ["--n-bootstrap", "50", "--n-vote-bootstrap", "40", "-q"]
    assert main(["evaluate", str(folder), "--scores", str(SAMPLES / "scores.csv"), *options]) == 0
    return folder
