"""The two priors over (z, b): all that distinguishes the two-class model from the published one.

Both say y ~ Bernoulli(sigmoid(c_a b_i + d_a + u_i)). Inside, b is kept in the model's unit (m, or sigma_b) and the
ability is c times that unit, so that the lattice of b does not move while hyper-parameters are learned.

The engines know a prior by the attributes and methods that both have: `CrowdPrior`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from softgold.checks import check_in_range
from softgold.errors import UsageError
from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.population import ItemTotals, Population
from softgold.models.crowd.states import Lattice, States, normal_nodes, sinh_nodes

Prevalence = Literal["able", "share", "majority"]

UNIT = math.sqrt(3.0)  # m: what a typical item of a class looks like
RHO = 0.8  # spread of b within a class, in units of m
PULL_SCALE = 0.6
POPULATION_WEIGHT = 10.0  # annotators at N(0, 1) that the prior of the populations is worth
PULL_WEIGHT = 120.0  # items at PULL_SCALE
LEAST_SHARE, LARGEST_PULL_STEP = 0.003, 0.5  # observed information, and log of the pull's spread, in a sweep
REACH = 3.6
MANY_VOTES = 10.0  # mean votes per item above which a finer lattice pays

# log(sigma_b * ability_scale) ~ N(log(HYPER_MEDIAN), HYPER_SIGMA^2): worth about one annotator.
HYPER_MEDIAN, HYPER_SIGMA = 3.0, 1.0
TYPICAL_SCALE, LARGEST_SCALE = 10.0, 100.0
LARGEST_SPREAD = 1e5


@dataclass(frozen=True)
class TwoClassPrior:
    """z ~ Bernoulli(pi), b | z ~ N(+-m, (0.8 m)^2): the class of an item is separate from its appearance.

    Attributes:
        prevalence: How pi is found: "able" (how often those who can tell say yes), "share" (of yes votes),
            "majority" (share of items with a positive majority), or the number itself.
    """

    prevalence: Prevalence | float = "able"
    guarded = False  # whether every step of an annotator is checked against the bound
    largest_fall = 1e-3  # of the bound, that a jump may cost: learning prevalence and pull may lower it
    ability_mean = 0.0  # where it is not 0, the sign of the abilities is known
    starting_ability = 1.5  # of every annotator: well above chance

    def __post_init__(self) -> None:
        if not isinstance(self.prevalence, str):
            check_in_range(self.prevalence, 0.0, 1.0, "prevalence", ends="open")
        elif self.prevalence not in get_args(Prevalence):
            rules = ", ".join(get_args(Prevalence))
            raise UsageError(f"prevalence must be {rules} or a number between 0 and 1, got {self.prevalence!r}")

    def start(self) -> Population:
        """Return able annotators, leans of N(0, 1), and even odds or those that were given.

        From a population at chance, annotators with a vote or two each would never be found able.
        """
        odds = 0.0 if isinstance(self.prevalence, str) else float(logit(self.prevalence))
        return Population(UNIT, self.starting_ability, UNIT, 0.0, 1.0, PULL_SCALE, odds)

    def lattice(self, item_counts: NDArray[np.int64]) -> Lattice:
        """Return 21 x 3 nodes, or 31 x 5 where items have many votes, whose posteriors are narrower."""
        n_b, n_u = (31, 5) if item_counts.mean() > MANY_VOTES else (21, 3)
        b = np.linspace(-REACH, REACH, n_b)
        return Lattice(b, np.full(n_b, b[1] - b[0]), *normal_nodes(n_u))

    def states(self, population: Population, lattice: Lattice) -> States:
        """Return the states: a mixture of two Normals in b, times the Normal of the pull."""
        odds, b = population.log_odds, lattice.b
        share = math.log(expit(odds)), math.log(expit(-odds))
        density = np.logaddexp(share[0] - 0.5 * ((b - 1) / RHO) ** 2, share[1] - 0.5 * ((b + 1) / RHO) ** 2)
        return States.of(lattice, density, expit(odds + 2 * b / RHO**2), population.pull_sd, True)

    def learn(self, population: Population, skills: Skills, weight: FloatArray, totals: ItemTotals) -> Population:
        """Return the most probable populations (each as if ten annotators more stood at N(0, 1)), pull and odds.

        Args:
            population: Hyper-parameters in force.
            skills: Annotator factors.
            weight: How many annotators each stands for, shape (A,).
            totals: Sums over the items.
        """
        ability_mean, ability_sd = _population(skills, 0, weight, UNIT)
        lean_mean, lean_sd = _population(skills, 1, weight, 1.0)
        pull = population.pull_sd * math.exp(self._pull_step(population.pull_sd, totals))
        odds = population.log_odds + self._odds_step(totals)
        return Population(UNIT, ability_mean, ability_sd, lean_mean, lean_sd, pull, odds)

    @staticmethod
    def _pull_step(now: float, totals: ItemTotals) -> float:
        """Return a step of the log of the pull's spread towards sqrt(mean of E[u^2]), 120 items at 0.6 included.

        Where votes tell little of an item's pull, this mean all but repeats the spread that it was computed with: it
        moves by the share of the information that is observed (Dempster, Laird and Rubin, 1977). The step makes up for
        it.
        """
        count, extra = totals.items + PULL_WEIGHT, PULL_WEIGHT * (PULL_SCALE / now) ** 2
        move = 0.5 * math.log((totals.items + totals.pull_score + extra) / count)
        share = (0.5 * totals.pull_information + PULL_WEIGHT) / count
        return float(np.clip(move / max(share, LEAST_SHARE), -LARGEST_PULL_STEP, LARGEST_PULL_STEP))

    def _odds_step(self, totals: ItemTotals) -> float:
        """Return Newton's step on the logit scale that brings the mean of p to its target.

        The logit of an item's p is the logit of pi plus its evidence, so the slope of the mean is that of p (1 - p).
        """
        target = (totals.rate + 1) / (totals.items + 2) if isinstance(self.prevalence, str) else self.prevalence
        gap = target - totals.positive / totals.items
        return float(np.clip(gap / max(totals.spread / totals.items, 1e-3), -1.0, 1.0))

    def log_density(self, population: Population) -> float:
        """Return the log density of the populations and the pull: that of the annotators and items they stand for."""

        def standing(weight: float, scale: float, mean: float, sd: float) -> float:
            return -weight * (math.log(sd) + (scale**2 + mean**2) / (2 * sd**2))

        return (
            standing(POPULATION_WEIGHT, UNIT, population.ability_mean, population.ability_sd)
            + standing(POPULATION_WEIGHT, 1.0, population.lean_mean, population.lean_sd)
            + standing(PULL_WEIGHT, PULL_SCALE, 0.0, population.pull_sd)
        )

    def vector(self, population: Population) -> FloatArray:
        """Return what is learned as unconstrained numbers: means, log spreads and log odds."""
        sds = np.log([population.ability_sd, population.lean_sd, population.pull_sd])
        return np.array([population.ability_mean, population.lean_mean, *sds, population.log_odds])

    def with_vector(self, population: Population, values: FloatArray) -> Population:
        """Return the hyper-parameters with these means, log spreads and log odds."""
        ability_sd, lean_sd, pull_sd = (float(value) for value in np.exp(values[2:5]))
        odds = float(values[5])
        return Population(UNIT, float(values[0]), ability_sd, float(values[1]), lean_sd, pull_sd, odds)


def _population(skills: Skills, place: int, weight: FloatArray, scale: float) -> tuple[float, float]:
    """Return mean and spread of the abilities (place 0) or leans (1), pseudo-annotators at N(0, scale^2) included."""
    mean, variance = skills.mean[:, place], skills.variance[:, place]
    total = float(weight.sum()) + POPULATION_WEIGHT
    centre = float(weight @ mean) / total
    square = float(weight @ (variance + (mean - centre) ** 2)) + POPULATION_WEIGHT * (scale**2 + centre**2)
    return centre, math.sqrt(square / total)


@dataclass(frozen=True)
class GladPrior:
    """The published model: b ~ N(0, sigma_b^2), z = [b > 0], abilities N(0, 1), no lean and no pull.

    Attributes:
        ability_mean: Mean ability; 0 is chance.
        ability_scale: Spread of the abilities.
        difficulty_scale: Spread sigma_b of the signed difficulties; None learns it from the votes.

    Only the product of the two scales shapes the posterior of the votes; their ratio is a matter of units.
    """

    ability_mean: float = 0.0
    ability_scale: float = 1.0
    difficulty_scale: float | None = None
    guarded = True
    largest_fall = 1e-5
    prevalence = None

    def __post_init__(self) -> None:
        for name, least in (("ability_mean", -1e9), ("ability_scale", 1e-9), ("difficulty_scale", 1e-9)):
            value = getattr(self, name)
            if value is not None and not least <= value <= 1e9:
                raise UsageError(f"{name} must be a number from {least:g} to 1e+09, got {value}")
        spread = (abs(self.ability_mean) + self.ability_scale) * self._scale
        if spread > LARGEST_SPREAD:
            raise UsageError(
                f"(|ability_mean| + ability_scale) * difficulty_scale must be at most {LARGEST_SPREAD:g}, "
                f"got {spread:g}: a prior so vague leaves no vote to chance"
            )

    @classmethod
    def named(cls, name: str, **given: float | None) -> GladPrior:
        """Return a preset, "default" (sigma_b learned) or "paper" (1000), with explicit values put in.

        >>> GladPrior.named("paper").difficulty_scale
        1000.0
        """
        presets = {"default": cls(), "paper": cls(difficulty_scale=1000.0)}
        if name not in presets:
            raise UsageError(f"prior must be one of {', '.join(presets)} or a GladPrior, got {name!r}")
        return replace(presets[name], **{key: float(value) for key, value in given.items() if value is not None})

    @property
    def _scale(self) -> float:
        return HYPER_MEDIAN / self.ability_scale if self.difficulty_scale is None else self.difficulty_scale

    @property
    def starting_ability(self) -> float:
        """1, or -1 for a prior that expects adversaries: sweeps do not cross from one sign to the other."""
        return -1.0 if self.ability_mean < 0 else 1.0

    def start(self) -> Population:
        """Return the populations at the given scale, or at the centre of its hyper-prior."""
        return self._at(self._scale)

    def _at(self, scale: float) -> Population:
        return Population(scale, self.ability_mean * scale, self.ability_scale * scale)

    def lattice(self, item_counts: NDArray[np.int64]) -> Lattice:
        """Return nodes that are dense where sigmoid(c b) bends and reach as far as n votes can push an item.

        The likelihood gains at most log 2 per vote over its value at zero; 20 nats more leave nothing out.
        """
        typical = self.difficulty_scale or TYPICAL_SCALE / self.ability_scale
        finest = min(0.1, 3 / ((abs(self.ability_mean) + self.ability_scale) * typical))
        reach = math.sqrt(2 * (float(item_counts.max()) * math.log(2) + 20))
        b, width = sinh_nodes(reach, finest=finest, step=0.2)
        return Lattice(b, width, np.zeros(1), np.ones(1))

    def states(self, population: Population, lattice: Lattice) -> States:
        """Return the states: a Normal in b, whose sign is the class."""
        return States.of(lattice, -0.5 * lattice.b**2, 0.5 + 0.5 * np.sign(lattice.b), 0.0, False)

    def learn(self, population: Population, skills: Skills, weight: FloatArray, totals: ItemTotals) -> Population:
        """Return the populations at the scale that maximises the bound: Newton's method in its logarithm t.

        The part of the bound in t is -A t - second exp(-2 t) / 2 + first exp(-t) + the hyper-prior, with the sums of
        E[c^2] and m E[c] over the annotators, in units of the ability's spread.
        """
        if self.difficulty_scale is not None:
            return population
        mean = skills.mean[:, 0]
        second = float(weight @ (skills.cov[:, 0] + mean**2)) / self.ability_scale**2
        first = self.ability_mean * float(weight @ mean) / self.ability_scale**2
        centre, t, count = math.log(HYPER_MEDIAN / self.ability_scale), math.log(population.unit), float(weight.sum())
        for _ in range(100):
            gradient = -count + second * math.exp(-2 * t) - first * math.exp(-t) - (t - centre) / HYPER_SIGMA**2
            curvature = -2 * second * math.exp(-2 * t) + first * math.exp(-t) - 1 / HYPER_SIGMA**2
            step = float(np.clip(gradient / -min(curvature, -1 / HYPER_SIGMA**2), -1.0, 1.0))
            t += step
            if abs(step) < 1e-12:
                break
        return self._at(min(math.exp(t), LARGEST_SCALE / self.ability_scale))

    def log_density(self, population: Population) -> float:
        """Return the log density of a learned scale."""
        if self.difficulty_scale is not None:
            return 0.0
        return -0.5 * ((math.log(population.unit * self.ability_scale) - math.log(HYPER_MEDIAN)) / HYPER_SIGMA) ** 2

    def vector(self, population: Population) -> FloatArray:
        """Return the log of the learned scale, or nothing."""
        return np.array([] if self.difficulty_scale is not None else [math.log(population.unit)])

    def with_vector(self, population: Population, values: FloatArray) -> Population:
        """Return the hyper-parameters at this scale."""
        if self.difficulty_scale is not None:
            return population
        return self._at(min(math.exp(float(values[0])), LARGEST_SCALE / self.ability_scale))


CrowdPrior = TwoClassPrior | GladPrior
