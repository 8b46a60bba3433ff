"""Stochastic optimisation of a Pyro guide, step by step, from a start or from where an interrupted run stood."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyro
import torch
from pyro.infer import Trace_ELBO

from softgold.models.base import OnProgress, Progress
from softgold.models.crowd.svi_state import SviState

WINDOW = 100
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(eq=False, repr=False)
class Optimiser:
    """One optimisation in progress, inside a `pyro_scope`.

    Adam (Kingma and Ba, 2015) is written out: torch's optimisers import its compiler, which takes as long as torch.

    Attributes:
        model: The Pyro program.
        guide: Its guide.
        step_size: Gives Adam's step size for a parameter by name.
        burn_in: Steps before those whose parameters are averaged.
        device: "cpu", "cuda" or "cuda:0".
        decay: Factor on the step sizes after each step: smaller steps jitter less around the optimum.
        trace: The bound of each step so far.
    """

    model: Callable[..., None]
    guide: Callable[..., None]
    step_size: Callable[[str], float]
    burn_in: int = 0
    device: str = "cpu"
    decay: float = 1.0
    trace: list[float] = field(default_factory=list, init=False)
    _moments: dict[str, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict, init=False)
    _sums: dict[str, torch.Tensor] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._elbo = Trace_ELBO(max_plate_nesting=1)

    def step(self, *arguments: Any) -> None:
        """Take one step and remember the bound."""
        loss = self._elbo.loss_and_grads(self.model, self.guide, *arguments)
        self.trace.append(-float(loss))
        for name, value in pyro.get_param_store().named_parameters():
            self._move(name, value)
        if len(self.trace) == self.burn_in + 1:
            self._sums = {}
        for name, value in self.parameters().items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value

    def _move(self, name: str, value: torch.Tensor) -> None:
        """Take Adam's step for one parameter, and forget its gradient."""
        slope, steps, size = value.grad, len(self.trace), self.step_size(name)
        assert slope is not None
        if name not in self._moments:
            self._moments[name] = torch.zeros_like(slope), torch.zeros_like(slope)
        mean, square = self._moments[name]
        mean.mul_(BETA_1).add_(slope, alpha=1 - BETA_1)
        square.mul_(BETA_2).addcmul_(slope, slope, value=1 - BETA_2)
        rate = size * self.decay**steps * math.sqrt(1 - BETA_2**steps) / (1 - BETA_1**steps)
        value.data.addcdiv_(mean, square.sqrt().add_(EPSILON), value=-rate)
        value.grad = None

    @staticmethod
    def parameters() -> dict[str, torch.Tensor]:
        """Return the parameters as they are."""
        return {name: value.detach().clone() for name, value in pyro.get_param_store().items()}

    def means(self) -> dict[str, torch.Tensor]:
        """Return the parameters averaged over the steps after the burn-in: single steps jitter around the optimum."""
        steps = len(self.trace) - (self.burn_in if len(self.trace) > self.burn_in else 0)
        return {name: total / steps for name, total in self._sums.items()}

    @property
    def at_window_end(self) -> bool:
        """Whether the last step was the last of a window."""
        return len(self.trace) % WINDOW == 0

    def has_settled(self, tolerance: float) -> bool:
        """Whether the mean bound of the last window is no longer clearly above that of the window before."""
        if len(self.trace) < self.burn_in + 2 * WINDOW or not self.at_window_end:
            return False
        before, last = np.array(self.trace[-2 * WINDOW : -WINDOW]), np.array(self.trace[-WINDOW:])
        noise = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / WINDOW)
        return bool(last.mean() - before.mean() < max(tolerance * abs(last.mean()), 2 * noise))

    def report(self, on_progress: OnProgress, cap: int, state: SviState) -> None:
        """Report the last step; the state that `Progress.snapshot` gives is `state` brought up to it."""
        on_progress(Progress("svi", len(self.trace), cap, self.trace[-1], lambda: self._snapshot(state)))

    def _snapshot(self, state: SviState) -> SviState:
        parameters = {}
        for name, value in pyro.get_param_store().named_parameters():
            parts = (value.detach(), *self._moments[name], self._sums[name])
            parameters[name] = torch.stack([part.to(value) for part in parts]).cpu().numpy()
        random = _generator(self.device).get_state().numpy().copy()
        return replace(state, elbo=tuple(self.trace), random=random, parameters=parameters)

    def restore(self, state: SviState, *arguments: Any) -> None:
        """Put everything where it was after the steps of `state`, if it has any; `arguments` are those of `step`."""
        if not state.elbo:
            return
        self.guide(*arguments)  # makes the parameters
        self.trace = list(state.elbo)
        for name, value in pyro.get_param_store().named_parameters():
            stored, mean, square, self._sums[name] = torch.tensor(state.parameters[name]).to(value).unbind()
            value.data.copy_(stored)
            self._moments[name] = mean.clone(), square.clone()
        _generator(self.device).set_state(torch.from_numpy(state.random))


def _generator(device: str) -> torch.Generator:
    """Return the source of the random numbers that are drawn on a device."""
    if device == "cpu":
        return torch.default_generator
    index = torch.device(device).index
    return torch.cuda.default_generators[torch.cuda.current_device() if index is None else index]
