"""Align the input of an evaluation: soft labels, hard labels, scores, tasks and groups in one order of items."""

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
from softgold.evaluation.result import Notice
from softgold.readers.base import shorten
from softgold.tables.ids import compare_ids, find_ids, repeated_id
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

FloatArray = NDArray[np.float64]
Missing = Literal["error", "drop"]
ByItem = pd.Series | Mapping[str, str] | None


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
        groups: Number of the group of each item, counted over all tasks, shape (n,); None where every item is by
            itself.
        n_dropped: Items of the task that were left out, because a model has no score for them.
    """

    name: str | None
    soft: FloatArray
    hard: FloatArray
    scores: FloatArray
    n_votes: NDArray[np.int64]
    n_positive: FloatArray
    groups: NDArray[np.intp] | None
    n_dropped: int

    def __len__(self) -> int:
        return len(self.soft)


@dataclass(frozen=True, eq=False)
class Aligned:
    """The input of an evaluation in one order of items.

    Attributes:
        tasks: All tasks that have a scored item.
        models: Names of the models.
        hard: Where the hard labels come from, in words.
        group_name: What the groups are; empty where single items are redrawn.
        n_groups: Number of groups over all tasks; 0 where every task redraws its items by itself.
        notices: What was left out.
    """

    tasks: tuple[TaskData, ...]
    models: tuple[str, ...]
    hard: str
    group_name: str
    n_groups: int
    notices: tuple[Notice, ...]


def align(
    soft_labels: SoftLabels,
    scores: Scores,
    *,
    soft: str,
    labels: GivenLabels,
    tasks: ByItem,
    groups: ByItem,
    missing: Missing,
    ignore_unknown: bool,
) -> Aligned:
    """Check everything and cut it into tasks; arguments as in `evaluate`."""
    check_choice(missing, ("error", "drop"), "missing")
    repeated = repeated_id(soft_labels.item_ids)
    if repeated is not None:
        raise InputError(f"the item {shorten(repeated)} is duplicated in the soft labels")
    _check_scores(scores)
    notices: list[Notice] = []
    position = _known(soft_labels, scores, ignore_unknown, notices)
    values = _in_order(scores, position, len(soft_labels))
    used = _scored(values, soft_labels, missing, notices)
    hard, target = hard_labels(soft_labels, labels), soft_values(soft_labels, labels, soft)
    _check_targets(soft_labels, used, target, hard, soft)
    codes, n_groups = _group_codes(soft_labels, used, groups)
    cut = tuple(
        TaskData(
            name=name,
            soft=target[kept],
            hard=hard.values[kept],
            scores=values[kept],
            n_votes=soft_labels.n_votes[kept],
            n_positive=soft_labels.n_positive[kept],
            groups=None if codes is None else codes[kept],
            n_dropped=int((members & ~used).sum()),
        )
        for name, members in _tasks(soft_labels, used, tasks, notices)
        for kept in [_kept(members & used)]
    )
    _check_sizes(cut)
    name = "" if groups is None else str(getattr(groups, "name", None) or "group")
    return Aligned(cut, scores.models, hard.source, name, n_groups, tuple(notices))


def _in_order(scores: Scores, position: NDArray[np.intp], n_items: int) -> FloatArray:
    """Return the scores in the order of the soft labels, shape (I, K); NaN where an item has none."""
    if len(position) == n_items and np.array_equal(position, np.arange(n_items)):
        return scores.values  # millions of them are not copied
    values = np.full((n_items, len(scores.models)), np.nan, order="F")
    values[position[position >= 0]] = scores.values[position >= 0]
    return values


def _kept(items: NDArray[np.bool_]) -> NDArray[np.bool_] | slice:
    """Return what takes some of the items, without a copy if these are all of them."""
    return slice(None) if items.all() else items


def _check_sizes(tasks: tuple[TaskData, ...]) -> None:
    for task in tasks:
        if len(task) < 2:
            where = "" if task.name is None else f" in task {shorten(task.name)}"
            raise InputError(f"an evaluation needs at least two items with a score, got {len(task)}{where}")


def _check_scores(scores: Scores) -> None:
    if not scores.models:
        raise InputError("the scores have no model: one column per model is needed beside the item")
    twice = pd.Series(scores.models).duplicated()
    if twice.any():
        raise InputError(f"the model {shorten(scores.models[int(twice.argmax())])} is duplicated in the scores")
    repeated = repeated_id(scores.item_ids)
    if repeated is not None:
        raise InputError(f"the item {shorten(repeated)} is duplicated in the scores")
    infinite = np.isinf(scores.values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise InputError(
            f"the score of model {shorten(scores.models[column])} for item {shorten(scores.item_ids[row])} is "
            f"{scores.values[row, column]}; a score must be a finite number"
        )


def _known(soft_labels: SoftLabels, scores: Scores, ignore_unknown: bool, notices: list[Notice]) -> NDArray[np.intp]:
    """Return the place of each scored item among the soft labels, -1 for one that has none."""
    position = find_ids(soft_labels.item_ids, scores.item_ids)
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
    notices.append(Notice("items", f"{sentence}; they were left out"))
    return position


def _scored(values: FloatArray, soft_labels: SoftLabels, missing: Missing, notices: list[Notice]) -> NDArray[np.bool_]:
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
    notices.append(Notice("items", f"{sentence}; they were left out for all models"))
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


def _tasks(
    soft_labels: SoftLabels, used: NDArray[np.bool_], tasks: ByItem, notices: list[Notice]
) -> list[tuple[str | None, NDArray[np.bool_]]]:
    """Return the tasks in order of appearance, each with the items that belong to it, scored or not."""
    if tasks is None:
        return [(None, np.ones(len(soft_labels), dtype=bool))]
    codes, names = pd.factorize(_by_item(soft_labels, used, tasks, "task"))
    found = [(str(name), codes == code) for code, name in enumerate(names)]
    empty = [name for name, members in found if not (members & used).any()]
    if empty:
        text = f"{len(empty)} of {len(found)} tasks have no scored item and were left out: {', '.join(empty)}"
        notices.append(Notice("items", text))
    return [(name, members) for name, members in found if (members & used).any()]


def _group_codes(
    soft_labels: SoftLabels, used: NDArray[np.bool_], groups: ByItem
) -> tuple[NDArray[np.intp] | None, int]:
    """Return the number of the group of each item, -1 for an item that is not used, and how many groups there are."""
    if groups is None:
        return None, 0
    names = _by_item(soft_labels, used, groups, "group")
    codes, found = pd.factorize(names.where(used))
    if len(found) < 2:
        raise InputError(
            f"all {int(used.sum())} scored items belong to one group, {shorten(found[0])}: nothing to redraw"
        )
    return codes, len(found)


def _by_item(
    soft_labels: SoftLabels, used: NDArray[np.bool_], given: pd.Series | Mapping[str, str], what: str
) -> pd.Series:
    """Return the task or group of every item; one that is used must have one."""
    by_item = pd.Series(given)
    if by_item.index.has_duplicates:
        raise InputError(f"item {shorten(by_item.index[by_item.index.duplicated()][0])} has two {what}s")
    of_item = by_item.reindex(soft_labels.item_ids)
    lacking = of_item.isna().to_numpy() & used
    if lacking.any():
        first = shorten(soft_labels.item_ids[int(lacking.argmax())])
        raise InputError(f"{int(lacking.sum())} scored items have no {what}, the first is {first}")
    return of_item
