"""A Dask cluster at work: connecting, calling functions on workers, and the driver of the sweeps.

Chunks stay on the workers as futures. What is lost with a worker is computed again on the others, from the source if
need be. Every group of chunks is summed where it lives; the sums of the groups are then added in their order, from
worker to worker, so that one table of sums per worker travels and the bits are those of every other driver.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from softgold.errors import InputError, UsageError
from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Response, VoteSums
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.drivers import GroupSums, Swept, Tables, Total, group_sums, step
from softgold.models.crowd.population import ItemTotals
from softgold.models.crowd.threads import single_threaded_blas

CONNECT_SECONDS = 5

Future = Any
Futures = tuple[Future, ...]


def check_dask() -> None:
    """Raise before any work where Dask cannot be imported."""
    missing = [name for name in ("dask", "distributed") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"fitting on a cluster needs {' and '.join(missing)}, which cannot be imported here: "
            "pip install 'softgold[dask]'"
        )


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Give a client of the scheduler at an address, or of worker processes on this machine for "local".

    Raises:
        InputError: No scheduler answers at the address.
    """
    check_dask()
    from distributed import Client, LocalCluster

    if address == "local":
        n_workers = os.cpu_count() or 1
        quiet: dict[str, Any] = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, **quiet) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"no Dask scheduler answers at {address!r}: {reason}; is it running there?") from None
    with client:
        yield client


@dataclass(frozen=True)
class Cluster:
    """Calls functions on the workers of a client."""

    client: Any

    @property
    def workers(self) -> list[str]:
        """Addresses of the workers, sorted."""
        return sorted(self.client.nthreads())

    @property
    def n_threads(self) -> int:
        """Number of tasks that run at the same time."""
        return max(1, int(sum(self.client.nthreads().values())))

    def check(self, seconds: float = CONNECT_SECONDS) -> None:
        """Raise where no worker comes within some seconds."""
        try:
            self.client.wait_for_workers(1, timeout=seconds)
        except TimeoutError:
            raise InputError("the Dask scheduler has no workers; start some, and fit again") from None

    def call(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future:
        """Call a function on a worker, on a certain one if it is there; futures among the arguments are awaited."""
        place = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **place)

    def keep(self, value: Any) -> Future:
        """Return a value as a future that many calls share and that no lost worker takes away."""
        with warnings.catch_warnings():
            # Dask advises to scatter what is large; but what is scattered is lost with its worker.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            return self.call(_same, value)

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results; of several errors, that of the first future is raised."""
        from distributed import wait
        from distributed.scheduler import KilledWorker

        wait(futures)
        for future in futures:
            if future.status == "error":
                error = future.exception()
                if isinstance(error, KilledWorker):
                    raise InputError(
                        "the workers of the Dask cluster end while they work on the votes; have they too little memory?"
                    ) from None
                raise error
        return list(self.client.gather(futures))


def _same(value: Any) -> Any:
    return value


def _add(left: Any, right: Any) -> Any:
    return left + right


def tree_sum(cluster: Cluster, futures: Sequence[Future]) -> Any:
    """Return the sum of arrays on the workers, added in pairs there; for numbers whose sum is exact."""
    level = list(futures)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [cluster.call(_add, *pair) for pair in pairs] + ([level[-1]] if len(level) % 2 else [])
    return cluster.results(level)[0]


@dataclass(frozen=True, eq=False)
class _GroupResult:
    sums: GroupSums
    positive: FloatArray
    change: float


def _sweep_group(
    chunks: Sequence[VoteChunk], tables: Tables, before: FloatArray | None, n_annotators: int
) -> _GroupResult:
    """Update the items of a group, and add up what its chunks return."""
    found = []

    def results() -> Iterable[tuple[VoteChunk, Any]]:
        for chunk in chunks:
            result = step(chunk, tables)
            found.append(result.positive)
            yield chunk, result

    with single_threaded_blas():
        sums = group_sums(results(), n_annotators, tables.states)
    positive = np.concatenate(found)
    change = np.inf if before is None else float(np.abs(positive - before).max())
    return _GroupResult(sums, positive, change)


def _positive(result: _GroupResult) -> FloatArray:
    return result.positive


def _accumulate(
    before: tuple[GroupSums, float] | None, results: Sequence[_GroupResult], n_annotators: int, tables: Tables
) -> tuple[GroupSums, float]:
    """Add the sums of the next groups, in their order; return them with the largest change."""
    total, change = Total(n_annotators, tables.states), 0.0
    if before is not None:
        total.add_group(before[0])
        change = before[1]
    for result in results:
        total.add_group(result.sums)
        change = max(change, result.change)
    sums, totals = total.result()
    rows = np.arange(n_annotators)
    return GroupSums(rows, sums.mass, sums.yes, np.array(astuple(totals))), change


class ClusterDriver:
    """Groups of chunks on the workers of a cluster; see `models.crowd.drivers.Driver`.

    Args:
        cluster: The cluster.
        groups: The chunks of each group, as futures.
        n_items: Number of kinds of items.
        annotator_weight: Number of annotators of each kind, shape (A,).
    """

    def __init__(self, cluster: Cluster, groups: Sequence[Future], n_items: int, annotator_weight: FloatArray) -> None:
        self._cluster, self._groups = cluster, groups
        self.n_items, self.annotator_weight = n_items, annotator_weight
        self._kept: dict[int, Futures] = {}

    def sweep(self, tables: Tables, pool: ThreadPoolExecutor, *, number: int, since: int | None) -> Swept:
        """Sweep over the groups; what a lost worker had, Dask computes again on the others."""
        from concurrent.futures import CancelledError

        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        before = None if since is None else self._kept[since]
        try:
            positive, sums, change = self._sweep(tables, before)
        except (CancelledError, CommClosedError, KilledWorker, TimeoutError):
            raise InputError(
                "the Dask cluster lost workers faster than others could replace them; check their memory and fit again"
            ) from None
        self._kept = {number: positive} if before is None or since is None else {since: before, number: positive}
        return Swept(VoteSums(sums.mass, sums.yes), ItemTotals(*sums.totals.tolist()), change)

    def _sweep(self, tables: Tables, before: Futures | None) -> tuple[Futures, GroupSums, float]:
        """Return p of the groups, their sums and the largest change."""
        cluster, count = self._cluster, len(self.annotator_weight)
        # All that a chunk needs of the response; the rest stays here.
        nothing = np.empty((0, 0))
        lean = replace(tables, response=Response(tables.response.softplus, nothing, nothing))
        sent = cluster.keep(lean)
        earlier = (None,) * len(self._groups) if before is None else before
        results = [
            cluster.call(_sweep_group, group, sent, past, count)
            for group, past in zip(self._groups, earlier, strict=True)
        ]
        positive = tuple(cluster.call(_positive, result) for result in results)
        total = None
        for some in np.array_split(np.arange(len(results)), min(len(results), len(cluster.workers) or 1)):
            total = cluster.call(_accumulate, total, [results[at] for at in some], count, sent)
        sums, change = cluster.client.gather(total)
        return positive, sums, change if before is not None else np.inf

    def holds(self, number: int) -> bool:
        """Return whether the p of a sweep is kept."""
        return number in self._kept

    def positive(self, number: int) -> FloatArray:
        """Return the p that is kept under a number, shape (n_items,)."""
        found: FloatArray = np.concatenate(self._cluster.client.gather(list(self._kept[number])))
        return found
