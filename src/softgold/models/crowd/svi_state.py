"""What a stochastic optimisation needs to go on after an interruption; NumPy arrays alone, no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import Arrays
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.priors import Population

__all__ = ["ParameterState", "SviState"]

PREFIX = "parameter"


@dataclass(frozen=True, eq=False)
class ParameterState:
    """A parameter of the guide, unconstrained, with Adam's two moments and its sum over the steps so far."""

    value: NDArray[Any]
    gradient: NDArray[Any]
    gradient_square: NDArray[Any]
    step_sum: NDArray[Any]


@dataclass(frozen=True, eq=False)
class SviState:
    """Everything that the next step needs; a run that goes on from a stored state gives the same numbers.

    Attributes:
        start: Where the optimisation began: the guide's parameters are relative to it.
        population: Hyper-parameters in force.
        parameters: State of each parameter of the guide, by name.
        random: State of the random number generator.
        elbo: Evidence lower bound of each step done.
        sweeps: Sweeps of the coordinate engine before the first step.
    """

    start: Skills
    population: Population
    parameters: Mapping[str, ParameterState]
    random: NDArray[np.uint8]
    elbo: tuple[float, ...]
    sweeps: int = 0

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays."""
        arrays: dict[str, NDArray[Any]] = {
            "mean": self.start.mean,
            "cov": self.start.cov,
            "population": np.array(list(vars(self.population).values())),
            "random": self.random,
            "elbo": np.array(self.elbo),
            "sweeps": np.array(self.sweeps),
        }
        for name, parameter in self.parameters.items():
            arrays |= {f"{PREFIX}/{name}/{part}": value for part, value in vars(parameter).items()}
        return arrays

    @staticmethod
    def from_arrays(arrays: Arrays) -> SviState:
        """Return the state that `to_arrays` gave."""
        names = dict.fromkeys(name.split("/")[1] for name in arrays if name.startswith(PREFIX))
        parts = [field.name for field in fields(ParameterState)]
        return SviState(
            Skills(arrays["mean"], arrays["cov"]),
            Population(*map(float, arrays["population"])),
            {name: ParameterState(*(arrays[f"{PREFIX}/{name}/{part}"] for part in parts)) for name in names},
            arrays["random"],
            tuple(map(float, arrays["elbo"])),
            int(arrays["sweeps"]),
        )
