"""A study with several questions or classes on disk: a run directory for each, and tables of all on top."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from softgold import __version__
from softgold.errors import StorageError
from softgold.models.base import Fit, Notice
from softgold.output import PathLike, atomic_directory, update_directory, write_json, write_table
from softgold.runs.files import read_json
from softgold.runs.fits import ANNOTATORS, SOFT_LABELS, save_fit
from softgold.runs.folder import RunFolder
from softgold.runs.records import RECORD
from softgold.runs.results import RESULTS, ResultKind, changes, check_kinds, read_result, result_tables, write_files
from softgold.runs.run import Run
from softgold.runs.typed import decode
from softgold.tables.classes import ClassLabels, combine_classes

STUDY_FORMAT, VERSION = "softgold study", 1
TASKS = "tasks"
StudyKind = Literal["tasks", "classes"]


@dataclass(frozen=True)
class TaskFolder:
    """A question (or class) and the folder of its run, below `tasks/`."""

    name: str
    folder: str


@dataclass(frozen=True)
class StudyRecord:
    """The contents of run.json of a study.

    Attributes:
        format: "softgold study".
        version: Version of the layout.
        softgold: Version of softgold.
        kind: "tasks" for several questions, "classes" for one question with several classes.
        tasks: The questions or classes.
    """

    format: str
    version: int
    softgold: str
    kind: StudyKind
    tasks: tuple[TaskFolder, ...]


def save_study(
    fits: Mapping[str, Fit],
    path: PathLike,
    *,
    kind: StudyKind,
    samples: int | None = None,
    source: str | None = None,
    force: bool = False,
) -> None:
    """Write the fits of a study, atomically.

    Args:
        fits: A fit per question or class.
        path: Directory to write.
        kind: "tasks" or "classes".
        samples: As in `Fit.save`.
        source: File that the votes came from.
        force: Replace an existing run.

    Example:
        >>> import tempfile, softgold
        >>> votes = softgold.simulate(n_items=50, n_annotators=12, seed=0).votes
        >>> fits = {name: softgold.fit(votes, model=name) for name in ("mean", "majority")}
        >>> folder = tempfile.mkdtemp() + "/study"
        >>> save_study(fits, folder, kind="tasks")
        >>> list(softgold.open_study(folder).tasks)
        ['mean', 'majority']
    """
    folders = _folder_names(fits)
    record = StudyRecord(STUDY_FORMAT, VERSION, __version__, kind, tuple(TaskFolder(*pair) for pair in folders.items()))
    with atomic_directory(path, force=force, marker=RECORD) as folder:
        (folder / TASKS).mkdir()
        for name, fit in fits.items():
            save_fit(fit, folder / TASKS / folders[name], samples=samples, source=source)
        write_json(record, folder / RECORD)
        study = Study(folder)
        write_table(study.soft_labels_frame(), folder / SOFT_LABELS)
        write_table(with_task({name: run.annotators for name, run in study.tasks.items()}), folder / ANNOTATORS)


def _folder_names(names: Iterable[str]) -> dict[str, str]:
    """Return a short folder name for each question: its number, and what of its name is plain."""
    listed = list(names)
    width = len(str(len(listed)))
    folders = {}
    for at, name in enumerate(listed, 1):
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
        folders[name] = f"{at:0{width}d}-{plain}".rstrip("-")
    return folders


def with_task(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put tables below each other with a first column `task`."""
    parts = [table.assign(task=name) for name, table in tables.items()]
    whole = pd.concat(parts, ignore_index=True)
    return whole[["task", *(column for column in whole.columns if column != "task")]]


