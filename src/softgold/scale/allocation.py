"""Memory that a worker frees and needs again at once is kept, not given back to the system in between.

Dask starts its workers so that glibc returns every large array to the system. The arrays of a sweep are large and made
anew for every chunk: getting the pages back takes longer than the arithmetic. While work is done, glibc keeps them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

VARIABLE = "MALLOC_TRIM_THRESHOLD_"  # set by Dask; glibc chooses for itself where it is not set
TRIM, MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
KEPT, LARGEST = 2**26, 2**25  # bytes kept at the end of a heap; larger arrays (glibc's own limit) are given back
MMAP_DEFAULT = 2**17

_LOCK = threading.Lock()
_USERS = [0]


@cache
def _mallopt() -> Callable[[int, int], int] | None:
    """Return glibc's function; None where it is not to be used, or not there."""
    if not os.environ.get(VARIABLE, "").isdigit():
        return None
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return None
    return found


@contextmanager
def kept_memory() -> Iterator[None]:
    """Have freed memory kept for the next arrays; what the worker had set is in force again after the last user."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    mallopt = _mallopt()
    if mallopt is None:
        return
    with _LOCK:
        before, _USERS[0] = _USERS[0], _USERS[0] + change
        if before == 0:
            mallopt(TRIM, KEPT)
            mallopt(MMAP, LARGEST)
        elif _USERS[0] == 0:
            mallopt(TRIM, int(os.environ[VARIABLE]))
            mallopt(MMAP, MMAP_DEFAULT)
