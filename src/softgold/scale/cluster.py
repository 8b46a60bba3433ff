"""A Dask cluster at work: connecting, calling functions on workers, and the driver of the sweeps.

Chunks stay on the workers as futures. What is lost with a worker is computed again on the others, from the source if
need be. Every thread of a worker has a share of consecutive groups of chunks, which it sums as far as their tree of
sums allows; the trees of all shares are joined in pairs. The bits are those of every other driver.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from multiprocessing.resource_tracker import ensure_running
from typing import Any
from uuid import uuid4

import numpy as np

from softgold.errors import InputError, UsageError
from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Response
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.drivers import Swept
from softgold.models.crowd.items import ChunkResult, Tables, step
from softgold.models.crowd.sums import SumTree, sum_groups
from softgold.models.crowd.threads import single_threaded_blas
from softgold.scale.allocation import kept_memory

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
        UsageError: It is no address.
    """
    check_dask()
    from distributed import Client

    if address == "local":
        with _local_cluster() as cluster, Client(cluster, set_as_default=False) as client:
            yield client
        return
    _check_address(address)
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"no Dask scheduler answers at {address!r}: {reason}; is it running there?") from None
    with client:
        yield client


def _check_address(address: str) -> None:
    """Raise for what is no address; Dask says so too, but leaves a thread behind that fails when Python ends."""
    from distributed.comm.registry import get_backend

    match = re.fullmatch(r"(?:(\w+)://)?[^\s/]+:(\d+)", address)
    try:
        if match is not None and int(match[2]) < 2**16 and get_backend(match[1] or "tcp"):
            return
    except ValueError:  # no such protocol
        pass
    raise UsageError(f"--dask must be 'local' or the address of a scheduler such as tcp://host:8786, got {address!r}")


@contextmanager
def _local_cluster() -> Iterator[Any]:
    """Give one worker process per processor on this machine, without web page, log lines and profiler."""
    import dask
    from distributed import LocalCluster

    # Without an address, the scheduler would ask for one certain port, and warn where it is taken.
    quiet = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}, "silence_logs": logging.CRITICAL}
    with dask.config.set({"distributed.worker.profile.enabled": False}), ExitStack() as stack:
        with _held_termination(), _blocked_interrupt():
            workers = LocalCluster(n_workers=os.cpu_count() or 1, threads_per_worker=1, **quiet)
            cluster = stack.enter_context(workers)
        yield cluster


@contextmanager
def _held_termination() -> Iterator[None]:
    """Let SIGTERM wait until all workers have started: one whose parent ends amid its start prints a traceback."""
    if threading.current_thread() is not threading.main_thread():  # no other thread may set what a signal does
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
        for number in held[:1]:
            signal.raise_signal(number)


