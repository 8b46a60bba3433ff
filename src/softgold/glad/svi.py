"""The svi engine: stochastic variational inference in Pyro, from a chosen start until the bound has settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyro
import torch
from numpy.typing import NDArray
from pyro.infer import SVI, Trace_ELBO
from pyro.optim import ClippedAdam

from softgold.errors import UsageError
from softgold.glad.fence import fenced_pyro
from softgold.glad.model import Start, VoteTensors, guide, model
from softgold.glad.priors import Prior
from softgold.votes import VoteTable

__all__ = ["SCHEDULES", "Init", "NormalFit", "Schedule", "consensus_start", "paper_start", "run_svi"]

FloatArray = NDArray[np.float64]
Init = Literal["coordinate", "consensus", "paper"]

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
    "coordinate": Schedule(0.05, 50, 2_000, True),
    "consensus": Schedule(0.1, 200, 5_000, True),
    "paper": Schedule(0.1, None, 10_000, stops_early=False, single_draw=True),
}


@dataclass(frozen=True, eq=False)
class NormalFit:
    """Normal factors in whitened coordinates, and how the optimisation went."""

    c_mean: FloatArray
    c_sd: FloatArray
    b_mean: FloatArray
    b_sd: FloatArray
    scale: float
    elbo: tuple[float, ...]
    converged: bool


def consensus_start(votes: VoteTable, prior: Prior) -> NormalFit:
    """Return whitened abilities of 1 and difficulties at the Normal score of the (smoothed) vote share.

    As in the coordinate engine, a prior that expects adversaries turns both.
    """
    from scipy.special import ndtri

    share = (votes.item_positives + 0.5) / (votes.item_counts + 1)
    toward = -1.0 if prior.ability_mean < 0 else 1.0
    ones = np.ones(votes.n_annotators)
    half = np.full(votes.n_items, 0.5)
    return NormalFit(toward * ones, 0.5 * ones, toward * ndtri(share), half, prior.starting_scale, (), False)


def paper_start(votes: VoteTable, prior: Prior) -> NormalFit:
    """Return the published recipe's start: zeros with unit spread before whitening."""
    people, things = np.zeros(votes.n_annotators), np.zeros(votes.n_items)
    scale = prior.starting_scale
    return NormalFit(people, people + scale, things, things + 1 / scale, scale, (), False)


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
    on_step: Callable[[int, float], None] = lambda step, elbo: None,
) -> NormalFit:
    """Maximise the bound from `start`; the result is in whitened coordinates whichever were used."""
    _check_device(device)
    with fenced_pyro(seed, votes.n_votes):
        tensors = VoteTensors.of(votes, device)
        begin = _guide_start(start, tensors.vote, whitened)
        decay = 1.0 if schedule.half_life is None else 0.5 ** (1 / schedule.half_life)
        optimiser = ClippedAdam({"lr": schedule.step_size, "lrd": decay, "clip_norm": float("inf")})
        particles = 1 if schedule.single_draw else max(1, min(MOST_PARTICLES, VOTES_PER_STEP // votes.n_votes))
        svi = SVI(
            model, guide, optimiser, Trace_ELBO(particles, max_plate_nesting=1, vectorize_particles=particles > 1)
        )
        batches = item_batches(tensors, batch_items, seed)
        trace: list[float] = []
        average = _TailAverage()
        converged = False
        while len(trace) < schedule.max_steps and not converged:
            trace.append(-float(svi.step(next(batches), prior, begin, whitened)))
            on_step(len(trace), trace[-1])
            average.add(len(trace))
            converged = schedule.stops_early and has_settled(trace)
        parameters = average.values() if schedule.stops_early else _parameters()
    return _to_normal_fit(begin, parameters, start.scale, prior, whitened, tuple(trace), converged)


def _guide_start(start: NormalFit, like: torch.Tensor, whitened: bool) -> Start:
    """Return the start in the model's coordinates: abilities in their own units, b whitened or not."""
    unit = 1.0 if whitened else start.scale
    arrays = (start.c_mean / start.scale, start.c_sd / start.scale, start.b_mean * unit, start.b_sd * unit)
    c_mean, c_sd, b_mean, b_sd = (torch.tensor(array).to(like) for array in arrays)
    return Start(c_mean, c_sd, b_mean, b_sd, float(np.log(start.scale)))


def item_batches(tensors: VoteTensors, size: int | None, seed: int) -> Iterator[VoteTensors]:
    """Give the whole table for ever, or random batches of `size` items with their votes."""
    if size is None or size >= tensors.n_items:
        while True:
            yield tensors
    rng = np.random.default_rng(seed)
    order = torch.argsort(tensors.item, stable=True)
    starts = torch.searchsorted(tensors.item[order], torch.arange(tensors.n_items + 1, device=order.device))
    while True:
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


class _TailAverage:
    """Mean of the parameters over the present window: the last steps jitter around the optimum."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._count = 0

    def add(self, step: int) -> None:
        if step % WINDOW == 1:
            self._sums, self._count = {}, 0
        for name, value in _parameters().items():
            self._sums[name] = self._sums.get(name, torch.zeros_like(value)) + value
        self._count += 1

    def values(self) -> dict[str, torch.Tensor]:
        return {name: total / self._count for name, total in self._sums.items()}


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
