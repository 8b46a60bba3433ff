"""Checkpoints: a fit that goes on gives what it would have given, and belongs to its votes and settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgold.errors import OutputError, StorageError
from softgold.models.base import FitState, Model, Progress, find_model, fit
from softgold.models.crowd.coordinate import CoordinateState
from softgold.models.crowd.svi_state import SviState
from softgold.runs import votes_digest
from softgold.runs.checkpoint import (
    checkpoint_path,
    claim_checkpoint,
    discard_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from softgold.runs.files import read_arrays, write_arrays
from softgold.tables.votes import VoteTable


class InterruptionError(Exception):
    """Raised by a test to interrupt a fit."""


@pytest.fixture(scope="module")
def votes(draw_crowd: Callable[..., Any]) -> VoteTable:
    return draw_crowd(2, n_items=40, n_annotators=10, votes_per_item=4).votes


def interrupted_after(votes: VoteTable, step: int, stage: str = "coordinate", **options: Any) -> FitState:
    states: list[FitState] = []

    def see(progress: Progress) -> None:
        if (progress.stage, progress.step) == (stage, step):
            states.append(progress.snapshot())
            raise InterruptionError

    with pytest.raises(InterruptionError):
        fit(votes, on_progress=see, **options)
    return states[-1]


def two_class(**options: Any) -> tuple[Model, Any]:
    model = find_model("two-class")
    return model, model.settings(**{"engine": "coordinate", **options})


@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {"engine": "coordinate"},
        {"engine": "coordinate", "prevalence": 0.3},
        {"model": "glad", "engine": "coordinate"},
        {"model": "glad", "engine": "coordinate", "prior": "paper", "max_steps": 30},
    ],
    ids=str,
)
def test_a_stored_fit_goes_on_to_the_same_result(
    votes: VoteTable, tmp_path: Path, options: dict[str, Any], assert_same_posterior: Callable[..., None]
) -> None:
    whole = fit(votes, **options)
    model, digest, path = find_model(whole.model), votes_digest(votes), tmp_path / "run.checkpoint.npz"
    last = whole.diagnostics.steps
    for sweeps in sorted({1, 3, last // 2, last - 1, last}):
        state = interrupted_after(votes, sweeps, **options)
        save_checkpoint(path, state, model, whole.settings, digest)
        again = fit(votes, resume=load_checkpoint(path, model, whole.settings, digest), **options)
        assert_same_posterior(again.posterior, whole.posterior)
        assert again.diagnostics.elbo == whole.diagnostics.elbo
        assert again.diagnostics.steps == last


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [{"max_steps": 20}, {"max_steps": 20, "batch_items": 15}, {"model": "glad", "init": "paper", "max_steps": 20}],
    ids=str,
)
def test_a_stored_svi_fit_goes_on_to_the_same_result(
    votes: VoteTable, tmp_path: Path, options: dict[str, Any], assert_same_posterior: Callable[..., None]
) -> None:
    whole = fit(votes, **options)
    model, digest, path = find_model(whole.model), votes_digest(votes), tmp_path / "run.checkpoint.npz"
    for step in (1, options["max_steps"] - 10):
        save_checkpoint(path, interrupted_after(votes, step, "svi", **options), model, whole.settings, digest)
        stored = load_checkpoint(path, model, whole.settings, digest)
        assert isinstance(stored, SviState)
        again = fit(votes, resume=stored, **options)
        assert again.diagnostics.elbo == whole.diagnostics.elbo
        assert_same_posterior(again.posterior, whole.posterior)


def test_a_checkpoint_belongs_to_model_votes_and_settings(votes: VoteTable, tmp_path: Path) -> None:
    path = checkpoint_path(tmp_path / "run")
    assert path == tmp_path / "run.checkpoint.npz"
    model, own = two_class()
    save_checkpoint(path, interrupted_after(votes, 3, engine="coordinate"), model, own, "digest")
    loaded = load_checkpoint(path, model, own, "digest")
    assert isinstance(loaded, CoordinateState)
    assert loaded.sweep == 3
    glad = find_model("glad")
    for other, settings, digest in (
        (model, own, "another digest"),
        (*two_class(prevalence=0.3), "digest"),
        (*two_class(engine="svi"), "digest"),
        (glad, glad.settings(engine="coordinate"), "digest"),
    ):
        with pytest.raises(StorageError, match="belongs to other votes or other settings"):
            load_checkpoint(path, other, settings, digest)


def test_a_resumed_fit_may_have_another_cap(votes: VoteTable, tmp_path: Path) -> None:
    """The cap decides when a fit stops, not where it is: one that is interrupted may be given more sweeps."""
    path = tmp_path / "run.checkpoint.npz"
    state = interrupted_after(votes, 3, engine="coordinate", max_steps=5)
    save_checkpoint(path, state, *two_class(max_steps=5), "digest")
    resumed = fit(votes, engine="coordinate", resume=load_checkpoint(path, *two_class(), "digest"))
    whole = fit(votes, engine="coordinate")
    assert np.array_equal(resumed.posterior.soft_labels().p, whole.posterior.soft_labels().p)


def test_a_checkpoint_of_the_working_directory_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    assert checkpoint_path(Path()) == tmp_path.resolve() / "run.checkpoint.npz"


def test_baselines_have_no_checkpoints(votes: VoteTable, tmp_path: Path) -> None:
    path, model = tmp_path / "run.checkpoint.npz", find_model("mean")
    save_checkpoint(path, interrupted_after(votes, 3, engine="coordinate"), model, model.settings(), "digest")
    with pytest.raises(StorageError, match="not a checkpoint that this version can read"):
        load_checkpoint(path, model, model.settings(), "digest")


def test_damaged_checkpoints_are_said(votes: VoteTable, tmp_path: Path) -> None:
    path, (model, own) = tmp_path / "run.checkpoint.npz", two_class()
    with pytest.raises(StorageError, match="there is no "):
        load_checkpoint(path, model, own, "digest")
    save_checkpoint(path, interrupted_after(votes, 2, engine="coordinate"), model, own, "digest")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StorageError, match="damaged"):
        load_checkpoint(path, model, own, "digest")
    path.write_bytes(whole)
    arrays = read_arrays(path)
    write_arrays(path, {**arrays, "checkpoint_version": np.array(99)})
    with pytest.raises(StorageError, match="another version of softgold; fit without --resume"):
        load_checkpoint(path, model, own, "digest")
    for missing in arrays:
        write_arrays(path, {name: array for name, array in arrays.items() if name != missing})
        with pytest.raises(StorageError, match="not a checkpoint"):
            load_checkpoint(path, model, own, "digest")


@pytest.mark.slow
def test_damaged_checkpoints_of_svi_are_said(votes: VoteTable, tmp_path: Path) -> None:
    path, (model, own) = tmp_path / "run.checkpoint.npz", two_class(engine="svi")
    save_checkpoint(path, interrupted_after(votes, 2, "svi"), model, own, "digest")
    arrays = read_arrays(path)
    for missing in ("start/mean", "population/unit", "elbo", "sweeps", "random"):
        write_arrays(path, {name: array for name, array in arrays.items() if name != missing})
        with pytest.raises(StorageError, match="not a checkpoint"):
            load_checkpoint(path, model, own, "digest")


def foreign(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("my own notes")
    elif kind == "arrays":
        np.savez(path, mine=np.arange(3))
    else:
        path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("kind", ["folder", "text", "arrays", "link"])
def test_what_softgold_did_not_write_is_neither_replaced_nor_removed(tmp_path: Path, kind: str) -> None:
    path = checkpoint_path(tmp_path / "run")
    foreign(path, kind)
    model = find_model("two-class")
    with pytest.raises(OutputError, match="not a checkpoint of softgold"):
        claim_checkpoint(path, model, model.checked_settings(), "digest", force=True)
    discard_checkpoint(path)
    assert os.path.lexists(path)


def test_another_fits_checkpoint_is_discarded_with_force_only(
    cli: Callable[..., Any], votes: VoteTable, tmp_path: Path
) -> None:
    file, run = tmp_path / "votes.csv", tmp_path / "run"
    votes.to_frame().to_csv(file, index=False)
    path, model = checkpoint_path(run), find_model("two-class")

    class State:
        def to_arrays(self) -> dict[str, Any]:
            return {}

    save_checkpoint(path, State(), model, model.checked_settings(seed=7), "other votes")
    command = ["fit", file, "-o", run, "--engine", "coordinate"]
    answer = cli(*command)
    assert answer.code == 2
    assert "the checkpoint of another interrupted fit" in answer.err
    assert path.exists()
    assert not run.exists()
    answer = cli(*command, "--force")
    assert answer.code == 0
    assert "is discarded" in answer.err
    assert not path.exists()


def test_run_names_as_long_as_names_can_be(cli: Callable[..., Any], votes: VoteTable, tmp_path: Path) -> None:
    file, run = tmp_path / "votes.csv", tmp_path / ("r" * 250)
    votes.to_frame().to_csv(file, index=False)
    answer = cli("fit", file, "-o", run, "--model", "mean")
    assert answer.code == 0, answer.err
    assert (run / "run.json").is_file()
    assert len(checkpoint_path(run).name) <= 255
    assert checkpoint_path(run) != checkpoint_path(run.with_name("r" * 249))
