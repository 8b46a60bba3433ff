"""A fit of votes on disk: the same engines over chunks that are read in every sweep, with the same bits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgold.errors import UsageError, warn
from softgold.models.agreement import agreement_sums
from softgold.models.base import ADVERSARIAL, Diagnostics, FitState, Model, OnProgress, find_model
from softgold.models.crowd import coordinate
from softgold.models.crowd.annotators import Response, Skills, respond
from softgold.models.crowd.ascent import Ascent, concluded, course_of, sweep_cap
from softgold.models.crowd.chunks import CHUNK_VOTES, part_chunks
from softgold.models.crowd.coordinate import CoordinateState, Problem
from softgold.models.crowd.mirror import Images, ItemBlocks, weigh_images
from softgold.models.crowd.models import CrowdModel, check_svi
from softgold.models.crowd.population import Population
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.prevalence import PrevalenceDoubt, prevalence_doubt
from softgold.models.crowd.settings import CrowdSettings, GladSettings
from softgold.models.crowd.states import States
from softgold.models.crowd.summary import ItemSummary, response_curve, summarise_chunks
from softgold.models.crowd.svi_state import SviState
from softgold.models.summaries import FitSummary
from softgold.readers.cells import as_index
from softgold.scale.canonical import Kinds, find_kinds, is_opposite, refine_store
from softgold.scale.chunkfile import ChunkFile, write_chunks
from softgold.scale.components import StoreGraph, find_components
from softgold.scale.disk import read_array, write_array
from softgold.scale.store import FloatArray, VoteStore
from softgold.tables.parts import PartVotes, StorePart
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable


@dataclass(frozen=True, eq=False)
class StreamedFit:
    """A fitted model whose items are on disk.

    Attributes:
        model: Name of the model.
        settings: Its settings.
        store: The votes.
        posterior: What it says of the annotators; it holds no items.
        diagnostics: How it went.
        graph: The components of the votes.
        images: How far each component can be trusted.
    """

    model: str
    settings: CrowdSettings
    store: VoteStore
    posterior: CrowdPosterior
    diagnostics: Diagnostics
    graph: StoreGraph
    images: Images

    def soft_labels(self) -> Iterator[tuple[StorePart, PartVotes, SoftLabels]]:
        """Give the soft labels of all items in order, part by part, with the votes of the part."""
        for part, votes in self.store.each():
            of = self.graph.of(part)
            items = _read_summary(self.store, part).mixed(self.images.certainty[of], self.images.odds[of])
            yield part, votes, self._labels(part, votes, items)

    def summary(self) -> FitSummary:
        """Return what a person wants to know first; it prints as a few lines."""
        positives, wrong, found = 0, 0.0, self.diagnostics
        for part in self.store.parts:
            of = self.graph.of(part)
            p = _read_summary(self.store, part).mixed(self.images.certainty[of], self.images.odds[of]).positive
            positives, wrong = positives + int((p >= 0.5).sum()), wrong + float(np.minimum(p, 1 - p).sum())
        return FitSummary(
            model=self.model,
            engine=self.settings.engine,
            items=self.store.n_items,
            annotators=self.store.n_annotators,
            votes=self.store.n_votes,
            positives=positives,
            expected_wrong=wrong / self.store.n_items,
            adversaries=int((self.posterior.annotators()["p_adversarial"] > ADVERSARIAL).sum()),
            converged=found.converged,
            reason=found.reason,
            seconds=found.seconds,
            warnings=found.warnings,
        )

    def _labels(self, part: StorePart, votes: PartVotes, items: ItemSummary) -> SoftLabels:
        weight = np.ones(part.n_votes) if votes.weights is None else votes.weights
        ids = as_index(self.store.texts(part), self.store.kinds[0])
        positives = np.bincount(votes.items, weight * votes.votes).astype(np.float64)
        return items.soft_labels(ids, _counted(votes), positives, self.model)


def _counted(votes: PartVotes) -> Any:
    """Return the votes of each item, averaged repeats counted once."""
    if votes.weights is None:
        return votes.counts
    return np.rint(np.bincount(votes.items, votes.weights)).astype(np.int64)


def fit_store(
    store: VoteStore,
    *,
    model: str = "two-class",
    settings: Any = None,
    on_progress: OnProgress = lambda progress: None,
    resume: FitState | None = None,
    part_votes: int,
    chunk_votes: int = CHUNK_VOTES,
) -> StreamedFit:
    """Fit a crowd model to votes on disk.

    Args:
        store: The votes.
        model: "two-class" or "glad".
        settings: Settings of the model; its defaults if None.
        on_progress: Called after every sweep or step.
        resume: State to go on from.
        part_votes: About how many votes to hold at a time.
        chunk_votes: Votes per chunk; the bits are those of a fit in memory only with the default.
    """
    chosen = find_model(model)
    check_streamable(chosen, settings)
    task = _StoreFit(store, model, settings or chosen.settings(), on_progress, part_votes, chunk_votes)
    found = task.run(resume)
    for notice in found.diagnostics.notices:
        if notice.kind != "reader":
            warn(notice.text, notice.category)
    return found


def check_streamable(model: Model, settings: Any) -> None:
    """Raise where a model needs the votes in memory."""
    if not isinstance(model, CrowdModel):
        raise UsageError(f"the model {model.name} reads votes into memory; two-class and glad can read them from disk")
    if isinstance(settings, GladSettings) and settings.init == "paper":
        raise UsageError("the published recipe (--init paper) reads votes into memory; leave out --memory")


@dataclass(frozen=True, eq=False)
class _StoreFit:
    """One fit in progress."""

    store: VoteStore
    name: str
    settings: CrowdSettings
    report: OnProgress
    part_votes: int
    chunk_votes: int
    started: float = field(default_factory=time.perf_counter)

    def run(self, resume: FitState | None) -> StreamedFit:
        if self.settings.engine == "svi":
            check_svi(self.settings.device)
        store, prior = self.store, self.settings.crowd_prior
        lattice = prior.lattice(self._item_counts())
        opposite = False if prior.start().has_lean else is_opposite(store)
        graph, colours = find_components(store), refine_store(store, opposite=opposite)

        def chunks(kinds: Kinds, name: str) -> ChunkFile:
            return write_chunks(
                store, kinds, name, part_votes=self.part_votes, size=self.chunk_votes, opposite=opposite
            )

        kinds = find_kinds(colours)
        file = chunks(kinds, "merged")
        problem = Problem(file.driver(), prior, lattice)
        if isinstance(resume, SviState):
            begin = resume
        else:
            state = self._ascend(problem, kinds, graph, resume if isinstance(resume, CoordinateState) else None)
            skills = state.skills.take(kinds.annotator)
            doubt = prevalence_doubt(problem, state.skills, state.population).take(kinds.annotator)
            if self.settings.engine == "coordinate":
                return self._finish((skills, doubt), state.population, problem, graph, course_of(state))
            begin = SviState(skills, state.population, doubt, state.sweep)
        if kinds.merged:
            kinds = find_kinds(colours, merge=False)
            file = chunks(kinds, "single")
            problem = Problem(file.driver(), prior, lattice)
        return self._svi(problem, file, graph, begin)

    def _svi(self, problem: Problem, file: ChunkFile, graph: StoreGraph, state: SviState) -> StreamedFit:
        """Optimise in Pyro, each step with a mini-batch of items that is read from disk."""
        from softgold.models.crowd import svi
        from softgold.scale.batches import FileVotes

        order = np.argsort(file.kinds.annotator)
        state = state if state.elbo else replace(state, start=state.start.take(order))
        with FileVotes.of(file) as votes:
            found = svi.run_svi(votes.select, votes.n_votes, problem, state, self.settings, self.report)
        skills, population, course = found
        people = skills.take(file.kinds.annotator), state.doubt
        return self._finish(people, population, problem, graph, course)

    def _item_counts(self) -> Any:
        if not self.store.weighted:
            return self.store.item_counts
        return np.concatenate([_counted(votes) for _, votes in self.store.each()])

    def _ascend(
        self, problem: Problem, kinds: Kinds, graph: StoreGraph, begin: CoordinateState | None
    ) -> CoordinateState:
        def weigh(state: CoordinateState) -> Images:
            positive = problem.positive(state)
            blocks = ((graph.of(part), positive[kinds.item[part.rows]]) for part in self.store.parts)
            skills = state.skills.take(kinds.annotator)
            return self._images(graph, skills, blocks, state.population)

        ascent = Ascent(problem, sweep_cap(self.settings), self.report, weigh, kinds.annotator, graph.graph)
        return ascent.run(begin or coordinate.start_state(len(kinds.annotator_weight), problem.prior))

    def _images(self, graph: StoreGraph, skills: Skills, blocks: ItemBlocks, population: Population) -> Images:
        return weigh_images(graph.graph, skills, blocks, population, self.settings.crowd_prior)

    def _finish(
        self,
        people: tuple[Skills, PrevalenceDoubt],
        population: Population,
        problem: Problem,
        graph: StoreGraph,
        course: Diagnostics,
    ) -> StreamedFit:
        skills, doubt = people
        store, states = self.store, problem.prior.states(population, problem.lattice)
        response = respond(skills, states)
        agreement = self._summarise(skills, response, states, population)
        blocks = ((graph.of(part), _read_summary(store, part).positive) for part in store.parts)
        images = self._images(graph, skills, blocks, population)
        components = images.reports(graph.graph)
        positives = store.n_positive, store.n_votes
        diagnostics = concluded(course, population, components, store.notes, positives, self.started)
        of = graph.graph.annotators
        posterior = CrowdPosterior(
            item_ids=pd.Index([], dtype="str"),
            annotator_ids=store.annotator_ids,
            method=self.name,
            prior=problem.prior,
            population=population,
            lattice=problem.lattice,
            skills=skills,
            doubt=doubt,
            items=ItemSummary(*(np.empty(0) for _ in SUMMARY)),
            certainty=images.certainty[of],
            mirror_odds=images.odds[of],
            item_counts=np.empty(0, np.int64),
            item_positives=np.empty(0),
            annotator_counts=store.annotator_counts,
            annotator_agreement=agreement,
        )
        return StreamedFit(self.name, self.settings, store, posterior, diagnostics, graph, images)

    def _summarise(self, skills: Skills, response: Response, states: States, population: Population) -> FloatArray:
        """Write the summary of each part's items; return how far each annotator agrees with the others."""
        store = self.store
        curve = response_curve(response, store.annotator_counts)
        hits, total = np.zeros(store.n_annotators), np.zeros(store.n_annotators)
        for part, votes in store.each():
            chunks = part_chunks(votes, np.ones(store.n_annotators))
            found = summarise_chunks(chunks, skills, response, states, curve, population.unit)
            write_array(_summary_path(store, part), np.stack([getattr(found, name) for name in SUMMARY]))
            people, codes = np.unique(votes.annotators, return_inverse=True)
            table = _part_table(votes, people, codes)
            some = agreement_sums(table)
            hits[people] += some[0]
            total[people] += some[1]
        shares = np.full(store.n_annotators, np.nan)
        np.divide(hits, total, out=shares, where=total > 0)
        return shares


SUMMARY = tuple(entry.name for entry in fields(ItemSummary))


def _summary_path(store: VoteStore, part: StorePart) -> Path:
    return store.folder / f"summary-{part.number}"


def _read_summary(store: VoteStore, part: StorePart) -> ItemSummary:
    return ItemSummary(*read_array(_summary_path(store, part), np.float64).reshape(len(SUMMARY), part.n_items))


def _part_table(votes: PartVotes, people: Any, codes: Any) -> VoteTable:
    numbers = (pd.RangeIndex(len(side)).astype("str") for side in (votes.counts, people))
    return VoteTable.from_codes(votes.items, codes, votes.votes, *numbers, weights=votes.weights)
