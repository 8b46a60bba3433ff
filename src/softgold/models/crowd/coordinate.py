"""The coordinate engine: deterministic variational ascent, NumPy and SciPy alone.

A sweep updates every item given the annotators, chunk by chunk, then every annotator given the sums that the chunks
returned, then the hyper-parameters. Plain sweeps converge slowly, so they are accelerated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from softgold.models.base import FloatArray
from softgold.models.crowd.acceleration import History
from softgold.models.crowd.annotators import Skills, annotator_bound, guarded_step, in_blocks, newton_step, respond
from softgold.models.crowd.drivers import Driver, Swept
from softgold.models.crowd.items import Tables
from softgold.models.crowd.packing import Packed
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import CrowdPrior
from softgold.models.crowd.states import Lattice
from softgold.models.crowd.threads import worker_pool

P_TOLERANCE = 1e-4
BOUND_TOLERANCE = 1e-6
MAX_SWEEPS = 500
FIRST_SWEEPS = 2  # plain ones: the start is a point, and says nothing about where the sweeps lead


@dataclass(frozen=True, eq=False)
class Basis:
    """What the p of a sweep follow from: p itself stays with the chunks, and can be computed again.

    Attributes:
        sweep: Number of the sweep; 0 before the first.
        skills: Annotator factors that it began with.
        population: Hyper-parameters that it began with.
    """

    sweep: int
    skills: Skills
    population: Population


@dataclass(frozen=True, eq=False)
class CoordinateState(Packed):
    """Everything that the next sweep needs; a run that goes on from a stored state gives the same numbers.

    Attributes:
        sweep: Sweeps done.
        skills: Annotator factors.
        population: Hyper-parameters.
        basis: What the p that the next change is measured from were computed with.
        elbo: Evidence lower bound of each sweep but the first, which starts at a point.
        change: Largest change of p in the last sweep.
        rejections: Jumps taken back so far.
        plain: Plain sweeps to do before the next jump: one more after every jump that was taken back.
        history: The last sweeps, for acceleration.
        ended: Whether Newton steps have found the end: then `change` is how far p is estimated to be from it.
    """

    sweep: int
    skills: Skills
    population: Population
    basis: Basis
    elbo: tuple[float, ...] = ()
    change: float = math.inf
    rejections: int = 0
    plain: int = 0
    history: History = field(default_factory=History)
    ended: int = 0

    @classmethod
    def start(cls, skills: Skills, population: Population, sweep: int = 0) -> CoordinateState:
        """Return the state before the first sweep, or before plain ones that go on after others."""
        return cls(sweep, skills, population, Basis(0, skills, population))

    @property
    def settled(self) -> bool:
        """Whether the last sweep left the soft labels and the bound where they were."""
        if self.ended:
            return True
        if self.change >= P_TOLERANCE or len(self.elbo) < 2:
            return False
        return abs(self.elbo[-1] - self.elbo[-2]) <= BOUND_TOLERANCE * abs(self.elbo[-1])


def start_state(n_annotators: int, prior: CrowdPrior) -> CoordinateState:
    """Return the consensus start: every annotator equally able, so that all votes weigh the same."""
    population = prior.start()
    cov = [1e-6, 0.0, 1e-6 if population.has_lean else 1.0]
    skills = Skills(np.tile([prior.starting_ability, 0.0], (n_annotators, 1)), np.tile(cov, (n_annotators, 1)))
    return CoordinateState.start(skills, population)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is fitted: the votes, wherever their chunks live, and the prior."""

    driver: Driver
    prior: CrowdPrior
    lattice: Lattice

    def tables(self, skills: Skills, population: Population, pool: ThreadPoolExecutor) -> Tables:
        """Return what a sweep tells every chunk."""
        states = self.prior.states(population, self.lattice)
        return Tables(skills, respond(skills, states, pool), states, self.prior.prevalence)

    def positive(self, state: CoordinateState) -> FloatArray:
        """Return p of the kinds of items as the state has them, shape (n_items,)."""
        return self.driver.positive(state.basis.sweep)


def learn_population(
    problem: Problem, skills: Skills, population: Population, pool: ThreadPoolExecutor, number: int = 0
) -> tuple[Population, float]:
    """Return the hyper-parameters that suit given annotators, and how far p is from that of the call before.

    Calls are numbered from 0, where the change is infinite.
    """
    tables = problem.tables(skills, population, pool)
    swept = problem.driver.sweep(tables, pool, number=number, since=number - 1 if number else None)
    return problem.prior.learn(population, skills, problem.driver.annotator_weight, swept.totals), swept.change


def recall(state: CoordinateState, problem: Problem, pool: ThreadPoolExecutor) -> int | None:
    """Return the number of the sweep that p is measured from, having p computed again where it is not at hand."""
    basis, driver = state.basis, problem.driver
    if not basis.sweep:
        return None
    if not driver.holds(basis.sweep):
        driver.sweep(problem.tables(basis.skills, basis.population, pool), pool, number=basis.sweep, since=None)
    return basis.sweep


def bound_of(problem: Problem, skills: Skills, population: Population, swept: Swept) -> float:
    """Return the evidence lower bound at the start of a sweep."""
    divergence = float(problem.driver.annotator_weight @ annotator_bound(skills, population))
    return swept.totals.bound + divergence + problem.prior.log_density(population)


