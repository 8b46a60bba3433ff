"""The svi engine: stochastic variational inference in Pyro over annotators, items integrated out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch

from softgold.models.base import Diagnostics, OnProgress
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.coordinate import Problem, learn_population
from softgold.models.crowd.optimise import Optimiser
from softgold.models.crowd.population import Population
from softgold.models.crowd.program import Model, Select, guide, item_batches, model, skills_of
from softgold.models.crowd.pyro_scope import pyro_scope
from softgold.models.crowd.settings import CrowdSettings
from softgold.models.crowd.svi_state import SviState
from softgold.models.crowd.threads import worker_pool

MAX_STEPS, BURN_IN = 1_000, 200
BATCH_VOTES, FEWEST_ITEMS = 10_000, 256  # of a mini-batch, where the size is not given
# The start is the best fit of independent Normals: the means are near, the widths must grow.
STEP_SIZES = {"shift": 0.002, "stretch": 0.01, "turn": 0.01}
DECAY = 0.1 ** (1 / 500)  # of the step sizes, per step: they end at about a tenth, so that seeds hardly matter
TOLERANCE = 1e-4  # of the bound, between two windows
P_TOLERANCE = 1e-4
SETTLING_PASSES = 8


def run_svi(
    select: Select, n_votes: int, problem: Problem, state: SviState, settings: CrowdSettings, on_progress: OnProgress
) -> tuple[Skills, Population, Diagnostics]:
    """Maximise the bound from `state`: the coordinate engine's solution, or where an interrupted run stood.

    After each window of steps the hyper-parameters take their closed form, given the annotators as averaged so far.
    Return annotators and hyper-parameters, and how the optimisation went. `select` gives the votes on some of the
    items of `problem`, which have `n_votes` together.
    """
    start, population, done = state.start, state.population, len(state.elbo)
    seed, cap = settings.seed, settings.max_steps or MAX_STEPS
    n_items = problem.driver.n_items
    size = settings.batch_items or max(FEWEST_ITEMS, round(BATCH_VOTES * n_items / n_votes))
    where: dict[str, Any] = {"device": settings.device, "dtype": torch.float32}

    def task_of(values: Population) -> Model:
        return Model.of(values, problem.prior.states(values, problem.lattice), **where)

    with pyro_scope(seed, n_votes * min(size, n_items) // n_items), worker_pool() as pool:
        optimiser = Optimiser(model, guide, STEP_SIZES.__getitem__, BURN_IN, settings.device, DECAY)
        task, batches = task_of(population), item_batches(select, n_items, size, seed, first=done, **where)
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
    reason = "the smoothed bound has settled" if converged else "the cap on steps was reached"
    elbo = tuple(optimiser.trace)
    return skills, population, Diagnostics(len(elbo), state.sweeps, converged=converged, reason=reason, elbo=elbo)


def _settled(problem: Problem, skills: Skills, population: Population, pool: ThreadPoolExecutor) -> Population:
    """Return the hyper-parameters at which the soft labels rest, given the annotators."""
    for number in range(SETTLING_PASSES):
        learned, change = learn_population(problem, skills, population, pool, number)
        if change < P_TOLERANCE:
            break
        population = learned
    return population
