"""The published recipe, run as published: SVI in Pyro from zeros, b in the guide, Adam at 0.1, 10,000 steps.

    c_a ~ N(m_c, s_c^2)      b_i ~ N(0, sigma_b^2)      y ~ Bernoulli(sigmoid(c_a b_i))

after CleanPatrick (arXiv, 2025), section 3.3: for reproduction, not for use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.distributions import constraints
from torch import Tensor

from softgold.models.base import Diagnostics, FloatArray, OnProgress
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.optimise import Optimiser
from softgold.models.crowd.population import Population
from softgold.models.crowd.pyro_scope import pyro_scope
from softgold.models.crowd.settings import CrowdSettings
from softgold.models.crowd.svi_state import SviState
from softgold.tables.votes import VoteTable

STEPS = 10_000
STEP_SIZE = 0.1


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes and the prior as the program takes them."""

    annotator: Tensor
    item: Tensor
    vote: Tensor
    weight: Tensor
    prior: Tensor  # mean and spread of the abilities, spread of the difficulties
    n_annotators: int
    n_items: int

    @classmethod
    def of(cls, votes: VoteTable, population: Population, device: str) -> Votes:
        """Return the tensors of a table and its population."""
        unit = population.unit
        prior = np.array([population.ability_mean / unit, population.ability_sd / unit, unit])
        weight = np.ones(votes.n_votes) if votes.weights is None else votes.weights
        who, what = (torch.tensor(array, device=device).long() for array in (votes.annotator_codes, votes.item_codes))
        vote, times, scales = (torch.tensor(array, device=device).float() for array in (votes.votes, weight, prior))
        return cls(who, what, vote, times, scales, votes.n_annotators, votes.n_items)


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


def run_published(
    votes: VoteTable, state: SviState, settings: CrowdSettings, on_progress: OnProgress
) -> tuple[Skills, FloatArray, FloatArray, Diagnostics]:
    """Run the recipe's steps from zeros, or from where an interrupted run stood.

    Return Normals of the abilities (in the model's unit), means and spreads of b (in its own), and how it went.
    """
    cap = settings.max_steps or STEPS
    with pyro_scope(settings.seed, votes.n_votes):
        optimiser = Optimiser(model, guide, lambda parameter: STEP_SIZE, device=settings.device)
        data = Votes.of(votes, state.population, settings.device)
        optimiser.restore(state, data)
        while len(optimiser.trace) < cap:
            optimiser.step(data)
            optimiser.report(on_progress, cap, state)
        last = {name: value.cpu().numpy().astype(np.float64) for name, value in optimiser.parameters().items()}
    skills, unit = Skills.at(state.population, votes.n_annotators), state.population.unit
    skills.mean[:, 0], skills.cov[:, 0] = last["c_mean"] * unit, (last["c_sd"] * unit) ** 2
    # The recipe runs its steps out by design; whether it has settled is not asked.
    elbo, done = tuple(optimiser.trace), len(optimiser.trace) >= STEPS
    reason = "the steps of the published recipe were run" if done else "the cap on steps was reached"
    return skills, last["b_mean"], last["b_sd"], Diagnostics(len(elbo), converged=done, reason=reason, elbo=elbo)
