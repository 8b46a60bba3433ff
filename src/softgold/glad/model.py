"""The model as a Pyro program, and its mean-field guide: the one statement of the model that SVI and NUTS both run.

    c_a ~ N(m_c, s_c^2)      b_i ~ N(0, sigma_b^2)      y ~ Bernoulli(sigmoid(c_a b_i))

after CleanPatrick (arXiv, 2025), section 3.3. Only the product of c and b is seen, so with a vague prior the posterior
is a long ridge along which their ratio changes. Whitening (b in units of sigma_b, and the guide's means in units of its
own starting widths) leaves model and bound as they are and removes the ridge.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyro
import pyro.distributions as dist
import torch
from pyro.distributions import constraints
from torch import Tensor

from softgold.glad.priors import HYPER_MEDIAN, HYPER_SIGMA, Prior
from softgold.votes import VoteTable

__all__ = ["Start", "VoteTensors", "guide", "model"]


@dataclass(frozen=True, eq=False)
class VoteTensors:
    """Votes as tensors; with `items` given, the votes on these items alone, standing for all.

    Attributes:
        annotator: Annotator of each vote, shape (V,).
        item: Position of each vote's item among the items at hand, shape (V,).
        vote: 0 or 1, shape (V,).
        weight: Weight of each vote, shape (V,), or None.
        n_annotators: Number of annotators A.
        n_items: Number of items I in the whole table.
        items: The items at hand when they are a subsample, or None.
    """

    annotator: Tensor
    item: Tensor
    vote: Tensor
    weight: Tensor | None
    n_annotators: int
    n_items: int
    items: Tensor | None = None

    @classmethod
    def of(cls, votes: VoteTable, device: str = "cpu", dtype: torch.dtype = torch.float32) -> VoteTensors:
        """Return the tensors of a whole vote table."""
        return cls(
            torch.as_tensor(votes.annotator_codes.astype("int64"), device=device),
            torch.as_tensor(votes.item_codes.astype("int64"), device=device),
            torch.as_tensor(votes.votes.astype("int8"), device=device).to(dtype),
            None if votes.weights is None else torch.tensor(votes.weights, device=device).to(dtype),
            votes.n_annotators,
            votes.n_items,
        )

    @property
    def vote_scale(self) -> Tensor | float:
        """What each vote's log likelihood is multiplied with: its weight, and the share of items at hand."""
        share = 1.0 if self.items is None else self.n_items / len(self.items)
        return share if self.weight is None else share * self.weight


@dataclass(frozen=True, eq=False)
class Start:
    """Where the guide starts: Normal factors in the model's coordinates, and the log of the difficulty scale."""

    c_mean: Tensor
    c_sd: Tensor
    b_mean: Tensor
    b_sd: Tensor
    log_scale: float


def model(votes: VoteTensors, prior: Prior, start: Start, whitened: bool = True) -> None:
    """Votes from abilities c and signed difficulties, b in units of their scale where `whitened`."""
    scale = _difficulty_scale(prior, votes.vote)
    spread, unit = (torch.ones_like(scale), scale) if whitened else (scale, torch.ones_like(scale))
    with pyro.plate("annotator", votes.n_annotators):
        c = pyro.sample("c", dist.Normal(prior.ability_mean, torch.full_like(scale, prior.ability_scale)))
    with pyro.plate("item", votes.n_items, subsample=votes.items):
        b = pyro.sample("b", dist.Normal(0.0, spread))
    logits = c.index_select(-1, votes.annotator) * (unit * b).index_select(-1, votes.item)
    with pyro.plate("vote", len(votes.vote)), pyro.poutine.scale(scale=votes.vote_scale):
        pyro.sample("y", dist.Bernoulli(logits=logits), obs=votes.vote)


def guide(votes: VoteTensors, prior: Prior, start: Start, whitened: bool = True) -> None:
    """Independent Normals for every c and b, and a point for a learned scale.

    Means move in units of the starting standard deviations: a prolific annotator's narrow factor and a newcomer's wide
    one then take steps of the same relative size.
    """
    if prior.learned:
        pyro.sample(
            "log_scale", dist.Delta(pyro.param("log_scale_point", torch.tensor(start.log_scale).to(start.c_mean)))
        )
    with pyro.plate("annotator", votes.n_annotators):
        pyro.sample("c", _factor("c", start.c_mean, start.c_sd, None))
    with pyro.plate("item", votes.n_items, subsample=votes.items):
        pyro.sample("b", _factor("b", start.b_mean, start.b_sd, votes.items))


class PathNormal(dist.Normal):
    """A Normal whose density does not pass gradients to its own parameters, only to the draw.

    The part of the bound's gradient that this leaves out is zero on average and noisy ("sticking the landing", Roeder,
    Wu and Duvenaud, 2017); without it, the gradient's noise fades as the guide comes to fit.
    """

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density at `value`, with the parameters held."""
        density: Tensor = dist.Normal(self.loc.detach(), self.scale.detach()).log_prob(value)
        return density


def _factor(name: str, mean: Tensor, sd: Tensor, chosen: Tensor | None) -> dist.Normal:
    shift = pyro.param(f"{name}_shift", torch.zeros_like(mean))
    stretch = pyro.param(f"{name}_stretch", torch.ones_like(sd), constraint=constraints.positive)
    loc, width = mean + sd * shift, sd * stretch
    return PathNormal(loc, width) if chosen is None else PathNormal(loc[chosen], width[chosen])


def _difficulty_scale(prior: Prior, like: Tensor) -> Tensor:
    if prior.difficulty_scale is not None:
        return torch.tensor(prior.difficulty_scale).to(like)
    centre = torch.tensor(HYPER_MEDIAN / prior.ability_scale).to(like).log()
    log_scale: Tensor = pyro.sample("log_scale", dist.Normal(centre, HYPER_SIGMA))
    return log_scale.exp()
