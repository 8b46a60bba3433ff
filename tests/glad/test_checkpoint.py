"""Checkpoints: a fit that goes on gives what it would have given, and belongs to its votes and settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgold.errors import StorageError
from softgold.glad.checkpoint import checkpoint_path, load_checkpoint, save_checkpoint
from softgold.glad.coordinate import CoordinateState
from softgold.glad.fitting import FitSettings, Progress, fit
from softgold.glad.priors import Prior
from softgold.glad.storage import read_arrays, votes_digest, write_arrays
from softgold.simulation import simulate
from softgold.votes import VoteTable


@pytest.fixture(scope="module")
def votes() -> VoteTable:
    return simulate(n_items=40, n_annotators=10, votes_per_item=4, seed=2).votes


class InterruptionError(Exception):
    """Raised by a test to interrupt a fit."""


def interrupted_after(votes: VoteTable, sweeps: int, **options: Any) -> CoordinateState:
    states: list[CoordinateState] = []

    def see(progress: Progress) -> None:
        if progress.state is not None:
            states.append(progress.state)
        if progress.step == sweeps:
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


def test_a_resumed_svi_fit_is_the_uninterrupted_one(
    votes: VoteTable, assert_same_posterior: Callable[..., None]
) -> None:
    whole = fit(votes)
    for sweeps in (3, whole.diagnostics.sweeps):
        again = fit(votes, resume=interrupted_after(votes, sweeps))
        assert_same_posterior(again.posterior, whole.posterior)


def test_a_checkpoint_belongs_to_votes_and_settings(votes: VoteTable, tmp_path: Path) -> None:
    path = checkpoint_path(tmp_path / "run")
    assert path == tmp_path / "run.checkpoint.npz"
    state = interrupted_after(votes, 3, engine="coordinate")
    own = FitSettings(engine="coordinate")
    save_checkpoint(path, state, own, "digest")
    assert load_checkpoint(path, own, "digest").sweep == 3
    assert load_checkpoint(path, FitSettings(engine="coordinate", max_steps=9), "digest").sweep == 3
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
