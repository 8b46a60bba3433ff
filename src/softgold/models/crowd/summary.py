"""From the states of items and the factors of annotators to what is reported of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates
from scipy.special import expit, logit, ndtr, ndtri

from softgold.models.crowd.annotators import Response, Skills, in_blocks, respond
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.coordinate import in_order
from softgold.models.crowd.items import item_masses
from softgold.models.crowd.mirror import mix
from softgold.models.crowd.priors import CrowdPrior, Population
from softgold.models.crowd.states import Lattice, States, normal_nodes, quantiles
from softgold.models.crowd.threads import worker_pool
from softgold.tables.soft_labels import binary_entropy
from softgold.tables.votes import VoteTable

__all__ = ["INTERVAL", "ItemSummary", "class_rates", "response_curve", "summarise_items", "summarise_published"]

FloatArray = NDArray[np.float64]

INTERVAL = (0.025, 0.975)
N_POINTS = 128
N_TABLE = 241
FURTHEST = 4.0  # standard deviations that the table of rates covers


@dataclass(frozen=True, eq=False)
class ItemSummary:
    """What is reported of I items, each array of shape (I,); b in its own units.

    Attributes:
        mean: Posterior mean of b.
        sd: Posterior standard deviation of b.
        low: Lower end of the 95 % credible interval.
        high: Upper end.
        positive: p, the soft label.
        expected_vote: Share of positive votes to expect from the annotators of this table.
        expected_entropy: Mean entropy of a vote given the item's state: what further votes cannot remove.
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    positive: FloatArray
    expected_vote: FloatArray
    expected_entropy: FloatArray

    def mixed(self, certainty: FloatArray, odds: FloatArray) -> ItemSummary:
        """Return the mixture of each item with its mirror image; arguments as in `mirror.mix`.

        The vote to expect stays: abilities turn over together with b. An interval reaches over both images.
        """
        unsure = certainty < 1
        mean = np.where(unsure, (2 * certainty - 1) * self.mean, self.mean)
        second = self.sd**2 + self.mean**2
        return replace(
            self,
            mean=mean,
            sd=np.where(unsure, np.sqrt(np.maximum(second - mean**2, 0.0)), self.sd),
            low=np.where(unsure, np.minimum(self.low, -self.high), self.low),
            high=np.where(unsure, np.maximum(self.high, -self.low), self.high),
            positive=mix(self.positive, certainty, odds),
        )

    @staticmethod
    def concatenate(parts: Iterable[ItemSummary]) -> ItemSummary:
        """Return the summaries of several chunks as one."""
        found = list(parts)
        return ItemSummary(
            *(np.concatenate([getattr(part, field.name) for part in found]) for field in fields(ItemSummary))
        )


def response_curve(response: Response, counts: NDArray[np.int64]) -> FloatArray:
    """Return the chance of a yes vote in each state by an annotator of the table, counted by votes, shape (K,)."""
    curve: FloatArray = counts @ response.sigmoid / counts.sum()
    return curve


def summarise_items(
    chunks: Iterable[VoteChunk], skills: Skills, response: Response, states: States, curve: FloatArray, unit: float
) -> ItemSummary:
    """Return the summary of all items, exactly, given the annotators.

    Sums run along rows, so that items with the same votes get the same bits wherever they are in the table.
    """
    entropy = binary_entropy(curve)
    nodes = unit * states.b_nodes

    def work(chunk: VoteChunk) -> ItemSummary:
        mass, _ = item_masses(chunk, skills, response, states)

        def mean_of(values: FloatArray) -> FloatArray:
            found: FloatArray = (mass * values).sum(axis=1)
            return found

        mean = mean_of(unit * states.b)
        variance = (mass * (unit * states.b - mean[:, None]) ** 2).sum(axis=1)
        low, high = quantiles(nodes, states.over_b(mass), INTERVAL)
        positive = np.clip(mean_of(states.positive), 0.0, 1.0)
        return ItemSummary(mean, np.sqrt(variance), low, high, positive, mean_of(curve), mean_of(entropy))

    with worker_pool() as pool:
        return ItemSummary.concatenate(part for _, part in in_order(work, chunks, pool))


