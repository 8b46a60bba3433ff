"""Ctrl-C and SIGTERM, whenever they arrive."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from softgold.cli.startup import end_at_once

# Long enough for the code to leave the callback in which Ctrl-C got lost.
PAUSE = 0.01


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that temporary files are removed, and remember a Ctrl-C.

    Gives a function that says whether there was a Ctrl-C. A handler that the caller has set is left alone, so that
    `nohup` and shells that start jobs in the background are respected.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    pressed: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    ours = signal.getsignal(signal.SIGINT) in (signal.default_int_handler, end_at_once)
    previous = signal.signal(signal.SIGTERM, _terminate)
    hook, sys.unraisablehook = sys.unraisablehook, _unraisable
    if ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: bool(pressed)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, previous)
        sys.unraisablehook = hook
        _end_quietly()


def _terminate(number: int, _frame: Any) -> None:
    raise SystemExit(128 + number)


def _unraisable(event: Any) -> None:
    """Press Ctrl-C again if it fell into a callback, where exceptions are lost."""
    if issubclass(event.exc_type, KeyboardInterrupt):
        main = threading.main_thread().ident or 0
        threading.Timer(PAUSE, signal.pthread_kill, (main, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(event)


def _end_quietly() -> None:
    """Ignore Ctrl-C while Python exits, so that it prints no traceback."""
    atexit.unregister(_ignore_interrupts)
    atexit.register(_ignore_interrupts)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
