"""Where the chunks of a fit live, and how their sums come back: all that a sweep needs to know of it.

The ascent in `coordinate` sees a `Driver`. `ChunkDriver` works on any chunks that can be gone through again and again:
those of a table in memory, or those read from disk. Every driver adds up in the order that `sums` fixes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import VoteSums
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.items import ChunkResult, Tables, Watch, step
from softgold.models.crowd.population import ItemTotals
from softgold.models.crowd.sums import in_groups, sum_groups
from softgold.models.crowd.threads import in_order


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
        """Call `step` on every chunk and return the sums, as `sums.SumTree` adds them up.

        p is kept under `number`. The change is measured from the p kept under `since`; any other p may be dropped.
        """
        ...

    def holds(self, number: int) -> bool:
        """Return whether the p of a sweep is kept."""
        ...

    def positive(self, number: int) -> FloatArray:
        """Return the p that is kept under a number, shape (n_items,)."""
        ...


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
        count, positive = len(self.annotator_weight), np.empty(self.n_items)

        def work(source: Any) -> tuple[VoteChunk, ChunkResult]:
            chunk = self.load(source)
            return chunk, step(chunk, tables, watch)

        def results() -> Iterator[tuple[VoteChunk, ChunkResult]]:
            for chunk, result in in_order(work, self.chunks, pool):
                positive[chunk.rows] = result.positive
                yield chunk, result

        sums, totals = sum_groups(in_groups(results()), count, tables.states).total(count)
        self._positive[number] = positive
        return Swept(sums, totals, np.inf if before is None else _largest_change(positive, before))

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
