"""The crowd models as a Pyro program: what SVI and NUTS both run.

Only annotators are sampled. An item is local and has few states, so it is integrated out:

    skill_a = (c_a, d_a) ~ N(population)
    log P(votes on item i | skills) = log sum over states k of P(k) prod over votes P(y | c_a b_k + d_a + u_k)

A mini-batch of items with its plate's scale gives an unbiased bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, repeat
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag, softplus

from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.population import Population
from softgold.models.crowd.states import States
from softgold.tables.parts import PartVotes

LOG_TWO_PI = math.log(2 * math.pi)

Select = Callable[[NDArray[np.int64]], PartVotes]  # gives the votes on some items, which ascend, wherever they are


@dataclass(frozen=True, eq=False)
class ItemBatch:
    """The votes on some items.

    Attributes:
        n_items: Number of items I in the whole table.
        weights: Weight of each vote, shape (v,), or None.
        items: Numbers of the items at hand, shape (n,).
        annotators: The annotators who voted on them, shape (a,).
        columns: Place of each vote among `annotators`, plus a where it is a yes vote, sorted by item, shape (v,).
        offsets: Where the votes of each item start, shape (n,).
    """

    n_items: int
    weights: Tensor | None
    items: Tensor
    annotators: Tensor
    columns: Tensor
    offsets: Tensor


def item_batches(
    select: Select, n_items: int, size: int, seed: int, *, first: int = 0, device: str = "cpu", dtype: torch.dtype
) -> Iterator[ItemBatch]:
    """Yield the whole table again and again, or random batches of `size` items, from number `first` on."""

    def batch(items: NDArray[np.int64]) -> ItemBatch:
        some = select(items)
        annotators, place = np.unique(some.annotators, return_inverse=True)
        columns = place + len(annotators) * some.votes.astype(np.int64)
        weights = None if some.weights is None else torch.tensor(some.weights, dtype=dtype, device=device)
        arrays = (items, annotators.astype(np.int64), columns, some.starts[:-1])
        return ItemBatch(n_items, weights, *(torch.as_tensor(array, device=device) for array in arrays))

    if size >= n_items:
        yield from repeat(batch(np.arange(n_items)))

    def random_batch(number: int) -> ItemBatch:
        rng = np.random.default_rng([seed, number])  # a run that goes on need not draw the earlier batches again
        return batch(np.sort(rng.choice(n_items, size, replace=False)))

    with ThreadPoolExecutor(1) as ahead:  # the next batch is made during a step
        waiting = ahead.submit(random_batch, first)
        for number in count(first + 1):
            found, waiting = waiting, ahead.submit(random_batch, number)
            yield found.result()


@dataclass(frozen=True, eq=False)
class Model:
    """What the program needs besides votes: population and states, as tensors.

    Attributes:
        centre: Mean of ability and lean in the population, shape (2,).
        spread: Their standard deviations, shape (2,).
        features: What ability and lean are multiplied with in each state, shape (2, K).
        u: Pull in each state, shape (K,).
        log_prior: Log prior of the states, shape (K,).
    """

    centre: Tensor
    spread: Tensor
    features: Tensor
    u: Tensor
    log_prior: Tensor

    @classmethod
    def of(cls, population: Population, states: States, *, device: str = "cpu", dtype: torch.dtype) -> Model:
        """Return the tensors of a population and its states."""
        arrays = (population.centre, population.spread, states.features.T, states.u, states.log_prior)
        return cls(*(torch.tensor(array, dtype=dtype, device=device) for array in arrays))

    def state_scores(self, skill: Tensor, batch: ItemBatch) -> Tensor:
        """Return the log joint probability of each item's votes and state, shape (n, K)."""
        some = skill.index_select(0, batch.annotators)
        x = torch.addmm(self.u, some, self.features)
        no = -softplus(x)
        table = torch.cat([no, no + x])
        rows = embedding_bag(batch.columns, table, batch.offsets, mode="sum", per_sample_weights=batch.weights)
        return rows + self.log_prior


