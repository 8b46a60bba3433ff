"""Stochastic optimisation of a Pyro guide, step by step, from a start or from where an interrupted run stood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyro
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import ClippedAdam, PyroOptim
from pyro.optim.clipped_adam import ClippedAdam as Adam

from softgold.errors import UsageError
from softgold.models.base import OnProgress, Progress
from softgold.models.crowd.svi_state import SviState

WINDOW = 100


class Optimiser:
    """One optimisation in progress, inside a `pyro_scope`.

    Args:
        model: The Pyro program.
        guide: Its guide.
        step_size: Gives Adam's step size for a parameter by name.
        burn_in: Steps before those whose parameters are averaged.
        decay: Factor on the step sizes after each step: smaller steps jitter less around the optimum.
        device: "cpu", "cuda" or "cuda:0".
    """

    def __init__(
        self,
        model: Callable[..., None],
        guide: Callable[..., None],
        step_size: Callable[[str], float],
        burn_in: int = 0,
        device: str = "cpu",
        decay: float = 1.0,
    ) -> None:
        _check_device(device)
        self.guide, self.step_size, self.burn_in, self.device = guide, step_size, burn_in, device
        self.decay = decay
        self._adam: PyroOptim = ClippedAdam(cast(Any, self._adam_options))
        self._svi = SVI(model, guide, self._adam, Trace_ELBO(max_plate_nesting=1))
        self._sums: dict[str, torch.Tensor] = {}
        self.trace: list[float] = []

    def _adam_options(self, parameter: str) -> dict[str, float]:
        size = self.step_size(parameter)
        for _ in self.trace:  # as Adam does, step by step: a resumed run has the same bits
            size *= self.decay
        return {"lr": size, "lrd": self.decay, "clip_norm": float("inf")}

    def step(self, *arguments: Any) -> None:
        """Take one step and remember the bound."""
        self.trace.append(-float(self._svi.step(*arguments)))
        if len(self.trace) == self.burn_in + 1:
            self._sums = {}
        for name, value in self.parameters().items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value

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
        adam = self._adam.get_state()
        parameters = {}
        for name, value in pyro.get_param_store().named_parameters():
            moments = adam[name]["state"][0]
            parts = (value.detach(), moments["exp_avg"], moments["exp_avg_sq"], self._sums[name])
            parameters[name] = torch.stack([part.to(value) for part in parts]).cpu().numpy()
        random = _generator(self.device).get_state().numpy().copy()
        return replace(state, elbo=tuple(self.trace), random=random, parameters=parameters)

    def restore(self, state: SviState, *arguments: Any) -> None:
        """Put everything where it was after the steps of `state`, if it has any; `arguments` are those of `step`."""
        if not state.elbo:
            return
        self.guide(*arguments)  # makes the parameters
        self.trace = list(state.elbo)
        waiting = {}
        for name, value in pyro.get_param_store().named_parameters():
            stored, gradient, square, self._sums[name] = torch.tensor(state.parameters[name]).to(value).unbind()
            value.data.copy_(stored)
            adam = cast(Any, Adam)([value], **self._adam_options(name)).state_dict()
            moments = {"step": len(self.trace), "exp_avg": gradient.clone(), "exp_avg_sq": square.clone()}
            waiting[name] = {**adam, "state": {0: moments}}
        self._adam.set_state(waiting)
        _generator(self.device).set_state(torch.from_numpy(state.random))


def _generator(device: str) -> torch.Generator:
    """Return the source of the random numbers that are drawn on a device."""
    if device == "cpu":
        return torch.default_generator
    index = torch.device(device).index
    return torch.cuda.default_generators[torch.cuda.current_device() if index is None else index]


def _check_device(device: str) -> None:
    """Raise unless the device is there."""
    kind = device.partition(":")[0]
    if kind not in {"cpu", "cuda"}:
        raise UsageError(f"device must be cpu or cuda, got {device!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device {device!r} is not there: this PyTorch sees no GPU; use device='cpu'")
