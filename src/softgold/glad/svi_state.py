"""What the svi engine starts from, gives back, and needs to go on after an interruption; NumPy arrays alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["NormalFit", "ParameterState", "SviState"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NormalFit:
    """Normal factors in whitened coordinates, and how the optimisation that led to them went, if any did.

    Attributes:
        c_mean: Means of the abilities, shape (A,).
        c_sd: Their standard deviations, shape (A,).
        b_mean: Means of the difficulties, shape (I,).
        b_sd: Their standard deviations, shape (I,).
        scale: Difficulty scale.
        elbo: Evidence lower bound, as estimated in each step.
        converged: Whether it has settled.
    """

    c_mean: FloatArray
    c_sd: FloatArray
    b_mean: FloatArray
    b_sd: FloatArray
    scale: float
    elbo: tuple[float, ...] = ()
    converged: bool = False


@dataclass(frozen=True, eq=False)
class ParameterState:
    """A parameter of the guide, unconstrained, with Adam's two moments and its sum over the present window."""

    value: NDArray[np.float32]
    gradient: NDArray[np.float32]
    gradient_square: NDArray[np.float32]
    window_sum: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SviState:
    """Everything that the next step needs; a run that goes on from a stored state gives the same numbers.

    Attributes:
        start: Where the optimisation began: the guide's coordinates are relative to it.
        parameters: State of each parameter of the guide, by name.
        random: State of the random number generator.
        elbo: Evidence lower bound of each step done.
        sweeps: Sweeps of the coordinate engine before the first step.
    """

    start: NormalFit
    parameters: Mapping[str, ParameterState]
    random: NDArray[np.uint8]
    elbo: tuple[float, ...]
    sweeps: int = 0
