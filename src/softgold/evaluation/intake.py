"""The edge of an evaluation: soft labels, hard labels, scores and tasks brought to one order, or a sentence why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_choice
from softgold.errors import InputError
from softgold.evaluation.labels import GivenLabels, HardLabels, hard_labels, soft_values
from softgold.readers.base import shorten
from softgold.tables.ids import compare_ids
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

__all__ = ["Intake", "Missing", "TaskData", "Tasks", "take_in"]

FloatArray = NDArray[np.float64]
Missing = Literal["error", "drop"]
Tasks = pd.Series | Mapping[str, str] | None


@dataclass(frozen=True, eq=False)
class TaskData:
    """The items of one task, in the order of the soft labels.

    Attributes:
        name: Name of the task; None when there are no tasks.
        soft: Soft labels, shape (n,).
        hard: Hard labels, shape (n,).
        scores: Scores of K models, shape (n, K).
        n_votes: Votes of each item, shape (n,); 0 where unknown.
        n_positive: Positive votes, shape (n,).
        n_dropped: Items of the task that were left out, because a model has no score for them.
    """

    name: str | None
    soft: FloatArray
    hard: FloatArray
    scores: FloatArray
    n_votes: NDArray[np.int64]
    n_positive: FloatArray
    n_dropped: int

    def __len__(self) -> int:
        return len(self.soft)


@dataclass(frozen=True, eq=False)
class Intake:
    """All tasks, the names of the models, where the hard labels come from, and what had to be left out."""

    tasks: tuple[TaskData, ...]
    models: tuple[str, ...]
    hard: str
    notes: tuple[str, ...]


def take_in(
    soft_labels: SoftLabels,
    scores: Scores,
    *,
    soft: str,
    labels: GivenLabels,
    tasks: Tasks,
    missing: Missing,
    ignore_unknown: bool,
) -> Intake:
    """Check everything and cut it into tasks; arguments as in `evaluate`."""
    check_choice(missing, ("error", "drop"), "missing")
    if soft_labels.item_ids.has_duplicates:
        repeated = soft_labels.item_ids[soft_labels.item_ids.duplicated()][0]
        raise InputError(f"the item {shorten(repeated)} is in the soft labels twice")
    _check_scores(scores)
    notes: list[str] = []
    position = _known(soft_labels, scores, ignore_unknown, notes)
    values = np.full((len(soft_labels), len(scores.models)), np.nan)
    values[position[position >= 0]] = scores.values[position >= 0]
    used = _scored(values, soft_labels, missing, notes)
    hard, target = hard_labels(soft_labels, labels), soft_values(soft_labels, labels, soft)
    _check_targets(soft_labels, used, target, hard, soft)
    groups = _groups(soft_labels, used, tasks, notes)
    cut = tuple(_task(name, members, used, soft_labels, values, target, hard) for name, members in groups)
    for task in cut:
        if len(task) < 2:
            where = "" if task.name is None else f" in task {shorten(task.name)}"
            raise InputError(f"an evaluation needs at least two items with a score, got {len(task)}{where}")
    return Intake(cut, scores.models, hard.source, tuple(notes))


def _check_scores(scores: Scores) -> None:
    if not scores.models:
        raise InputError("the scores have no model: one column a model is needed beside the item")
    twice = pd.Series(scores.models).duplicated()
    if twice.any():
        raise InputError(f"the model {shorten(scores.models[int(twice.argmax())])} is in the scores twice")
    if scores.item_ids.has_duplicates:
        repeated = scores.item_ids[scores.item_ids.duplicated()][0]
        raise InputError(f"the item {shorten(repeated)} is in the scores twice")
    infinite = np.isinf(scores.values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise InputError(
            f"the score of model {shorten(scores.models[column])} for item {shorten(scores.item_ids[row])} is "
            f"{scores.values[row, column]}; a score must be a finite number"
        )


def _known(soft_labels: SoftLabels, scores: Scores, ignore_unknown: bool, notes: list[str]) -> NDArray[np.intp]:
    """Return the place of each scored item among the soft labels, -1 for one that has none."""
    position: NDArray[np.intp] = soft_labels.item_ids.get_indexer(scores.item_ids)
    strangers = position < 0
    if not strangers.any():
        return position
    count, first = int(strangers.sum()), shorten(scores.item_ids[int(strangers.argmax())])
    if strangers.all():
        raise InputError(
            f"no scored item has a soft label (the first is {first}); are these the scores of other items? "
            + compare_ids(scores.item_ids, "the scores", soft_labels.item_ids, "the soft labels")
        )
    sentence = f"{count} of {len(scores)} scored items have no soft label, the first is {first}"
    if not ignore_unknown:
        raise InputError(f"{sentence}; leave them out of the scores, or give --ignore-unknown (ignore_unknown=True)")
    notes.append(f"{sentence}; they were left out")
    return position


def _scored(values: FloatArray, soft_labels: SoftLabels, missing: Missing, notes: list[str]) -> NDArray[np.bool_]:
    """Return which items have a score of every model."""
    gaps = np.isnan(values)
    lacking = np.asarray(gaps.any(axis=1))
    if not lacking.any():
        return np.asarray(~lacking)
    nothing = int(gaps.all(axis=1).sum())
    first = shorten(soft_labels.item_ids[int(lacking.argmax())])
    sentence = (
        f"{int(lacking.sum())} of {len(lacking)} items have no score of at least one model, {nothing} of them of none; "
        f"the first is {first}"
    )
    if missing == "error":
        raise InputError(f"{sentence}; complete the scores, or give --missing drop (missing='drop') to leave them out")
    if lacking.all():
        raise InputError(f"{sentence}; no item is left to judge the models on")
    notes.append(f"{sentence}; they were left out for all models")
    return np.asarray(~lacking)


def _check_targets(
    soft_labels: SoftLabels, used: NDArray[np.bool_], target: FloatArray, hard: HardLabels, soft: str
) -> None:
    for values, what, hint in (
        (target, f"soft label {soft}", "choose another column with --soft (soft=)"),
        (hard.values, "hard label", "label every item that is scored"),
    ):
        bad = used & ~((values >= 0) & (values <= 1))
        if bad.any():
            first = shorten(soft_labels.item_ids[int(bad.argmax())])
            raise InputError(f"{int(bad.sum())} scored items have no {what}, the first is {first}; {hint}")


def _groups(
    soft_labels: SoftLabels, used: NDArray[np.bool_], tasks: Tasks, notes: list[str]
) -> list[tuple[str | None, NDArray[np.bool_]]]:
    """Return the tasks in order of appearance, each with the items that belong to it, scored or not."""
    if tasks is None:
        return [(None, np.ones(len(soft_labels), dtype=bool))]
    by_item = pd.Series(tasks)
    if by_item.index.has_duplicates:
        raise InputError(f"item {shorten(by_item.index[by_item.index.duplicated()][0])} has two tasks")
    of_item = by_item.reindex(soft_labels.item_ids)
    homeless = of_item.isna().to_numpy() & used
    if homeless.any():
        first = shorten(soft_labels.item_ids[int(homeless.argmax())])
        raise InputError(f"{int(homeless.sum())} scored items have no task, the first is {first}")
    codes, names = pd.factorize(of_item)
    groups = [(str(name), codes == code) for code, name in enumerate(names)]
    empty = [name for name, members in groups if not (members & used).any()]
    if empty:
        notes.append(f"{len(empty)} of {len(groups)} tasks have no scored item and were left out: {', '.join(empty)}")
    return [(name, members) for name, members in groups if (members & used).any()]


def _task(
    name: str | None,
    members: NDArray[np.bool_],
    used: NDArray[np.bool_],
    soft_labels: SoftLabels,
    values: FloatArray,
    target: FloatArray,
    hard: HardLabels,
) -> TaskData:
    kept = members & used
    return TaskData(
        name=name,
        soft=target[kept],
        hard=hard.values[kept],
        scores=values[kept],
        n_votes=soft_labels.n_votes[kept],
        n_positive=soft_labels.n_positive[kept],
        n_dropped=int((members & ~used).sum()),
    )
