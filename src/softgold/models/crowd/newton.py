"""Newton's method for a start that is near the end, as where an earlier fit of nearly the same votes stood.

Close to its end a plain sweep shrinks the distance little, and in as many directions as there are annotators, so that
acceleration by a few former sweeps needs many. A Newton step solves for the end with the linear map of `linear`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Skills, newton_step, respond
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.coordinate import Basis, CoordinateState, Problem, bound_of, jumped, recall
from softgold.models.crowd.drivers import ChunkDriver
from softgold.models.crowd.items import rate_slopes
from softgold.models.crowd.linear import LinearSweep, Shown, StateBasis
from softgold.models.crowd.threads import worker_pool

NEAR_ENOUGH = 3e-4  # distance of p from its end; plain sweeps stop by how little they move p, and may be farther off
TOLERANCE = 0.003  # of the linear solve
MOST_PRODUCTS = 30
LOCAL_STEPS = (0.5, 1.0, 0.5)  # half steps: whole ones alone go to and fro for those who always vote the same
FARTHEST = 0.5  # end that is believed, in spreads of the population
LARGEST_GROWTH = 2.0  # of a move over the one before
SMALLEST_RATIO, LARGEST_RATIO = 0.1, 0.9  # of two changes of p, believed


def approach(
    state: CoordinateState,
    problem: Problem,
    driver: ChunkDriver,
    *,
    max_sweeps: int,
    on_sweep: Callable[[CoordinateState], None],
) -> CoordinateState:
    """Sweep with Newton steps until p has settled; where they go astray, return a state for plain sweeps.

    `change` of the state returned is how far p is estimated to be from its end.
    """
    changes: list[float] = []
    before = math.inf
    with worker_pool() as pool:
        while state.sweep < max_sweeps:
            linear, after = _sweep(state, problem, driver, pool)
            move = _solve(linear)
            size = float(np.linalg.norm(move * _weight(linear)))
            if not (size <= LARGEST_GROWTH * before and _reach(linear, move) <= FARTHEST):
                on_sweep(after)
                return CoordinateState.start(linear.target, linear.target_population, sweep=after.sweep)
            before = size
            changes.append(after.change)
            state = jumped(state, _moved(after, linear, move, problem, pool), problem, checked=False)
            remaining = distance(changes)
            state = replace(state, change=remaining, ended=int(remaining < NEAR_ENOUGH))
            on_sweep(state)
            if state.ended:
                break
    return state


def _sweep(
    state: CoordinateState, problem: Problem, driver: ChunkDriver, pool: ThreadPoolExecutor
) -> tuple[LinearSweep, CoordinateState]:
    """Return a sweep as a linear map, and the state with what it found."""
    skills, population, prior = state.skills, state.population, problem.prior
    number, since = state.sweep + 1, recall(state, problem, pool)
    tables = problem.tables(skills, population, pool)
    basis = StateBasis.of(prior, population, problem.lattice, tables.response)
    shown: dict[int, Shown] = {}

    def watch(chunk: VoteChunk, mass: FloatArray) -> None:
        rate = rate_slopes(chunk, skills.mean[:, 0]) if prior.prevalence == "able" else np.zeros(len(chunk.annotators))
        shown[chunk.first_item] = Shown(chunk, basis.covariances(mass), chunk.item_weight @ mass, rate)

    swept = driver.sweep(tables, pool, number=number, since=since, watch=watch)
    parts = tuple(shown[first] for first in sorted(shown))
    linear = LinearSweep(prior, tables, population, swept, basis, parts, driver.annotator_weight)
    bound = bound_of(problem, skills, population, swept)
    basis_of_p = Basis(number, skills, population)
    return linear, replace(state, sweep=number, basis=basis_of_p, elbo=(*state.elbo, bound), change=swept.change)


def _weight(linear: LinearSweep) -> FloatArray:
    """Return what a move counts: in standard deviations, a hyper-parameter as much as all annotators together."""
    each = np.sqrt(linear.weight[:, None] / np.maximum(linear.target.variance, 1e-12))
    return np.concatenate([each.ravel(), np.full(len(linear.hyper), math.sqrt(linear.weight.sum()))])


def _reach(linear: LinearSweep, move: FloatArray) -> float:
    """Return how far annotators move, root mean square, in spreads of their population."""
    shift = move[: linear.skills.mean.size].reshape(-1, 2) / linear.population.spread
    return float(np.sqrt(np.average((shift**2).max(axis=1), weights=linear.weight)))


def _solve(linear: LinearSweep) -> FloatArray:
    """Return the move to the end of the linear map: x = move + map x."""
    weight = _weight(linear)

    def product(scaled: FloatArray) -> FloatArray:
        move = scaled / weight
        return (move - linear.follow(move)) * weight

    operator = LinearOperator((linear.size, linear.size), matvec=product, dtype=np.float64)
    found, _ = gmres(operator, linear.move * weight, rtol=TOLERANCE, restart=MOST_PRODUCTS, maxiter=1)
    move: FloatArray = found / weight
    return move


def _moved(
    state: CoordinateState, linear: LinearSweep, move: FloatArray, problem: Problem, pool: ThreadPoolExecutor
) -> CoordinateState:
    """Return the state after a move, the annotators' covariances brought in line with it."""
    prior, size = problem.prior, linear.skills.mean.size
    population = prior.with_vector(linear.population, linear.hyper + move[size:])
    skills = Skills(linear.skills.mean + move[:size].reshape(-1, 2), linear.target.cov)
    sums, states = linear.sums(move, population), prior.states(population, problem.lattice)
    for length in LOCAL_STEPS:
        skills = newton_step(skills, respond(skills, states, pool), sums, states, population, length)
    return replace(state, skills=skills, population=population)


def distance(changes: list[float]) -> float:
    """Return how far p is estimated to be from its end after a move, given its changes from sweep to sweep.

    The changes shrink by a factor q. After the last one p is q / (1 - q) times the change away, and the move that
    follows shrinks that by q.

    >>> distance([float("inf"), 0.04, 0.01])
    0.0008333333333333334
    """
    known = [change for change in changes if math.isfinite(change)]
    if len(known) < 2:
        return math.inf
    ratio = max(later / max(earlier, 1e-300) for earlier, later in pairwise(known[-3:]))
    ratio = min(max(ratio, SMALLEST_RATIO), LARGEST_RATIO)
    return known[-1] * ratio**2 / (1 - ratio)
