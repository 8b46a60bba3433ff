"""Standard streams that may be closed or full: a command succeeds if its files were written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from softgold.errors import OutputError


class StandardOutputError(OutputError):
    """The answer could not be printed on standard output."""


class _Forgiving:
    """Standard error that never fails: if nobody reads it, work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # full, or closed
            discard(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            discard(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def steady_streams() -> Iterator[None]:
    """Open closed standard streams on the null device: no file may get their number. Standard error never fails."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is the one that is closed. Writing to one that is open for reading is noticed.
            os.open(os.devnull, os.O_RDONLY)
    previous = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = previous[0] or _opened(0, "r")
    sys.stdout = previous[1] or _opened(1, "w")
    sys.stderr = _Forgiving(previous[2] or _opened(2, "w"))
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = previous


def _opened(descriptor: int, mode: str) -> Any:
    return open(descriptor, mode, encoding="utf-8", closefd=False)


def discard(stream: TextIO) -> None:
    """Redirect a stream to the null device: Python flushes it once more at exit, which must not fail."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
