"""The published recipe, run as published: SVI in Pyro from zeros, b in the guide, Adam at 0.1, 10,000 steps.

    c_a ~ N(m_c, s_c^2)      b_i ~ N(0, sigma_b^2)      y ~ Bernoulli(sigmoid(c_a b_i))

after CleanPatrick (arXiv, 2025), section 3.3: for reproduction, not for use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from numpy.typing import NDArray
from pyro.distributions import constraints
from torch import Tensor

from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.optimise import Optimiser, Schedule, check_device
from softgold.models.crowd.priors import Population
from softgold.models.crowd.pyro_scope import pyro_scope
from softgold.models.crowd.svi_state import SviState
from softgold.tables.votes import VoteTable

__all__ = ["STEPS", "PublishedFit", "run_published"]

FloatArray = NDArray[np.float64]

STEPS = 10_000
STEP_SIZE = 0.1


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes and the prior as the program takes them."""

    annotator: Tensor
    item: Tensor
    vote: Tensor
    weight: Tensor | float
    n_annotators: int
    n_items: int
    prior: Tensor  # mean and spread of the abilities, spread of the difficulties


def model(votes: Votes) -> None:
    """Votes from abilities c and signed difficulties b."""
    with pyro.plate("annotator", votes.n_annotators):
        c = pyro.sample("c", dist.Normal(votes.prior[0], votes.prior[1]))
    with pyro.plate("item", votes.n_items):
        b = pyro.sample("b", dist.Normal(torch.zeros_like(votes.prior[2]), votes.prior[2]))
    logits = c.index_select(-1, votes.annotator) * b.index_select(-1, votes.item)
    with pyro.plate("vote", len(votes.vote)), pyro.poutine.scale(scale=votes.weight):
        pyro.sample("y", dist.Bernoulli(logits=logits), obs=votes.vote)


def guide(votes: Votes) -> None:
    """Independent Normals for every c and b, from N(0, 1)."""
    for plate, name, size in (("annotator", "c", votes.n_annotators), ("item", "b", votes.n_items)):
        mean = pyro.param(f"{name}_mean", torch.zeros(size).to(votes.vote))
        sd = pyro.param(f"{name}_sd", torch.ones(size).to(votes.vote), constraint=constraints.positive)
        with pyro.plate(plate, size):
            pyro.sample(name, dist.Normal(mean, sd))


@dataclass(frozen=True, eq=False)
class PublishedFit:
    """Normals of the abilities (in the model's unit) and of b (in its own), and the bound of each step."""

    skills: Skills
    b_mean: FloatArray
    b_sd: FloatArray
    elbo: tuple[float, ...]


def run_published(
    votes: VoteTable,
    population: Population,
    *,
    seed: int,
    max_steps: int = STEPS,
    device: str = "cpu",
    on_step: Callable[[int, float, Callable[[], SviState]], None] = lambda step, elbo, snapshot: None,
    resume: SviState | None = None,
) -> PublishedFit:
    """Run the recipe's steps; arguments as in `svi.run_svi`."""
    check_device(device)
    weight = 1.0 if votes.weights is None else torch.tensor(votes.weights, dtype=torch.float32, device=device)
    vote, unit = torch.as_tensor(votes.votes.astype(np.float32), device=device), population.unit
    data = Votes(
        torch.as_tensor(votes.annotator_codes.astype(np.int64), device=device),
        torch.as_tensor(votes.item_codes.astype(np.int64), device=device),
        vote,
        weight,
        votes.n_annotators,
        votes.n_items,
        torch.tensor([population.ability_mean / unit, population.ability_sd / unit, unit]).to(vote),
    )
    start = Skills(np.zeros((votes.n_annotators, 2)), np.zeros((votes.n_annotators, 3)))
    with pyro_scope(seed, votes.n_votes):
        optimiser = Optimiser(model, guide, Schedule(STEP_SIZE, max_steps), device)
        if resume is not None:
            optimiser.restore(resume.parameters, resume.random, list(resume.elbo), data)

        def snapshot() -> SviState:
            return SviState(start, population, *optimiser.snapshot(), tuple(optimiser.trace))

        while len(optimiser.trace) < max_steps:
            optimiser.step(data)
            on_step(len(optimiser.trace), optimiser.trace[-1], snapshot)
        last = {name: value.cpu().numpy().astype(np.float64) for name, value in optimiser.parameters().items()}
    mean, cov = start.mean, start.cov
    mean[:, 0], cov[:, 0] = last["c_mean"] * unit, (last["c_sd"] * unit) ** 2
    return PublishedFit(Skills(mean, cov), last["b_mean"], last["b_sd"], tuple(optimiser.trace))