def model(batch: ItemBatch, task: Model, start: Skills) -> None:
    """Annotators from their population, items summed out."""
    with pyro.plate("annotator", len(start.mean)):
        skill = pyro.sample("skill", dist.Normal(task.centre, task.spread).to_event(1))
    with pyro.plate("item", batch.n_items, subsample=batch.items):
        pyro.factor("votes", torch.logsumexp(task.state_scores(skill, batch), dim=1))


class SkillNormal(dist.TorchDistribution):
    """Two-dimensional Normals, given by means and Cholesky factors, element by element.

    The density does not pass gradients to its own parameters, only to the draw. The part of the bound's gradient that
    this leaves out is zero on average and noisy ("sticking the landing", Roeder, Wu and Duvenaud, 2017); without it,
    the gradient's noise fades as the guide comes to fit.

    Args:
        loc: Means, shape (A, 2).
        root: Cholesky factors as rows (cc, dc, dd), shape (A, 3).
    """

    has_rsample = True

    def __init__(self, loc: Tensor, root: Tensor) -> None:
        self.loc, self.root = loc, root
        super().__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> SkillNormal:
        """Return the distribution itself: its plate has its own size."""
        return self

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, with gradients."""
        noise = torch.randn(*sample_shape, *self.loc.shape, dtype=self.loc.dtype, device=self.loc.device)
        ability, lean = noise.unbind(-1)
        moves = (self.root[:, 0] * ability, self.root[:, 1] * ability + self.root[:, 2] * lean)
        return self.loc + torch.stack(moves, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density at `value`, with the parameters held."""
        gap, root = value - self.loc.detach(), self.root.detach()
        first = gap[..., 0] / root[:, 0]
        second = (gap[..., 1] - root[:, 1] * first) / root[:, 2]
        return -0.5 * (first**2 + second**2) - (root[:, 0] * root[:, 2]).log() - LOG_TWO_PI


def guide(batch: ItemBatch, task: Model, start: Skills) -> None:
    """One Normal per annotator, with a full covariance.

    Parameters are in units of the starting Normals: a prolific annotator's narrow factor and a newcomer's wide one
    then take steps of the same relative size.
    """
    count = len(start.mean)
    shapes = {"shift": (count, 2), "stretch": (count, 2), "turn": (count,)}
    parameters = {name: pyro.param(name, torch.zeros(shape).to(task.centre)) for name, shape in shapes.items()}
    with pyro.plate("annotator", count):
        pyro.sample("skill", SkillNormal(*_normals(start, **parameters)))


def _normals(start: Skills, shift: Tensor, stretch: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and Cholesky factors of the guide's Normals: those of the start, shifted, stretched and turned."""
    (mean, first, below, rest), widths = _start_tensors(start, shift.dtype, shift.device), stretch.exp()
    moves = (first * shift[:, 0], below * shift[:, 0] + rest * shift[:, 1])
    factors = (first * widths[:, 0], below * widths[:, 0] + rest * turn, rest * widths[:, 1])
    return mean + torch.stack(moves, -1), torch.stack(factors, -1)


@lru_cache(maxsize=1)  # every step of a fit asks for the same
def _start_tensors(start: Skills, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the means of the starting Normals, (A, 2), and the three columns of their Cholesky factors, each (A,)."""
    mean, cov = (torch.as_tensor(array).to(device, dtype) for array in (start.mean, start.cov))
    c, cd, d = cov.unbind(1)
    first = c.sqrt()
    below = cd / first
    return mean, first, below, (d - below**2).clamp_min(1e-12).sqrt()


def skills_of(start: Skills, parameters: dict[str, Tensor]) -> Skills:
    """Return the Normals that the guide has with these parameters."""
    exact = {name: value.cpu().double() for name, value in parameters.items()}
    mean, root = (value.numpy() for value in _normals(start, **exact))
    cc, dc, dd = root.T
    return Skills(mean, np.column_stack([cc**2, cc * dc, dc**2 + dd**2]))
