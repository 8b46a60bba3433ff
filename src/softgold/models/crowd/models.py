"""The two crowd models of the registry: votes in, posterior and diagnostics out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from softgold.checks import check_choice, check_positive_int
from softgold.errors import UsageError
from softgold.models.base import Arrays, Diagnostics, Fit, FitState, Model, Notice, OnProgress, Posterior, Progress
from softgold.models.crowd import coordinate
from softgold.models.crowd.acceleration import History
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.chunks import vote_chunks
from softgold.models.crowd.classes import canonical_votes, vote_classes
from softgold.models.crowd.coordinate import CoordinateState, Problem
from softgold.models.crowd.mirror import Images, weigh_images
from softgold.models.crowd.notices import data_notices
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.priors import CrowdPrior, GladPrior, Population, Prevalence, TwoClassPrior
from softgold.models.crowd.summary import summarise_published
from softgold.models.crowd.svi_state import SviState
from softgold.models.crowd.warm import warm_state
from softgold.tables.votes import VoteTable

__all__ = ["GLAD_MODEL", "TWO_CLASS", "CrowdModel", "CrowdSettings", "Engine", "Init"]

Engine = Literal["svi", "coordinate"]
Init = Literal["coordinate", "paper"]

MOST_TURNS = 3


@dataclass(frozen=True)
class CrowdSettings(ABC):
    """What decides the result of a fit, besides the votes.

    Attributes:
        engine: "svi" (Pyro) or "coordinate" (deterministic, no torch).
        seed: Seed of `svi`; the coordinate engine draws no random numbers.
        max_steps: Cap on steps (`svi`) or sweeps (`coordinate`); None for the engine's own.
        batch_items: Items per step of `svi`; None for as many as have about 10,000 votes.
        device: Where `svi` computes.
    """

    engine: Engine = "svi"
    seed: int = 0
    max_steps: int | None = None
    batch_items: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_choice(self.engine, get_args(Engine), "engine")
        check_positive_int(self.seed, "seed", minimum=0)
        for name in ("max_steps", "batch_items"):
            if getattr(self, name) is not None:
                check_positive_int(getattr(self, name), name)
        if self.engine == "coordinate":
            self._only_default("batch_items", "device")

    def _only_default(self, *names: str) -> None:
        defaults = {field.name: field.default for field in fields(self)}
        for name in names:
            if getattr(self, name) != defaults[name]:
                raise UsageError(f"{name}={getattr(self, name)!r} has no meaning for the {self.engine} engine")

    @property
    @abstractmethod
    def crowd_prior(self) -> CrowdPrior:
        """The prior over (z, b)."""


@dataclass(frozen=True)
class TwoClassSettings(CrowdSettings):
    """Settings of the two-class model.

    Attributes:
        prevalence: How the share of positive items is found; see `TwoClassPrior`.
    """

    prevalence: Prevalence | float = "able"

    def __post_init__(self) -> None:
        super().__post_init__()
        TwoClassPrior(self.prevalence)

    @property
    def crowd_prior(self) -> TwoClassPrior:
        """The mixture of two classes."""
        return TwoClassPrior(self.prevalence)


@dataclass(frozen=True)
class GladSettings(CrowdSettings):
    """Settings of the published model.

    Attributes:
        prior: "default" (sigma_b learned) or "paper" (sigma_b = 1000).
        init: Where `svi` starts: "coordinate", or "paper" to run the published recipe as published.
        ability_mean: Prior mean of the abilities, in place of 0.
        ability_scale: Prior spread of the abilities, in place of 1.
        difficulty_scale: Prior spread of the difficulties, fixed at this.
    """

    prior: str = "default"
    init: Init = "coordinate"
    ability_mean: float | None = None
    ability_scale: float | None = None
    difficulty_scale: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.init, get_args(Init), "init")
        if self.engine == "coordinate":
            self._only_default("init")
        if self.init == "paper" and self.batch_items is not None:
            raise UsageError("the published recipe (init='paper') has no batches; leave batch_items out")
        _ = self.crowd_prior

    @property
    def crowd_prior(self) -> GladPrior:
        """The Normal prior of the signed difficulty."""
        return GladPrior.named(
            self.prior,
            ability_mean=self.ability_mean,
            ability_scale=self.ability_scale,
            difficulty_scale=self.difficulty_scale,
        )


class CrowdModel(Model):
    """A model of the crowd family: which one is decided by the prior that its settings give."""

    def __init__(self, name: str, kind: type[CrowdSettings]) -> None:
        self.name, self.kind = name, kind
        self.options = tuple(field.name for field in fields(kind))

    def settings(self, **options: Any) -> CrowdSettings:
        """Return the settings."""
        return self.kind(**options)

    def fit(self, votes: VoteTable, settings: CrowdSettings, on_progress: OnProgress, resume: FitState | None) -> Fit:
        """Fit by the engine that the settings name."""
        return _CrowdFit(self.name, votes, settings, on_progress).run(resume)

    def posterior(
        self, arrays: Arrays, item_ids: pd.Index[str], annotator_ids: pd.Index[str], settings: CrowdSettings
    ) -> CrowdPosterior:
        """Return the stored posterior."""
        return CrowdPosterior.from_arrays(arrays, item_ids, annotator_ids, self.name, settings.crowd_prior)

    def warm_start(self, votes: VoteTable, posterior: Posterior) -> FitState | None:
        """Return the annotators as an earlier fit of a crowd model left them."""
        return warm_state(votes, posterior) if isinstance(posterior, CrowdPosterior) else None

    def state(self, arrays: Arrays) -> FitState:
        """Return the stored state."""
        return SviState.from_arrays(arrays) if "random" in arrays else CoordinateState.from_arrays(arrays)


TWO_CLASS = CrowdModel("two-class", TwoClassSettings)
GLAD_MODEL = CrowdModel("glad", GladSettings)


def _check_torch() -> None:
    """Raise before any work where the svi engine cannot be imported."""
    missing = [name for name in ("torch", "pyro") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"engine 'svi' needs {' and '.join(missing)}, which cannot be imported here: install torch and pyro-ppl, "
            "or use engine='coordinate' (--engine coordinate)"
        )


@dataclass(frozen=True)
class Course:
    """How the optimisation went: fields of `Diagnostics`."""

    steps: int
    sweeps: int
    converged: bool
    reason: str
    elbo: tuple[float, ...]


class _CrowdFit:
    """One fit in progress."""

    def __init__(self, name: str, votes: VoteTable, settings: CrowdSettings, report: OnProgress) -> None:
        self.started = time.perf_counter()
        self.name, self.votes, self.settings, self.report = name, votes, settings, report
        self.prior = settings.crowd_prior
        self.lattice = self.prior.lattice(votes.item_counts)

    def run(self, resume: FitState | None) -> Fit:
        if self.settings.engine == "svi":
            _check_torch()
        if isinstance(self.settings, GladSettings) and self.settings.init == "paper":
            return self._published(resume if isinstance(resume, SviState) else None)
        if isinstance(resume, SviState):
            return self._svi(resume.start, resume.population, resume.sweeps, resume)
        state, skills, converged = self._sweeps(resume if isinstance(resume, CoordinateState) else None)
        if self.settings.engine == "svi":
            return self._svi(skills, state.population, state.sweep, None)
        reason = "the soft labels and the bound have settled" if converged else "the cap on sweeps was reached"
        course = Course(state.sweep, state.sweep, converged, reason, state.elbo)
        return self._fit(skills, state.population, course)

    def _sweeps(self, begin: CoordinateState | None) -> tuple[CoordinateState, Skills, bool]:
        """Sweep to the end, turning components that come out the wrong way round; return every annotator's factor."""
        kinds = vote_classes(self.votes)
        chunks = vote_chunks(kinds.votes, kinds.item_weight, kinds.annotator_weight)
        problem = Problem(chunks, self.prior, self.lattice, kinds.item_weight, kinds.annotator_weight)
        cap = coordinate.MAX_SWEEPS
        if self.settings.engine == "coordinate" and self.settings.max_steps is not None:
            cap = self.settings.max_steps

        def on_sweep(state: CoordinateState) -> None:
            bound = state.elbo[-1] if state.elbo else np.nan
            self.report(Progress("coordinate", state.sweep, cap, bound, lambda: state))

        state = begin or coordinate.start_state(kinds.votes.n_items, kinds.votes.n_annotators, self.prior)
        for _ in range(MOST_TURNS):
            state, converged = coordinate.run(state, problem, max_sweeps=cap, on_sweep=on_sweep)
            images = self._images(state.skills.take(kinds.annotator), state.positive[kinds.item], state.population)
            if images.upright.all() or state.sweep >= cap:
                break
            turned = np.zeros(kinds.votes.n_annotators, dtype=bool)
            turned[kinds.annotator[~images.upright[self.votes.components.annotators]]] = True
            population = replace(state.population, log_odds=self.prior.start().log_odds)
            skills = state.skills.reversed(turned)
            state = replace(state, skills=skills, population=population, change=np.inf, history=History())
        return state, state.skills.take(kinds.annotator), converged

    def _images(self, skills: Skills, positive: Any, population: Population) -> Images:
        turns = self.prior.prevalence == "able"
        images = weigh_images(self.votes, skills, positive, population, turns=turns)
        if getattr(self.prior, "ability_mean", 0.0):  # the prior has fixed the sign
            return images.certain()
        return images

    def _svi(self, start: Skills, population: Population, sweeps: int, resume: SviState | None) -> Fit:
        from softgold.models.crowd import svi

        settings = self.settings
        ones = np.ones(self.votes.n_items), np.ones(self.votes.n_annotators)
        cap = settings.max_steps or svi.MAX_STEPS
        canonical = canonical_votes(self.votes)
        fitted = svi.run_svi(
            canonical.votes,
            Problem(vote_chunks(canonical.votes), self.prior, self.lattice, *ones),
            start.take(np.argsort(canonical.annotator)) if resume is None else resume.start,
            population,
            seed=settings.seed,
            max_steps=cap,
            batch_items=settings.batch_items,
            device=settings.device,
            on_step=self._on_step(cap, sweeps),
            resume=resume,
        )
        reason = "the smoothed bound has settled" if fitted.converged else "the cap on steps was reached"
        course = Course(len(fitted.elbo), sweeps, fitted.converged, reason, fitted.elbo)
        return self._fit(fitted.skills.take(canonical.annotator), fitted.population, course)

    def _published(self, resume: SviState | None) -> Fit:
        from softgold.models.crowd import published

        settings, population = self.settings, self.prior.start()
        cap = settings.max_steps or published.STEPS
        fitted = published.run_published(
            self.votes,
            population,
            seed=settings.seed,
            max_steps=cap,
            device=settings.device,
            on_step=self._on_step(cap, 0),
            resume=resume,
        )
        # The recipe runs its steps out by design; whether it has settled is not asked.
        reason = "the steps of the published recipe were run"
        if cap < published.STEPS:
            reason = "the cap on steps was reached"
        course = Course(cap, 0, cap >= published.STEPS, reason, fitted.elbo)
        positive = (fitted.b_mean > 0).astype(np.float64)
        upright = self._images(fitted.skills, positive, population).upright
        parts = self.votes.components
        skills = fitted.skills.reversed(~upright[parts.annotators])
        b_mean = np.where(upright[parts.items], 1.0, -1.0) * fitted.b_mean
        items = summarise_published(self.votes, skills, b_mean, fitted.b_sd, self.prior, population, self.lattice)
        return self._fit(skills, population, course, items)

    def _on_step(self, cap: int, sweeps: int) -> Callable[[int, float, Callable[[], SviState]], None]:
        def on_step(step: int, elbo: float, snapshot: Callable[[], SviState]) -> None:
            self.report(Progress("svi", step, cap, elbo, lambda: replace(snapshot(), sweeps=sweeps)))

        return on_step

    def _fit(self, skills: Skills, population: Population, course: Course, items: Any = None) -> Fit:
        votes = self.votes
        plain = CrowdPosterior.of(votes, self.name, self.prior, population, self.lattice, skills, items)
        images = self._images(skills, plain.items.positive, population)
        if items is not None:  # the published recipe knows one image only
            images = images.certain()
        posterior = plain.with_images(votes, images)
        components = images.reports(votes)
        notices = (*(Notice("reader", note) for note in votes.notes), *data_notices(votes, components))
        if not course.converged:
            text = f"not converged: {course.reason} ({course.steps}); raise max_steps (--max-steps)"
            notices = (*notices, Notice("convergence", text))
        seconds = time.perf_counter() - self.started
        diagnostics = Diagnostics(
            **vars(course), seconds=seconds, learned=population.named(), components=components, notices=notices
        )
        return Fit(self.name, self.settings, self.votes, posterior, diagnostics)
