"""Vote models: `two-class` and `glad`.

In both, annotator a votes 1 on item i with probability sigmoid(c_a b_i + d_a + u_i): ability times appearance, plus
lean, plus pull. They differ in how appearance b and pull u depend on the item's class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad_vec
from scipy.special import expit, ndtr

from softgold.checks import check_in_range
from softgold.errors import UsageError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
ModelName = Literal["two-class", "glad"]

# Far larger than needed; products of two such numbers stay finite.
LARGEST = 1e6

# m: b of a typical positive item in the two-class model; -m for a typical negative one.
TYPICAL = math.sqrt(3.0)

# A normal has less than 1e-16 of its mass beyond this many standard deviations.
NORMAL_END = 8.5


@dataclass(frozen=True)
class VoteModel(ABC):
    """Interface of a vote model.

    Attributes:
        ability_mean: Mean of the normal of helpful annotators' abilities, truncated to positive values.
        ability_sd: Standard deviation of that normal.
        expert_insight: How much clearer each item is to an expert than to the crowd.
    """

    ability_mean: float = 1.0
    ability_sd: float = 1.0
    expert_insight: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        for name in ("ability_mean", "ability_sd"):
            check_in_range(getattr(self, name), 0, LARGEST, name)
        if self.ability_mean == self.ability_sd == 0:
            raise UsageError("ability_mean and ability_sd must not both be 0; use random_share for random annotators")

    @abstractmethod
    def draw_items(self, positive: BoolArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw b and the pull u of items with known class, each of shape (I,)."""

    @abstractmethod
    def draw_leans(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the lean d of each annotator, shape (size,)."""

    @abstractmethod
    def yes_rate(self, ability: FloatArray, lean: FloatArray, *, positive: bool) -> FloatArray:
        """Return P(vote 1 | class) of each annotator, averaged over the items of the class, shape (A,).

        The integral over b and u is numerical, with an error of about 1e-8.
        """


@dataclass(frozen=True)
class TwoClassModel(VoteModel):
    """Two-class model: b | z ~ N(+m or -m, (rho m)^2) with m = sqrt(3).

    An item whose b has the sign of the other class is tricky: able annotators are more likely to be wrong on it. The
    share of tricky items is Phi(-1 / rho), 11 % at rho = 0.8. The defaults of the annotators (abilities N(1, 0.7^2),
    leans N(0, 0.5^2)) lie within the range of real vote tables.

    Attributes:
        tricky_spread: rho, the standard deviation of b within a class in units of m; 0 for no tricky items.
        pull_sd: Standard deviation of the pull u, which shifts all votes on an item.
        lean_mean: Mean of the leans d; an annotator with d > 0 tends to vote yes.
        lean_sd: Standard deviation of the leans.
    """

    ability_sd: float = 0.7
    tricky_spread: float = 0.8
    pull_sd: float = 0.6
    lean_mean: float = 0.0
    lean_sd: float = 0.5
    expert_insight: ClassVar[float] = TYPICAL

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tricky_spread", "pull_sd", "lean_sd"):
            check_in_range(getattr(self, name), 0, LARGEST, name)
        check_in_range(self.lean_mean, -LARGEST, LARGEST, "lean_mean")

    def draw_items(self, positive: BoolArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw b around m or -m, and the pulls."""
        centre = np.where(positive, TYPICAL, -TYPICAL)
        difficulty = centre + self.tricky_spread * TYPICAL * rng.standard_normal(len(positive))
        return difficulty, self.pull_sd * rng.standard_normal(len(positive))

    def draw_leans(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw normal leans."""
        return self.lean_mean + self.lean_sd * rng.standard_normal(size)

    def yes_rate(self, ability: FloatArray, lean: FloatArray, *, positive: bool) -> FloatArray:
        """Return E sigmoid(c b + d + u), where c b + d + u is normal given the class."""
        mean = ability * (TYPICAL if positive else -TYPICAL) + lean
        spread = np.hypot(ability * self.tricky_spread * TYPICAL, self.pull_sd)
        return _mean_chance(mean, spread, start=-NORMAL_END)


@dataclass(frozen=True)
class GladModel(VoteModel):
    """Published model (CleanPatrick, section 3.3): the class is the sign of b, and all leans are 0.

    Attributes:
        difficulty_scale: Scale of the half-normal |b|; a small scale makes hard items.
        positive_ease: Factor on |b| of positive items. Above 1, positives are clear and negatives doubtful, so that
            labels cut at p = 0.5 flag too many items.
    """

    difficulty_scale: float = 3.0
    positive_ease: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("difficulty_scale", "positive_ease"):
            check_in_range(getattr(self, name), 0, LARGEST, name, ends="open")

    def draw_items(self, positive: BoolArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw b with the sign of its class; the pulls are 0."""
        side = np.where(positive, self.positive_ease, -1.0)
        # b = 0 would be neither class.
        size = np.maximum(np.abs(rng.standard_normal(len(positive))), 1e-12)
        return side * self.difficulty_scale * size, np.zeros(len(positive))

    def draw_leans(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Return zeros."""
        return np.zeros(size)

    def yes_rate(self, ability: FloatArray, lean: FloatArray, *, positive: bool) -> FloatArray:
        """Return E sigmoid(c b + d) over half-normal b."""
        scale = self.difficulty_scale * (self.positive_ease if positive else -1.0)
        return _mean_chance(lean, ability * scale, start=0.0)


MODELS: Mapping[ModelName, type[VoteModel]] = MappingProxyType({"two-class": TwoClassModel, "glad": GladModel})


def _mean_chance(mean: FloatArray, spread: FloatArray, *, start: float) -> FloatArray:
    """Return the mean of sigmoid(mean + spread x) over a standard normal x above `start`, shape (A,)."""
    above = ndtr(-start)

    def weighted(x: float) -> FloatArray:
        density = math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / above
        return density * np.asarray(expit(mean + spread * x))

    integral, _ = quad_vec(weighted, start, NORMAL_END, epsabs=1e-8, epsrel=0.0, norm="max", limit=500)
    return np.clip(integral, 0.0, 1.0)
