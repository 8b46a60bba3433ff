"""Votes in, posterior and diagnostics out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from softgold.checks import check_choice, check_positive_int
from softgold.errors import ConvergenceWarning, DataWarning, InputError, UsageError, warn
from softgold.glad import coordinate
from softgold.glad.chunks import VoteChunk, vote_chunks
from softgold.glad.coordinate import CoordinateState, Family, Grids
from softgold.glad.diagnostics import Diagnostics, data_warnings
from softgold.glad.factors import Factor
from softgold.glad.normals import Normals, normal_factor
from softgold.glad.orientation import Orientation, orient, upright_probability
from softgold.glad.posterior import AbilityPosterior, Posterior, agreement_with_others
from softgold.glad.priors import Prior, resolve_prior
from softgold.glad.summary import ItemSummary, Pool, summarise_exact, summarise_normal
from softgold.glad.svi_state import NormalFit, SviState
from softgold.glad.threads import worker_pool
from softgold.readers import read_votes
from softgold.votes import VoteTable

__all__ = ["Engine", "Fit", "FitSettings", "FitState", "Init", "Progress", "fit"]

FloatArray = NDArray[np.float64]
Engine = Literal["svi", "coordinate"]
FitState = CoordinateState | SviState
Init = Literal["coordinate", "consensus", "paper"]

NOT_CONVERGED = "not converged"


@dataclass(frozen=True)
class FitSettings:
    """Everything that decides the result of a fit, besides the votes.

    Attributes:
        engine: "svi" (Pyro) or "coordinate" (deterministic, no torch).
        prior: Prior; its `difficulty_scale` is None where it is learned.
        seed: Seed of `svi`; the coordinate engine draws no random numbers.
        init: Where `svi` starts: at the coordinate engine's solution, at the consensus, or as the paper did.
        family: Item and ability factors of `coordinate`: "free" (exact) or "gaussian" (what `svi` fits).
        max_steps: Cap on steps or sweeps; None for the engine's own.
        batch_items: Items per step of `svi`; None for all of them.
        device: Where `svi` computes.
    """

    engine: Engine = "svi"
    prior: Prior = field(default_factory=Prior)
    seed: int = 0
    init: Init = "coordinate"
    family: Family = "free"
    max_steps: int | None = None
    batch_items: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_choice(self.engine, get_args(Engine), "engine")
        check_choice(self.init, get_args(Init), "init")
        check_choice(self.family, get_args(Family), "family")
        check_positive_int(self.seed, "seed", minimum=0)
        for name in ("max_steps", "batch_items"):
            if getattr(self, name) is not None:
                check_positive_int(getattr(self, name), name)
        self._check_combination()

    def _check_combination(self) -> None:
        only_value: dict[str, Any] = {"init": "coordinate", "batch_items": None, "device": "cpu"}
        if self.engine == "svi":
            only_value = {"family": "free"}
        for name, only in only_value.items():
            if getattr(self, name) != only:
                raise UsageError(f"{name}={getattr(self, name)!r} has no meaning for the {self.engine} engine")


@dataclass(frozen=True)
class Progress:
    """Where a fit is: the stage, steps done in it, their cap, the bound, and a way to get the state to resume from."""

    stage: Engine
    step: int
    cap: int
    elbo: float
    snapshot: Callable[[], FitState]


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model: what it says, how it went, and what decided it."""

    posterior: Posterior
    diagnostics: Diagnostics
    settings: FitSettings


