"""Votes of a study: one question, several questions, or one question with several classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from softgold.errors import InputError
from softgold.tables.votes import VoteTable

__all__ = ["StudyVotes", "anonymous_votes", "are_strangers", "split_votes", "stranger_names"]

STRANGER = "stranger "


@dataclass(frozen=True, eq=False)
class StudyVotes:
    """Votes by the name of the question or class.

    Attributes:
        kind: "single" for one question, whose name is empty; "tasks" for several; "classes" for one question with
            several classes, where the votes on a class are 1 for this class and 0 for any other.
        votes: A table per question or class.
    """

    kind: Literal["single", "tasks", "classes"]
    votes: Mapping[str, VoteTable]

    @property
    def only(self) -> VoteTable:
        """The votes of a single question."""
        if self.kind != "single":
            raise InputError(f"there are {len(self.votes)} {self.kind}, and one question is needed")
        return next(iter(self.votes.values()))


def split_votes(votes: VoteTable, task_of: pd.Series) -> dict[str, VoteTable]:
    """Split votes by the task of their item.

    Args:
        votes: Votes on the items of all tasks.
        task_of: Task of each item, indexed by item.

    Returns:
        A table per task, in the order in which the tasks first have a vote.
    """
    found = task_of.reindex(votes.item_ids)
    if found.isna().any():
        first = votes.item_ids[int(np.argmax(found.isna()))]
        count = int(found.isna().sum())
        raise InputError(f"{count} of {votes.n_items} items have no task, such as {first!r}; the items table needs all")
    codes, names = pd.factorize(found)
    of_vote = codes[votes.item_codes]
    return {str(name): votes.select(of_vote == code) for code, name in enumerate(names)}


def anonymous_votes(votes: VoteTable) -> VoteTable:
    """Return the same votes, each by a stranger of its own.

    >>> votes = VoteTable.from_codes([0, 0], [0, 1], [1, 0], ["x"], ["slot1", "slot2"])
    >>> anonymous_votes(votes).annotator_ids.tolist()
    ['stranger 1', 'stranger 2']
    """
    return VoteTable.from_codes(
        votes.item_codes,
        np.arange(votes.n_votes),
        votes.votes,
        votes.item_ids,
        stranger_names(votes.n_votes),
        weights=votes.weights,
        n_abstentions=votes.n_abstentions,
        abstained_items=votes.abstained_items,
        notes=votes.notes,
        origin=votes.origin,
    )


def stranger_names(count: int) -> list[str]:
    """Return names for people of whom nothing is known."""
    width = len(str(count))
    return [f"{STRANGER}{at:0{width}d}" for at in range(1, count + 1)]


def are_strangers(annotator_ids: pd.Index[str]) -> bool:
    """Return whether the annotators are those of `stranger_names`."""
    return len(annotator_ids) > 0 and bool(annotator_ids.str.startswith(STRANGER).all())
