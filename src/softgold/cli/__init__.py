"""The command line: one module per command, each of which parses, calls the library, and writes."""

from __future__ import annotations

__all__ = ["main"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # Nothing is imported before this line, so that Ctrl-C during an import is met here.
    try:
        _meet_interrupts()
        from softgold.cli.app import main as run
    except KeyboardInterrupt:
        end_at_once()
    return run(arguments)


def _meet_interrupts() -> None:
    """Let Ctrl-C end the process while modules are imported: callbacks of imports lose exceptions."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, end_at_once)
        except ValueError:  # only the main thread may
            return


def end_at_once(*_signal: object) -> None:
    """End the process, which has written nothing yet, as interrupted."""
    import os

    try:
        os.write(2, b"interrupted\n")
    finally:  # standard error may be closed
        os._exit(130)
