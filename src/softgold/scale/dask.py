"""Votes on a Dask cluster, fitted there with the numbers of `softgold.fit` and the engine "coordinate"."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as arrow_parquet
from numpy.typing import NDArray

from softgold.checks import check_choice
from softgold.errors import InputError, UsageError, warn
from softgold.models.base import DEFAULT_MODEL, Diagnostics, Fit, FloatArray, OnProgress, find_model
from softgold.models.crowd import coordinate
from softgold.models.crowd.annotators import Response, Skills, respond
from softgold.models.crowd.ascent import Ascent, concluded, course_of, sweep_cap
from softgold.models.crowd.chunks import vote_chunks
from softgold.models.crowd.coordinate import CoordinateState, Problem
from softgold.models.crowd.mirror import Images, weigh_images
from softgold.models.crowd.models import CrowdModel
from softgold.models.crowd.population import Population
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.prevalence import PrevalenceDoubt, prevalence_doubt
from softgold.models.crowd.settings import CrowdSettings
from softgold.models.crowd.states import Lattice, States
from softgold.models.crowd.summary import ItemSummary, response_curve, summarise_chunks
from softgold.readers.base import display_name
from softgold.readers.repeats import DUPLICATE_RULES, DuplicateRule
from softgold.scale.block_study import BlockStudy
from softgold.scale.blocks import Origin, Reading, load_blocks
from softgold.scale.cluster import Cluster, ClusterDriver, Future, check_dask
from softgold.scale.files import find_files
from softgold.scale.grouping import Layout, lay_out, turned_over
from softgold.scale.parts import Block, FilePart


def fit(
    votes: Any,
    client: Any = None,
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
    duplicates: DuplicateRule = "error",
    positive: str | None = None,
    model: str = DEFAULT_MODEL,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> DaskFit:
    """Fit a crowd model to votes on the workers of a Dask cluster.

    The numbers are those of `softgold.fit(votes, engine="coordinate")`, bit for bit. Votes stay on the workers; a
    worker that is lost is made up for by the others.

    Args:
        votes: A Dask frame with one row per vote; or a path, a folder, a pattern such as "votes/*.parquet", or a list
            of paths, which every worker must be able to read.
        client: Client of the cluster; the current one if None.
        item: Name of the item column; see `read_votes`, as for all that follows.
        annotator: Name of the annotator column.
        vote: Name of the vote column.
        duplicates: What to do when an annotator voted differently on the same item.
        positive: The value that counts as a vote of 1.
        model: "two-class" (the default) or "glad".
        on_progress: Called after every sweep.
        **options: Settings of the model; see `softgold.fit`.

    Raises:
        InputError: The votes break the contract of `read_votes`; the message names file or partition, row and value.
    """
    check_dask()
    check_choice(duplicates, DUPLICATE_RULES, "duplicates")
    chosen, settings = checked_settings(model, options)
    started = time.perf_counter()
    cluster = Cluster(_current(client))
    cluster.check()
    name, origins = _origins(cluster, votes)
    study = load_blocks(cluster, origins, Reading(name, (item, annotator, vote), positive, duplicates))
    for message in study.warnings:
        warn(message)
    fitted = _ClusterFit(chosen.name, study, settings, on_progress or (lambda progress: None), started).run()
    for notice in fitted.diagnostics.notices:
        if notice.kind != "reader":
            warn(notice.text, notice.category)
    return fitted


def checked_settings(model: str, options: Mapping[str, Any]) -> tuple[CrowdModel, CrowdSettings]:
    """Return a model and its settings, which must suit a cluster."""
    chosen = find_model(model)
    if not isinstance(chosen, CrowdModel):
        raise UsageError(f"model {model!r} is not fitted on a cluster; use two-class or glad")
    if options.get("engine", "coordinate") != "coordinate":
        raise UsageError(f"engine {options['engine']!r} does not run on a cluster; use engine='coordinate'")
    return chosen, chosen.checked_settings(**{**options, "engine": "coordinate"})


def _current(client: Any) -> Any:
    from distributed import Client

    if client is not None:
        return client
    try:
        return Client.current()
    except ValueError:
        raise UsageError(
            "there is no Dask client: make one with distributed.Client(...), of a cluster or of processes on this "
            "machine"
        ) from None


def _origins(cluster: Cluster, votes: Any) -> tuple[str, list[Origin]]:
    """Return what the source is called, and its parts."""
    if hasattr(votes, "to_delayed") and hasattr(votes, "npartitions"):
        frames = cluster.client.compute(votes.to_delayed())
        several = len(frames) > 1
        name = "the data frame"
        return name, [
            Origin(frame, f"partition {at + 1} of the data frame" if several else name)
            for at, frame in enumerate(frames)
        ]
    paths, name = files_of(votes)
    return name, [Origin(part, display_name(path)) for path in paths for part in _file_parts(path)]


def files_of(votes: Any) -> tuple[list[Path], str]:
    """Return the files of a path, a folder, a pattern or a list of these, and what to call them together."""
    if isinstance(votes, str | os.PathLike):
        found = find_files(os.fspath(votes))
        if not found:
            raise InputError(f"cannot read {display_name(votes)}: there is no such file or folder of tables")
        return list(found), display_name(votes)
    if isinstance(votes, Iterable) and not hasattr(votes, "columns"):
        given = list(votes)
        if given and all(isinstance(path, str | os.PathLike) for path in given):
            return [path for name in given for path in files_of(name)[0]], f"{display_name(given[0])} and others"
    raise UsageError(f"votes must be a Dask frame, a path or a list of paths, got {type(votes).__name__}")


def _file_parts(path: Path) -> list[FilePart]:
    """Return the row groups of a Parquet file, or the whole of any other."""
    path = path.absolute()
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return [FilePart(path)]
        found = arrow_parquet.ParquetFile(path).metadata
    except (OSError, pa.ArrowException):  # whoever reads it will say what is wrong
        return [FilePart(path)]
    rows = [found.row_group(at).num_rows for at in range(found.num_row_groups)]
    starts = np.cumsum([0, *rows]).tolist()
    return [FilePart(path, at, first) for at, (first, n) in enumerate(zip(starts, rows, strict=False)) if n] or [
        FilePart(path)
    ]


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What the workers need to say something of items: annotators and states of a fit."""

    method: str
    skills: Skills
    response: Response
    states: States
    curve: FloatArray
    unit: float


