"""Draws from the posterior by NUTS on the same Pyro program that SVI runs: the reference for both engines.

For tables of some hundred votes: it takes minutes where an engine takes a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pyro.infer import MCMC, NUTS
from pyro.infer.autoguide import init_to_value

from softgold.models.base import FloatArray
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.program import Model, item_batches, model
from softgold.models.crowd.pyro_scope import pyro_scope
from softgold.tables.votes import VoteTable


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """D draws given the hyper-parameters of a fit.

    Attributes:
        ability: Abilities in the model's unit, shape (D, A).
        lean: Leans, shape (D, A); zero where the model has none.
        positive: P(z = 1) of each item, averaged over the draws, shape (I,).
        r_hat: Largest split Gelman-Rubin statistic of any annotator; well above 1.05 the chain has not mixed.
    """

    ability: FloatArray
    lean: FloatArray
    positive: FloatArray
    r_hat: float


def draw_posterior(
    votes: VoteTable, fitted: CrowdPosterior, *, draws: int = 1000, warmup: int = 500, seed: int = 0
) -> PosteriorDraws:
    """Draw annotators by NUTS at the hyper-parameters of a fit, and sum the items out exactly for each draw.

    Args:
        votes: The votes, in one component.
        fitted: A fit of these votes: hyper-parameters, states, and where the chain starts.
        draws: Number of draws D kept.
        warmup: Draws before them, in which the sampler adapts.
        seed: Seed of the sampler.
    """
    states = fitted.states
    task = Model.of(fitted.population, states, dtype=torch.float64)
    batch = next(item_batches(votes.by_item().select, votes.n_items, votes.n_items, seed, dtype=torch.float64))
    with pyro_scope(seed, votes.n_votes):
        start = init_to_value(values={"skill": torch.as_tensor(fitted.skills.mean)})
        chain = MCMC(NUTS(model, init_strategy=start), num_samples=draws, warmup_steps=warmup, disable_progbar=True)
        chain.run(batch, task, fitted.skills)
        skill = chain.get_samples()["skill"]
        r_hat = float(chain.diagnostics()["skill"]["r_hat"].max())
        chance = torch.as_tensor(states.positive)
        rows = torch.stack([torch.softmax(task.state_scores(one, batch), 1) @ chance for one in skill])
    ability, lean = skill.numpy().transpose(2, 0, 1)
    return PosteriorDraws(ability, lean * states.lean, rows.mean(0).numpy(), r_hat)
