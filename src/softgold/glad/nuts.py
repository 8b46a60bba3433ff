"""Draws from the exact posterior by NUTS on the same Pyro program that SVI runs: the yardstick for both engines.

For tables of some hundred votes: it takes minutes where an engine takes a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from pyro.infer import MCMC, NUTS

from softgold.glad.fence import fenced_pyro
from softgold.glad.model import Start, VoteTensors, model
from softgold.glad.priors import Prior
from softgold.votes import VoteTable

__all__ = ["PosteriorDraws", "draw_posterior"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """D draws, each turned over if its vote-weighted mean ability is negative, as a fit is.

    Attributes:
        c: Abilities, shape (D, A).
        b: Signed difficulties, shape (D, I).
        scale: Difficulty scale, shape (D,).
        r_hat: Largest split Gelman-Rubin statistic of any b before turning; well above 1.05 the chain has not mixed.
    """

    c: FloatArray
    b: FloatArray
    scale: FloatArray
    r_hat: float

    @property
    def positive(self) -> FloatArray:
        """Share of the draws with b > 0, shape (I,)."""
        share: FloatArray = (self.b > 0).mean(axis=0)
        return share


def draw_posterior(
    votes: VoteTable, prior: Prior | None = None, *, draws: int = 1000, warmup: int = 500, seed: int = 0
) -> PosteriorDraws:
    """Draw from the posterior of a small connected table, the difficulty scale included where it is learned.

    Args:
        votes: The votes; with several components, each would need an orientation of its own.
        prior: Prior; the default one if left out.
        draws: Number of draws D kept.
        warmup: Draws before them, in which the sampler adapts.
        seed: Seed of the sampler.
    """
    chosen = prior or Prior()
    nothing = torch.zeros(0)  # the model does not look at the start of the guide
    with fenced_pyro(seed, votes.n_votes):
        chain = MCMC(NUTS(model), num_samples=draws, warmup_steps=warmup, disable_progbar=True)
        tensors = VoteTensors.of(votes, dtype=torch.float64)
        chain.run(tensors, chosen, Start(nothing, nothing, nothing, nothing, 0.0), True)
        found = {name: values.numpy() for name, values in chain.get_samples().items()}
        r_hat = float(chain.diagnostics()["b"]["r_hat"].max())
    scale = np.exp(found["log_scale"]) if chosen.learned else np.full(draws, chosen.starting_scale)
    upright = np.sign(found["c"] @ votes.annotator_counts)[:, None]
    return PosteriorDraws(upright * found["c"], upright * found["b"] * scale[:, None], scale, r_hat)
