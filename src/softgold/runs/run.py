"""The run directory as a value: its fit, its votes and the results that were added to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from softgold.errors import StorageError
from softgold.models.base import Fit, Notice
from softgold.output import PathLike
from softgold.readers import read_soft_labels
from softgold.runs.fits import (
    ANNOTATORS,
    RECORD,
    SOFT_LABELS,
    RunRecord,
    read_annotators,
    read_fit,
    read_record,
    read_stored_votes,
)
from softgold.runs.results import (
    LABELS,
    RESULTS,
    changed_files,
    changes,
    read_result,
    read_result_table,
    write_result,
)
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """A run directory.

    Attributes:
        path: The directory.
    """

    path: Path

    def has(self, part: str) -> bool:
        """Return whether the run has a "fit", "annotators", released "labels", or a "calibration" or "evaluation"."""
        files = {"fit": RECORD, "annotators": ANNOTATORS, "labels": LABELS}
        files |= {kind.name: kind.record for kind in RESULTS.values()}
        return (self.path / files[part]).is_file()

    @cached_property
    def record(self) -> RunRecord:
        """The contents of run.json."""
        return read_record(self.path)

    @cached_property
    def fit(self) -> Fit:
        """The fit."""
        return read_fit(self.path, self.record)

    @cached_property
    def votes(self) -> VoteTable:
        """The votes that were fitted."""
        return read_stored_votes(self.path, self.record)

    @cached_property
    def soft_labels(self) -> SoftLabels:
        """The soft labels as released: those of `soft_labels.csv`, by sampling where that was asked for."""
        return read_soft_labels(self.path / SOFT_LABELS)

    @cached_property
    def annotators(self) -> pd.DataFrame:
        """The table of `annotators.csv`."""
        return read_annotators(self.path)

    @cached_property
    def labels(self) -> Any:
        """The released labels of a calibration, a `softgold.experts.ReleasedLabels`."""
        return read_result_table(self.path, RESULTS["calibration"], "labels")

    @cached_property
    def calibration(self) -> Any:
        """The calibration with experts, a `softgold.experts.Calibration`."""
        return self.result("calibration")

    @cached_property
    def evaluation(self) -> Any:
        """The evaluation of models, a `softgold.evaluation.Evaluation`."""
        return self.result("evaluation")

    def result(self, name: str) -> Any:
        """Return a result by name.

        Raises:
            StorageError: The run does not have it, or its files are damaged.
        """
        kind = RESULTS[name]
        if not self.has(name):
            raise StorageError(f"{self.path} has no {name}; '{kind.command}' makes one")
        return read_result(self.path, kind)

    def add(self, result: Any, *, inputs: Iterable[PathLike] = (), force: bool = False) -> tuple[Path, ...]:
        """Write a calibration or an evaluation into the run, all of its files or none; return their paths.

        Args:
            result: The result.
            inputs: Files that it was made from besides those of the run, such as the experts' labels.
            force: Replace an older result.
        """
        return write_result(result, self.path, inputs=[Path(path) for path in inputs], force=force)

    def problems(self) -> tuple[Notice, ...]:
        """Return what does not belong together: changed files, and results made from older files."""
        found = []
        if self.has("fit"):
            changed = changed_files(self.path, self.record.files, (SOFT_LABELS, ANNOTATORS))
            found += [f"{name} was changed after the fit" for name in changed]
        for kind in RESULTS.values():
            if self.has(kind.name):
                own, sources = changes(self.path, kind)
                found += [f"{name} was changed after '{kind.command}' wrote it" for name in own]
                again = f"than the one in the run: run '{kind.command}' again"
                found += [f"{kind.record} was made with another {name} {again}" for name in sources]
        return tuple(Notice("stale", text) for text in found)
