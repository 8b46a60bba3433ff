"""Annotators given the items: a two-dimensional Normal (ability, lean) for each, by Newton's method.

Annotators see the items only through sums over states, so a step costs annotators x states, however many votes there
are. Expectations over the Normals are Gauss-Hermite sums, and the bound is defined with these sums.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgold.models.crowd.priors import Population
from softgold.models.crowd.states import States, normal_nodes

__all__ = ["Response", "Skills", "VoteSums", "annotator_bound", "newton_step", "respond", "update_skills"]

FloatArray = NDArray[np.float64]

NODES, WEIGHTS = normal_nodes(7)
MIDDLE = len(NODES) // 2
BLOCK_CELLS = 2**13  # cells per block of rows: the working arrays of a block stay in a core's cache
SMALLEST_SD = 1e-4
LARGEST_STEP = 2.0  # of a mean in a Newton step
HALVINGS = 6


@dataclass(frozen=True, eq=False)
class Skills:
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

    def take(self, rows: NDArray[np.intp] | slice) -> Skills:
        """Return the factors of some annotators."""
        return Skills(self.mean[rows], self.cov[rows])

    def reversed(self, rows: NDArray[np.bool_]) -> Skills:
        """Return the factors with the ability of some annotators turned round, their lean kept."""
        sign = np.where(rows, -1.0, 1.0)[:, None]
        return Skills(self.mean * np.hstack([sign, np.ones_like(sign)]), self.cov * np.hstack([sign**2, sign, sign**2]))

    @staticmethod
    def at(population: Population, count: int) -> Skills:
        """Return `count` annotators of whom nothing is known but the population."""
        mean = [population.ability_mean, population.lean_mean]
        cov = [population.ability_sd**2, 0.0, population.lean_sd**2]
        return Skills(np.tile(mean, (count, 1)), np.tile(cov, (count, 1)))


@dataclass(frozen=True, eq=False)
class Response:
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
class VoteSums:
    """What annotators see of the items.

    Attributes:
        mass: Sum of q(state) over all votes of an annotator, shape (A, K).
        yes: Sums of E[b] and 1 over the yes votes, shape (A, 2).
    """

    mass: FloatArray
    yes: FloatArray

    def take(self, rows: NDArray[np.intp] | slice) -> VoteSums:
        """Return the sums of some annotators."""
        return VoteSums(self.mass[rows], self.yes[rows])


def in_blocks(work: Callable[[slice], None], rows: int, columns: int, pool: ThreadPoolExecutor | None) -> None:
    """Call `work` on blocks of rows, on the threads of a pool where there is one."""
    size = max(1, BLOCK_CELLS // columns)
    blocks = [slice(first, first + size) for first in range(0, rows, size)]
    if pool is None or len(blocks) == 1:
        for block in blocks:
            work(block)
    else:
        list(pool.map(work, blocks))


def respond(skills: Skills, states: States, pool: ThreadPoolExecutor | None = None) -> Response:
    """Return the response of each annotator in each state."""
    shape = (len(skills.mean), len(states.b))
    found = Response(np.empty(shape), np.empty(shape), np.empty(shape))

    def work(rows: slice) -> None:
        moments = _moments(skills.take(rows), states)
        _expect(*moments, found.softplus[rows], found.sigmoid[rows], found.slope[rows])

    in_blocks(work, *shape, pool)
    return found


def _moments(skills: Skills, states: States) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of x in each state, shape (A, K)."""
    mean, cov = skills.mean, skills.cov
    centre = mean[:, :1] * states.b + mean[:, 1:] + states.u
    variance = cov[:, :1] * states.b**2 + cov[:, 1:2] * (2 * states.b) + cov[:, 2:]
    return centre, np.sqrt(np.maximum(variance, SMALLEST_SD**2))


def _expect(centre: FloatArray, sd: FloatArray, softplus: FloatArray, sigmoid: FloatArray, slope: FloatArray) -> None:
    """Fill in the expectations over x ~ N(centre, sd^2), two nodes on either side of the centre at a time."""
    positive, small, total, sig = _logistic(centre)
    np.log(total, out=total)
    np.add(total, positive, out=softplus)
    softplus *= WEIGHTS[MIDDLE]
    np.multiply(sig, WEIGHTS[MIDDLE], out=sigmoid)
    slope.fill(0.0)
    shift = np.empty_like(centre)
    for node, weight in zip(NODES[MIDDLE + 1 :], WEIGHTS[MIDDLE + 1 :], strict=True):
        np.multiply(sd, node, out=shift)
        above, _, total, sig_above = _logistic(centre + shift)
        below, small, total_below, sig_below = _logistic(np.subtract(centre, shift, out=shift))
        total *= total_below  # one logarithm for both
        np.log(total, out=total)
        total += above
        total += below
        total *= weight
        softplus += total
        np.subtract(sig_above, sig_below, out=small)
        small *= weight * node
        slope += small
        sig_above += sig_below
        sig_above *= weight
        sigmoid += sig_above
    slope /= sd


