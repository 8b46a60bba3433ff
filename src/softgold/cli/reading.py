"""The options by which the commands read votes, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from softgold.cli.common import DuplicateChoice, say

if TYPE_CHECKING:
    import pandas as pd

    from softgold.tables.soft_labels import SoftLabels
    from softgold.tables.study import StudyVotes

__all__ = ["ReadingOptions", "study_frame"]


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a table of votes; see `softgold.read_study`."""

    item: str | None = None
    annotator: str | None = None
    vote: str | None = None
    task: str | None = None
    items: Path | None = None
    wide: bool = False
    duplicates: DuplicateChoice = "error"
    format: str | None = None
    question: str | None = None
    positive: str | None = None
    anonymous: bool = False
    max_bytes: int | None = None

    def read(self, source: str, *, quiet: bool = False) -> StudyVotes:
        """Read the votes, and say what an export had."""
        from softgold.readers import read_study

        study = read_study(source, **{**vars(self), "items": self._items(source)})
        first = next(iter(study.votes.values()))
        say(first.origin, quiet=quiet or not first.origin)
        return study

    def _items(self, source: str) -> Path | None:
        """Return the table with the question of each item: the one given, or items.csv beside votes without it."""
        if self.items is not None or self.task is None or source == "-":
            return self.items
        from softgold.readers.sources import open_source

        beside = Path(source).parent / "items.csv"
        return beside if beside.is_file() and self.task not in open_source(source).columns else None


def study_frame(labels: Mapping[str, SoftLabels], kind: str) -> pd.DataFrame:
    """Return one table: as it is, with a column `task`, or with one column per class."""
    import pandas as pd

    from softgold.tables.classes import combine_classes

    if kind == "single":
        return next(iter(labels.values())).to_frame()
    if kind == "classes":
        return combine_classes(labels).to_frame()
    whole = pd.concat([table.to_frame().assign(task=name) for name, table in labels.items()], ignore_index=True)
    return whole[["task", *whole.columns.drop("task")]]
