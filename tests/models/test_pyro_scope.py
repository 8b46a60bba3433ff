"""No leakage: fits do not see each other, nor the caller's Pyro and torch, and leave both as they were."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyro
import pytest
import threadpoolctl
import torch
from pyro import poutine

from softgold.models.base import Fit, fit
from softgold.readers import read_votes
from softgold.tables.votes import VoteTable

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")]

STEPS = 40


def svi_fit(votes: VoteTable, **options: Any) -> Fit:
    return fit(votes, **{"max_steps": STEPS, **options})


@pytest.fixture(scope="module")
def votes(crowd: Any) -> VoteTable:
    return crowd.votes


@pytest.fixture(scope="module")
def alone(votes: VoteTable) -> Fit:
    return svi_fit(votes)


def same(first: Fit, second: Fit) -> bool:
    here, there = first.posterior.to_arrays(), second.posterior.to_arrays()
    return first.diagnostics.elbo == second.diagnostics.elbo and all(
        np.array_equal(here[name], there[name], equal_nan=True) for name in here
    )


def test_the_same_seed_gives_the_same_fit(votes: VoteTable, alone: Fit) -> None:
    assert same(svi_fit(votes), alone)
    assert not same(svi_fit(votes, seed=1), alone)


def test_threads_do_not_see_each_other(votes: VoteTable, alone: Fit, draw_crowd: Any) -> None:
    other = draw_crowd(9, n_items=80, n_annotators=10).votes
    jobs: dict[str, tuple[VoteTable, dict[str, Any]]] = {
        "svi": (votes, {}),
        "svi of another table": (other, {"seed": 5}),
        "published recipe": (votes, {"model": "glad", "init": "paper"}),
        "coordinate": (votes, {"engine": "coordinate"}),
    }
    found: dict[str, Fit] = {}

    def work(name: str) -> None:
        table, options = jobs[name]
        found[name] = svi_fit(table, **options)

    threads = [threading.Thread(target=work, args=(name,)) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same(found["svi"], alone)
    for name, (table, options) in list(jobs.items())[1:]:
        assert same(found[name], svi_fit(table, **options)), name


@pytest.mark.parametrize("options", [{}, {"model": "glad", "init": "paper"}], ids=["svi", "published recipe"])
def test_the_users_torch_and_pyro_are_left_alone(votes: VoteTable, options: dict[str, Any]) -> None:
    mine = {"mine": [1.5], "shift": [2.5], "c_mean": [3.5]}  # two of them are names that the guides use too
    threads = torch.get_num_threads()
    blas = [(pool["internal_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    torch.set_num_threads(2)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 - the state that must not change
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    with pyro.get_param_store().scope():
        for name, value in mine.items():
            pyro.param(name, torch.tensor(value))
        try:
            with pyro.validation_enabled(True):
                svi_fit(votes, **options)
                with pytest.raises(ValueError, match="constraint"):
                    torch.distributions.Bernoulli(probs=torch.tensor(2.0))
                assert poutine.util.is_validation_enabled()
                assert pyro.infer.util.is_validation_enabled()
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(threads)
        assert {name: value.tolist() for name, value in pyro.get_param_store().items()} == mine
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert [(pool["internal_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()] == blas


def test_the_users_switches_do_not_change_the_fit(votes: VoteTable, alone: Fit) -> None:
    torch.manual_seed(4242)
    with pyro.get_param_store().scope():
        pyro.param("shift", torch.full((votes.n_annotators, 2), 3.0))
        with torch.no_grad():
            assert same(svi_fit(votes), alone)
        with torch.inference_mode():
            assert same(svi_fit(votes), alone)
        with poutine.trace() as watch:
            assert same(svi_fit(votes), alone)
        assert list(watch.trace.nodes) == []
        torch.set_default_dtype(torch.float64)
        try:
            assert same(svi_fit(votes), alone)
        finally:
            torch.set_default_dtype(torch.float32)


def test_the_users_default_dtype_does_not_change_the_published_recipe(votes: VoteTable) -> None:
    options = {"model": "glad", "init": "paper", "max_steps": 20}
    expected = fit(votes, **options)
    torch.set_default_dtype(torch.float64)
    try:
        assert same(fit(votes, **options), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_fit_that_fails_leaves_no_trace(votes: VoteTable, alone: Fit) -> None:
    state, threads = torch.get_rng_state(), torch.get_num_threads()

    def stop(progress: Any) -> None:
        if progress.stage == "svi" and progress.step == 2:
            raise KeyboardInterrupt

    with pyro.get_param_store().scope():
        with pytest.raises(KeyboardInterrupt):
            svi_fit(votes, on_progress=stop)
        assert len(pyro.get_param_store()) == 0
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert same(svi_fit(votes), alone)


def test_a_frame_is_read_as_votes(votes: VoteTable) -> None:
    frame = votes.to_frame().rename(columns={"item": "task", "annotator": "worker", "vote": "label"})
    assert same(svi_fit(frame), svi_fit(read_votes(votes.to_frame())))
