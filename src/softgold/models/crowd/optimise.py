"""Stochastic optimisation of a Pyro guide, step by step, from a start or from where an interrupted run stood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyro
import torch
from numpy.typing import NDArray
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import ClippedAdam, PyroOptim
from pyro.optim.clipped_adam import ClippedAdam as Adam

from softgold.errors import UsageError
from softgold.models.crowd.svi_state import ParameterState

__all__ = ["WINDOW", "Optimiser", "Schedule", "check_device"]

WINDOW = 100


@dataclass(frozen=True)
class Schedule:
    """How the optimisation proceeds.

    Attributes:
        step_size: Adam's step size for each parameter, by name, or one for all.
        max_steps: Cap on the steps.
        burn_in: Steps before those whose parameters are averaged.
    """

    step_size: float | Mapping[str, float]
    max_steps: int
    burn_in: int = 0

    def adam(self, parameter: str) -> dict[str, float]:
        """Return the options of Adam for a parameter."""
        size = self.step_size if isinstance(self.step_size, float) else self.step_size[parameter]
        return {"lr": size, "clip_norm": float("inf")}


class Optimiser:
    """One optimisation in progress, inside a `pyro_scope`."""

    def __init__(self, model: Callable[..., None], guide: Callable[..., None], schedule: Schedule, device: str) -> None:
        self.schedule, self.guide, self.device = schedule, guide, device
        self._adam: PyroOptim = ClippedAdam(cast(Any, schedule.adam))
        self._svi = SVI(model, guide, self._adam, Trace_ELBO(max_plate_nesting=1))
        self._sums: dict[str, torch.Tensor] = {}
        self.trace: list[float] = []

    def step(self, *arguments: Any) -> None:
        """Take one step and remember the bound."""
        self.trace.append(-float(self._svi.step(*arguments)))
        if len(self.trace) == self.schedule.burn_in + 1:
            self._sums = {}
        for name, value in self.parameters().items():
            self._sums[name] = self._sums.get(name, torch.zeros_like(value)) + value

    @staticmethod
    def parameters() -> dict[str, torch.Tensor]:
        """Return the parameters as they are."""
        return {name: value.detach().clone() for name, value in pyro.get_param_store().items()}

    def means(self) -> dict[str, torch.Tensor]:
        """Return the parameters averaged over the steps after the burn-in: single steps jitter around the optimum."""
        burn_in = self.schedule.burn_in
        steps = len(self.trace) - (burn_in if len(self.trace) > burn_in else 0)
        return {name: total / steps for name, total in self._sums.items()}

    @property
    def at_window_end(self) -> bool:
        """Whether the last step was the last of a window."""
        return len(self.trace) % WINDOW == 0

    def has_settled(self, tolerance: float) -> bool:
        """Whether the mean bound of the last window is no longer clearly above that of the window before."""
        if len(self.trace) < self.schedule.burn_in + 2 * WINDOW or not self.at_window_end:
            return False
        before, last = np.array(self.trace[-2 * WINDOW : -WINDOW]), np.array(self.trace[-WINDOW:])
        noise = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / WINDOW)
        return bool(last.mean() - before.mean() < max(tolerance * abs(last.mean()), 2 * noise))

    def snapshot(self) -> tuple[dict[str, ParameterState], NDArray[np.uint8]]:
        """Return parameters and random numbers after the last step, in arrays of their own."""

        def array(value: torch.Tensor) -> NDArray[Any]:
            return value.detach().cpu().numpy().copy()

        adam = self._adam.get_state()
        parameters = {}
        for name, value in pyro.get_param_store().named_parameters():
            moments = adam[name]["state"][0]
            parameters[name] = ParameterState(
                array(value), array(moments["exp_avg"]), array(moments["exp_avg_sq"]), array(self._sums[name])
            )
        return parameters, _random_state(self.device).numpy().copy()

    def restore(
        self, parameters: Mapping[str, ParameterState], random: NDArray[np.uint8], trace: list[float], *arguments: Any
    ) -> None:
        """Put everything where it was; `arguments` are those of `step`."""
        self.guide(*arguments)  # makes the parameters
        self.trace = list(trace)
        waiting = {}
        for name, value in pyro.get_param_store().named_parameters():
            stored = parameters[name]
            value.data.copy_(torch.from_numpy(stored.value))
            adam = cast(Any, Adam)([value], **self.schedule.adam(name)).state_dict()
            moments = (torch.from_numpy(array.copy()) for array in (stored.gradient, stored.gradient_square))
            adam["state"] = {0: dict(zip(("step", "exp_avg", "exp_avg_sq"), (len(trace), *moments), strict=True))}
            waiting[name] = adam
            self._sums[name] = torch.from_numpy(stored.step_sum.copy()).to(value)
        self._adam.set_state(waiting)
        _set_random_state(torch.from_numpy(random), self.device)


def _random_state(device: str) -> torch.Tensor:
    return torch.get_rng_state() if device == "cpu" else torch.cuda.get_rng_state(device)


def _set_random_state(state: torch.Tensor, device: str) -> None:
    if device == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, device)


def check_device(device: str) -> None:
    """Raise unless the device is there."""
    kind = device.partition(":")[0]
    if kind not in {"cpu", "cuda"}:
        raise UsageError(f"device must be cpu or cuda, got {device!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device {device!r} is not there: this PyTorch sees no GPU; use device='cpu'")
