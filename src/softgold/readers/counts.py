"""Counts of votes in place of annotators: `item, n_positive, n_votes`, or one column per class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import Source, cell_error
from softgold.readers.cells import SPELLINGS, code_ids, parse_numbers
from softgold.readers.columns import ANNOTATOR, ITEM, VOTE, find_column, find_optional, has_role, listed
from softgold.readers.tasks import SomeRows
from softgold.tables.study import StudyVotes, stranger_names
from softgold.tables.votes import VoteTable

POSITIVE = ("n_positive", "n_yes", "positives")
TOTAL = ("n_votes", "n_total", "total")
COUNT = "n_"
NOTE = "the table has counts and no annotators: every vote is taken as that of a stranger"


def has_counts(table: Source) -> bool:
    """Return whether a table has counts of votes and no annotators."""
    return (
        find_optional(table, POSITIVE) is not None
        and find_optional(table, TOTAL) is not None
        and find_optional(table, ANNOTATOR) is None
    )


def counts_error(name: str) -> InputError:
    """Build the error for a table of counts where it must be known who voted."""
    return InputError(
        f"{name} has counts of votes and not who voted: agreement and expert labels need one row per vote, with item, "
        "annotator and vote"
    )


def refuse_counts(table: Source, item: str | None = None, vote: str | None = None) -> None:
    """Raise where a table has counts in place of votes; beside a vote column they may be anything."""
    if find_optional(table, VOTE, vote) is None and (has_counts(table) or class_columns(table, item)):
        raise counts_error(table.name)


def read_count_study(table: Source, *, item: str | None, task: int | None, positive: str | None) -> StudyVotes | None:
    """Return the votes behind a table of counts, of every task if it has a column with tasks; None if it has none.

    Args:
        table: The table.
        item: Name of the item column, where it is not a common one.
        task: Position of the column with the tasks, if there is one.
        positive: The class that is asked for, all others being 0.
    """
    classes = class_columns(table, item)
    if classes:
        if task is not None:
            raise InputError(f"{table.name}: counts per class in several tasks; give each task a table of its own")
        return _choose(table, read_class_counts(table, classes, item=item), positive)
    if not has_counts(table):
        return None
    if task is None:
        return StudyVotes("single", {"": read_counts(table, item=item)})
    coded = code_ids(table, task, table.load([task])[0])
    votes = {
        name: read_counts(SomeRows(table, np.flatnonzero(coded.codes == code)), item=item)
        for code, name in enumerate(coded.texts.to_pylist())
    }
    return StudyVotes("tasks", votes) if len(votes) > 1 else StudyVotes("single", {"": next(iter(votes.values()))})


def _choose(table: Source, votes: dict[str, VoteTable], positive: str | None) -> StudyVotes:
    """Return all classes, or one question where one class was asked for or there are only yes and no."""
    answers = {name: SPELLINGS.get(name.lower()) for name in votes}
    if positive is None and sorted(map(str, answers.values())) == ["0", "1"]:
        positive = next(name for name, answer in answers.items() if answer == 1)
    if positive is None:
        return StudyVotes("classes", votes)
    chosen = [name for name in votes if name.casefold() == positive.strip().casefold()]
    if not chosen:
        raise InputError(f"{table.name}: there is no class {positive!r}; there are {listed(tuple(votes))}")
    return StudyVotes("single", {"": votes[chosen[0]]})


def read_counts(table: Source, *, item: str | None = None) -> VoteTable:
    """Return the votes behind counts, each by a different unknown annotator.

    Args:
        table: One row per item, with n_positive and n_votes.
        item: Name of the item column, where it is not a common one.
    """
    items = _items(table, item)
    positions = [find_column(table, role, is_option=False) for role in (POSITIVE, TOTAL)]
    positive, total = (
        _whole(table, place, cells) for place, cells in zip(positions, table.load(positions), strict=True)
    )
    if (positive > total).any():
        row = int((positive > total).argmax())
        raise cell_error(table, row, positions[0], f"{positive[row]} positive votes of {total[row]}")
    if total.sum() == 0:
        raise cell_error(table, 0, positions[1], "no item has a vote")
    return _tables(items, {"": np.stack([positive, total - positive], axis=1)})[""]


def class_columns(table: Source, item: str | None = None) -> dict[str, int]:
    """Return the columns with a count per class, `n_cat, n_dog, ...`, by class; empty if the table has none.

    Such a table has one row per item, no annotators, no votes, and at least two of these columns.
    """
    at = find_optional(table, ITEM, item)
    others = (ANNOTATOR, VOTE)
    if at is None or has_counts(table) or any(find_optional(table, role) is not None for role in others):
        return {}
    found = {
        name.strip()[len(COUNT) :]: place
        for place, name in enumerate(table.columns)
        if place != at and name.strip().casefold().startswith(COUNT) and not has_role(name, TOTAL)
    }
    return found if len(found) >= 2 and "" not in found else {}


def read_class_counts(table: Source, columns: Mapping[str, int], *, item: str | None = None) -> dict[str, VoteTable]:
    """Return the votes behind counts per class: for each class, 1 for a vote for it and 0 for any other.

    Args:
        table: One row per item; a column n_votes, if there is one, must be the sum of the others.
        columns: What `class_columns` found.
        item: Name of the item column, where it is not a common one.
    """
    items = _items(table, item)
    places = list(columns.values())
    counts = np.stack([_whole(table, place, cells) for place, cells in zip(places, table.load(places), strict=True)])
    whole = find_optional(table, TOTAL)
    if whole is not None:
        total = _whole(table, whole, table.load([whole])[0])
        if (total != counts.sum(axis=0)).any():
            row = int((total != counts.sum(axis=0)).argmax())
            raise cell_error(table, row, whole, f"{total[row]} votes, but the classes add up to {counts[:, row].sum()}")
    for name, place, of_class in zip(columns, places, counts, strict=True):
        if not of_class.any():
            raise cell_error(table, 0, place, f"nobody voted for the class {name!r}; leave out its column")
    return _tables(
        items,
        {name: np.stack([own, counts.sum(axis=0) - own], axis=1) for name, own in zip(columns, counts, strict=True)},
    )


def _items(table: Source, item: str | None) -> pd.Index[str]:
    """Return the item of each row; each has one row."""
    at = find_column(table, ITEM, item)
    ids = code_ids(table, at, table.load([at])[0])
    repeated = pd.Series(ids.codes).duplicated().to_numpy()
    if repeated.any():
        raise cell_error(table, int(repeated.argmax()), at, "the item is duplicated; give its counts once")
    return ids.index()[ids.codes]


def _tables(item_ids: pd.Index[str], counts: Mapping[str, NDArray[np.int64]]) -> dict[str, VoteTable]:
    """Return a table per class from its votes for and against, shape (I, 2); the strangers are the same in all."""
    total = next(iter(counts.values())).sum(axis=1)
    kept = total > 0
    items = np.repeat(np.arange(int(kept.sum())), total[kept])
    place = np.arange(len(items)) - np.repeat(np.cumsum(total[kept]) - total[kept], total[kept])
    strangers, before = stranger_names(len(items)), np.zeros(len(total), dtype=np.int64)
    tables = {}
    for name, votes in counts.items():
        first, last = (np.repeat(ends[kept], total[kept]) for ends in (before, before + votes[:, 0]))
        tables[name] = VoteTable.from_codes(
            items,
            np.arange(len(items)),
            ((place >= first) & (place < last)).astype(np.int8),
            item_ids[kept],
            strangers,
            abstained_items=tuple(item_ids[~kept]),
            notes=(NOTE,),
        )
        before = before + votes[:, 0]
    return tables


def _whole(table: Source, column: int, cells: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers = parse_numbers(table, column, cells, "a count")
    bad = ~((numbers >= 0) & (numbers == np.rint(numbers)) & (numbers < 1e6))
    if bad.any():
        raise cell_error(table, int(bad.argmax()), column, "a count must be a whole number from 0 to 999,999")
    return numbers.astype(np.int64)
