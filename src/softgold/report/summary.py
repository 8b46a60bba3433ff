"""Files that a report is made from."""

from __future__ import annotations

from pathlib import Path


def file_names(folder: Path) -> frozenset[str]:
    """Return the names of the files in a folder, without pages."""
    return frozenset(entry.name for entry in folder.iterdir() if entry.is_file() and entry.suffix != ".html")
