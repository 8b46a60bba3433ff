"""The two models that votes can be drawn from: `two-class`, and `glad` as published.

In both, annotator a votes 1 on item i with probability sigmoid(c_a b_i + d_a + u_i): ability times appearance, plus
lean, plus pull. They differ in how an item's class, its appearance b and its pull u belong together.
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

__all__ = ["LARGEST", "MODELS", "TYPICAL", "GladModel", "ModelName", "TwoClassModel", "VoteModel"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
ModelName = Literal["two-class", "glad"]

# Far beyond any use, and small enough that products of two such numbers stay finite.
LARGEST = 1e6

# m: b of a typical positive item in the two-class model; that of a typical negative one is -m.
TYPICAL = math.sqrt(3.0)

# A Normal has less than 1e-16 of its weight beyond this many standard deviations.
NORMAL_END = 8.5


@dataclass(frozen=True)
class VoteModel(ABC):
    """What the simulator asks of a model.

    Attributes:
        ability_mean: Mean of the Normal that helpful annotators' abilities are drawn from, kept above 0.
        ability_spread: Standard deviation of that Normal.
        expert_insight: How much more each item looks like its class to an expert than to the crowd.
    """

    ability_mean: float = 1.0
    ability_spread: float = 1.0
    expert_insight: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        for name in ("ability_mean", "ability_spread"):
            check_in_range(getattr(self, name), 0, LARGEST, name)
        if self.ability_mean == self.ability_spread == 0:
            raise UsageError(
                "ability_mean and ability_spread must not both be 0; use random_share for random annotators"
            )

    @abstractmethod
    def draw_items(self, positive: BoolArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw b and the pull u of items whose class is given, each of shape (I,)."""

    @abstractmethod
    def draw_leans(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the lean d of each annotator, shape (size,)."""

    @abstractmethod
    def yes_rate(self, ability: FloatArray, lean: FloatArray, *, positive: bool) -> FloatArray:
        """Return P(vote 1 | class) of each annotator over all items of the class, shape (A,).

        The integral over b and u is computed numerically, to about 1e-8.
        """


@dataclass(frozen=True)
class TwoClassModel(VoteModel):
    """An item's class is not the sign of b: b | z ~ N(+m or -m, (rho m)^2) with m = sqrt(3).

    An item whose b has the sign of the other class is tricky: the better annotators can tell, the more surely they
    are wrong. The share of such items is Phi(-1 / rho), 11 % at rho = 0.8. The defaults of the annotators (abilities
    N(1, 0.7^2), leans N(0, 0.5^2)) are choices within the range that real tables show.

    Attributes:
        tricky_spread: rho, the standard deviation of b within a class in units of m; 0 for no tricky items.
        pull_scale: Standard deviation of the pull u, which moves everybody's vote on an item, able or not.
        lean_mean: Mean of the leans d; an annotator with d > 0 says yes readily.
        lean_spread: Standard deviation of the leans.
    """

    ability_spread: float = 0.7
    tricky_spread: float = 0.8
    pull_scale: float = 0.6
    lean_mean: float = 0.0
    lean_spread: float = 0.5
    expert_insight: ClassVar[float] = TYPICAL

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tricky_spread", "pull_scale", "lean_spread"):
            check_in_range(getattr(self, name), 0, LARGEST, name)
        check_in_range(self.lean_mean, -LARGEST, LARGEST, "lean_mean")

    def draw_items(self, positive: BoolArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw b around the class's m or -m, and the pulls."""
        centre = np.where(positive, TYPICAL, -TYPICAL)
        difficulty = centre + self.tricky_spread * TYPICAL * rng.standard_normal(len(positive))
        return difficulty, self.pull_scale * rng.standard_normal(len(positive))

    def draw_leans(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw Normal leans."""
        return self.lean_mean + self.lean_spread * rng.standard_normal(size)

    def yes_rate(self, ability: FloatArray, lean: FloatArray, *, positive: bool) -> FloatArray:
        """Return E sigmoid(c b + d + u): given the class, c b + d + u is Normal."""
        mean = ability * (TYPICAL if positive else -TYPICAL) + lean
        spread = np.hypot(ability * self.tricky_spread * TYPICAL, self.pull_scale)
        return _mean_chance(mean, spread, start=-NORMAL_END)


@dataclass(frozen=True)
class GladModel(VoteModel):
    """The published model (CleanPatrick, section 3.3): the sign of b is the class, and no annotator leans.

    Attributes:
        difficulty_scale: |b| is half-normal with this scale; small is hard.
        positive_ease: |b| of positive items is this many times larger. Above 1 the positives are conspicuous and
            it is negatives that look doubtful, so that labels cut at p = 0.5 flag too many items.
    """

    difficulty_scale: float = 3.0
    positive_ease: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("difficulty_scale", "positive_ease"):
            check_in_range(getattr(self, name), 0, LARGEST, name, ends="open")

    def draw_items(self, positive: BoolArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw b on the side of its class; the pulls are 0."""
        side = np.where(positive, self.positive_ease, -1.0)
        # A normal draw may be 0 in principle, which would be neither class.
        size = np.maximum(np.abs(rng.standard_normal(len(positive))), 1e-12)
        return side * self.difficulty_scale * size, np.zeros(len(positive))

    def draw_leans(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Return zeros: nobody leans."""
        return np.zeros(size)

    def yes_rate(self, ability: FloatArray, lean: FloatArray, *, positive: bool) -> FloatArray:
        """Return E sigmoid(c b + d) over half-normal b."""
        scale = self.difficulty_scale * (self.positive_ease if positive else -1.0)
        return _mean_chance(lean, ability * scale, start=0.0)


MODELS: Mapping[ModelName, type[VoteModel]] = MappingProxyType({"two-class": TwoClassModel, "glad": GladModel})


def _mean_chance(mean: FloatArray, spread: FloatArray, *, start: float) -> FloatArray:
    """Return the mean of sigmoid(mean + spread x) over a standard Normal x above `start`, shape (A,)."""
    above = ndtr(-start)

    def weighted(x: float) -> FloatArray:
        density = math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / above
        return density * np.asarray(expit(mean + spread * x))

    integral, _ = quad_vec(weighted, start, NORMAL_END, epsabs=1e-8, epsrel=0.0, norm="max", limit=500)
    return np.clip(integral, 0.0, 1.0)
