"""Worker threads for chunks of votes, with BLAS kept from starting threads of its own beneath them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["THREADS", "worker_pool"]

THREADS = min(4, os.cpu_count() or 1)

_LOCK = threading.Lock()
_LIMITS: list[Any] = []  # one entry for each pool at work; the first holds what to restore when the last has ended


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking through the loaded libraries takes some milliseconds


@contextmanager
def worker_pool() -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads; while any such pool is open, BLAS runs each product on the thread that asked for it.

    The products are small. Threads that BLAS starts for them, on top of ours, spend their time waiting for each other.
    """
    with _LOCK:
        _LIMITS.append(None if _LIMITS else _controller().limit(limits=1, user_api="blas"))
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            yield pool
    finally:
        with _LOCK:
            _LIMITS.pop() if len(_LIMITS) > 1 else _LIMITS.pop().restore_original_limits()