def summarise_published(
    votes: VoteTable,
    skills: Skills,
    b_mean: FloatArray,
    b_sd: FloatArray,
    prior: CrowdPrior,
    population: Population,
    lattice: Lattice,
) -> ItemSummary:
    """Return the summary of items as the published recipe has them: b is Normal, and its sign is the class."""
    states = prior.states(population, lattice)
    curve = response_curve(respond(skills, states), votes.annotator_counts)
    nodes, weights = normal_nodes(21)
    chance = np.interp((b_mean[:, None] + b_sd[:, None] * nodes) / population.unit, states.b, curve)
    reach = float(ndtri(INTERVAL[1])) * b_sd
    expected = chance @ weights, binary_entropy(chance) @ weights
    return ItemSummary(b_mean, b_sd, b_mean - reach, b_mean + reach, ndtr(b_mean / b_sd), *expected)


@dataclass(frozen=True, eq=False)
class Rates:
    """A rate of each annotator with its 95 % credible interval, each of shape (A,)."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def class_rates(skills: Skills, states: States, label: int) -> Rates:
    """Return P(vote = label | z = label): sensitivity for label 1, specificity for label 0.

    The rate is a smooth function of (ability, lean), the same for everybody: it is tabulated once, and looked up at
    128 points of each annotator's posterior.
    """
    wide = np.sqrt(np.maximum(skills.cov[:, 0], 1e-24))
    slope = skills.cov[:, 1] / wide
    rest = np.sqrt(np.maximum(skills.cov[:, 2] - slope**2, 0.0))
    first, second = _normal_points()
    table = _RateTable.reaching(skills, states, label)
    found = Rates(*(np.empty(len(wide)) for _ in range(3)))

    def work(rows: slice) -> None:
        ability = skills.mean[rows, :1] + wide[rows, None] * first
        lean = skills.mean[rows, 1:] + slope[rows, None] * first + rest[rows, None] * second
        rates = table.at(ability, lean)
        found.mean[rows] = rates.mean(axis=1)
        found.low[rows], found.high[rows] = np.quantile(rates, INTERVAL, axis=1)

    in_blocks(work, len(wide), N_POINTS, None)
    return found


def _normal_points() -> tuple[FloatArray, FloatArray]:
    """Return well-spread points of a two-dimensional unit Normal, each of shape (N_POINTS,)."""
    golden = 1.32471795724474602596  # root of x^3 = x + 1, for an even spread over the unit square
    steps = np.arange(1, N_POINTS + 1)
    return ndtri((0.5 + steps / golden) % 1), ndtri((0.5 + steps / golden**2) % 1)


@dataclass(frozen=True, eq=False)
class _RateTable:
    """Logit of a rate on a grid of asinh(ability) x asinh(lean)."""

    axes: tuple[FloatArray, FloatArray]
    values: FloatArray

    @classmethod
    def reaching(cls, skills: Skills, states: States, label: int) -> _RateTable:
        """Return a table that covers what the annotators may be like."""
        reach = FURTHEST * np.sqrt(skills.variance)
        low, high = (skills.mean - reach).min(axis=0), (skills.mean + reach).max(axis=0) + 1e-6
        first, last = np.arcsinh(low), np.arcsinh(high)
        axes = tuple(np.linspace(float(first[place]), float(last[place]), N_TABLE) for place in (0, 1))
        c, d = np.sinh(axes[0]), np.sinh(axes[1])
        weight = states.given_class(label)
        yes = np.array([weight @ expit((one * states.b + states.u)[:, None] + d) for one in c])
        yes = np.clip(yes, 1e-12, 1 - 1e-12)
        return cls((axes[0], axes[1]), logit(yes if label else 1 - yes))

    def at(self, ability: FloatArray, lean: FloatArray) -> FloatArray:
        """Return the rate of annotators with these abilities and leans, by interpolation."""
        places = [
            (np.arcsinh(points) - axis[0]) / (axis[1] - axis[0])
            for points, axis in zip((ability, lean), self.axes, strict=True)
        ]
        found: FloatArray = expit(map_coordinates(self.values, places, order=1, mode="nearest"))
        return found
