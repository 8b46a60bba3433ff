"""The svi engine: stochastic variational inference in Pyro, from a chosen start until the bound has settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np
import pyro
import torch
from numpy.typing import NDArray
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import ClippedAdam, PyroOptim
from pyro.optim.clipped_adam import ClippedAdam as Adam

from softgold.errors import UsageError
from softgold.glad.fence import fenced_pyro
from softgold.glad.model import Start, VoteTensors, guide, model
from softgold.glad.priors import Prior
from softgold.glad.svi_state import NormalFit, ParameterState, SviState
from softgold.votes import VoteTable

__all__ = ["SCHEDULES", "Init", "Schedule", "Snapshot", "consensus_start", "paper_start", "run_svi"]

FloatArray = NDArray[np.float64]
Init = Literal["coordinate", "consensus", "paper"]
Snapshot = Callable[[], SviState]

WINDOW = 50
VOTES_PER_STEP, MOST_PARTICLES = 100_000, 64  # a small table affords several draws a step, and needs them
ELBO_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Schedule:
    """How the optimisation proceeds.

    Attributes:
        step_size: Adam's first step size.
        half_life: Steps in which it halves; None keeps it.
        max_steps: Cap on the steps.
        stops_early: Stop when the bound has settled, and average the last parameters.
        single_draw: One draw a step whatever the size of the table, as the published recipe has it.
    """

    step_size: float
    half_life: float | None
    max_steps: int
    stops_early: bool
    single_draw: bool = False


SCHEDULES: dict[Init, Schedule] = {
    "coordinate": Schedule(0.003, 50, 2_000, True),  # it starts at the best Normals, and need not go far
    "consensus": Schedule(0.1, 200, 5_000, True),
    "paper": Schedule(0.1, None, 10_000, stops_early=False, single_draw=True),
}


def consensus_start(votes: VoteTable, prior: Prior) -> NormalFit:
    """Return whitened abilities of 1 and difficulties at the Normal score of the (smoothed) vote share.

    As in the coordinate engine, a prior that expects adversaries turns both.
    """
    from scipy.special import ndtri

    share = (votes.item_positives + 0.5) / (votes.item_counts + 1)
    toward = -1.0 if prior.ability_mean < 0 else 1.0
    ones = np.ones(votes.n_annotators)
    half = np.full(votes.n_items, 0.5)
    return NormalFit(toward * ones, 0.5 * ones, toward * ndtri(share), half, prior.starting_scale)


def paper_start(votes: VoteTable, prior: Prior) -> NormalFit:
    """Return the published recipe's start: zeros with unit spread before whitening."""
    people, things = np.zeros(votes.n_annotators), np.zeros(votes.n_items)
    scale = prior.starting_scale
    return NormalFit(people, people + scale, things, things + 1 / scale, scale)


