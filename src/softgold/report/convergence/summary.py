"""Values for a report on label convergence, read from the folder that `softgold convergence` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from softgold.errors import StorageError
from softgold.report.summary import file_names
from softgold.runs.files import read_json

RECORD = "convergence.json"
KEYS = (
    *("sentence", "basis", "upper_bound", "thresholds", "pairs"),
    *("alpha_interval", "published", "settings", "variation"),
)
IMAGE_COLUMNS: dict[str, str] = {
    **dict.fromkeys(("image", "rater_a", "rater_b"), "str"),
    "threshold": "float64",
    **dict.fromkeys(("bad_boundary", "wrong_class", "merge", "merge_wrong_class"), "int64"),
    **dict.fromkeys(("missed_or_additional", "n_variations"), "int64"),
}
CHUNK = 50_000


@dataclass(frozen=True, eq=False)
class ConvergenceSummary:
    """What a report shows of label convergence.

    Attributes:
        name: Name of the folder.
        record: `convergence.json`.
        subsets: `subsets.csv`; None if it is not there.
        images: Rows of `images.csv` at its lowest threshold; None if it is not there.
        files: Names of the files in the folder, pages left out.
    """

    name: str
    record: Mapping[str, Any]
    subsets: pd.DataFrame | None
    images: pd.DataFrame | None
    files: frozenset[str]


def read_convergence(folder: Path) -> ConvergenceSummary | None:
    """Read a folder; None if it has no `convergence.json`.

    Raises:
        StorageError: A file of it is damaged.
    """
    if not (folder / RECORD).is_file():
        return None
    record = read_json(folder / RECORD, "softgold convergence")
    absent = [key for key in KEYS if key not in record]
    if absent:
        raise StorageError(
            f"{folder / RECORD} is not what this version of softgold writes: {', '.join(absent)} is missing in it"
        )
    return ConvergenceSummary(
        name=folder.resolve().name,
        record=record,
        subsets=_read_subsets(folder / "subsets.csv", with_map=record.get("map_interval") is not None),
        images=_read_images(folder / "images.csv"),
        files=file_names(folder),
    )


def _read_subsets(path: Path, *, with_map: bool) -> pd.DataFrame | None:
    if not path.is_file():
        return None
    try:
        return pd.read_csv(path, dtype="float64", usecols=["alpha", "map"] if with_map else ["alpha"])
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None


def _read_images(path: Path) -> pd.DataFrame | None:
    """Read the rows at the lowest threshold, which come first: the file repeats the images at each threshold."""
    if not path.is_file():
        return None
    parts: list[pd.DataFrame] = []
    try:
        # An image may be called NA.
        options: dict[str, Any] = {"dtype": IMAGE_COLUMNS, "usecols": list(IMAGE_COLUMNS), "keep_default_na": False}
        with pd.read_csv(path, chunksize=CHUNK, **options) as chunks:
            for chunk in chunks:
                lowest = (parts or [chunk])[0]["threshold"].min()
                parts.append(chunk[chunk["threshold"] == lowest])
                if len(parts[-1]) < len(chunk):
                    break
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None
    return pd.concat(parts, ignore_index=True) if parts else None
