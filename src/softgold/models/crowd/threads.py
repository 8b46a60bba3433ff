"""Worker threads for chunks of votes, with BLAS kept from starting threads of its own beneath them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")

THREADS = min(4, os.cpu_count() or 1)

_LOCK = threading.Lock()
_LIMITS: list[Any] = []  # one entry for each that is in force; the first holds what to restore when the last has ended
_controller = cache(ThreadpoolController)  # looking through the loaded libraries takes some milliseconds


@contextmanager
def worker_pool() -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads, with BLAS as in `single_threaded_blas`."""
    with single_threaded_blas(), ThreadPoolExecutor(THREADS) as pool:
        yield pool


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Have BLAS run each product on the thread that asked for it, which also fixes the order of its sums.

    The products are small. Threads that BLAS starts for them, on top of ours, spend their time waiting for each other.
    """
    with _LOCK:
        _LIMITS.append(None if _LIMITS else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            _LIMITS.pop() if len(_LIMITS) > 1 else _LIMITS.pop().restore_original_limits()


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], pool: ThreadPoolExecutor) -> Iterator[Result]:
    """Work on some tasks at a time; yield in their order, for reproducible sums. A task on its own needs no thread."""
    ahead = iter(tasks)
    begun = list(islice(ahead, 2))
    if len(begun) == 1:
        yield work(begun[0])
        return
    submitted = (pool.submit(work, task) for task in chain(begun, ahead))
    pending = deque(islice(submitted, 2 * THREADS))
    while pending:
        pending.extend(islice(submitted, 1))
        yield pending.popleft().result()
