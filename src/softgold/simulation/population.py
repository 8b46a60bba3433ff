"""Items and annotators, drawn from the signed-difficulty model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from softgold.simulation.settings import SimulationSettings, generator

__all__ = ["Crowd", "draw_crowd", "draw_difficulty"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Crowd:
    """Annotators: their numbers from 0, abilities c, kinds, and activities relative to each other; shape (A,)."""

    numbers: NDArray[np.int64]
    ability: FloatArray
    kind: NDArray[np.str_]
    activity: FloatArray

    def take(self, places: NDArray[np.int64]) -> Crowd:
        """Return the annotators at `places`, in that order."""
        return Crowd(self.numbers[places], self.ability[places], self.kind[places], self.activity[places])


def draw_crowd(settings: SimulationSettings) -> Crowd:
    """Draw the annotators; they depend on the seed, and not on the issue."""
    rng = generator(settings, "annotators", shared=True)
    kind = _draw_kinds(settings, rng)
    sign = np.select([kind == "random", kind == "adversarial"], [0.0, -1.0], default=1.0)
    return Crowd(
        numbers=np.arange(settings.n_annotators),
        ability=sign * _draw_helpful(settings, rng),
        kind=kind,
        activity=_draw_activity(settings, rng),
    )


def draw_difficulty(settings: SimulationSettings) -> FloatArray:
    """Draw the signed difficulty b of each item, shape (I,): half-normal on the side of its class."""
    rng = generator(settings, "items")
    n_positive = min(max(round(settings.prevalence * settings.n_items), 1), settings.n_items - 1)
    positive = rng.permutation(settings.n_items) < n_positive
    side = np.where(positive, settings.positive_ease, -1.0)
    # A normal draw may be 0 in principle, which would be neither class.
    size = np.maximum(np.abs(rng.standard_normal(settings.n_items)), 1e-12)
    return side * settings.difficulty_scale * size


def _draw_kinds(settings: SimulationSettings, rng: np.random.Generator) -> NDArray[np.str_]:
    n_adversarial = round(settings.adversarial_share * settings.n_annotators)
    n_random = min(round(settings.random_share * settings.n_annotators), settings.n_annotators - n_adversarial)
    n_helpful = settings.n_annotators - n_adversarial - n_random
    return rng.permutation(np.repeat(["helpful", "random", "adversarial"], [n_helpful, n_random, n_adversarial]))


def _draw_helpful(settings: SimulationSettings, rng: np.random.Generator) -> FloatArray:
    """Draw from N(mean, spread^2) above 0, by the inverse of its distribution function."""
    uniform = rng.random(settings.n_annotators)
    if settings.ability_spread == 0:
        return np.full(settings.n_annotators, float(settings.ability_mean))
    # The upper tail keeps its precision where nearly all of the normal lies above 0, and nearly none.
    kept = ndtr(settings.ability_mean / settings.ability_spread)
    above = -ndtri(kept * np.maximum(uniform, 1e-15))
    return np.maximum(settings.ability_mean + settings.ability_spread * above, 1e-12)


def _draw_activity(settings: SimulationSettings, rng: np.random.Generator) -> FloatArray:
    """Return the quantiles of a log-normal in random order.

    Draws from it would change the longest tail, and with it who decides most items, from seed to seed.
    """
    quantiles = (np.arange(settings.n_annotators) + 0.5) / settings.n_annotators
    return rng.permutation(np.exp(settings.activity_spread * ndtri(quantiles)))
