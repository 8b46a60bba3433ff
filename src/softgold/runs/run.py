"""The run directory as a value: its fit, its votes and the results that were added to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from softgold.errors import StorageError
from softgold.models.base import Fit, Notice, Posterior
from softgold.output import PathLike
from softgold.readers import read_soft_labels
from softgold.runs.fits import (
    ANNOTATORS,
    SOFT_LABELS,
    SOFT_LABELS_PARQUET,
    VOTES,
    StoredPosterior,
    read_annotators,
    read_fit,
    read_posterior,
    read_stored_votes,
    soft_labels_path,
)
from softgold.runs.folder import RunFolder
from softgold.runs.records import RECORD, RunRecord, read_record
from softgold.runs.results import LABELS, RESULTS, changed_files, changes, read_result, read_result_table, write_result
from softgold.runs.stored import StoredVotes
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable

HARD_LABELS = ("item", "label", "p", "p_calibrated", "threshold")


@dataclass(frozen=True)
class Run(RunFolder):
    """A run directory: see `RunFolder` for how it is read.

    Attributes:
        path: The directory.

    Example:
        >>> import tempfile, softgold
        >>> votes = softgold.simulate(n_items=50, n_annotators=12, seed=0).votes
        >>> folder = tempfile.mkdtemp() + "/run"
        >>> softgold.fit(votes, model="mean").save(folder)
        >>> run = softgold.open_run(folder)
        >>> run.fit.model, run.has("calibration"), run.problems()
        ('mean', False, ())
    """

    def has(self, part: str) -> bool:
        """Return whether the run has a "fit", "annotators", released "labels", or a "calibration" or "evaluation"."""
        files = {"fit": RECORD, "annotators": ANNOTATORS, "labels": LABELS}
        files |= {kind.name: kind.record for kind in RESULTS.values()}
        return (self.path / files[part]).is_file()

    @cached_property
    def record(self) -> RunRecord:
        """The contents of run.json."""
        with self.reading():
            return read_record(self.path)

    @cached_property
    def fit(self) -> Fit:
        """The fit."""
        with self.reading():
            stored = read_posterior(self.path, self.record, lambda: self.soft_labels)
            return read_fit(self.path, self.record, stored)

    @property
    def brief_posterior(self) -> Posterior:
        """The posterior of the fit, for planning: of votes on disk without difficulties and expected votes, 0 here."""
        return self._brief.posterior

    @cached_property
    def _brief(self) -> StoredPosterior:
        with self.reading():
            return read_posterior(self.path, self.record, lambda: self.brief_labels, brief=True)

    @cached_property
    def votes_in_parts(self) -> VoteTable | StoredVotes:
        """The votes that were fitted, to be gone through part by part; votes that were fitted on disk stay there."""
        if not self._brief.streamed:
            with self.reading():
                return read_stored_votes(self.path, self.record, self.brief_posterior)
        soft, record = self.brief_labels, self.record.input
        return StoredVotes(
            self.path / VOTES,
            soft.item_ids,
            self.brief_posterior.annotator_ids,
            soft.n_votes,
            soft.n_positive,
            record.votes,
            record.abstentions,
            (len(record.abstained_items), len(record.abstained_annotators)),
            record.notes,
        )

    @cached_property
    def votes(self) -> VoteTable:
        """The votes that were fitted."""
        with self.reading():
            return self.fit.votes if "fit" in vars(self) else read_stored_votes(self.path, self.record)

    @cached_property
    def soft_labels(self) -> SoftLabels:
        """The soft labels as released: those of `soft_labels.csv`, by sampling where that was asked for.

        A fit of votes on disk has them in `soft_labels.parquet`.
        """
        with self.reading():
            return read_soft_labels(soft_labels_path(self.path))

    @cached_property
    def brief_labels(self) -> SoftLabels:
        """The soft labels with p and votes only, which calibration, evaluation and pages need."""
        with self.reading():
            return read_soft_labels(soft_labels_path(self.path), brief=True)

    @cached_property
    def annotators(self) -> pd.DataFrame:
        """The table of `annotators.csv`."""
        with self.reading():
            return read_annotators(self.path)

    @cached_property
    def labels(self) -> Any:
        """The released labels of a calibration, a `softgold.experts.ReleasedLabels`."""
        with self.reading():
            return read_result_table(self.path, RESULTS["calibration"], "labels")

    @cached_property
    def hard_labels(self) -> Any:
        """The released labels without the band of p_calibrated."""
        with self.reading():
            return read_result_table(self.path, RESULTS["calibration"], "labels", columns=HARD_LABELS)

    @cached_property
    def calibration(self) -> Any:
        """The calibration with experts, a `softgold.experts.Calibration`."""
        return self.result("calibration")

    @cached_property
    def brief_calibration(self) -> Any:
        """The calibration with the label of the first item only, which pages need."""
        return self.result("calibration", rows=1)

    @cached_property
    def evaluation(self) -> Any:
        """The evaluation of models, a `softgold.evaluation.Evaluation`."""
        return self.result("evaluation")

    def result(self, name: str, *, rows: int | None = None) -> Any:
        """Return a result by name, with at most so many rows of its tables with one row per item.

        Raises:
            StorageError: The run does not have it, or its files are damaged.
        """
        kind = RESULTS[name]
        with self.reading():
            if not self.has(name):
                raise StorageError(f"{self.path} has no {name}; '{kind.command}' makes one")
            return read_result(self.path, kind, rows=rows)

    def add(self, result: Any, *, inputs: Iterable[PathLike] = (), force: bool = False) -> tuple[Path, ...]:
        """Write a calibration or an evaluation into the run, all of its files or none; return their paths.

        Args:
            result: The result.
            inputs: Files that it was made from besides those of the run, such as the experts' labels.
            force: Replace an older result.
        """
        return write_result(result, self.path, inputs=[Path(path) for path in inputs], force=force, began=self._began)

    def problems(self) -> tuple[Notice, ...]:
        """Return what does not belong together: changed files, and results made from older files."""
        with self.reading():
            return tuple(Notice("stale", text) for text in self._stale())

    def _stale(self) -> Iterator[str]:
        if self.has("fit"):
            changed = changed_files(self.path, self.record.files, (SOFT_LABELS, SOFT_LABELS_PARQUET, ANNOTATORS))
            yield from (f"{name} was changed after the fit" for name in changed)
        for kind in RESULTS.values():
            if self.has(kind.name):
                own, sources = changes(self.path, kind)
                yield from (f"{name} was changed after '{kind.command}' wrote it" for name in own)
                again = f"than the one in the run: run '{kind.command}' again"
                yield from (f"{kind.record} was made with another {name} {again}" for name in sources)
