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
        from softgold.cli.startup import meet_interrupts

        meet_interrupts()
        from softgold.cli.app import main as run
    except KeyboardInterrupt:
        import os

        os.write(2, b"interrupted\n")
        return 130
    return run(arguments)