def fit(
    votes: VoteTable | Any,
    *,
    engine: Engine = "svi",
    prior: str | Prior = "default",
    seed: int = 0,
    init: Init = "coordinate",
    family: Family = "free",
    max_steps: int | None = None,
    batch_items: int | None = None,
    device: str = "cpu",
    ability_mean: float | None = None,
    ability_scale: float | None = None,
    difficulty_scale: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    resume: FitState | None = None,
) -> Fit:
    """Fit the signed-difficulty model to votes.

    Args:
        votes: A `VoteTable`, or anything that `read_votes` takes.
        engine: "svi" (Pyro) or "coordinate" (deterministic, no torch).
        prior: "default" (difficulty scale learned), "paper" (CleanPatrick's vague prior), or a `Prior`.
        seed: Seed of `svi`.
        init: Where `svi` starts: "coordinate", "consensus", or "paper" (zeros, not whitened, 10,000 steps).
        family: For `coordinate`: "free" (exact factors) or "gaussian".
        max_steps: Cap on steps (`svi`) or sweeps (`coordinate`).
        batch_items: For `svi`: items per step, for tables that do not fit in memory at once.
        device: For `svi`: "cpu" or "cuda".
        ability_mean: Overrides the prior's mean ability.
        ability_scale: Overrides the prior's spread of abilities.
        difficulty_scale: Overrides, and fixes, the prior's difficulty scale.
        on_progress: Called after every sweep or step.
        resume: State to go on from: what `Progress.snapshot` gave in an interrupted fit with the same arguments.

    Returns:
        The fit, with `.posterior` and `.diagnostics`.

    Example:
        >>> from softgold.simulation import simulate
        >>> study = simulate(n_items=200, n_annotators=20, seed=0)
        >>> result = fit(study.votes, engine="coordinate")
        >>> float(((result.posterior.soft_labels().p >= 0.5) == study.truth.label).mean()) > 0.9
        True
    """
    table = votes if isinstance(votes, VoteTable) else read_votes(votes)
    if table.n_votes == 0:
        raise InputError("the table has no votes to fit; it needs at least one vote that is not an abstention")
    resolved = resolve_prior(
        prior, ability_mean=ability_mean, ability_scale=ability_scale, difficulty_scale=difficulty_scale
    )
    settings = FitSettings(engine, resolved, seed, init, family, max_steps, batch_items, device)
    result = _Fitting(table, settings, on_progress or (lambda progress: None)).run(resume)
    for message in result.diagnostics.warnings[len(table.notes) :]:  # the reader has said its own already
        warn(message, ConvergenceWarning if message.startswith(NOT_CONVERGED) else DataWarning)
    return result


@dataclass(frozen=True)
class _Course:
    """How the optimisation went: fields of `Diagnostics`."""

    elbo: tuple[float, ...]
    steps: int
    sweeps: int
    converged: bool
    reason: str