def _summarise(block: Block, fitted: _Fitted) -> ItemSummary:
    if block.votes.n_items == 0:
        return ItemSummary(*(np.empty(0) for _ in range(6)))
    chunks = vote_chunks(block.votes)
    return summarise_chunks(chunks, fitted.skills, fitted.response, fitted.states, fitted.curve, fitted.unit)


def _p(items: ItemSummary) -> FloatArray:
    return items.positive


def _mixed(items: ItemSummary, parts: NDArray[np.int32], images: Images) -> ItemSummary:
    return items.mixed(images.certainty[parts], images.odds[parts])


def _frame(block: Block, items: ItemSummary, method: str) -> pd.DataFrame:
    """Return the soft labels of a block, by first appearance of its items."""
    votes = block.votes
    labels = items.soft_labels(votes.item_ids, votes.item_counts, votes.item_positives, method)
    return labels.to_frame().iloc[np.argsort(block.first_rows)].reset_index(drop=True)


def _positives(block: Block) -> FloatArray:
    return block.votes.item_positives


@dataclass(frozen=True, eq=False, repr=False)
class DaskFit:
    """A fit whose votes and items are on the workers of a cluster.

    Attributes:
        model: Name of the model.
        settings: Its settings.
        diagnostics: How the fit went.
    """

    model: str
    settings: CrowdSettings
    diagnostics: Diagnostics
    _study: BlockStudy = field(repr=False)
    _items: tuple[Future, ...] = field(repr=False)
    _of_annotators: dict[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        study = self._study
        return (
            f"DaskFit of {self.model}: {study.n_votes:,} votes on {len(study.order):,} items by "
            f"{study.n_annotators:,} annotators, {len(study.blocks)} blocks; {self.diagnostics.reason}"
        )

    def annotators(self) -> pd.DataFrame:
        """Return one row per annotator, here; columns as in `softgold.fit(...).posterior.annotators()`."""
        nobody = ItemSummary(*(np.empty(0) for _ in range(6)))
        counts = (np.empty(0, np.int64), np.empty(0))
        return self._posterior(pd.Index([], dtype="str"), nobody, *counts).annotators()

    def soft_labels(self) -> Any:
        """Return the soft labels as a Dask frame: one row per item, in no certain order of the partitions."""
        import dask.dataframe as dd

        cluster = self._study.cluster
        frames = [
            cluster.call(_frame, block, items, self.model)
            for block, items in zip(self._study.blocks, self._items, strict=True)
        ]
        meta = cluster.results([cluster.call(_head, frames[0])])[0]
        with cluster.client.as_current():
            return dd.from_delayed(frames, meta=meta, verify_meta=False)

    def to_local(self) -> Fit:
        """Return the fit with all votes and items in this process, as `softgold.fit` gives it."""
        study, cluster = self._study, self._study.cluster
        votes = study.table()
        items = cluster.results(self._items)
        positives = cluster.results([cluster.call(_positives, block) for block in study.blocks])
        together = ItemSummary.concatenate(items).take(study.order)
        posterior = self._posterior(votes.item_ids, together, study.item_counts, study.by_item(positives))
        return Fit(self.model, self.settings, votes, posterior, self.diagnostics)

    def _posterior(
        self, ids: pd.Index[str], items: ItemSummary, counts: NDArray[np.int64], positives: FloatArray
    ) -> CrowdPosterior:
        return CrowdPosterior(
            item_ids=ids,
            annotator_ids=self._study.annotator_ids,
            method=self.model,
            prior=self.settings.crowd_prior,
            items=items,
            item_counts=counts,
            item_positives=positives,
            annotator_counts=self._study.annotator_counts,
            annotator_agreement=self._study.agreement,
            **self._of_annotators,
        )


def _head(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[:0]


class _ClusterFit:
    """One fit in progress; the order of the steps is that of a fit in memory."""

    def __init__(
        self, name: str, study: BlockStudy, settings: CrowdSettings, report: OnProgress, started: float
    ) -> None:
        self.name, self.study, self.settings, self.report, self.started = name, study, settings, report, started
        self.cluster, self.prior = study.cluster, settings.crowd_prior
        self.lattice: Lattice = self.prior.lattice(study.item_counts)

    def run(self) -> DaskFit:
        flip = not self.prior.start().has_lean and turned_over(self.study)
        layout = lay_out(self.study, flip)
        driver = ClusterDriver(self.cluster, layout.shares, layout.n_items, layout.annotator_weight)
        problem = Problem(driver, self.prior, self.lattice)
        state = self._sweeps(problem, layout)
        doubt = prevalence_doubt(problem, state.skills, state.population)
        return self._finish(state, state.skills.take(layout.annotator), doubt.take(layout.annotator))

    def _sweeps(self, problem: Problem, layout: Layout) -> CoordinateState:

        def weigh(state: CoordinateState) -> Images:
            positive = problem.positive(state)[layout.item]
            return self._images(state.skills.take(layout.annotator), positive, state.population)

        cap = sweep_cap(self.settings)
        ascent = Ascent(problem, cap, self.report, weigh, layout.annotator, self.study.graph)
        return ascent.run(coordinate.start_state(len(layout.annotator_weight), self.prior))

    def _images(self, skills: Skills, positive: FloatArray, population: Population) -> Images:
        return weigh_images(self.study.graph, skills, [(self.study.item_parts, positive)], population, self.prior)

    def _finish(self, state: CoordinateState, skills: Skills, doubt: PrevalenceDoubt) -> DaskFit:
        study, cluster, population = self.study, self.cluster, state.population
        states = self.prior.states(population, self.lattice)
        response = respond(skills, states)
        curve = response_curve(response, study.annotator_counts)
        nothing = np.empty((0, 0))
        lean = Response(response.softplus, nothing, nothing)
        sent = cluster.keep(_Fitted(self.name, skills, lean, states, curve, population.unit))
        items = [cluster.call(_summarise, block, sent) for block in study.blocks]
        positive = study.by_item(cluster.results([cluster.call(_p, some) for some in items]))
        images = self._images(skills, positive, population)
        mixed = [
            cluster.call(_mixed, some, parts, images)
            for some, parts in zip(items, study.by_block(study.item_parts), strict=True)
        ]
        cluster.results([cluster.call(_p, some) for some in mixed])
        reports = images.reports(study.graph)
        positives = sum(stats.positives for stats in study.stats), study.n_votes
        diagnostics = concluded(course_of(state), population, reports, study.notes, positives, self.started)
        of = study.graph.annotators
        fitted = {
            "population": population,
            "lattice": self.lattice,
            "skills": skills,
            "doubt": doubt,
            "certainty": images.certainty[of],
            "mirror_odds": images.odds[of],
        }
        return DaskFit(self.name, self.settings, diagnostics, study, tuple(mixed), fitted)
