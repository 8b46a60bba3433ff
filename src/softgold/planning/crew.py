"""Who is free to vote, and how many votes each may give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import UsageError
from softgold.models.crowd.annotators import Skills
from softgold.planning.beliefs import Beliefs, VoterPool
from softgold.readers.base import cell_error, shorten
from softgold.readers.cells import code_ids, parse_numbers
from softgold.readers.columns import ANNOTATOR, Role, find_column, find_optional
from softgold.readers.sources import TableLike, open_source
from softgold.tables.parts import VotesInParts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CAPACITY: Role = ("capacity", "max_votes", "votes", "available")
UNLIMITED = np.iinfo(np.int32).max
PACE = 2.0


@dataclass(frozen=True, eq=False)
class Crew:
    """The annotators who are free, C of them.

    Attributes:
        annotator_ids: Their ids, no id twice, length C.
        capacity: Votes that each may give, shape (C,); `UNLIMITED` where nothing was said.
    """

    annotator_ids: pd.Index[str]
    capacity: IntArray

    @classmethod
    def of(cls, beliefs: Beliefs) -> Crew:
        """Return everybody who has voted so far, each free for any number of votes."""
        ids = beliefs.posterior.annotator_ids
        return cls(ids, np.full(len(ids), UNLIMITED, dtype=np.int64))

    def weight(self, beliefs: Beliefs) -> FloatArray:
        """Return how many of the next votes each gives, up to a factor, shape (C,).

        That is the capacity, or where none was given as many as so far.
        """
        if not self.capacity.any():
            raise UsageError("nobody is free: the capacity of every annotator is 0")
        so_far = np.maximum(self.n_votes(beliefs), 1)
        return np.where(self.capacity == UNLIMITED, so_far, self.capacity).astype(np.float64)

    def pace(self, beliefs: Beliefs, budget: int) -> IntArray:
        """Return how many of the next votes each gives before anybody is asked for more, shape (C,).

        That is the capacity where one was given, and else `PACE` times a share of the budget as large as the member's
        share of the votes so far.
        """
        weight = np.maximum(self.n_votes(beliefs), 1)
        share = np.ceil(PACE * budget * weight / weight.sum()).astype(np.int64)
        return np.where(self.capacity == UNLIMITED, share, self.capacity)

    def places(self, annotator_ids: pd.Index[str]) -> NDArray[np.intp]:
        """Return where each member is among the annotators of a table, -1 for newcomers, shape (C,)."""
        return annotator_ids.get_indexer(self.annotator_ids)

    def n_votes(self, beliefs: Beliefs) -> IntArray:
        """Return the votes of each member so far, shape (C,)."""
        known = self.places(beliefs.posterior.annotator_ids)
        return np.where(known >= 0, beliefs.posterior.annotator_counts[known], 0)

    def skills(self, beliefs: Beliefs) -> Skills:
        """Return the members' skills; newcomers are members of the fitted population."""
        return beliefs.posterior.skills_at(self.places(beliefs.posterior.annotator_ids))

    def pool(self, beliefs: Beliefs) -> VoterPool:
        """Return the members as a pool, each giving votes by their weight."""
        skills = self.skills(beliefs)
        return VoterPool.of(beliefs.chances(skills), self.weight(beliefs), beliefs.sharpness(skills))

    def n_free(self, votes: VotesInParts) -> IntArray:
        """Return how many members have not yet voted on each item, shape (I,)."""
        able = self.capacity > 0
        member = np.zeros(votes.n_annotators, dtype=bool)
        known = self.places(votes.annotator_ids)
        member[known[(known >= 0) & able]] = True
        free = np.full(votes.n_items, int(able.sum()))
        for part, some in votes.each():
            mine = member[some.annotators]
            pairs = np.unique(some.items[mine] * votes.n_annotators + some.annotators[mine])
            free[part.rows] -= np.bincount(pairs // votes.n_annotators, minlength=part.n_items)
        return free


def read_crew(source: TableLike) -> Crew:
    """Read who is free.

    Args:
        source: A path, `-` or a data frame with one row per annotator: `annotator`, and optionally `capacity`, the
            number of votes that the annotator may give (empty: any number).

    Example:
        >>> crew = read_crew(pd.DataFrame({"annotator": ["ann", "bob"], "capacity": [10, 5]}))
        >>> crew.capacity.tolist()
        [10, 5]
    """
    table = open_source(source)
    who, most = find_column(table, ANNOTATOR, is_option=False), find_optional(table, CAPACITY)
    columns = table.load([who] if most is None else [who, most])
    ids = code_ids(table, who, columns[0])
    repeated = pd.Series(ids.codes).duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        raise cell_error(table, row, who, f"the annotator {shorten(ids.texts[int(ids.codes[row])])} is duplicated")
    capacity = np.full(len(ids.codes), UNLIMITED, dtype=np.int64)
    if most is not None:
        numbers = parse_numbers(table, most, columns[1], "a capacity")
        bad = ~np.isnan(numbers) & ((numbers < 0) | (numbers != np.rint(numbers)))
        if bad.any():
            row = int(bad.argmax())
            raise cell_error(table, row, most, f"a capacity must be a whole number from 0 on, got {numbers[row]:g}")
        capacity = np.where(np.isnan(numbers), UNLIMITED, np.minimum(numbers, UNLIMITED)).astype(np.int64)
    return Crew(ids.index(), capacity)
