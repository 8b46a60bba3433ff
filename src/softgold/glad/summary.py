"""From factors to what is reported of an item: moments, interval, P(b > 0), and the vote to expect of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from softgold.glad.factors import Factor, NormalPrior, is_narrow, local_factor
from softgold.glad.grid import SinhGrid
from softgold.glad.normals import HERMITE_MASS, HERMITE_NODES
from softgold.softlabels import binary_entropy

__all__ = ["ItemSummary", "Pool", "quantiles", "summarise_exact", "summarise_normal"]

FloatArray = NDArray[np.float64]

INTERVAL = (0.025, 0.975)
FINE_NODES = 129
POOL_POINTS = 2001


@dataclass(frozen=True, eq=False)
class Pool:
    """The fitted population of annotators, each counted by their votes: P(vote = 1 | b) of one drawn from it.

    Attributes:
        grid: Grid of |b|.
        share: P(vote = 1 | b) - 1/2 on the grid, shape (count,); odd in b.
        entropy: Entropy of such a vote on the grid, shape (count,); even in b.
    """

    grid: SinhGrid
    share: FloatArray
    entropy: FloatArray

    @classmethod
    def of(cls, nodes: FloatArray, mass: FloatArray, counts: NDArray[np.int64], grid: SinhGrid) -> Pool:
        """Return the pool of annotators with these discrete abilities, shape (A, N), and numbers of votes (A,)."""
        weight = mass * (counts / counts.sum())[:, None]
        abilities, shares = _condensed(nodes.ravel(), weight.ravel())
        share = 0.5 * shares @ np.tanh(0.5 * abilities[:, None] * grid.nodes)
        return cls(grid, share, binary_entropy(np.clip(0.5 + share, 0.0, 1.0)))

    def expected_vote(self, b: FloatArray) -> FloatArray:
        """Return P(vote = 1 | b)."""
        return 0.5 + np.sign(b) * np.interp(np.abs(b), self.grid.nodes, self.share)

    def vote_entropy(self, b: FloatArray) -> FloatArray:
        """Return the entropy of a vote on an item with this b."""
        return np.interp(np.abs(b), self.grid.nodes, self.entropy)


def _condensed(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move point masses to a fine sinh-spaced grid, each shared between its two neighbours."""
    position = np.arcsinh(points)
    low, high = float(position.min()), float(position.max())
    step = max(high - low, 1e-12) / (POOL_POINTS - 1)
    place = (position - low) / step
    left = np.minimum(place.astype(np.intp), POOL_POINTS - 2)
    part = place - left
    shares = np.zeros(POOL_POINTS)
    shares += np.bincount(left, weights * (1 - part), POOL_POINTS)
    shares += np.bincount(left + 1, weights * part, POOL_POINTS)
    return np.sinh(low + step * np.arange(POOL_POINTS)), shares


@dataclass(frozen=True, eq=False)
class ItemSummary:
    """What is reported of I items, each array of shape (I,).

    Attributes:
        mean: Posterior mean of b.
        sd: Posterior standard deviation of b.
        low: Lower end of the 95 % credible interval.
        high: Upper end.
        positive: P(b > 0), the soft label.
        expected_vote: Share of positive votes to expect from the pool.
        expected_entropy: Mean entropy of a vote given b: what further votes cannot remove.
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    positive: FloatArray
    expected_vote: FloatArray
    expected_entropy: FloatArray

    def scaled(self, unit: float) -> ItemSummary:
        """Return the summary with b in other units."""
        return ItemSummary(
            self.mean * unit,
            self.sd * unit,
            self.low * unit,
            self.high * unit,
            self.positive,
            self.expected_vote,
            self.expected_entropy,
        )

    def mirrored(self, certainty: FloatArray) -> ItemSummary:
        """Return the mixture of each item with its mirror image, the former with probability `certainty`, shape (I,).

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
            positive=np.where(unsure, certainty * self.positive + (1 - certainty) * (1 - self.positive), self.positive),
        )

    @staticmethod
    def concatenate(parts: list[ItemSummary]) -> ItemSummary:
        """Return the summaries of several chunks as one."""
        return ItemSummary(
            *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(ItemSummary))
        )


