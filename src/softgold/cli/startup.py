"""Ctrl-C while modules are imported, before anything is written."""

from __future__ import annotations

import os
import signal


def meet_interrupts() -> None:
    """Let Ctrl-C end the process: callbacks of imports lose the exception, and the command would go on."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, end_at_once)
        except ValueError:  # only the main thread may
            return


def end_at_once(*_signal: object) -> None:
    """End the process, which has written nothing yet, as interrupted."""
    try:
        os.write(2, b"interrupted\n")
    finally:  # standard error may be closed
        os._exit(130)
