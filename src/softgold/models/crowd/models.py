"""The two crowd models of the registry: votes in, posterior and diagnostics out."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from softgold.errors import UsageError
from softgold.models.agreement import agreement_with_others
from softgold.models.base import Arrays, Diagnostics, Fit, FitState, FloatArray, Model, OnProgress, Posterior
from softgold.models.crowd import coordinate, newton
from softgold.models.crowd.annotators import Skills, respond
from softgold.models.crowd.ascent import Ascent, concluded, course_of, sweep_cap
from softgold.models.crowd.chunks import part_chunks, vote_chunks
from softgold.models.crowd.classes import oriented, refine, vote_classes
from softgold.models.crowd.coordinate import CoordinateState, Problem
from softgold.models.crowd.drivers import ChunkDriver
from softgold.models.crowd.mirror import Images, VoteGraph, weigh_images
from softgold.models.crowd.packing import unpack
from softgold.models.crowd.population import Population
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.prevalence import PrevalenceDoubt, prevalence_doubt
from softgold.models.crowd.settings import CrowdSettings, GladSettings, TwoClassSettings
from softgold.models.crowd.summary import response_curve, summarise_chunks, summarise_published
from softgold.models.crowd.svi_state import SviState
from softgold.models.crowd.warm import warm_state
from softgold.tables.votes import VoteTable


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
        if settings.engine == "svi":
            check_svi(settings.device)
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
        return unpack(SviState, arrays) if "random" in arrays else unpack(CoordinateState, arrays)


TWO_CLASS = CrowdModel("two-class", TwoClassSettings)
GLAD_MODEL = CrowdModel("glad", GladSettings)


def check_svi(device: str) -> None:
    """Raise before any work where the svi engine cannot be imported, or cannot compute on a device."""
    missing = [name for name in ("torch", "pyro") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"engine 'svi' needs {' and '.join(missing)}, which cannot be imported here: install torch and pyro-ppl, "
            "or use engine='coordinate' (--engine coordinate)"
        )
    if device != "cpu" and not import_module("torch").cuda.is_available():
        raise UsageError(f"device {device!r} is not there: this PyTorch sees no GPU; use device='cpu'")


class _CrowdFit:
    """One fit in progress."""

    def __init__(self, name: str, votes: VoteTable, settings: CrowdSettings, report: OnProgress) -> None:
        self.started = time.perf_counter()
        self.name, self.votes, self.settings, self.report = name, votes, settings, report
        self.prior = settings.crowd_prior
        self.lattice = self.prior.lattice(votes.item_counts)
        # Without leans, annotators are the same for the opposite votes: swapping 0 and 1 turns p into 1 - p, no more.
        self.engine_votes = votes if self.prior.start().has_lean else oriented(votes)
        self.colours, self.graph = refine(self.engine_votes), VoteGraph.of(votes)

    def run(self, resume: FitState | None) -> Fit:
        if isinstance(self.settings, GladSettings) and self.settings.init == "paper":
            return self._published(resume)
        if isinstance(resume, SviState):
            return self._svi(resume)
        state, skills, doubt = self._sweeps(resume if isinstance(resume, CoordinateState) else None)
        if self.settings.engine == "svi":
            return self._svi(SviState(skills, state.population, doubt, state.sweep))
        return self._fit(skills, doubt, state.population, course_of(state))

    def _sweeps(self, begin: CoordinateState | None) -> tuple[CoordinateState, Skills, PrevalenceDoubt]:
        """Sweep to the end, turning components that come out the wrong way round; return all annotators' factors."""
        kinds = vote_classes(self.engine_votes, colours=self.colours)
        chunks = tuple(part_chunks(kinds.votes.by_item(), kinds.annotator_weight, kinds.item_weight))
        driver = ChunkDriver(chunks, kinds.votes.n_items, kinds.annotator_weight)
        problem = Problem(driver, self.prior, self.lattice)

        def weigh(state: CoordinateState) -> Images:
            positive = problem.positive(state)[kinds.item]
            return self._images(state.skills.take(kinds.annotator), positive, state.population)

        ascent = Ascent(problem, sweep_cap(self.settings), self.report, weigh, kinds.annotator, self.graph)
        if begin is not None and begin.sweep == 0:  # a warm start
            begin = newton.approach(begin, problem, driver, max_sweeps=ascent.cap, on_sweep=ascent.on_sweep)
        state = ascent.run(begin or coordinate.start_state(kinds.votes.n_annotators, self.prior))
        doubt = prevalence_doubt(problem, state.skills, state.population)
        return state, state.skills.take(kinds.annotator), doubt.take(kinds.annotator)

    def _images(self, skills: Skills, positive: FloatArray, population: Population) -> Images:
        return weigh_images(self.graph, skills, [(self.votes.components.items, positive)], population, self.prior)

    def _svi(self, state: SviState) -> Fit:
        """Optimise in Pyro, on votes in canonical order, so that random numbers fall on the same annotators and items.

        `state` has the annotators in the order of the table.
        """
        from softgold.models.crowd import svi

        kinds = vote_classes(self.engine_votes, merge=False, colours=self.colours)
        driver = ChunkDriver(vote_chunks(kinds.votes), kinds.votes.n_items, kinds.annotator_weight)
        problem = Problem(driver, self.prior, self.lattice)
        state = state if state.elbo else replace(state, start=state.start.take(np.argsort(kinds.annotator)))
        votes = kinds.votes.by_item().select, kinds.votes.n_votes
        skills, population, course = svi.run_svi(*votes, problem, state, self.settings, self.report)
        return self._fit(skills.take(kinds.annotator), state.doubt, population, course)

    def _published(self, resume: FitState | None) -> Fit:
        from softgold.models.crowd import published

        population = self.prior.start()
        state = resume if isinstance(resume, SviState) else SviState(Skills.at(population, 0), population)
        skills, b_mean, b_sd, course = published.run_published(self.votes, state, self.settings, self.report)
        positive = (b_mean > 0).astype(np.float64)
        upright, parts = self._images(skills, positive, population).upright, self.votes.components
        skills = skills.reversed(~upright[parts.annotators])
        b_mean = np.where(upright[parts.items], 1.0, -1.0) * b_mean
        return self._fit(skills, PrevalenceDoubt.none(len(skills.mean)), population, course, (b_mean, b_sd))

    def _fit(
        self,
        skills: Skills,
        doubt: PrevalenceDoubt,
        population: Population,
        course: Diagnostics,
        difficulty: tuple[FloatArray, FloatArray] | None = None,
    ) -> Fit:
        """Return the fit, items mixed over both images of their component.

        Items take their exact step unless the published recipe gave mean and spread of b.
        """
        votes, parts, states = self.votes, self.votes.components, self.prior.states(population, self.lattice)
        response = respond(skills, states)
        curve = response_curve(response, votes.annotator_counts)
        if difficulty is None:
            items = summarise_chunks(vote_chunks(votes), skills, response, states, curve, population.unit)
        else:
            items = summarise_published(*difficulty, states, curve, population.unit)
        images = self._images(skills, items.positive, population)
        images = images if difficulty is None else images.certain()  # the published recipe knows one image only
        model = (self.name, self.prior, population, self.lattice, skills, doubt)
        mixed = items.mixed(images.certainty[parts.items], images.odds[parts.items])
        certainty, odds = images.certainty[parts.annotators], images.odds[parts.annotators]
        counts = (votes.item_counts, votes.item_positives, votes.annotator_counts, agreement_with_others(votes))
        posterior = CrowdPosterior(votes.item_ids, votes.annotator_ids, *model, mixed, certainty, odds, *counts)
        positives = int(votes.votes.sum()), votes.n_votes
        diagnostics = concluded(course, population, images.reports(self.graph), votes.notes, positives, self.started)
        return Fit(self.name, self.settings, votes, posterior, diagnostics)