def quantiles(nodes: FloatArray, mass: FloatArray, levels: tuple[float, ...]) -> tuple[FloatArray, ...]:
    """Return quantiles of rows of point masses, nodes ascending and of shape (R, N) or (N,), mass of shape (R, N).

    The masses are those of a trapezoid rule, so that a smooth density is known between the nodes as well: the share
    below a node has an end correction, and between two nodes the Normal score of that share is as good as straight.
    """
    nodes = np.broadcast_to(nodes, mass.shape)
    below = np.cumsum(mass, axis=1) - mass / 2
    last = mass.shape[1] - 1
    rows = np.arange(len(mass))

    def score(at: NDArray[np.intp]) -> FloatArray:
        slope = (mass[rows, np.minimum(at + 1, last)] - mass[rows, np.maximum(at - 1, 0)]) / 2
        scores: FloatArray = ndtri(np.clip(below[rows, at] - slope / 12, 1e-12, 1 - 1e-12))
        return scores

    found = []
    for level in levels:
        right = np.clip((below < level).sum(axis=1), 1, last)
        left = right - 1
        low, high = score(left), score(right)
        share = np.clip((ndtri(level) - low) / np.maximum(high - low, 1e-12), -0.5, 1.5)
        found.append(nodes[rows, left] + share * (nodes[rows, right] - nodes[rows, left]))
    return tuple(found)


def summarise_exact(
    factor: Factor, eta: FloatArray, penalty: FloatArray, prior: NormalPrior, pool: Pool
) -> ItemSummary:
    """Summarise the exact factors of a chunk (other arguments as in `factors.shared_grid_factor`)."""
    grid = pool.grid
    summary = _on_grid(factor, eta, pool)
    narrow = is_narrow(factor, grid)
    if narrow.any():
        fine = local_factor(eta[narrow], penalty[narrow].astype(np.float64), prior, grid, FINE_NODES)
        for name, values in vars(_on_nodes(fine, pool)).items():
            getattr(summary, name)[narrow] = values
    return summary


def _on_grid(factor: Factor, eta: FloatArray, pool: Pool) -> ItemSummary:
    x = pool.grid.nodes
    kind = factor.table.dtype
    up = np.exp(np.clip(-2 * eta[:, None] * x, -80, 80).astype(kind))
    up += 1
    np.divide(factor.table, up, out=up)
    down = factor.table - up
    signed = np.concatenate([-x[:0:-1], x])
    middle = factor.table[:, :1]
    low, high = quantiles(signed, np.concatenate([down[:, :0:-1], middle, up[:, 1:]], axis=1), INTERVAL)
    expected_vote = 0.5 + (up - down) @ pool.share.astype(kind)
    expected_entropy = factor.table @ pool.entropy.astype(kind)
    columns = (factor.mean, factor.sd, low, high, factor.positive, expected_vote, expected_entropy)
    return ItemSummary(*(np.array(column, dtype=np.float64) for column in columns))


def _on_nodes(factor: Factor, pool: Pool) -> ItemSummary:
    nodes, mass, _ = factor.points
    low, high = quantiles(nodes, mass, INTERVAL)
    expected_vote = (mass * pool.expected_vote(nodes)).sum(axis=1)
    expected_entropy = (mass * pool.vote_entropy(nodes)).sum(axis=1)
    return ItemSummary(factor.mean, factor.sd, low, high, factor.positive, expected_vote, expected_entropy)


def summarise_normal(mean: FloatArray, sd: FloatArray, pool: Pool) -> ItemSummary:
    """Summarise Normal factors, each array of shape (I,)."""
    nodes = mean[:, None] + sd[:, None] * HERMITE_NODES
    reach = float(ndtri(INTERVAL[1])) * sd
    expected_vote, expected_entropy = pool.expected_vote(nodes) @ HERMITE_MASS, pool.vote_entropy(nodes) @ HERMITE_MASS
    return ItemSummary(mean, sd, mean - reach, mean + reach, ndtr(mean / sd), expected_vote, expected_entropy)
