"""Annotators given the items: a two-dimensional Normal (ability, lean) for each, by Newton's method.

Annotators see the items only through sums over states, so a step costs annotators x states, however many votes there
are. Expectations over the Normals are Gauss-Hermite sums, and the bound is defined with these sums. A model without
leans runs the same code: a lean that no vote depends on stays at its prior and drops out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import FloatArray
from softgold.models.crowd.population import Population
from softgold.models.crowd.states import States, normal_nodes

NODES, WEIGHTS = normal_nodes(7)
MIDDLE = len(NODES) // 2
BLOCK_CELLS = 2**13  # cells per block of rows: the working arrays of a block stay in a core's cache
SMALLEST_SD = 1e-4
LARGEST_STEP = 2.0  # of a mean in a Newton step
HALVINGS = 6


class Rows:
    """Arrays with one row per annotator, or per item."""

    def take(self, rows: NDArray[np.intp] | slice) -> Self:
        """Return some of the rows, in the order given."""
        return type(self)(*(array[rows] for array in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Skills(Rows):
    """Normal factors of A annotators, the ability in the model's unit.

    Attributes:
        mean: Means of ability and lean, shape (A, 2).
        cov: Variance of the ability, covariance, variance of the lean, shape (A, 3).
    """

    mean: FloatArray
    cov: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Variances of ability and lean, shape (A, 2)."""
        return self.cov[:, [0, 2]]

    def reversed(self, rows: NDArray[np.bool_]) -> Skills:
        """Return the factors with the ability of some annotators reversed, their lean kept."""
        sign = np.where(rows, -1.0, 1.0)[:, None]
        return Skills(self.mean * np.hstack([sign, np.ones_like(sign)]), self.cov * np.hstack([sign**2, sign, sign**2]))

    @staticmethod
    def at(population: Population, count: int) -> Skills:
        """Return `count` annotators of whom nothing is known but the population."""
        cov = np.insert(population.spread**2, 1, 0.0)
        return Skills(np.tile(population.centre, (count, 1)), np.tile(cov, (count, 1)))


@dataclass(frozen=True, eq=False)
class Response(Rows):
    """Expectations over annotators' factors in each state, x = c b + d + u.

    Attributes:
        softplus: E[log(1 + exp(x))], minus the expected log likelihood of a no vote, shape (A, K).
        sigmoid: E[sigmoid(x)], the chance of a yes vote, shape (A, K).
        slope: Derivative of `softplus` by half the variance of x, shape (A, K).
    """

    softplus: FloatArray
    sigmoid: FloatArray
    slope: FloatArray


@dataclass(frozen=True, eq=False)
class VoteSums(Rows):
    """Sums over the items that annotators depend on.

    Attributes:
        mass: Sum of q(state) over all votes of an annotator, shape (A, K).
        yes: Sum of E[features] over the yes votes, shape (A, 2).
    """

    mass: FloatArray
    yes: FloatArray


