"""Votes of a study: one question, several questions, or one question with several classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from softgold.errors import InputError
from softgold.tables.votes import VoteTable

STRANGER = "stranger "
# Names of places in a table: a word for a place or a role, or none, and a number of at most two digits.
SLOT = re.compile(
    r"(?P<place>slot|col|column|vote|answer|annotation|label|response|judgment|opinion)?"
    r"(?:voter|labell?er|judge|reader|rater|annotator|expert|r|a|v|x)?[ _.-]?(?P<number>\d{1,2})",
    re.IGNORECASE,
)
MOST_SLOTS = 20
FEWEST_ITEMS = 10
NEARLY_ALL = 0.95
SOME = 0.05


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
    """Return the same votes, each by a different unknown annotator.

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


def are_slots(votes: VoteTable) -> bool:
    """Return whether annotators look like places in a table (slot1, slot2, ...) and not like people.

    All names are a number of at most two digits, perhaps behind a word such as slot or rater; the numbers are 1 to k
    (or 0 to k - 1), with k at most 20; and nearly every item with m votes has them from the first m, as a table that is
    filled from the left. People who chose or were given items do not leave them out in that order. Fewer than 10 items
    can be like that by chance. A panel that voted on everything may be called reader1, reader2, ...: unless the word
    means a place, as slot does, some items must have fewer votes than others.

    >>> items, who = [*range(10), *range(10), 0, 1], [0] * 10 + [1] * 10 + [2] * 2
    >>> names = [[f"{word}{number}" for number in (1, 2, 3)] for word in ("slot", "worker_0000")]
    >>> [are_slots(VoteTable.from_codes(items, who, [1] * 22, range(10), of_word)) for of_word in names]
    [True, False]
    """
    if votes.n_items < FEWEST_ITEMS or not 2 <= votes.n_annotators <= MOST_SLOTS:
        return False
    found = [SLOT.fullmatch(str(name)) for name in votes.annotator_ids]
    numbers = np.array([-1 if match is None else int(match["number"]) for match in found])
    first = int(numbers.min())
    if first not in (0, 1) or sorted(numbers) != list(range(first, first + len(numbers))):
        return False
    highest = np.zeros(votes.n_items, dtype=np.int64)
    np.maximum.at(highest, votes.item_codes, numbers[votes.annotator_codes] - first + 1)
    if not all(match and match["place"] for match in found) and (votes.item_counts < len(numbers)).mean() < SOME:
        return False
    return bool((highest == votes.item_counts).mean() >= NEARLY_ALL)


def stranger_names(count: int) -> list[str]:
    """Return names for unknown annotators."""
    width = len(str(count))
    return [f"{STRANGER}{at:0{width}d}" for at in range(1, count + 1)]


def are_strangers(annotator_ids: pd.Index[str]) -> bool:
    """Return whether the annotators are those of `stranger_names`."""
    return len(annotator_ids) > 0 and bool(annotator_ids.str.startswith(STRANGER).all())