class _Fitting:
    """One fit in progress; only `fit` makes it."""

    def __init__(self, votes: VoteTable, settings: FitSettings, report: Callable[[Progress], None]) -> None:
        self.started = time.perf_counter()
        self.votes, self.settings, self.report = votes, settings, report
        self.grids = Grids.for_votes(votes, settings.prior)
        # The search for Normal factors compares bounds, which single precision would blur.
        self.chunks = vote_chunks(votes, double=settings.family == "gaussian")

    def run(self, resume: FitState | None) -> Fit:
        if isinstance(resume, SviState):
            return self._svi_fit(resume.start, resume.sweeps, resume)
        if self.settings.engine == "coordinate":
            cap = self.settings.max_steps or coordinate.MAX_SWEEPS
            state, converged = self._sweeps(resume, self.settings.family, cap)
            return self._coordinate_fit(state, converged)
        if self.settings.init == "coordinate":
            return self._svi_fit(*self._best_normals(resume))
        return self._svi_fit(self._plain_start(), 0)

    def _best_normals(self, state: CoordinateState | None) -> tuple[NormalFit, int]:
        """Return the coordinate engine's Normals and its sweeps: free factors first, because they are faster."""
        if state is None or state.items is None:
            state, _ = self._sweeps(state, "free", coordinate.MAX_SWEEPS)
            state = coordinate.on_normals(state, self._item_normals(state), self.grids.abilities)
        self.chunks = vote_chunks(self.votes, double=True)
        state, _ = self._sweeps(state, "gaussian", 2 * coordinate.MAX_SWEEPS)
        c, b = state.abilities, cast(Normals, state.items)
        return NormalFit(c.mean, c.sd, b.mean, b.sd, state.scale), state.sweep

    def _sweeps(self, resume: CoordinateState | None, family: Family, cap: int) -> tuple[CoordinateState, bool]:
        prior = self.settings.prior
        begin = resume or coordinate.start_state(self.votes, prior, self.grids)

        def on_sweep(state: CoordinateState) -> None:
            bound = state.elbo[-1] if state.elbo else np.nan
            self.report(Progress("coordinate", state.sweep, cap, bound, lambda: state))

        return coordinate.run(begin, self.chunks, prior, self.grids, family=family, max_sweeps=cap, on_sweep=on_sweep)

    def _coordinate_fit(self, state: CoordinateState, converged: bool) -> Fit:
        factor, orientation = self._oriented(state.abilities, state.scale, state.positive - 0.5)
        pool = self._pool(factor)
        table = factor.table
        if self.settings.family == "free":
            # What is stored are the nodes; from their own table `predict` will find the same labels again.
            table = self.grids.abilities.table(factor.points.nodes, factor.points.mass)
        coupled = table @ self.grids.coupling

        def summary(chunk: VoteChunk) -> ItemSummary:
            items = coordinate.item_factors(chunk, factor.mean, coupled, self.grids, self.settings.family)
            if self.settings.family == "free":
                return summarise_exact(items.factor, items.eta, items.penalty, coordinate.UNIT, pool)
            return summarise_normal(items.factor.mean, items.factor.sd, pool)

        with worker_pool() as workers:
            parts = list(coordinate.in_order(summary, self.chunks, workers))
        reason = "the soft labels and the bound have settled" if converged else "the cap on sweeps was reached"
        course = _Course(state.elbo, state.sweep, state.sweep, converged, reason)
        return self._fit(ItemSummary.concatenate(parts), factor, orientation, state.scale, course)

    def _item_normals(self, state: CoordinateState) -> Normals:
        """Return Normals with the means and standard deviations of the free item factors."""
        coupled = state.abilities.table @ self.grids.coupling
        parts = []
        for chunk in self.chunks:
            factor = coordinate.item_factors(chunk, state.abilities.mean, coupled, self.grids, "free").factor
            parts.append(Normals(factor.mean, factor.sd))
        return Normals.concatenate(parts)

    def _plain_start(self) -> NormalFit:
        from softgold.glad import svi

        start = svi.paper_start if self.settings.init == "paper" else svi.consensus_start
        return start(self.votes, self.settings.prior)

    def _svi_fit(self, start: NormalFit, sweeps: int, resume: SviState | None = None) -> Fit:
        from softgold.glad import svi

        settings = self.settings
        schedule = svi.SCHEDULES[settings.init]
        schedule = replace(schedule, max_steps=settings.max_steps or schedule.max_steps)

        def on_step(step: int, elbo: float, snapshot: svi.Snapshot) -> None:
            self.report(Progress("svi", step, schedule.max_steps, elbo, lambda: replace(snapshot(), sweeps=sweeps)))

        fitted = svi.run_svi(
            self.votes,
            settings.prior,
            start,
            schedule,
            seed=settings.seed,
            whitened=settings.init != "paper",
            batch_items=settings.batch_items,
            device=settings.device,
            on_step=on_step,
            resume=resume,
        )
        abilities = normal_factor(fitted.c_mean, fitted.c_sd, self.grids.abilities)
        factor, orientation = self._oriented(abilities, fitted.scale, fitted.b_mean)
        items = summarise_normal(fitted.b_mean * orientation.items, fitted.b_sd, self._pool(factor))
        # The published recipe runs its steps out by design; whether it has settled is not asked.
        converged = fitted.converged or (settings.init == "paper" and settings.max_steps is None)
        reason = "the smoothed bound has settled" if fitted.converged else "the cap on steps was reached"
        if settings.init == "paper" and converged:
            reason = "the steps of the published recipe were run"
        course = _Course(fitted.elbo, len(fitted.elbo), sweeps, converged, reason)
        return self._fit(items, factor, orientation, fitted.scale, course)

    def _oriented(self, abilities: Factor, scale: float, item_lean: FloatArray) -> tuple[Factor, Orientation]:
        symmetric = self.settings.prior.ability_mean == 0
        orientation = orient(self.votes, abilities.mean / scale, abilities.sd / scale, item_lean, symmetric=symmetric)
        sign = orientation.annotators
        turned = replace(
            abilities,
            mean=sign * abilities.mean,
            positive=np.where(sign < 0, 1 - abilities.positive, abilities.positive),
            nodes=sign[:, None] * abilities.points.nodes,
        )
        return turned, orientation

    def _certainty(self, abilities: Factor) -> FloatArray:
        if self.settings.prior.ability_mean != 0:  # the prior has fixed the sign
            return np.ones(self.votes.n_items)
        return upright_probability(self.votes, abilities.positive)

    def _pool(self, abilities: Factor) -> Pool:
        nodes, mass, _ = abilities.points
        return Pool.of(nodes, mass, self.votes.annotator_counts, self.grids.items)

    def _fit(
        self, items: ItemSummary, abilities: Factor, orientation: Orientation, scale: float, course: _Course
    ) -> Fit:
        votes, settings = self.votes, self.settings
        messages = (*votes.notes, *data_warnings(votes, orientation.components))
        if not course.converged:
            messages = (*messages, f"{NOT_CONVERGED}: {course.reason} ({course.steps}); raise max_steps (--max-steps)")
        family: Family = "gaussian" if settings.engine == "svi" else settings.family
        posterior = Posterior(
            votes.item_ids,
            votes.annotator_ids,
            items.mirrored(self._certainty(abilities)).scaled(scale),
            AbilityPosterior.of(abilities, scale, family),
            settings.prior.fixed_at(scale),
            settings.engine,
            family,
            votes.item_counts,
            votes.item_positives,
            votes.annotator_counts,
            agreement_with_others(votes),
        )
        diagnostics = Diagnostics(
            settings.engine,
            **vars(course),
            seconds=time.perf_counter() - self.started,
            difficulty_scale=scale,
            components=orientation.components,
            warnings=messages,
        )
        return Fit(posterior, diagnostics, settings)