def in_blocks(work: Callable[[slice], None], rows: int, columns: int, pool: ThreadPoolExecutor | None) -> None:
    """Call `work` on blocks of rows, on the threads of a pool where there is one."""
    size = max(1, BLOCK_CELLS // columns)
    blocks = [slice(first, first + size) for first in range(0, rows, size)]
    each: Callable[..., Iterator[None]] = map if pool is None or len(blocks) == 1 else pool.map
    list(each(work, blocks))


def respond(skills: Skills, states: States, pool: ThreadPoolExecutor | None = None) -> Response:
    """Return the response of each annotator in each state."""
    shape = (len(skills.mean), len(states.b))
    found = Response(np.empty(shape), np.empty(shape), np.empty(shape))
    b, u, lean = states.b, states.u, states.lean

    def work(rows: slice) -> None:
        mean, cov = skills.mean[rows], skills.cov[rows]
        variance = cov[:, :1] * b**2 + cov[:, 1:2] * (2 * lean * b) + cov[:, 2:] * lean
        sd = np.sqrt(np.maximum(variance, SMALLEST_SD**2))
        _expect(mean[:, :1] * b + mean[:, 1:] * lean + u, sd, *vars(found.take(rows)).values())

    in_blocks(work, *shape, pool)
    return found


def _expect(centre: FloatArray, sd: FloatArray, softplus: FloatArray, sigmoid: FloatArray, slope: FloatArray) -> None:
    """Fill in the expectations over x ~ N(centre, sd^2), two nodes on either side of the centre at a time."""
    positive, total, sig = _logistic(centre)
    softplus[:] = WEIGHTS[MIDDLE] * (np.log(total) + positive)
    sigmoid[:] = WEIGHTS[MIDDLE] * sig
    slope[:] = 0.0
    for node, weight in zip(NODES[MIDDLE + 1 :], WEIGHTS[MIDDLE + 1 :], strict=True):
        shift = sd * node
        above, total_above, sig_above = _logistic(centre + shift)
        below, total_below, sig_below = _logistic(centre - shift)
        softplus += weight * (np.log(total_above * total_below) + above + below)  # one logarithm for both
        sigmoid += weight * (sig_above + sig_below)
        slope += weight * node * (sig_above - sig_below)
    slope /= sd


def _logistic(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return max(x, 0), 1 + exp(-|x|), and sigmoid(x), without overflow."""
    small = np.abs(x)
    np.exp(np.negative(small, out=small), out=small)
    total = 1 + small
    return np.maximum(x, 0.0), total, np.maximum(small, x >= 0) / total  # exp(-|x|) is at most 1


def annotator_bound(skills: Skills, population: Population) -> FloatArray:
    """Return the annotators' part of the bound, minus their divergence from the population, shape (A,)."""
    gap = (skills.variance + (skills.mean - population.centre) ** 2) / population.spread**2
    size = np.log(_determinant(skills.cov)) - 2 * np.log(population.spread).sum()
    part: FloatArray = 0.5 * (size + 2 - gap.sum(axis=1))
    return part


def _determinant(matrix: FloatArray) -> FloatArray:
    """Return the determinants of symmetric 2 x 2 matrices given as rows (cc, cd, dd)."""
    return matrix[:, 0] * matrix[:, 2] - matrix[:, 1] * matrix[:, 1]


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverses of symmetric 2 x 2 matrices given as rows (cc, cd, dd)."""
    return np.column_stack([matrix[:, 2], -matrix[:, 1], matrix[:, 0]]) / _determinant(matrix)[:, None]


def times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the products of symmetric 2 x 2 matrices, rows (cc, cd, dd), and vectors, shape (A, 2)."""
    return np.column_stack([(matrix[:, :2] * vector).sum(axis=1), (matrix[:, 1:] * vector).sum(axis=1)])


def newton_step(
    skills: Skills, response: Response, sums: VoteSums, states: States, population: Population, size: float = 1.0
) -> Skills:
    """Return the factors after a natural-gradient step; `size` 1 is Newton's.

    The new precision is the prior's plus the expected curvature; the mean moves along the gradient.
    """
    trust = population.spread**-2.0
    gradient = sums.yes - (sums.mass * response.sigmoid) @ states.features - (skills.mean - population.centre) * trust
    b, lean = states.features.T
    squares = np.column_stack([b**2, b * lean, lean])
    precision = (sums.mass * response.slope) @ squares + np.insert(trust, 1, 0.0)
    if size < 1:
        precision = (1 - size) * _inverse(skills.cov) + size * precision
    cov = _inverse(precision)
    moves = size * times(cov, gradient)
    longest = np.abs(moves / np.maximum(1.0, 0.5 * np.abs(skills.mean))).max(axis=1, keepdims=True)
    moves *= LARGEST_STEP / np.maximum(longest, LARGEST_STEP)
    return Skills(skills.mean + moves, cov)


def guarded_step(skills: Skills, response: Response, sums: VoteSums, states: States, population: Population) -> Skills:
    """Return the factors after a Newton step that lowers no annotator's part of the bound.

    Where a whole step does, it is halved; where six halvings do not help, the factor stays.
    """
    before = _value(skills, response, sums, population)
    least = before - 1e-12 * (1 + np.abs(before))
    found = Skills(skills.mean.copy(), skills.cov.copy())
    rows = np.arange(len(before))
    for halving in range(HALVINGS + 1):
        seen = sums.take(rows)
        tried = newton_step(skills.take(rows), response.take(rows), seen, states, population, 0.5**halving)
        better = _value(tried, respond(tried, states), seen, population) >= least[rows]
        done = rows[better]
        found.mean[done], found.cov[done] = tried.mean[better], tried.cov[better]
        rows = rows[~better]
        if not len(rows):
            break
    return found


def _value(skills: Skills, response: Response, sums: VoteSums, population: Population) -> FloatArray:
    """Return what annotators contribute to the bound, given the items, shape (A,)."""
    fit: FloatArray = (sums.yes * skills.mean).sum(axis=1) - (sums.mass * response.softplus).sum(axis=1)
    return fit + annotator_bound(skills, population)
