"""The published recipe, run as published: SVI in Pyro from zeros, b in the guide, Adam at 0.1, 10,000 steps.

    c_a ~ N(m_c, s_c^2)      b_i ~ N(0, sigma_b^2)      y ~ Bernoulli(sigmoid(c_a b_i))

after CleanPatrick (arXiv, 2025), section 3.3: for reproduction, not for use.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.distributions import constraints

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


def program(votes: VoteTable, population: Population, device: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return the recipe's model of some votes, and its guide."""
    weights, unit = np.ones(votes.n_votes) if votes.weights is None else votes.weights, population.unit
    annotator, item = (torch.tensor(codes, device=device).long() for codes in (votes.annotator_codes, votes.item_codes))
    vote, weight = (torch.tensor(array, device=device).float() for array in (votes.votes, weights))
    mean_c, sd_c, sd_b = vote.new_tensor([population.ability_mean / unit, population.ability_sd / unit, unit])

    def model() -> None:
        """Votes from abilities c and signed difficulties b."""
        with pyro.plate("annotator", votes.n_annotators):
            c = pyro.sample("c", dist.Normal(mean_c, sd_c))
        with pyro.plate("item", votes.n_items):
            b = pyro.sample("b", dist.Normal(torch.zeros_like(sd_b), sd_b))
        logits = c.index_select(-1, annotator) * b.index_select(-1, item)
        with pyro.plate("vote", votes.n_votes), pyro.poutine.scale(scale=weight):
            pyro.sample("y", dist.Bernoulli(logits=logits), obs=vote)

    def guide() -> None:
        """Independent Normals for every c and b, from N(0, 1)."""
        for plate, name, size in (("annotator", "c", votes.n_annotators), ("item", "b", votes.n_items)):
            mean = pyro.param(f"{name}_mean", torch.zeros(size).to(vote))
            sd = pyro.param(f"{name}_sd", torch.ones(size).to(vote), constraint=constraints.positive)
            with pyro.plate(plate, size):
                pyro.sample(name, dist.Normal(mean, sd))

    return model, guide


def run_published(
    votes: VoteTable, state: SviState, settings: CrowdSettings, on_progress: OnProgress
) -> tuple[Skills, FloatArray, FloatArray, Diagnostics]:
    """Run the recipe's steps from zeros, or from where an interrupted run stood.

    Return Normals of the abilities (in the model's unit), means and spreads of b (in its own), and how it went.
    """
    cap = settings.max_steps or STEPS
    with pyro_scope(settings.seed, votes.n_votes):
        model, guide = program(votes, state.population, settings.device)
        optimiser = Optimiser(model, guide, lambda parameter: STEP_SIZE, device=settings.device)
        optimiser.restore(state)
        while len(optimiser.trace) < cap:
            optimiser.step()
            optimiser.report(on_progress, cap, state)
        last = {name: value.cpu().numpy().astype(np.float64) for name, value in optimiser.parameters().items()}
    skills, unit = Skills.at(state.population, votes.n_annotators), state.population.unit
    skills.mean[:, 0], skills.cov[:, 0] = last["c_mean"] * unit, (last["c_sd"] * unit) ** 2
    # The recipe runs its steps out by design; whether it has settled is not asked.
    elbo, done = tuple(optimiser.trace), len(optimiser.trace) >= STEPS
    reason = "the steps of the published recipe were run" if done else "the cap on steps was reached"
    return skills, last["b_mean"], last["b_sd"], Diagnostics(len(elbo), converged=done, reason=reason, elbo=elbo)
