"""No leakage: fits do not see each other, nor the caller's Pyro and torch, and leave both as they were."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pandas as pd
import pyro
import pytest
import threadpoolctl
import torch
from pyro import poutine

from softgold.errors import ConvergenceWarning
from softgold.glad.fitting import Fit, fit
from softgold.simulation import simulate
from softgold.votes import VoteTable


@pytest.fixture(scope="module")
def votes() -> VoteTable:
    return simulate(n_items=150, n_annotators=20, votes_per_item=6, seed=3).votes


@pytest.fixture(scope="module")
def alone(votes: VoteTable) -> Fit:
    return fit(votes)


def same(first: Fit, second: Fit) -> bool:
    arrays = ("mean", "sd", "low", "high", "positive", "expected_vote")
    return (
        first.diagnostics.elbo == second.diagnostics.elbo
        and all(np.array_equal(getattr(first.posterior.items, x), getattr(second.posterior.items, x)) for x in arrays)
        and np.array_equal(first.posterior.abilities.mean, second.posterior.abilities.mean)
    )


def test_the_same_seed_gives_the_same_fit(votes: VoteTable, alone: Fit) -> None:
    assert same(fit(votes), alone)
    assert not same(fit(votes, seed=1), alone)


def test_two_threads_do_not_see_each_other(votes: VoteTable, alone: Fit) -> None:
    other = simulate(n_items=80, n_annotators=10, votes_per_item=5, seed=9).votes
    jobs: dict[str, tuple[VoteTable, dict[str, Any]]] = {
        "svi": (votes, {}),
        "svi of another table": (other, {"seed": 5}),
        "coordinate": (votes, {"engine": "coordinate"}),
    }
    found: dict[str, Fit] = {}

    def work(name: str) -> None:
        table, options = jobs[name]
        found[name] = fit(table, **options)

    threads = [threading.Thread(target=work, args=(name,)) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same(found["svi"], alone)
    assert same(found["svi of another table"], fit(other, seed=5))
    assert same(found["coordinate"], fit(votes, engine="coordinate"))


def test_the_users_torch_and_pyro_are_left_alone(votes: VoteTable) -> None:
    pyro.clear_param_store()
    pyro.param("mine", torch.tensor([1.5]))
    pyro.param("c_shift", torch.tensor([2.5]))  # a name that the guide uses too
    threads = torch.get_num_threads()
    blas = [(pool["internal_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    torch.set_num_threads(2)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 - the state that must not change
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    try:
        with pyro.validation_enabled(True):
            fit(votes)
            assert torch.distributions.Distribution._validate_args
            assert poutine.util.is_validation_enabled()
            assert pyro.infer.util.is_validation_enabled()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert {name: value.tolist() for name, value in pyro.get_param_store().items()} == {"mine": [1.5], "c_shift": [2.5]}
    assert [(pool["internal_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()] == blas
    pyro.clear_param_store()


def test_the_users_switches_do_not_change_the_fit(votes: VoteTable, alone: Fit) -> None:
    torch.manual_seed(4242)
    pyro.param("b_shift", torch.full((votes.n_items,), 3.0))
    with torch.no_grad():
        assert same(fit(votes), alone)
    with torch.inference_mode():
        assert same(fit(votes), alone)
    with poutine.trace() as watch:
        assert same(fit(votes), alone)
    assert list(watch.trace.nodes) == []
    torch.set_default_dtype(torch.float64)
    try:
        assert same(fit(votes), alone)
    finally:
        torch.set_default_dtype(torch.float32)
        pyro.clear_param_store()


def test_a_fit_that_fails_leaves_no_trace(votes: VoteTable, alone: Fit) -> None:
    pyro.clear_param_store()
    state = torch.get_rng_state()

    def stop(progress: Any) -> None:
        if progress.stage == "svi" and progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(votes, on_progress=stop)
    assert len(pyro.get_param_store()) == 0
    assert torch.equal(torch.get_rng_state(), state)
    assert same(fit(votes), alone)


def test_seeds_of_any_size(votes: VoteTable) -> None:
    with pytest.warns(ConvergenceWarning):
        assert fit(votes, seed=2**70, max_steps=2).settings.seed == 2**70


def test_a_frame_is_read_as_votes(alone: Fit, votes: VoteTable) -> None:
    frame = votes.to_frame().rename(columns={"item": "task", "annotator": "worker", "vote": "label"})
    assert isinstance(frame, pd.DataFrame)
    assert same(fit(frame), alone)
