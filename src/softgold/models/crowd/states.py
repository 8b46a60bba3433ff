"""The states that an item can be in: everything that is said of an item is a sum over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from softgold.models.base import FloatArray


def normal_nodes(count: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Hermite nodes and weights: the mean of f(x), x ~ N(0, 1), is weights @ f(nodes).

    >>> nodes, weights = normal_nodes(3)
    >>> float((weights * nodes**2).sum().round(12))
    1.0
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def sinh_nodes(reach: float, *, finest: float, step: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes from -reach to reach, evenly spaced in asinh(x / finest), and the width that each stands for.

    Zero lies between two nodes: the sum over those above it is a midpoint rule, with half the error of a trapezoid's.
    """
    count = int(np.ceil(np.arcsinh(reach / finest) / step + 0.5))
    t = step * (np.arange(-count, count) + 0.5)
    return finest * np.sinh(t), finest * step * np.cosh(t)


@dataclass(frozen=True, eq=False)
class Lattice:
    """Where the states are, before hyper-parameters: nodes of b and of the pull.

    Attributes:
        b: Nodes of b in the model's unit, ascending, symmetric around zero, shape (B,).
        width: Width that each node of b stands for, shape (B,).
        pull: Nodes of the pull for a unit Normal, shape (U,).
        pull_weight: Their weights, shape (U,).
    """

    b: FloatArray
    width: FloatArray
    pull: FloatArray
    pull_weight: FloatArray


@dataclass(frozen=True, eq=False)
class States:
    """K = B * U states (b, u) of an item with their prior; b in the model's unit.

    Attributes:
        b: What the item looks like, shape (K,), in ascending blocks of `n_pulls`.
        u: Pull, shape (K,).
        log_prior: Log prior probability, shape (K,).
        positive: P(z = 1 | state), shape (K,).
        pull_score: Derivative of the log prior of u by the log of its spread, shape (K,).
        n_pulls: Number U of different pulls.
        lean: 1 where votes depend on the annotators' lean, x = c b + d + u; 0 where x = c b + u.
    """

    b: FloatArray
    u: FloatArray
    log_prior: FloatArray
    positive: FloatArray
    pull_score: FloatArray
    n_pulls: int
    lean: float

    @classmethod
    def of(cls, lattice: Lattice, log_density: FloatArray, positive: FloatArray, pull_sd: float, lean: bool) -> States:
        """Return the states of a lattice, given log density and P(z = 1) at the nodes of b, each of shape (B,)."""
        pulls = len(lattice.pull)
        b, pull = np.repeat(lattice.b, pulls), np.tile(lattice.pull, len(lattice.b))
        table = (log_density + np.log(lattice.width))[:, None] + np.log(lattice.pull_weight)
        log_prior = (table - np.logaddexp.reduce(table, axis=None)).ravel()
        return cls(b, pull_sd * pull, log_prior, np.repeat(positive, pulls), pull**2 - 1, pulls, float(lean))

    @property
    def features(self) -> FloatArray:
        """What ability and lean are multiplied with, shape (K, 2)."""
        return np.column_stack([self.b, np.full_like(self.b, self.lean)])

    def given_class(self, label: int) -> FloatArray:
        """Return the prior probability of each state among the items of one class, shape (K,)."""
        weight: FloatArray = np.exp(self.log_prior) * (self.positive if label else 1 - self.positive)
        return weight / float(weight.sum())


def quantiles(nodes: FloatArray, mass: FloatArray, levels: tuple[float, ...]) -> tuple[FloatArray, ...]:
    """Return quantiles of rows of point masses, nodes ascending of shape (N,), mass of shape (R, N).

    The masses are those of a trapezoid rule, so that a smooth density is known between the nodes as well: the share
    below a node has an end correction, and between two nodes the Normal score of that share is nearly linear.
    """
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
        found.append(nodes[left] + share * (nodes[right] - nodes[left]))
    return tuple(found)
