"""Priors of the model, and how the one scale that matters is learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from softgold.errors import UsageError
from softgold.glad.factors import NormalPrior

__all__ = ["HYPER_MEDIAN", "HYPER_SIGMA", "PRESETS", "Prior", "learned_scale", "log_hyper_prior", "resolve_prior"]

# log(difficulty_scale) ~ N(log(HYPER_MEDIAN), HYPER_SIGMA^2): worth about one annotator, so that any table with a
# handful of them overrules it, while a unanimous or a tiny one still has a finite scale.
HYPER_MEDIAN = 3.0
HYPER_SIGMA = 1.0

# With abilities beyond this many units of 1 / difficulty_scale no vote is left to chance, and the tables of log
# likelihoods lose the digits in which items differ.
LARGEST_SPREAD = 1e5
LARGEST_NUMBER = 1e9


@dataclass(frozen=True)
class Prior:
    """Prior of the abilities, c ~ N(ability_mean, ability_scale^2), and difficulties, b ~ N(0, difficulty_scale^2).

    Attributes:
        ability_mean: Mean ability; 0 is chance.
        ability_scale: Spread of the abilities.
        difficulty_scale: Spread of the signed difficulties; None learns it from the votes.

    Only the product of the two scales shapes the posterior of the votes; their ratio is a matter of units.
    """

    ability_mean: float = 0.0
    ability_scale: float = 1.0
    difficulty_scale: float | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.ability_mean):
            raise UsageError(f"ability_mean must be a finite number, got {self.ability_mean}")
        for name in ("ability_scale", "difficulty_scale"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise UsageError(f"{name} must be a positive number, got {value}")

    @property
    def learned(self) -> bool:
        """Whether the difficulty scale is learned."""
        return self.difficulty_scale is None

    @property
    def starting_scale(self) -> float:
        """Difficulty scale to start from."""
        return HYPER_MEDIAN / self.ability_scale if self.difficulty_scale is None else self.difficulty_scale

    def whitened_abilities(self, difficulty_scale: float) -> NormalPrior:
        """Return the prior of c * difficulty_scale, the ability in the coordinates in which b has unit scale."""
        return NormalPrior(self.ability_mean * difficulty_scale, self.ability_scale * difficulty_scale)

    def fixed_at(self, difficulty_scale: float) -> Prior:
        """Return the prior in force once the scale is known."""
        return replace(self, difficulty_scale=float(difficulty_scale))


PRESETS = {"default": Prior(), "paper": Prior(difficulty_scale=1000.0)}


def resolve_prior(
    prior: str | Prior = "default",
    *,
    ability_mean: float | None = None,
    ability_scale: float | None = None,
    difficulty_scale: float | None = None,
) -> Prior:
    """Return a preset or a given prior, with the explicit values put in.

    >>> resolve_prior("paper").difficulty_scale
    1000.0
    >>> resolve_prior("default", difficulty_scale=3.0)
    Prior(ability_mean=0.0, ability_scale=1.0, difficulty_scale=3.0)
    """
    if isinstance(prior, str):
        prior = PRESETS.get(prior, prior)
    if not isinstance(prior, Prior):
        raise UsageError(f"prior must be one of {', '.join(PRESETS)} or a Prior, got {prior!r}")
    given = {"ability_mean": ability_mean, "ability_scale": ability_scale, "difficulty_scale": difficulty_scale}
    found = replace(prior, **{name: float(value) for name, value in given.items() if value is not None})
    _check_size(found)
    return found


def _check_size(prior: Prior) -> None:
    scales = [scale for scale in (prior.ability_scale, prior.difficulty_scale) if scale is not None]
    for value in (prior.ability_mean, *scales, *(1 / scale for scale in scales)):
        if abs(value) > LARGEST_NUMBER:
            raise UsageError(f"the prior's mean and scales must be between 1e-9 and 1e9 in size, got {prior}")
    spread = (abs(prior.ability_mean) + prior.ability_scale) * prior.starting_scale
    if spread > LARGEST_SPREAD:
        raise UsageError(
            f"(|ability_mean| + ability_scale) * difficulty_scale must be at most {LARGEST_SPREAD:g}, got {spread:g}: "
            "a prior so vague leaves no vote to chance"
        )


def log_hyper_prior(difficulty_scale: float, ability_scale: float) -> float:
    """Log density of log(scale product) under the hyper-prior."""
    z = (np.log(difficulty_scale * ability_scale) - np.log(HYPER_MEDIAN)) / HYPER_SIGMA
    return float(-0.5 * z**2 - np.log(HYPER_SIGMA) - 0.5 * np.log(2 * np.pi))


def learned_scale(prior: Prior, scale: float, count: int, first: float, second: float) -> float:
    """Return the difficulty scale s that maximises the bound, given the whitened abilities' moments.

    The part of the bound in t = log s is -count * t - second * exp(-2t) / (2 a^2) + m * first * exp(-t) / a^2 + the
    hyper-prior, with m, a the prior mean and scale of the abilities; Newton's method in t from the present scale.

    Args:
        prior: The prior, whose `ability_mean` and `ability_scale` are used.
        scale: Scale to start from.
        count: Number of annotators.
        first: Sum of E[c].
        second: Sum of E[c^2].
    """
    centre = np.log(HYPER_MEDIAN / prior.ability_scale)
    square, cross = second / prior.ability_scale**2, prior.ability_mean * first / prior.ability_scale**2
    t = np.log(scale)
    for _ in range(100):
        gradient = -count + square * np.exp(-2 * t) - cross * np.exp(-t) - (t - centre) / HYPER_SIGMA**2
        curvature = -2 * square * np.exp(-2 * t) + cross * np.exp(-t) - 1 / HYPER_SIGMA**2
        step = float(np.clip(gradient / -min(curvature, -1 / HYPER_SIGMA**2), -1.0, 1.0))
        t += step
        if abs(step) < 1e-12:
            break
    return float(np.exp(t))