def _logistic(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return max(x, 0), a scratch array, 1 + exp(-|x|), and sigmoid(x), without overflow."""
    positive = np.maximum(x, 0.0)
    small = np.abs(x)
    np.negative(small, out=small)
    np.exp(small, out=small)
    total = small + 1.0
    np.maximum(small, x >= 0, out=small)  # exp(-|x|) is at most 1
    sig = small / total
    return positive, small, total, sig


def annotator_bound(skills: Skills, population: Population) -> FloatArray:
    """Return the annotators' part of the bound, minus their divergence from the population, shape (A,)."""
    sds = np.array([population.ability_sd, population.lean_sd])[: 1 + population.has_lean]
    mean = np.array([population.ability_mean, population.lean_mean])[: len(sds)]
    gap = skills.variance[:, : len(sds)] + (skills.mean[:, : len(sds)] - mean) ** 2
    size = _log_determinant(skills, population) - 2 * np.log(sds).sum()
    part: FloatArray = 0.5 * (size + len(sds) - (gap / sds**2).sum(axis=1))
    return part


def _log_determinant(skills: Skills, population: Population) -> FloatArray:
    cov = skills.cov
    return np.log(cov[:, 0] * cov[:, 2] - cov[:, 1] ** 2 if population.has_lean else cov[:, 0])


def newton_step(
    skills: Skills,
    sigmoid: FloatArray,
    slope: FloatArray,
    sums: VoteSums,
    states: States,
    population: Population,
    size: float = 1.0,
) -> Skills:
    """Return the factors after a natural-gradient step; `size` 1 is Newton's.

    The new precision is the prior's plus the expected curvature; the mean moves along the gradient.
    """
    features = np.column_stack([states.b, np.ones_like(states.b)])
    squares = np.column_stack([states.b**2, states.b, np.ones_like(states.b)])
    sds = np.array([population.ability_sd, population.lean_sd if population.has_lean else 1.0])
    centre = np.array([population.ability_mean, population.lean_mean])
    gradient = sums.yes - (sums.mass * sigmoid) @ features - (skills.mean - centre) / sds**2
    precision = (sums.mass * slope) @ squares + [sds[0] ** -2, 0.0, sds[1] ** -2]
    if not population.has_lean:
        gradient[:, 1] = precision[:, 1] = 0.0
    if size < 1:
        precision = (1 - size) * _inverse(skills.cov, population) + size * precision
    cov = _inverse(precision, population)
    moves = size * np.column_stack(
        [
            cov[:, 0] * gradient[:, 0] + cov[:, 1] * gradient[:, 1],
            cov[:, 1] * gradient[:, 0] + cov[:, 2] * gradient[:, 1],
        ]
    )
    longest = np.abs(moves / np.maximum(1.0, 0.5 * np.abs(skills.mean))).max(axis=1, keepdims=True)
    moves *= LARGEST_STEP / np.maximum(longest, LARGEST_STEP)
    return Skills(skills.mean + moves, cov)


def _inverse(matrix: FloatArray, population: Population) -> FloatArray:
    """Return the inverses of symmetric 2 x 2 matrices given as rows (cc, cd, dd)."""
    if not population.has_lean:
        return np.column_stack([1 / matrix[:, 0], np.zeros((len(matrix), 2))])
    determinant = matrix[:, 0] * matrix[:, 2] - matrix[:, 1] ** 2
    return np.column_stack([matrix[:, 2], -matrix[:, 1], matrix[:, 0]]) / determinant[:, None]


def update_skills(
    skills: Skills,
    response: Response,
    sums: VoteSums,
    states: States,
    population: Population,
    pool: ThreadPoolExecutor | None = None,
    *,
    guarded: bool = True,
) -> Skills:
    """Return the factors after a Newton step.

    A guarded step lowers no annotator's part of the bound: where a whole step does, it is halved; where six halvings
    do not help, the factor stays.
    """
    found = Skills(np.empty_like(skills.mean), np.empty_like(skills.cov))

    def work(rows: slice) -> None:
        some, seen = skills.take(rows), sums.take(rows)
        sigmoid, slope = response.sigmoid[rows], response.slope[rows]
        if guarded:
            some = _guarded_step(some, response.softplus[rows], sigmoid, slope, seen, states, population)
        else:
            some = newton_step(some, sigmoid, slope, seen, states, population)
        found.mean[rows], found.cov[rows] = some.mean, some.cov

    in_blocks(work, len(skills.mean), len(states.b), pool)
    return found


def _guarded_step(
    skills: Skills,
    softplus: FloatArray,
    sigmoid: FloatArray,
    slope: FloatArray,
    sums: VoteSums,
    states: States,
    population: Population,
) -> Skills:
    before = _value(skills, softplus, sums, population)
    least = before - 1e-12 * (1 + np.abs(before))
    found = Skills(skills.mean.copy(), skills.cov.copy())
    rows = np.arange(len(before))
    for halving in range(HALVINGS + 1):
        seen, size = sums.take(rows), 0.5**halving
        tried = newton_step(skills.take(rows), sigmoid[rows], slope[rows], seen, states, population, size)
        better = _value(tried, respond(tried, states).softplus, seen, population) >= least[rows]
        done = rows[better]
        found.mean[done], found.cov[done] = tried.mean[better], tried.cov[better]
        rows = rows[~better]
        if not len(rows):
            break
    return found


def _value(skills: Skills, softplus: FloatArray, sums: VoteSums, population: Population) -> FloatArray:
    """Return what annotators contribute to the bound, given the items, shape (A,)."""
    fit: FloatArray = (sums.yes * skills.mean).sum(axis=1) - (sums.mass * softplus).sum(axis=1)
    return fit + annotator_bound(skills, population)
