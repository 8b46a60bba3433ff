"""A small run with everything in it, made by the library itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import softgold
from softgold.cli import main
from softgold.models.base import Posterior
from softgold.planning import Forecast
from softgold.report import pages
from softgold.runs import votes_digest
from softgold.tables.votes import VoteTable

SAMPLES = Path(__file__).parents[2] / "data_samples"


@pytest.fixture(scope="session")
def forecast_once() -> Callable[..., Forecast]:
    """Forecast as softgold does, but once for fits of the same votes: it takes most of the time of a page."""
    found: dict[object, Forecast] = {}

    def forecast(fitted: Posterior, *, votes: VoteTable, **options: Any) -> Forecast:
        annotators = fitted.annotators().to_csv()
        key = (type(fitted), annotators, votes_digest(votes), *options.items())
        if key not in found:
            found[key] = softgold.forecast(fitted, votes=votes, **options)
        return found[key]

    return forecast


@pytest.fixture(autouse=True)
def pages_with_it(forecast_once: Callable[..., Forecast], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "forecast", forecast_once)


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
