"""Checkpoints: a fit that goes on gives what it would have given, and belongs to its votes and settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgold.errors import ConvergenceWarning, StorageError
from softgold.glad.checkpoint import checkpoint_path, load_checkpoint, save_checkpoint
from softgold.glad.coordinate import CoordinateState
from softgold.glad.fitting import FitSettings, FitState, Progress, fit
from softgold.glad.priors import Prior
from softgold.glad.storage import read_arrays, votes_digest, write_arrays
from softgold.simulation import simulate
from softgold.votes import VoteTable


@pytest.fixture(scope="module")
def votes() -> VoteTable:
    return simulate(n_items=40, n_annotators=10, votes_per_item=4, seed=2).votes


class InterruptionError(Exception):
    """Raised by a test to interrupt a fit."""


def interrupted_after(votes: VoteTable, step: int, stage: str = "coordinate", **options: Any) -> FitState:
    states: list[FitState] = []

    def see(progress: Progress) -> None:
        if (progress.stage, progress.step) == (stage, step):
            states.append(progress.snapshot())
            raise InterruptionError

    with pytest.raises(InterruptionError):
        fit(votes, on_progress=see, **options)
    return states[-1]


@pytest.mark.parametrize("options", [{"family": "free"}, {"family": "gaussian"}, {"prior": "paper"}], ids=str)
def test_a_resumed_fit_is_the_uninterrupted_one(
    votes: VoteTable, tmp_path: Path, options: dict[str, Any], assert_same_posterior: Callable[..., None]
) -> None:
    options = {"engine": "coordinate", **options}
    whole = fit(votes, **options)
    digest, path = votes_digest(votes), tmp_path / "run.checkpoint.npz"
    last = whole.diagnostics.steps
    for sweeps in {1, 2, 3, 4, 5, 6, 7, last // 2, last - 1, last}:
        save_checkpoint(path, interrupted_after(votes, sweeps, **options), whole.settings, digest)
        again = fit(votes, resume=load_checkpoint(path, whole.settings, digest), **options)
        assert_same_posterior(again.posterior, whole.posterior)
        assert again.diagnostics.elbo == whole.diagnostics.elbo
        assert again.diagnostics.steps == whole.diagnostics.steps


def test_an_svi_fit_resumed_in_its_first_stage_is_the_uninterrupted_one(
    votes: VoteTable, assert_same_posterior: Callable[..., None]
) -> None:
    whole = fit(votes)
    for sweeps in (3, whole.diagnostics.sweeps):
        again = fit(votes, resume=interrupted_after(votes, sweeps))
        assert_same_posterior(again.posterior, whole.posterior)


@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [{}, {"init": "consensus"}, {"init": "paper", "max_steps": 120}, {"batch_items": 15}, {"difficulty_scale": 3.0}],
    ids=str,
)
def test_an_svi_fit_resumed_in_its_second_stage_is_the_uninterrupted_one(
    votes: VoteTable, tmp_path: Path, options: dict[str, Any], assert_same_posterior: Callable[..., None]
) -> None:
    whole = fit(votes, **options)
    digest, path = votes_digest(votes), tmp_path / "run.checkpoint.npz"
    last = whole.diagnostics.steps
    for step in {1, 2, 49, 50, 51, last - 1, last}:
        save_checkpoint(path, interrupted_after(votes, step, "svi", **options), whole.settings, digest)
        again = fit(votes, resume=load_checkpoint(path, whole.settings, digest), **options)
        assert again.diagnostics.elbo == whole.diagnostics.elbo
        assert (again.diagnostics.steps, again.diagnostics.sweeps) == (last, whole.diagnostics.sweeps)
        assert_same_posterior(again.posterior, whole.posterior)


def test_a_resumed_fit_may_take_more_steps(votes: VoteTable, assert_same_posterior: Callable[..., None]) -> None:
    state = interrupted_after(votes, 30, "svi", init="paper", max_steps=30)
    with pytest.warns(ConvergenceWarning, match="cap on steps"):
        again = fit(votes, init="paper", max_steps=45, resume=state)
    with pytest.warns(ConvergenceWarning, match="cap on steps"):
        whole = fit(votes, init="paper", max_steps=45)
    assert_same_posterior(again.posterior, whole.posterior)


def test_a_checkpoint_belongs_to_votes_and_settings(votes: VoteTable, tmp_path: Path) -> None:
    path = checkpoint_path(tmp_path / "run")
    assert path == tmp_path / "run.checkpoint.npz"
    state = interrupted_after(votes, 3, engine="coordinate")
    own = FitSettings(engine="coordinate")
    save_checkpoint(path, state, own, "digest")
    for settings_ in (own, FitSettings(engine="coordinate", max_steps=9)):
        loaded = load_checkpoint(path, settings_, "digest")
        assert isinstance(loaded, CoordinateState)
        assert loaded.sweep == 3
    for settings_, digest in (
        (own, "another digest"),
        (FitSettings(engine="coordinate", family="gaussian"), "digest"),
        (FitSettings(engine="coordinate", prior=Prior(difficulty_scale=2.0)), "digest"),
        (FitSettings(engine="svi"), "digest"),
    ):
        with pytest.raises(StorageError, match="belongs to other votes or other settings"):
            load_checkpoint(path, settings_, digest)


def test_damaged_checkpoints_are_said(votes: VoteTable, tmp_path: Path) -> None:
    path, own = tmp_path / "run.checkpoint.npz", FitSettings(engine="coordinate")
    with pytest.raises(StorageError, match="is not there"):
        load_checkpoint(path, own, "digest")
    save_checkpoint(path, interrupted_after(votes, 2, engine="coordinate"), own, "digest")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StorageError, match="damaged"):
        load_checkpoint(path, own, "digest")
    path.write_bytes(whole)
    arrays = read_arrays(path)
    write_arrays(path, {**arrays, "version": np.array(99)})
    with pytest.raises(StorageError, match="is of version 99"):
        load_checkpoint(path, own, "digest")
    write_arrays(path, {name: array for name, array in arrays.items() if name != "scale"})
    with pytest.raises(StorageError, match="not a checkpoint"):
        load_checkpoint(path, own, "digest")


def test_damaged_checkpoints_of_the_second_stage_are_said(votes: VoteTable, tmp_path: Path) -> None:
    path, own = tmp_path / "run.checkpoint.npz", FitSettings(init="consensus")
    save_checkpoint(path, interrupted_after(votes, 2, "svi", init="consensus"), own, "digest")
    arrays = read_arrays(path)
    for missing in ("start_scale", "elbo", "parameter/b_shift/gradient"):
        write_arrays(path, {name: array for name, array in arrays.items() if name != missing})
        with pytest.raises(StorageError, match="not a checkpoint"):
            load_checkpoint(path, own, "digest")