def run_svi(
    votes: VoteTable,
    prior: Prior,
    start: NormalFit,
    schedule: Schedule,
    *,
    seed: int,
    whitened: bool = True,
    batch_items: int | None = None,
    device: str = "cpu",
    on_step: Callable[[int, float, Snapshot], None] = lambda step, elbo, snapshot: None,
    resume: SviState | None = None,
) -> NormalFit:
    """Maximise the bound from `start`; the result is in whitened coordinates whichever were used.

    `on_step` gets the number of steps done, the bound, and a function that gives the state from which to go on;
    `resume` is such a state, of a run with the same arguments.
    """
    _check_device(device)
    with fenced_pyro(seed, votes.n_votes):
        tensors = VoteTensors.of(votes, device)
        begin = _guide_start(start, tensors.vote, whitened)
        optimiser = ClippedAdam(_adam_options(schedule))
        particles = 1 if schedule.single_draw else max(1, min(MOST_PARTICLES, VOTES_PER_STEP // votes.n_votes))
        svi = SVI(
            model, guide, optimiser, Trace_ELBO(particles, max_plate_nesting=1, vectorize_particles=particles > 1)
        )
        trace: list[float] = []
        window = _Window()
        if resume is not None:
            guide(tensors, prior, begin, whitened)  # makes the parameters
            trace, window = _restore(resume, optimiser, schedule, device)
        batches = item_batches(tensors, batch_items, seed, first=len(trace))
        converged = schedule.stops_early and has_settled(trace)
        while len(trace) < schedule.max_steps and not converged:
            trace.append(-float(svi.step(next(batches), prior, begin, whitened)))
            window.add(len(trace))
            on_step(len(trace), trace[-1], lambda: _snapshot(start, trace, window, optimiser, device))
            converged = schedule.stops_early and has_settled(trace)
        parameters = window.means() if schedule.stops_early else _parameters()
    return _to_normal_fit(begin, parameters, start.scale, prior, whitened, tuple(trace), converged)


def _adam_options(schedule: Schedule) -> dict[str, Any]:
    decay = 1.0 if schedule.half_life is None else 0.5 ** (1 / schedule.half_life)
    return {"lr": schedule.step_size, "lrd": decay, "clip_norm": float("inf")}


def _guide_start(start: NormalFit, like: torch.Tensor, whitened: bool) -> Start:
    """Return the start in the model's coordinates: abilities in their own units, b whitened or not."""
    unit = 1.0 if whitened else start.scale
    arrays = (start.c_mean / start.scale, start.c_sd / start.scale, start.b_mean * unit, start.b_sd * unit)
    c_mean, c_sd, b_mean, b_sd = (torch.tensor(array).to(like) for array in arrays)
    return Start(c_mean, c_sd, b_mean, b_sd, float(np.log(start.scale)))


def item_batches(tensors: VoteTensors, size: int | None, seed: int, first: int = 0) -> Iterator[VoteTensors]:
    """Give the whole table for ever, or random batches of `size` items with their votes, from number `first` on."""
    if size is None or size >= tensors.n_items:
        while True:
            yield tensors
    order = torch.argsort(tensors.item, stable=True)
    starts = torch.searchsorted(tensors.item[order], torch.arange(tensors.n_items + 1, device=order.device))
    for number in count(first):
        rng = np.random.default_rng([seed, number])  # a run that goes on need not draw the earlier batches again
        items = torch.as_tensor(np.sort(rng.choice(tensors.n_items, size, replace=False)), device=order.device)
        counts = starts[items + 1] - starts[items]
        position = torch.repeat_interleave(torch.arange(size, device=order.device), counts)
        offset = torch.arange(len(position), device=order.device) - (counts.cumsum(0) - counts)[position]
        rows = order[starts[items][position] + offset]
        weight = None if tensors.weight is None else tensors.weight[rows]
        yield replace(
            tensors,
            annotator=tensors.annotator[rows],
            item=position,
            vote=tensors.vote[rows],
            weight=weight,
            items=items,
        )


def has_settled(trace: list[float]) -> bool:
    """Whether the mean bound of the last window is no longer clearly above that of the window before."""
    if len(trace) < 2 * WINDOW or len(trace) % WINDOW:
        return False
    before, last = np.array(trace[-2 * WINDOW : -WINDOW]), np.array(trace[-WINDOW:])
    noise = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / WINDOW)
    return bool(last.mean() - before.mean() < max(ELBO_TOLERANCE * abs(last.mean()), 2 * noise))


class _Window:
    """Sum of the parameters over the present window: the last steps jitter around the optimum, their mean does not."""

    def __init__(self, step: int = 0, sums: dict[str, torch.Tensor] | None = None) -> None:
        self.step = step
        self.sums = sums or {}

    def add(self, step: int) -> None:
        if step % WINDOW == 1:
            self.sums = {}
        for name, value in _parameters().items():
            self.sums[name] = self.sums.get(name, torch.zeros_like(value)) + value
        self.step = step

    def means(self) -> dict[str, torch.Tensor]:
        return {name: total / ((self.step - 1) % WINDOW + 1) for name, total in self.sums.items()}


def _snapshot(start: NormalFit, trace: list[float], window: _Window, optimiser: PyroOptim, device: str) -> SviState:
    """Return the state after the last step, in arrays of its own."""

    def array(value: torch.Tensor) -> NDArray[np.float32]:
        return value.detach().cpu().numpy().copy()

    adam = optimiser.get_state()
    parameters = {}
    for name, value in pyro.get_param_store().named_parameters():
        moments = adam[name]["state"][0]
        parameters[name] = ParameterState(
            array(value), array(moments["exp_avg"]), array(moments["exp_avg_sq"]), array(window.sums[name])
        )
    return SviState(start, parameters, _random_state(device).numpy().copy(), tuple(trace))


def _restore(state: SviState, optimiser: PyroOptim, schedule: Schedule, device: str) -> tuple[list[float], _Window]:
    """Put parameters, Adam and random numbers where they were; return the trace and the window."""
    steps = len(state.elbo)
    options = _adam_options(schedule)
    waiting, sums = {}, {}
    for name, value in pyro.get_param_store().named_parameters():
        stored = state.parameters[name]
        value.data.copy_(torch.from_numpy(stored.value))
        adam = Adam([value], **options).state_dict()
        moments = (torch.from_numpy(array) for array in (stored.gradient, stored.gradient_square))
        adam["state"] = {0: dict(zip(("step", "exp_avg", "exp_avg_sq"), (steps, *moments), strict=True))}
        for _ in range(steps):  # as Adam did: a power would round otherwise
            adam["param_groups"][0]["lr"] *= options["lrd"]
        waiting[name] = adam
        sums[name] = torch.from_numpy(stored.window_sum).to(value)
    optimiser.set_state(waiting)
    _set_random_state(torch.from_numpy(state.random), device)
    return list(state.elbo), _Window(steps, sums)


def _random_state(device: str) -> torch.Tensor:
    return torch.get_rng_state() if device == "cpu" else torch.cuda.get_rng_state(device)


def _set_random_state(state: torch.Tensor, device: str) -> None:
    if device == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, device)


def _parameters() -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in pyro.get_param_store().items()}


def _to_normal_fit(
    begin: Start,
    parameters: dict[str, torch.Tensor],
    start_scale: float,
    prior: Prior,
    whitened: bool,
    trace: tuple[float, ...],
    converged: bool,
) -> NormalFit:
    def array(value: torch.Tensor) -> FloatArray:
        return value.cpu().numpy().astype(np.float64)

    scale = float(parameters["log_scale_point"].exp()) if prior.learned else start_scale
    unit = 1.0 if whitened else scale
    return NormalFit(
        array(begin.c_mean + begin.c_sd * parameters["c_shift"]) * scale,
        array(begin.c_sd * parameters["c_stretch"]) * scale,
        array(begin.b_mean + begin.b_sd * parameters["b_shift"]) / unit,
        array(begin.b_sd * parameters["b_stretch"]) / unit,
        scale,
        trace,
        converged,
    )


def _check_device(device: str) -> None:
    kind = device.partition(":")[0]
    if kind not in {"cpu", "cuda"}:
        raise UsageError(f"device must be cpu or cuda, got {device!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device {device!r} is not there: this PyTorch sees no GPU; use device='cpu'")
