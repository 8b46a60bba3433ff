"""Files that a report is made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from softgold.errors import StorageError

__all__ = ["file_names", "read_json"]


def file_names(folder: Path) -> frozenset[str]:
    """Return the names of the files in a folder, without pages."""
    return frozenset(entry.name for entry in folder.iterdir() if entry.is_file() and entry.suffix != ".html")


def read_json(path: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the object in a JSON file, which must have the keys; None if there is no file."""
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None
    absent = [key for key in keys if not isinstance(value, dict) or key not in value]
    if absent or not isinstance(value, dict):
        raise StorageError(f"{path} is not what this version of softgold writes: {', '.join(absent)} is missing in it")
    return value