@contextmanager
def _blocked_interrupt() -> Iterator[None]:
    """Start threads and processes that Ctrl-C does not reach: it is for this process alone, which ends its workers."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    ensure_running()  # starts a process and unblocks Ctrl-C behind it: do it first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class Cluster:
    """Calls functions on the workers of a client."""

    client: Any

    @property
    def threads(self) -> list[str | None]:
        """Address of the worker of each thread, sorted; [None] where all workers are lost just now."""
        found = sorted(self.client.nthreads().items())
        return [worker for worker, count in found for _ in range(count)] or [None]

    @property
    def n_threads(self) -> int:
        """Number of tasks that run at the same time."""
        return len(self.threads)

    def check(self, seconds: float = CONNECT_SECONDS) -> None:
        """Raise where no worker comes within some seconds."""
        try:
            self.client.wait_for_workers(1, timeout=seconds)
        except TimeoutError:
            raise InputError("the Dask scheduler has no workers; start some, and fit again") from None

    def call(self, function: Callable[..., Any], *arguments: Any, worker: str | None = None) -> Future:
        """Call a function on a worker, on a certain one if it is there; futures among the arguments are awaited."""
        place = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        key = f"{function.__name__.lstrip('_')}-{uuid4()}"
        return self.client.submit(_on_worker, function, *arguments, key=key, pure=False, **place)

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

        with self.client.as_current():  # it need not be the default client
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


def _on_worker(function: Callable[..., Any], *arguments: Any) -> Any:
    with single_threaded_blas(), kept_memory():
        return function(*arguments)


def in_pairs(cluster: Cluster, function: Callable[[Any, Any], Any], futures: Sequence[Future]) -> Future:
    """Put neighbours together on the workers, pair by pair, until one is left."""
    level = list(futures)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [cluster.call(function, *pair) for pair in pairs] + ([level[-1]] if len(level) % 2 else [])
    return level[0]


@dataclass(frozen=True, eq=False)
class Share:
    """Consecutive groups of chunks that one thread of a worker sweeps over.

    Attributes:
        first: Number of the first group.
        groups: The chunks of each group, on the worker.
        worker: Address of the worker, None for any; another one takes over if it is lost.
    """

    first: int
    groups: tuple[Future, ...]
    worker: str | None


@dataclass(frozen=True, eq=False)
class _ShareResult:
    tree: SumTree
    positive: FloatArray
    change: float


def _sweep_share(
    first: int, groups: Sequence[Sequence[VoteChunk]], tables: Tables, before: FloatArray | None, n_annotators: int
) -> _ShareResult:
    """Update the items of a share, and add up what its chunks return."""
    found = []

    def results(chunks: Sequence[VoteChunk]) -> Iterator[tuple[VoteChunk, ChunkResult]]:
        for chunk in chunks:
            result = step(chunk, tables)
            found.append(result.positive)
            yield chunk, result

    tree = sum_groups(map(results, groups), n_annotators, tables.states, first)
    positive = np.concatenate(found)
    return _ShareResult(tree, positive, np.inf if before is None else float(np.abs(positive - before).max()))


def _positive(result: _ShareResult) -> FloatArray:
    return result.positive


_Sums = tuple[SumTree, float]


def _sums(result: _ShareResult) -> _Sums:
    return result.tree, result.change


def _join(left: _Sums, right: _Sums) -> _Sums:
    return left[0].join(right[0]), max(left[1], right[1])


def _swept(sums: _Sums, n_annotators: int) -> Swept:
    return Swept(*sums[0].total(n_annotators), sums[1])


class ClusterDriver:
    """Shares of groups of chunks on the workers of a cluster; see `models.crowd.drivers.Driver`.

    Args:
        cluster: The cluster.
        shares: The chunks.
        n_items: Number of kinds of items.
        annotator_weight: Number of annotators of each kind, shape (A,).
    """

    def __init__(self, cluster: Cluster, shares: Sequence[Share], n_items: int, annotator_weight: FloatArray) -> None:
        self._cluster, self._shares = cluster, shares
        self.n_items, self.annotator_weight = n_items, annotator_weight
        self._kept: dict[int, Futures] = {}

    def sweep(self, tables: Tables, pool: ThreadPoolExecutor, *, number: int, since: int | None) -> Swept:
        """Sweep over the shares; what a lost worker had, Dask computes again on the others."""
        from concurrent.futures import CancelledError

        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        before = None if since is None else self._kept[since]
        try:
            positive, swept = self._sweep(tables, before)
        except (CancelledError, CommClosedError, KilledWorker, TimeoutError):
            raise InputError(
                "the Dask cluster lost workers faster than others could replace them; check their memory and fit again"
            ) from None
        self._kept = {number: positive} if before is None or since is None else {since: before, number: positive}
        return swept

    def _sweep(self, tables: Tables, before: Futures | None) -> tuple[Futures, Swept]:
        """Return p of the shares, and what they say together."""
        cluster, count = self._cluster, len(self.annotator_weight)
        # All that a chunk needs of the response; the rest stays here.
        nothing = np.empty((0, 0))
        sent = cluster.keep(replace(tables, response=Response(tables.response.softplus, nothing, nothing)))
        results = [
            cluster.call(_sweep_share, share.first, list(share.groups), sent, past, count, worker=share.worker)
            for share, past in zip(self._shares, before or (None,) * len(self._shares), strict=True)
        ]
        positive = tuple(cluster.call(_positive, result) for result in results)
        together = in_pairs(cluster, _join, [cluster.call(_sums, result) for result in results])
        swept: Swept = cluster.client.gather(cluster.call(_swept, together, count))
        return positive, swept

    def holds(self, number: int) -> bool:
        """Return whether the p of a sweep is kept."""
        return number in self._kept

    def positive(self, number: int) -> FloatArray:
        """Return the p that is kept under a number, shape (n_items,)."""
        found: FloatArray = np.concatenate(self._cluster.client.gather(list(self._kept[number])))
        return found
