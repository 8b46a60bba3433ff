"""A sweep as a linear map: what moves of annotators and hyper-parameters do to where it ends.

Given the annotators, an item's states have the probabilities q. A small change l(state) of its log likelihood changes
the mean of any function f(state) by Cov_q(f, l). Both are written in a few functions of the state, so that an item is
known by one small covariance matrix, and following a move through all votes costs a fraction of a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Response, Skills, VoteSums, newton_step, times
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.drivers import Swept
from softgold.models.crowd.items import Tables
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import CrowdPrior
from softgold.models.crowd.states import Lattice, States

SingleArray = NDArray[np.float32]

RANK = 10  # functions of the state; more do not shorten the fits
LEAST_WEIGHT = 1e-5  # of a state: items may be where the prior expects none
STEP = 1e-6  # of the differences that stand for derivatives


@dataclass(frozen=True, eq=False)
class StateBasis:
    """A few functions of the state, orthonormal under a weight.

    Attributes:
        functions: Their values, shape (K, R).
        weight: Weight of each state, shape (K,).
        odds: Coefficients of the log prior's derivative by the log odds, shape (R,).
        positive: Derivative of P(z = 1 | state) by the log odds, shape (K,).
    """

    functions: FloatArray
    weight: FloatArray
    odds: FloatArray
    positive: FloatArray

    @classmethod
    def of(cls, prior: CrowdPrior, population: Population, lattice: Lattice, response: Response) -> StateBasis:
        """Return the functions that tell most of the annotators' responses, and exactly those of the totals."""
        states = prior.states(population, lattice)
        shifted = prior.states(replace(population, log_odds=population.log_odds + STEP), lattice)
        by_odds = (shifted.log_prior - states.log_prior) / STEP
        weight = np.maximum(np.exp(states.log_prior), LEAST_WEIGHT)
        weight /= weight.sum()
        responses = np.vstack([response.sigmoid * factor for factor in (1.0, states.b, states.u)])
        exact = np.vstack([states.b, states.u, states.positive, states.pull_score, by_odds])
        gram = _gram(exact, weight)
        gram = 1e6 * gram / max(np.trace(gram), 1e-300) + _gram(responses, weight) / len(responses)
        root = np.sqrt(weight)[:, None]
        functions = np.linalg.eigh(gram)[1][:, : -RANK - 1 : -1] / root
        return cls(functions, weight, (by_odds * weight) @ functions, (shifted.positive - states.positive) / STEP)

    def coefficients(self, values: FloatArray) -> FloatArray:
        """Return functions of the state, shape (..., K), by their coefficients, shape (..., R)."""
        found: FloatArray = (values * self.weight) @ self.functions
        return found

    def covariances(self, mass: FloatArray) -> SingleArray:
        """Return the covariance matrices under given state probabilities, (n, K), in single precision: (n, R, R)."""
        functions, rank = self.functions.astype(np.float32), self.functions.shape[1]
        products = (functions[:, :, None] * functions[:, None, :]).reshape(len(functions), -1)
        single = mass.astype(np.float32)
        mean = single @ functions
        found: SingleArray = (single @ products).reshape(-1, rank, rank)
        found -= mean[:, :, None] * mean[:, None, :]
        return found


