"""The hyper-parameters in force, and what they are learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from softgold.models.base import FloatArray


@dataclass(frozen=True)
class Population:
    """The hyper-parameters in force; abilities times the unit.

    Attributes:
        unit: What b is measured in: m, or sigma_b.
        ability_mean: Mean ability of the annotators.
        ability_sd: Spread of the abilities.
        lean_mean: Mean lean.
        lean_sd: Spread of the leans; 0 where the model has none.
        pull_sd: Spread of the pulls; 0 where the model has none.
        log_odds: Logit of the prevalence pi.
    """

    unit: float
    ability_mean: float
    ability_sd: float
    lean_mean: float = 0.0
    lean_sd: float = 0.0
    pull_sd: float = 0.0
    log_odds: float = 0.0

    @property
    def has_lean(self) -> bool:
        """Whether annotators have a lean."""
        return self.lean_sd > 0

    @property
    def centre(self) -> FloatArray:
        """Mean of ability and lean, shape (2,)."""
        return np.array([self.ability_mean, self.lean_mean])

    @property
    def spread(self) -> FloatArray:
        """Spread of ability and lean, shape (2,); 1 for a lean that no vote depends on, which drops out."""
        return np.array([self.ability_sd, self.lean_sd or 1.0])

    def named(self) -> dict[str, float]:
        """Return the hyper-parameters as they are reported, abilities in their own unit."""
        found = {
            "ability_mean": self.ability_mean / self.unit,
            "ability_sd": self.ability_sd / self.unit,
            "difficulty_scale": self.unit,
        }
        if self.has_lean:
            found |= {"lean_mean": self.lean_mean, "lean_sd": self.lean_sd, "pull_sd": self.pull_sd}
            found["prevalence"] = float(expit(self.log_odds))
        return found


@dataclass(frozen=True)
class ItemTotals:
    """Sums over items that the hyper-parameters are learned from.

    Attributes:
        items: Number of items.
        positive: Sum of p.
        spread: Sum of p (1 - p).
        rate: Sum of the rates that the prevalence aims at.
        pull_score: Sum of E[s], s the derivative of an item's log prior by the log of the pull's spread.
        pull_information: Sum of E[s]^2, what the items tell of that spread.
        bound: Their part of the evidence lower bound.
    """

    items: float
    positive: float
    spread: float
    rate: float
    pull_score: float
    pull_information: float
    bound: float