def update_skills(
    tables: Tables, swept: Swept, population: Population, pool: ThreadPoolExecutor, *, guarded: bool
) -> Skills:
    """Return every annotator after a Newton step from where a sweep began, checked against the bound or not."""
    skills, response = tables.skills, tables.response
    found = Skills(np.empty_like(skills.mean), np.empty_like(skills.cov))
    step = guarded_step if guarded else newton_step

    def work(rows: slice) -> None:
        some = step(skills.take(rows), response.take(rows), swept.sums.take(rows), tables.states, population)
        found.mean[rows], found.cov[rows] = some.mean, some.cov

    in_blocks(work, len(skills.mean), len(tables.states.b), pool)
    return found


def sweep(state: CoordinateState, problem: Problem, pool: ThreadPoolExecutor) -> CoordinateState:
    """Update every item, then every annotator, then the hyper-parameters; jump, unless plain sweeps are left to do.

    A plain sweep that learns no hyper-parameter does not lower the bound.
    """
    skills, population, prior, weight = state.skills, state.population, problem.prior, problem.driver.annotator_weight
    number, since = state.sweep + 1, recall(state, problem, pool)
    tables = problem.tables(skills, population, pool)
    swept = problem.driver.sweep(tables, pool, number=number, since=since)
    guarded = prior.guarded or len(state.history.points) == 0
    found = update_skills(tables, swept, population, pool, guarded=guarded)
    bound = bound_of(problem, skills, population, swept)
    after = replace(
        state,
        sweep=number,
        skills=found,
        population=prior.learn(population, found, weight, swept.totals),
        basis=Basis(number, skills, population),
        elbo=(*state.elbo, bound) if state.sweep else (),
        change=swept.change,
    )
    jump = state.sweep >= FIRST_SWEEPS and not state.plain
    return jumped(state, after, problem) if jump else replace(after, plain=max(state.plain - 1, 0))


def jumped(
    before: CoordinateState, after: CoordinateState, problem: Problem, *, checked: bool = True
) -> CoordinateState:
    """Return `after` moved to where the last sweeps point.

    If checked, and the jump before the last sweep led astray, return `before` without that jump.
    """
    prior = problem.prior
    history = before.history.then(_vector(before, prior), _vector(after, prior))
    weight = _weight(after, problem.driver.annotator_weight, len(history.points[-1]))
    if checked and len(before.history.points):
        fell = after.elbo[-1] < before.elbo[-1] - prior.largest_fall * abs(before.elbo[-1])
        if fell or history.has_worsened(weight):
            plain = _at_vector(before, before.history.last_target, prior)
            rejections = before.rejections + 1
            return replace(plain, sweep=after.sweep, rejections=rejections, plain=rejections, history=History())
    return replace(_at_vector(after, history.jump(weight), prior), history=history)


def _vector(state: CoordinateState, prior: CrowdPrior) -> FloatArray:
    """Return annotator factors and hyper-parameters as unconstrained numbers, shape (5 A + h,)."""
    variance = np.maximum(state.skills.variance, 1e-12)
    correlation = np.clip(state.skills.cov[:, 1] / np.sqrt(variance.prod(axis=1)), -1 + 1e-9, 1 - 1e-9)
    parts = (state.skills.mean.ravel(), np.log(variance).ravel(), np.arctanh(correlation))
    return np.concatenate([*parts, prior.vector(state.population)])


def _at_vector(state: CoordinateState, values: FloatArray, prior: CrowdPrior) -> CoordinateState:
    """Return the state with what `_vector` gives replaced."""
    mean, log_variance, angle, hyper = np.split(values, len(state.skills.mean) * np.array([2, 4, 5]))
    variance = np.exp(log_variance.reshape(-1, 2))
    cov = np.insert(variance, 1, np.tanh(angle) * np.sqrt(variance.prod(axis=1)), axis=1)
    skills = Skills(mean.reshape(-1, 2), cov)
    return replace(state, skills=skills, population=prior.with_vector(state.population, hyper))


def _weight(state: CoordinateState, annotators: FloatArray, size: int) -> FloatArray:
    """Return what a move counts: in standard deviations, a hyper-parameter as much as all annotators together."""
    number = np.sqrt(annotators)
    means = number[:, None] / np.sqrt(np.maximum(state.skills.variance, 1e-12))
    parts = (means.ravel(), math.sqrt(0.5) * np.repeat(number, 2), math.sqrt(0.5) * number)
    return np.concatenate([*parts, np.full(size - 5 * len(number), math.sqrt(annotators.sum()))])


def run(
    state: CoordinateState,
    problem: Problem,
    *,
    max_sweeps: int = MAX_SWEEPS,
    on_sweep: Callable[[CoordinateState], None] = lambda state: None,
) -> CoordinateState:
    """Sweep until the soft labels and the bound have settled, or the cap is reached; return the last state."""
    with worker_pool() as pool:
        while state.sweep < max_sweeps and not state.settled:
            state = sweep(state, problem, pool)
            on_sweep(state)
        recall(state, problem, pool)  # a state that was resumed at its end
    return state