def _gram(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the products of the states' columns, each function centred and in root-weight scale, shape (K, K)."""
    centred = (values - (values @ weight)[:, None]) * np.sqrt(weight)
    gram: FloatArray = centred.T @ centred
    return gram


@dataclass(frozen=True, eq=False)
class Shown:
    """What a chunk's items look like to the linear map.

    Attributes:
        chunk: The chunk.
        covariance: Covariance matrix of each item, shape (n, R, R).
        mass: Sum of q(state) over its items, shape (K,).
        rate: How the rates that the prevalence aims at follow the abilities behind its columns, shape (C,).
    """

    chunk: VoteChunk
    covariance: SingleArray
    mass: FloatArray
    rate: FloatArray


class LinearSweep:
    """A sweep around one point.

    Args:
        prior: The prior.
        tables: What the sweep told every chunk.
        population: Hyper-parameters that it began with.
        swept: What came back.
        basis: Functions of the state.
        shown: What its chunks look like, in order.
        weight: Number of annotators of each kind, shape (A,).
    """

    def __init__(
        self,
        prior: CrowdPrior,
        tables: Tables,
        population: Population,
        swept: Swept,
        basis: StateBasis,
        shown: tuple[Shown, ...],
        weight: FloatArray,
    ) -> None:
        self.prior, self.population, self.swept, self.basis, self.shown = prior, population, swept, basis, shown
        self.skills, self.states, self.weight = tables.skills, tables.states, weight
        self.hyper = prior.vector(population)
        self.target = newton_step(tables.skills, tables.response, swept.sums, tables.states, population)
        self.target_population = prior.learn(population, self.target, weight, swept.totals)
        self.target_hyper = prior.vector(self.target_population)
        self._mass = np.sum([part.mass for part in shown], axis=0)
        self._rate = np.zeros(len(weight))
        for part in shown:
            for side in (part.chunk.no, part.chunk.yes):  # an annotator has at most one column of each
                self._rate[part.chunk.annotators[side]] += part.rate[side]
        self._respond(tables.response, tables.states)

    def _respond(self, response: Response, states: States) -> None:
        """Set how the log likelihood of a vote follows its annotator, shape (2, A, 2, R), and the pull, (2, A, R)."""
        found = self.basis.coefficients
        chance, times_b = found(response.sigmoid), found(response.sigmoid * states.b)
        pulled, b, u = found(response.sigmoid * states.u), found(states.b), found(states.u)
        self._by_skill = np.stack([np.stack([y * b - times_b, -states.lean * chance], axis=1) for y in (0, 1)])
        self._by_pull = np.stack([y * u - pulled for y in (0, 1)])
        self._bent = (self.swept.sums.mass * response.slope * states.u) @ states.features

    @property
    def size(self) -> int:
        """Number of unknowns: two per annotator, and the hyper-parameters."""
        return self.skills.mean.size + len(self.hyper)

    @property
    def move(self) -> FloatArray:
        """Where the sweep itself leads from its point, shape (2 A + h,)."""
        return np.concatenate([(self.target.mean - self.skills.mean).ravel(), self.target_hyper - self.hyper])

    def follow(self, move: FloatArray) -> FloatArray:
        """Return how the end of the sweep moves when its point does."""
        longest = float(np.abs(move).max(initial=0.0))
        return longest * self._follow(move / longest) if longest > 1 else self._follow(move)

    def _follow(self, move: FloatArray) -> FloatArray:
        shift, hyper = move[: self.skills.mean.size].reshape(-1, 2), move[self.skills.mean.size :]
        population = self.prior.with_vector(self.population, self.hyper + STEP * hyper)
        pull, odds = self._of_items(population)
        seen, total = self._through_items(shift, pull, odds)
        gradient = (self._by_skill * seen[:, :, None]).sum(axis=(0, 3)) - pull * self._bent
        gradient -= (_trust(self.skills, population) - _trust(self.skills, self.population)) / STEP
        cov = self.target.cov
        mean = times(cov, gradient)
        firmer = population.spread**-2.0 - self.population.spread**-2.0
        after, totals = Skills(self.target.mean + STEP * mean, _firmer(cov, firmer)), self.swept.totals
        by_class, by_pull = self.basis.coefficients(np.vstack([self.states.positive, self.states.pull_score])) @ total
        moved = replace(
            totals,
            positive=totals.positive + STEP * (by_class + odds * (self._mass @ self.basis.positive)),
            pull_score=totals.pull_score + STEP * by_pull,
            rate=totals.rate + STEP * float((self.weight * self._rate) @ shift[:, 0]),
        )
        learned = self.prior.vector(self.prior.learn(population, after, self.weight, moved))
        return np.concatenate([mean.ravel(), (learned - self.target_hyper) / STEP])

    def sums(self, move: FloatArray, population: Population) -> VoteSums:
        """Return what annotators would see of the items after a move."""
        shift = move[: self.skills.mean.size].reshape(-1, 2)
        pull, odds = (STEP * value for value in self._of_items(population))
        seen, _ = self._through_items(shift, pull, odds)
        basis, sums = self.basis, self.swept.sums
        mass = sums.mass + seen.sum(axis=0) @ (basis.functions * basis.weight[:, None]).T
        yes = sums.yes.copy()
        yes[:, 0] += seen[1] @ basis.coefficients(self.states.b)
        return VoteSums(np.maximum(mass, 0.0), yes)

    def _of_items(self, population: Population) -> tuple[float, float]:
        """Return the moves of log pull and log odds, the hyper-parameters that items depend on, per STEP."""
        pull = np.log(population.pull_sd / self.population.pull_sd) if population.pull_sd else 0.0
        return float(pull) / STEP, (population.log_odds - self.population.log_odds) / STEP

    def _through_items(self, shift: FloatArray, pull: float, odds: float) -> tuple[FloatArray, FloatArray]:
        """Return the moves of the items' functions: over each annotator's no and yes votes, (2, A, R), and over all."""
        told = (self._by_skill * shift[None, :, :, None]).sum(axis=2) + pull * self._by_pull
        seen, total = np.zeros_like(told), np.zeros(told.shape[2])
        for part in self.shown:
            chunk, sides = part.chunk, ((0, part.chunk.no), (1, part.chunk.yes))
            columns = np.concatenate([told[vote, chunk.annotators[side]] for vote, side in sides])
            change = (chunk.by_item @ columns + odds * self.basis.odds).astype(np.float32)
            change = np.einsum("nrs,ns->nr", part.covariance, change)
            total += chunk.item_weight @ change
            back = chunk.by_column @ change
            for vote, side in sides:
                seen[vote, chunk.annotators[side]] += back[side]
        return seen, total


def _trust(skills: Skills, population: Population) -> FloatArray:
    """Return the population's part of the annotators' gradient, with the sign reversed."""
    pull: FloatArray = (skills.mean - population.centre) * population.spread**-2.0
    return pull


def _firmer(cov: FloatArray, precision: FloatArray) -> FloatArray:
    """Return covariances, rows (cc, cd, dd), after a little more precision of ability and lean, shape (2,)."""
    ability, both, lean = cov.T
    by_ability = np.column_stack([ability**2, ability * both, both**2])
    by_lean = np.column_stack([both**2, both * lean, lean**2])
    found: FloatArray = cov - precision[0] * by_ability - precision[1] * by_lean
    return found
