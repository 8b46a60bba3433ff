"""Where the chunks of a fit live, and how their sums come back: all that a sweep needs to know of it.

The ascent in `coordinate` sees a `Driver`. `ChunkDriver` works on any chunks that can be gone through again and again:
those of a table in memory, or those read from disk. Every driver adds up in one order: the chunks of a group one after
the other, then the groups one after the other. A group may be summed elsewhere, on another machine for instance, and
the bits stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Response, Skills, VoteSums
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.items import ChunkResult, Watch, item_step
from softgold.models.crowd.population import ItemTotals
from softgold.models.crowd.priors import Prevalence
from softgold.models.crowd.states import States
from softgold.models.crowd.threads import in_order

GROUP_CHUNKS = 32  # consecutive chunks whose sums are taken together first; part of what the bits depend on


@dataclass(frozen=True, eq=False)
class Tables:
    """What a sweep tells every chunk: annotators, their response in each state, the states of an item."""

    skills: Skills
    response: Response
    states: States
    prevalence: Prevalence | float | None


@dataclass(frozen=True, eq=False)
class Swept:
    """What the items say to annotators and hyper-parameters.

    Attributes:
        sums: What annotators see of the items.
        totals: Sums over all items.
        change: Largest change of p since the sweep that was named; infinite where none was.
    """

    sums: VoteSums
    totals: ItemTotals
    change: float


class Driver(Protocol):
    """Gives the tables of a sweep to every chunk; p stays where the chunks are."""

    @property
    def n_items(self) -> int:
        """Number of kinds of items, over all chunks."""
        ...

    @property
    def annotator_weight(self) -> FloatArray:
        """Number of annotators of each kind, shape (A,)."""
        ...

    def sweep(self, tables: Tables, pool: ThreadPoolExecutor, *, number: int, since: int | None) -> Swept:
        """Call `step` on every chunk and return the sums, as `Total` adds them up.

        p is kept under `number`. The change is measured from the p kept under `since`; any other p may be dropped.
        """
        ...

    def holds(self, number: int) -> bool:
        """Return whether the p of a sweep is kept."""
        ...

    def positive(self, number: int) -> FloatArray:
        """Return the p that is kept under a number, shape (n_items,)."""
        ...


def step(chunk: VoteChunk, tables: Tables, watch: Watch | None = None) -> ChunkResult:
    """Update the items of a chunk: a pure function, the same for every driver."""
    return item_step(chunk, tables.skills, tables.response, tables.states, tables.prevalence, watch)


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over a group of chunks, of the annotators who occur in it.

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


class Total:
    """Sums over chunks that come in order, group by group.

    The first group is added up in place: only tables of several groups need room for a second one.
    """

    def __init__(self, n_annotators: int, states: States) -> None:
        self._features = states.features
        self._sums = self._room = _Sums(n_annotators, len(states.b))
        self._seen = np.zeros(n_annotators, dtype=bool)
        self._chunks = 0

    def add(self, chunk: VoteChunk, result: ChunkResult) -> None:
        """Add the sums of the next chunk."""
        if self._chunks == GROUP_CHUNKS:
            self._close()
        self._chunks += 1
        self._seen[chunk.annotators] = True
        self._room.add(chunk, result, self._features)

    def add_group(self, group: GroupSums) -> None:
        """Add the sums of the next group, which were taken elsewhere; `add` must not be used beside it."""
        sums = self._sums
        if len(group.rows) == len(sums.mass):  # everybody: much faster without the detour over row numbers
            sums.mass += group.mass
            sums.yes += group.yes
            sums.totals += group.totals
            return
        sums.mass[group.rows] += group.mass
        sums.yes[group.rows] += group.yes
        sums.totals += group.totals

    def _close(self) -> None:
        """Add the group to those before it, and make room for the next."""
        if self._room is self._sums:
            self._room = _Sums(*self._sums.mass.shape)
        else:
            rows = np.flatnonzero(self._seen)
            room = self._room
            self.add_group(GroupSums(rows, room.mass[rows], room.yes[rows], room.totals))
            room.mass[rows], room.yes[rows], room.totals[:] = 0.0, 0.0, 0.0
        self._seen[:] = False
        self._chunks = 0

    def result(self) -> tuple[VoteSums, ItemTotals]:
        """Return the sums over everything that was added."""
        if self._room is not self._sums:
            self._close()
        return VoteSums(self._sums.mass, self._sums.yes), ItemTotals(*self._sums.totals.tolist())


class _Sums:
    """Sums of all annotators, zero at first."""

    def __init__(self, n_annotators: int, n_states: int) -> None:
        self.mass, self.yes = np.zeros((n_annotators, n_states)), np.zeros((n_annotators, 2))
        self.totals = np.zeros(len(fields(ItemTotals)))

    def add(self, chunk: VoteChunk, result: ChunkResult, features: FloatArray) -> None:
        # An annotator has at most one column of no votes and one of yes votes in a chunk.
        for side in (chunk.no, chunk.yes):
            self.mass[chunk.annotators[side]] += result.mass[side]
        self.yes[chunk.annotators[chunk.yes]] += result.mass[chunk.yes] @ features
        self.totals += astuple(result.totals)


def group_sums(results: Iterable[tuple[VoteChunk, ChunkResult]], n_annotators: int, states: States) -> GroupSums:
    """Return the sums over one group, that is up to `GROUP_CHUNKS` consecutive chunks from a multiple of it on."""
    sums, seen = _Sums(n_annotators, len(states.b)), np.zeros(n_annotators, dtype=bool)
    for chunk, result in results:
        seen[chunk.annotators] = True
        sums.add(chunk, result, states.features)
    rows = np.flatnonzero(seen)
    return GroupSums(rows, sums.mass[rows], sums.yes[rows], sums.totals)


class ChunkDriver:
    """Chunks on the threads of this process.

    Args:
        chunks: The chunks in order, or what `load` makes chunks of; gone through once per sweep.
        n_items: Number of kinds of items, over all chunks.
        annotator_weight: Number of annotators of each kind, shape (A,).
        load: Reads a chunk, on the thread that works on it.
    """

    def __init__(
        self,
        chunks: Iterable[Any],
        n_items: int,
        annotator_weight: FloatArray,
        load: Callable[[Any], VoteChunk] = lambda chunk: chunk,
    ) -> None:
        self.chunks, self.n_items, self.annotator_weight, self.load = chunks, n_items, annotator_weight, load
        self._positive: dict[int, FloatArray] = {}

    def sweep(
        self,
        tables: Tables,
        pool: ThreadPoolExecutor,
        *,
        number: int,
        since: int | None,
        watch: Watch | None = None,
    ) -> Swept:
        """Sweep over the chunks; see `Driver`. `watch` is called on the threads of the pool."""
        before = None if since is None else self._positive[since]
        self._positive = {} if before is None or since is None else {since: before}
        total, positive = Total(len(self.annotator_weight), tables.states), np.empty(self.n_items)

        def work(source: Any) -> tuple[VoteChunk, ChunkResult]:
            chunk = self.load(source)
            return chunk, step(chunk, tables, watch)

        for _, (chunk, result) in in_order(work, self.chunks, pool):
            positive[chunk.rows] = result.positive
            total.add(chunk, result)
        self._positive[number] = positive
        return Swept(*total.result(), np.inf if before is None else _largest_change(positive, before))

    def holds(self, number: int) -> bool:
        """Return whether the p of a sweep is kept."""
        return number in self._positive

    def positive(self, number: int) -> FloatArray:
        """Return the p that is kept under a number, shape (n_items,)."""
        return self._positive[number]


def _largest_change(now: FloatArray, before: FloatArray, block: int = 2**16) -> float:
    """Return the largest difference of two arrays, block by block to need no third."""
    blocks = (slice(first, first + block) for first in range(0, len(now), block))
    return float(max(np.abs(now[rows] - before[rows]).max() for rows in blocks))
