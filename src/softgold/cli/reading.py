"""Options for reading vote tables, shared by every command that takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from softgold.cli.common import (
    AnnotatorColumn,
    Anonymous,
    Duplicates,
    Format,
    ItemColumn,
    ItemsTable,
    MaxBytes,
    Positive,
    Question,
    TaskColumn,
    VoteColumn,
    Wide,
    say,
)

if TYPE_CHECKING:
    import pandas as pd

    from softgold.tables.soft_labels import SoftLabels
    from softgold.tables.study import StudyVotes


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a vote table; each field is an option of the same name."""

    item_col: ItemColumn = None
    annotator_col: AnnotatorColumn = None
    vote_col: VoteColumn = None
    wide: Wide = False
    duplicates: Duplicates = "error"
    format: Format = None
    question: Question = None
    positive: Positive = None
    task_col: TaskColumn = None
    items: ItemsTable = None
    anonymous: Anonymous = False
    max_bytes: MaxBytes = None

    @property
    def columns(self) -> dict[str, str | None]:
        """Names of the columns, as arguments of the readers."""
        return {"item": self.item_col, "annotator": self.annotator_col, "vote": self.vote_col}

    @property
    def selection(self) -> dict[str, str | None]:
        """What to take from an export, as arguments of the readers."""
        return {"format": self.format, "question": self.question, "positive": self.positive}

    def read_study(self, source: str, *, quiet: bool = False) -> StudyVotes:
        """Read the votes on one question or several, and say which export they came from, if any."""
        from softgold.readers import read_study

        arguments: dict[str, Any] = {
            **self.columns,
            **self.selection,
            "wide": self.wide,
            "duplicates": self.duplicates,
            "task": self.task_col,
            "items": self._items(source),
            "anonymous": self.anonymous,
            "max_bytes": self.max_bytes,
        }
        study = read_study(source, **arguments)
        first = next(iter(study.votes.values()))
        say(first.origin, quiet=quiet or not first.origin)
        return study

    def _items(self, source: str) -> Path | None:
        """Return the table with the question of each item: the one given, or items.csv beside votes without it."""
        if self.items is not None or self.task_col is None or source == "-":
            return self.items
        from softgold.readers.sources import open_source

        beside = Path(source).parent / "items.csv"
        return beside if beside.is_file() and self.task_col not in open_source(source).columns else None


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `ReadingOptions` in place of its parameter `reading`."""
    kinds = get_type_hints(ReadingOptions, include_extras=True)
    names = [field.name for field in fields(ReadingOptions)]
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name]
        )
        for field in fields(ReadingOptions)
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        reading = ReadingOptions(**{name: given.pop(name) for name in names})
        command(**given, reading=reading)

    signature = inspect.signature(command, eval_str=True)
    others = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in signature.parameters.values()]
    place = list(signature.parameters).index("reading")
    parameters = [*others[:place], *options, *others[place + 1 :]]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in parameters}
    return run


def study_frame(labels: Mapping[str, SoftLabels], kind: str) -> pd.DataFrame:
    """Return one table of soft labels: as it is, with a column `task`, or with one column per class."""
    from softgold.runs.study import with_task
    from softgold.tables.classes import combine_classes

    if kind == "single":
        return next(iter(labels.values())).to_frame()
    if kind == "classes":
        return combine_classes(labels).to_frame()
    return with_task({name: table.to_frame() for name, table in labels.items()})
