"""Whether a command on a run has the memory that it needs, said before it is taken."""

from __future__ import annotations

import os
from pathlib import Path

from softgold.errors import InputError
from softgold.runs.records import RECORD, read_record

# Bytes per item at the peak, above a few hundred MB (scripts/bench/later.py).
BYTES_PER_ITEM = {"calibrate": 190, "sample-experts": 180, "evaluate": 120, "next": 240, "report": 240}
BYTES_PER_SCORE = 30


def machine_bytes() -> int:
    """Return the memory of this machine; a very large number where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 62


def check_memory(folder: Path, command: str, *, models: int = 0) -> None:
    """Raise where a command needs more memory for the items of a run than the machine has.

    Args:
        folder: The run directory.
        command: Name of the command.
        models: Models whose scores of every item are held.
    """
    if not (folder / RECORD).is_file():  # soft labels of another origin
        return
    items = read_record(folder).input.items
    needed, there = items * (BYTES_PER_ITEM[command] + models * BYTES_PER_SCORE), machine_bytes()
    if needed > there:
        raise InputError(
            f"softgold {command} needs about {needed / 1e9:.1f} GB of memory for {items:,} items, and this machine has "
            f"{there / 1e9:.1f} GB; run it on a larger one"
        )
