"""Items and annotators drawn from the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from softgold.simulation.settings import SimulationSettings, generator
from softgold.simulation.vote_models import VoteModel

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Items:
    """Items: class z (0 or 1), signed difficulty b and pull u, each of shape (I,)."""

    label: NDArray[np.int8]
    difficulty: FloatArray
    pull: FloatArray


@dataclass(frozen=True, eq=False)
class Crowd:
    """Annotators: numbers from 0, abilities c, leans d, kinds, relative activities; each of shape (A,)."""

    numbers: NDArray[np.int64]
    ability: FloatArray
    lean: FloatArray
    kind: NDArray[np.str_]
    activity: FloatArray

    def take(self, places: NDArray[np.int64]) -> Crowd:
        """Return the annotators at `places`, in that order."""
        return Crowd(
            self.numbers[places], self.ability[places], self.lean[places], self.kind[places], self.activity[places]
        )


def draw_items(settings: SimulationSettings) -> Items:
    """Draw the items; the share of positives equals the prevalence up to rounding."""
    rng = generator(settings, "items")
    n_positive = min(max(round(settings.prevalence * settings.n_items), 1), settings.n_items - 1)
    positive = rng.permutation(settings.n_items) < n_positive
    difficulty, pull = settings.vote_model.draw_items(positive, rng)
    return Items(positive.astype(np.int8), difficulty, pull)


def draw_crowd(settings: SimulationSettings) -> Crowd:
    """Draw the annotators; they depend on the seed, not on the issue."""
    rng = generator(settings, "annotators", shared=True)
    model = settings.vote_model
    kind = _draw_kinds(settings, rng)
    sign = np.select([kind == "random", kind == "adversarial"], [0.0, -1.0], default=1.0)
    ability = sign * _draw_helpful(model, settings.n_annotators, rng)
    activity = _draw_activity(settings, rng)
    lean = model.draw_leans(settings.n_annotators, rng)
    return Crowd(np.arange(settings.n_annotators), ability, lean, kind, activity)


def _draw_kinds(settings: SimulationSettings, rng: np.random.Generator) -> NDArray[np.str_]:
    n_adversarial = round(settings.adversarial_share * settings.n_annotators)
    n_random = min(round(settings.random_share * settings.n_annotators), settings.n_annotators - n_adversarial)
    n_helpful = settings.n_annotators - n_adversarial - n_random
    return rng.permutation(np.repeat(["helpful", "random", "adversarial"], [n_helpful, n_random, n_adversarial]))


def _draw_helpful(model: VoteModel, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw from N(mean, spread^2) truncated to (0, inf), by inverting its distribution function."""
    uniform = rng.random(size)
    if model.ability_sd == 0:
        return np.full(size, float(model.ability_mean))
    # The upper tail stays precise both where nearly all of the normal is above 0 and where nearly none is.
    kept = ndtr(model.ability_mean / model.ability_sd)
    above = -ndtri(kept * np.maximum(uniform, 1e-15))
    return np.maximum(model.ability_mean + model.ability_sd * above, 1e-12)


def _draw_activity(settings: SimulationSettings, rng: np.random.Generator) -> FloatArray:
    """Return the quantiles of a log-normal in random order.

    With random draws, the busiest annotators would differ much from seed to seed.
    """
    quantiles = (np.arange(settings.n_annotators) + 0.5) / settings.n_annotators
    return rng.permutation(np.exp(settings.activity_spread * ndtri(quantiles)))
