"""What a stochastic optimisation needs to go on after an interruption; NumPy arrays alone, no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.packing import Packed
from softgold.models.crowd.population import Population
from softgold.models.crowd.prevalence import PrevalenceDoubt


@dataclass(frozen=True, eq=False)
class SviState(Packed):
    """Everything that the next step needs; a run that goes on from a stored state gives the same numbers.

    Attributes:
        start: Where the optimisation began: the guide's parameters are relative to it.
        population: Hyper-parameters in force.
        doubt: What the sweeps left open about the annotators, in the order of the table.
        sweeps: Sweeps of the coordinate engine before the first step.
        elbo: Evidence lower bound of each step done.
        random: State of the random number generator; of no meaning before the first step.
        parameters: For each parameter of the guide, by name and unconstrained: its value, Adam's two moments, and its
            sum over the steps so far, shape (4, ...).
    """

    start: Skills
    population: Population
    doubt: PrevalenceDoubt = field(default_factory=lambda: PrevalenceDoubt.none(0))
    sweeps: int = 0
    elbo: tuple[float, ...] = ()
    random: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
