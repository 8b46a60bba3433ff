"""The svi engine: stochastic variational inference in Pyro over annotators, items integrated out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch

from softgold.models.base import Diagnostics, OnProgress
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.coordinate import Problem, learn_population
from softgold.models.crowd.optimise import Optimiser
from softgold.models.crowd.population import Population
from softgold.models.crowd.program import ItemVotes, Model, guide, item_batches, model, skills_of
from softgold.models.crowd.pyro_scope import pyro_scope
from softgold.models.crowd.settings import CrowdSettings
from softgold.models.crowd.svi_state import SviState
from softgold.models.crowd.threads import worker_pool
from softgold.tables.votes import VoteTable

MAX_STEPS, BURN_IN = 1_000, 200
BATCH_VOTES, FEWEST_ITEMS = 10_000, 256  # of a mini-batch, where the size is not given
# The start is the best fit of independent Normals: the means are near, the widths must grow.
STEP_SIZES = {"shift": 0.002, "stretch": 0.01, "turn": 0.01}
DECAY = 0.1 ** (1 / 500)  # of the step sizes, per step: they end at about a tenth, so that seeds hardly matter
TOLERANCE = 1e-4  # of the bound, between two windows
P_TOLERANCE = 1e-4
SETTLING_PASSES = 8


@dataclass(frozen=True, eq=False)
class SviResult:
    """Annotators and hyper-parameters as fitted, and how the optimisation went."""

    skills: Skills
    population: Population
    elbo: tuple[float, ...]
    converged: bool

    def course(self, sweeps: int) -> Diagnostics:
        """Return how the optimisation went, after some sweeps of the coordinate engine."""
        reason = "the smoothed bound has settled" if self.converged else "the cap on steps was reached"
        return Diagnostics(len(self.elbo), sweeps, converged=self.converged, reason=reason, elbo=self.elbo)


def run_svi(
    votes: VoteTable | ItemVotes, problem: Problem, state: SviState, settings: CrowdSettings, on_progress: OnProgress
) -> SviResult:
    """Maximise the bound from `state`: the coordinate engine's solution, or where an interrupted run stood.

    After each window of steps the hyper-parameters take their closed form, given the annotators as averaged so far.
    """
    start, population, done = state.start, state.population, len(state.elbo)
    seed, cap = settings.seed, settings.max_steps or MAX_STEPS
    size = settings.batch_items or max(FEWEST_ITEMS, round(BATCH_VOTES * votes.n_items / votes.n_votes))
    where: dict[str, Any] = {"device": settings.device, "dtype": torch.float32}

    def task_of(values: Population) -> Model:
        return Model.of(values, problem.prior.states(values, problem.lattice), **where)

    votes_per_step = votes.n_votes * min(size, votes.n_items) // votes.n_items
    with pyro_scope(seed, votes_per_step), worker_pool() as pool:
        optimiser = Optimiser(model, guide, STEP_SIZES.__getitem__, BURN_IN, settings.device, DECAY)
        task, batches = task_of(population), item_batches(votes, size, seed, first=done, **where)
        batch = next(batches)
        optimiser.restore(state, batch, task, start)
        converged = optimiser.has_settled(TOLERANCE)
        while len(optimiser.trace) < cap and not converged:
            optimiser.step(batch, task, start)
            if optimiser.at_window_end:
                skills = skills_of(start, optimiser.means())
                population, _ = learn_population(problem, skills, population, pool)
                task = task_of(population)
            optimiser.report(on_progress, cap, replace(state, population=population))
            converged = optimiser.has_settled(TOLERANCE)
            batch = next(batches)
        skills = skills_of(start, optimiser.means())
        population = _settled(problem, skills, population, pool)
    return SviResult(skills, population, tuple(optimiser.trace), converged)


def _settled(problem: Problem, skills: Skills, population: Population, pool: ThreadPoolExecutor) -> Population:
    """Return the hyper-parameters at which the soft labels rest, given the annotators."""
    for number in range(SETTLING_PASSES):
        learned, change = learn_population(problem, skills, population, pool, number)
        if change < P_TOLERANCE:
            break
        population = learned
    return population
