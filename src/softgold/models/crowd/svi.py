"""The svi engine: stochastic variational inference in Pyro over annotators, items integrated out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.coordinate import Problem, learn_population
from softgold.models.crowd.optimise import Optimiser, Schedule, check_device
from softgold.models.crowd.priors import Population
from softgold.models.crowd.program import Model, guide, item_batches, model, skills_of
from softgold.models.crowd.pyro_scope import pyro_scope
from softgold.models.crowd.svi_state import SviState
from softgold.models.crowd.threads import worker_pool
from softgold.tables.votes import VoteTable

__all__ = ["MAX_STEPS", "SviResult", "run_svi"]

FloatArray = NDArray[np.float64]

MAX_STEPS, BURN_IN = 1_000, 200
BATCH_VOTES, FEWEST_ITEMS = 10_000, 256  # of a mini-batch, where the size is not given
# The start is the best of the Normals that know nothing of each other: means need not go far, widths must grow.
STEP_SIZES = {"shift": 0.002, "stretch": 0.01, "turn": 0.01}
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


def run_svi(
    votes: VoteTable,
    problem: Problem,
    start: Skills,
    population: Population,
    *,
    seed: int,
    max_steps: int = MAX_STEPS,
    batch_items: int | None = None,
    device: str = "cpu",
    on_step: Callable[[int, float, Callable[[], SviState]], None] = lambda step, elbo, snapshot: None,
    resume: SviState | None = None,
) -> SviResult:
    """Maximise the bound from `start`, the coordinate engine's solution.

    After each window of steps the hyper-parameters take their closed form, given the annotators as averaged so far.
    `on_step` gets the number of steps done, the bound, and a function that gives the state from which to go on;
    `resume` is such a state, of a run with the same arguments.
    """
    check_device(device)
    dtype = torch.float32
    schedule = Schedule(STEP_SIZES, max_steps, BURN_IN)
    size = batch_items or max(FEWEST_ITEMS, round(BATCH_VOTES * votes.n_items / votes.n_votes))

    def task_of(values: Population) -> Model:
        return Model.of(values, problem.prior.states(values, problem.lattice), device=device, dtype=dtype)

    votes_per_step = votes.n_votes * min(size, votes.n_items) // votes.n_items
    with pyro_scope(seed, votes_per_step), worker_pool() as pool:
        optimiser = Optimiser(model, guide, schedule, device)
        done = 0 if resume is None else len(resume.elbo)
        batches = item_batches(votes, size, seed, first=done, device=device, dtype=dtype)
        task = task_of(population)
        if resume is not None:
            population, task = resume.population, task_of(resume.population)
            optimiser.restore(resume.parameters, resume.random, list(resume.elbo), next(batches), task, start)
            batches = item_batches(votes, size, seed, first=done, device=device, dtype=dtype)

        def snapshot() -> SviState:
            return SviState(start, population, *optimiser.snapshot(), tuple(optimiser.trace))

        converged = optimiser.has_settled(TOLERANCE)
        while len(optimiser.trace) < max_steps and not converged:
            optimiser.step(next(batches), task, start)
            if optimiser.at_window_end:
                skills = skills_of(start, optimiser.means())
                population, _ = learn_population(problem, skills, population, pool)
                task = task_of(population)
            on_step(len(optimiser.trace), optimiser.trace[-1], snapshot)
            converged = optimiser.has_settled(TOLERANCE)
        skills = skills_of(start, optimiser.means())
        population = _settled(problem, skills, population, pool)
    return SviResult(skills, population, tuple(optimiser.trace), converged)


def _settled(problem: Problem, skills: Skills, population: Population, pool: ThreadPoolExecutor) -> Population:
    """Return the hyper-parameters at which the soft labels rest, given the annotators."""
    before: FloatArray | None = None
    for _ in range(SETTLING_PASSES):
        learned, positive = learn_population(problem, skills, population, pool)
        if before is not None and np.abs(positive - before).max() < P_TOLERANCE:
            break
        population, before = learned, positive
    return population
