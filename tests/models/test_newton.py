"""The linear map of a sweep, against differences of real sweeps."""

from __future__ import annotations

import numpy as np
import pytest

import softgold
from softgold.models.crowd import newton
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.chunks import vote_chunks
from softgold.models.crowd.coordinate import CoordinateState, Problem, run, start_state
from softgold.models.crowd.drivers import ChunkDriver
from softgold.models.crowd.linear import LinearSweep
from softgold.models.crowd.priors import TwoClassPrior
from softgold.models.crowd.threads import worker_pool


def linear_at(state: CoordinateState, problem: Problem, driver: ChunkDriver) -> LinearSweep:
    with worker_pool() as pool:
        return newton._sweep(CoordinateState.start(state.skills, state.population), problem, driver, pool)[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_linear_map_follows_moves_as_sweeps_do(seed: int) -> None:
    votes = softgold.simulate(n_items=200, n_annotators=15, votes_per_item=5, seed=4).votes
    prior = TwoClassPrior()
    driver = ChunkDriver(vote_chunks(votes), votes.n_items, np.ones(votes.n_annotators))
    problem = Problem(driver, prior, prior.lattice(votes.item_counts))
    state = run(start_state(votes.n_annotators, prior), problem)
    linear = linear_at(state, problem, driver)
    rng, size = np.random.default_rng(seed), state.skills.mean.size
    move = rng.normal(size=linear.size)

    def end(step: float) -> np.ndarray:
        skills = Skills(state.skills.mean + step * move[:size].reshape(-1, 2), state.skills.cov)
        population = prior.with_vector(state.population, prior.vector(state.population) + step * move[size:])
        at = linear_at(CoordinateState.start(skills, population), problem, driver)
        return np.concatenate([at.target.mean.ravel(), at.target_hyper])

    real = (end(1e-4) - end(-1e-4)) / 2e-4
    followed = linear.follow(move)
    assert np.linalg.norm(followed - real) < 0.15 * np.linalg.norm(real)
    assert linear.follow(100 * move) == pytest.approx(100 * followed, rel=1e-3, abs=1e-3)


def test_the_distance_left_follows_from_how_fast_changes_shrink() -> None:
    assert newton.distance([np.inf]) == np.inf
    assert newton.distance([np.inf, 0.1]) == np.inf
    assert newton.distance([np.inf, 0.1, 0.05]) == pytest.approx(0.025)
    assert newton.distance([np.inf, 0.1, 0.05, 0.001]) == pytest.approx(0.0005)  # the slower of the last two