@dataclass(frozen=True)
class Study(RunFolder):
    """A run directory with several questions or classes: see `RunFolder` for how it is read.

    Attributes:
        path: The directory.

    Example:
        >>> import tempfile, softgold
        >>> votes = softgold.simulate(n_items=50, n_annotators=12, seed=0).votes
        >>> folder = tempfile.mkdtemp() + "/study"
        >>> softgold.save_study({"edema": softgold.fit(votes, model="mean")}, folder, kind="tasks")
        >>> study = softgold.open_study(folder)
        >>> study.kind, len(study.tasks["edema"].soft_labels)
        ('tasks', 50)
    """

    @cached_property
    def record(self) -> StudyRecord:
        """The contents of run.json.

        Raises:
            StorageError: It is missing, damaged or of another version.
        """
        path = self.path / RECORD
        with self.reading():
            value = read_json(path, "softgold fit")
        if value.get("format") != STUDY_FORMAT or value.get("version") != VERSION:
            raise StorageError(f"{path} is not a study that this version of softgold can read; fit the votes again")
        try:
            record: StudyRecord = decode(StudyRecord, value, RECORD)
        except (ValueError, OverflowError) as error:
            raise StorageError(f"{path} is damaged: {error}") from None
        for task in record.tasks:
            if not re.fullmatch(r"[a-z0-9-]+", task.folder):
                raise StorageError(f"{path} is damaged: {task.folder!r} is not the folder of a task")
        if not 0 < len({task.name for task in record.tasks}) == len(record.tasks):
            raise StorageError(f"{path} is damaged: it has no task, or the same one twice")
        return record

    @property
    def kind(self) -> StudyKind:
        """ "tasks" for several questions, "classes" for one with several classes."""
        return self.record.kind

    @cached_property
    def tasks(self) -> dict[str, Run]:
        """The run of each question or class."""
        with self.reading():
            return {task.name: Run(self.path / TASKS / task.folder) for task in self.record.tasks}

    def has(self, part: str) -> bool:
        """Return whether every question has a part, as `Run.has` says; an evaluation is of all questions together."""
        if part in ("evaluation", "class_evaluation"):
            return (self.path / RESULTS[part].record).is_file()
        return all(run.has(part) for run in self.tasks.values())

    @cached_property
    def class_labels(self) -> ClassLabels:
        """Soft labels of several classes; p of each class against the rest, divided by their sum."""
        with self.reading():
            return combine_classes({name: run.soft_labels for name, run in self.tasks.items()})

    @cached_property
    def labels(self) -> Any:
        """The released labels of all questions, a `softgold.experts.ReleasedLabels`; each has its own threshold."""
        with self.reading():
            table = pd.concat([run.labels.to_frame() for run in self.tasks.values()], ignore_index=True)
        first = next(iter(self.tasks.values())).labels
        return type(first).from_frame(table.assign(threshold=float("nan")))

    @cached_property
    def evaluation(self) -> Any:
        """The evaluation of models on all questions, a `softgold.evaluation.Evaluation`."""
        with self.reading():
            return read_result(self.path, RESULTS["evaluation"])

    @cached_property
    def class_evaluation(self) -> Any:
        """The evaluation of models with a probability per class, a `softgold.evaluation.ClassEvaluation`."""
        with self.reading():
            return read_result(self.path, RESULTS["class_evaluation"])

    def soft_labels_frame(self) -> pd.DataFrame:
        """Return the table of soft_labels.csv: with a column `task`, or with one column per class."""
        if self.kind == "classes":
            return self.class_labels.to_frame()
        with self.reading():
            return with_task({name: run.soft_labels.to_frame() for name, run in self.tasks.items()})

    def add(
        self, results: Mapping[str, Any], *, inputs: Iterable[PathLike] = (), force: bool = False
    ) -> tuple[Path, ...]:
        """Write a result for each of some questions, all files or none; return the paths of the tables on top.

        Args:
            results: A calibration or evaluation per question.
            inputs: Files that they were made from.
            force: Replace older results.
        """
        kind = check_kinds(results.values())
        given = [Path(path) for path in inputs]
        folders = {name: self.tasks[name].path.relative_to(self.path) for name in results}
        names = [str(folder / file) for folder in folders.values() for file in kind.files]
        tables = _merged_tables(kind, results)
        with update_directory(self.path, [*names, *tables], force=force, began=self._began) as temporary:
            for name, result in results.items():
                (temporary / folders[name]).mkdir(parents=True)
                write_files(result, self.path / folders[name], temporary / folders[name], given)
            for file, table in tables.items():
                write_table(table, temporary / file)
        return tuple(self.path / file for file in tables)

    def problems(self) -> tuple[Notice, ...]:
        """Return what does not belong together, question by question."""
        with self.reading():
            found = [
                Notice(notice.kind, f"{name}: {notice.text}")
                for name, run in self.tasks.items()
                for notice in run.problems()
            ]
            stale = self.has("evaluation") and bool(changes(self.path, RESULTS["evaluation"])[1])
        if stale:
            found.append(Notice("stale", "evaluation.json was made with other labels: run 'softgold evaluate' again"))
        return tuple(found)


def _merged_tables(kind: ResultKind, results: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    by_task = {name: result_tables(kind, result) for name, result in results.items()}
    files = next(iter(by_task.values()))
    return {file: with_task({name: tables[file] for name, tables in by_task.items()}) for file in files}
