"""Sums over chunks, added in the order of one tree, wherever the chunks live.

The chunks of a group are added one after the other, then four groups one after the other, then four of those sums,
and so on. The tree depends on the number of chunks alone. Consecutive groups can be summed anywhere, and their trees
joined: the bits are always the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field, fields, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import VoteSums
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.items import ChunkResult
from softgold.models.crowd.population import ItemTotals
from softgold.models.crowd.states import States

GROUP_CHUNKS = 32  # consecutive chunks that make a group; part of what the bits depend on
FAN = 4  # groups, or sums of groups, that are added one after the other; part of what the bits depend on


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over a group of chunks or several, of the annotators who occur there.

    Attributes:
        rows: These annotators, ascending, shape (a,).
        mass: As in `VoteSums`, shape (a, K).
        yes: As in `VoteSums`, shape (a, 2).
        totals: The fields of `ItemTotals` in their order.
    """

    rows: NDArray[np.intp]
    mass: FloatArray
    yes: FloatArray
    totals: FloatArray

    def copy(self) -> GroupSums:
        """Return the same sums in arrays of their own."""
        return replace(self, mass=self.mass.copy(), yes=self.yes.copy(), totals=self.totals.copy())

    def of_rows(self, rows: NDArray[np.intp]) -> GroupSums:
        """Return the sums of other annotators, these among them, in arrays of their own; 0 for the others."""
        places = np.searchsorted(rows, self.rows)
        mass, yes = np.zeros((len(rows), self.mass.shape[1])), np.zeros((len(rows), 2))
        mass[places], yes[places] = self.mass, self.yes
        return GroupSums(rows, mass, yes, self.totals.copy())

    def plus(self, other: GroupSums) -> GroupSums:
        """Return the sum of both; the arrays of these sums are used for it."""
        if np.array_equal(self.rows, other.rows):  # much faster without the detour over row numbers
            return self._added(slice(None), other)
        rows = np.union1d(self.rows, other.rows)
        found = self if len(rows) == len(self.rows) else self.of_rows(rows)
        return found._added(np.searchsorted(rows, other.rows), other)

    def _added(self, places: slice | NDArray[np.intp], other: GroupSums) -> GroupSums:
        self.mass[places] += other.mass
        self.yes[places] += other.yes
        self.totals[:] += other.totals
        return self


class Room:
    """Room for the sums of one group after the other."""

    def __init__(self, n_annotators: int, states: States) -> None:
        self._shape, self._features = (n_annotators, len(states.b)), states.features
        self._clear()

    def _clear(self) -> None:
        count, n_states = self._shape
        self._seen = np.zeros(count, dtype=bool)
        self._mass, self._yes = np.zeros((count, n_states)), np.zeros((count, 2))
        self._totals = np.zeros(len(fields(ItemTotals)))

    def add(self, chunk: VoteChunk, result: ChunkResult) -> None:
        """Add the sums of the next chunk."""
        self._seen[chunk.annotators] = True
        # An annotator has at most one column of no votes and one of yes votes in a chunk.
        for side in (chunk.no, chunk.yes):
            self._mass[chunk.annotators[side]] += result.mass[side]
        self._yes[chunk.annotators[chunk.yes]] += result.mass[chunk.yes] @ self._features
        self._totals += astuple(result.totals)

    def close(self) -> GroupSums:
        """Return the sums of the group, and make room for the next."""
        rows = np.flatnonzero(self._seen)
        if len(rows) == len(self._seen):
            found = GroupSums(rows, self._mass, self._yes, self._totals)
            self._clear()
            return found
        found = GroupSums(rows, self._mass[rows], self._yes[rows], self._totals)
        self._mass[rows], self._yes[rows], self._seen[:] = 0.0, 0.0, False
        self._totals = np.zeros_like(self._totals)
        return found


@dataclass(frozen=True, eq=False)
class Run:
    """The sum of consecutive children of one node of the tree.

    Attributes:
        level: Level of the children, 0 for groups.
        first: Number of the first child among those of its level.
        last: Number after that of the last child.
        sums: Their sums.
    """

    level: int
    first: int
    last: int
    sums: GroupSums


@dataclass(frozen=True, eq=False)
class SumTree:
    """Sums over consecutive groups, added up as far as the tree allows; the runs follow each other."""

    runs: list[Run] = field(default_factory=list)

    def add(self, level: int, number: int, sums: GroupSums) -> None:
        """Add the sums of the next child of its level; arrays that are here are added to in place."""
        run = Run(level, number, number + 1, sums)
        top = self.runs[-1] if self.runs else None
        if top is not None and (top.level, top.last) == (level, number) and top.first % FAN == 0 and number % FAN:
            run = Run(level, top.first, number + 1, top.sums.plus(sums))
            self.runs.pop()
        if run.last - run.first == FAN:
            self.add(level + 1, run.first // FAN, run.sums)
        else:
            self.runs.append(run)

    def join(self, after: SumTree) -> SumTree:
        """Return the tree of these groups and those that follow them; both trees stay as they are."""
        found = SumTree([replace(run, sums=run.sums.copy()) for run in self.runs])
        for run in after.runs:
            if run.last - run.first == 1:
                found.add(run.level, run.first, run.sums)
            else:
                found.runs.append(run)
        return found

    def total(self, n_annotators: int) -> tuple[VoteSums, ItemTotals]:
        """Return the sums over all groups, of a tree that begins with the first of them."""
        sums = self.runs[-1].sums
        for number, run in enumerate(reversed(self.runs[:-1])):
            sums = (sums if number else sums.copy()).plus(run.sums)
        if len(sums.rows) < n_annotators:
            sums = sums.of_rows(np.arange(n_annotators))
        return VoteSums(sums.mass, sums.yes), ItemTotals(*sums.totals.tolist())


Results = Iterable[tuple[VoteChunk, ChunkResult]]


def in_groups(results: Results) -> Iterator[Results]:
    """Yield results that come in the order of the chunks group by group, each to be gone through before the next."""
    for _, group in groupby(enumerate(results), key=lambda pair: pair[0] // GROUP_CHUNKS):
        yield (result for _, result in group)


def sum_groups(groups: Iterable[Results], n_annotators: int, states: States, first: int = 0) -> SumTree:
    """Return the sums over consecutive groups.

    Args:
        groups: Every chunk of each group with its result.
        n_annotators: Number of annotators A.
        states: The states of an item.
        first: Number of the first of these groups among all.
    """
    room, tree = Room(n_annotators, states), SumTree()
    for number, group in enumerate(groups, first):
        for chunk, result in group:
            room.add(chunk, result)
        tree.add(0, number, room.close())
    return tree
