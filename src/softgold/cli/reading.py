"""Options for reading votes, as one value that commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
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

__all__ = ["ReadingOptions", "study_frame", "with_reading_options"]

# Names of the parameters, where they are not those of the fields.
PARAMETERS = {"item": "item_col", "annotator": "annotator_col", "vote": "vote_col", "task": "task_col"}


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a table of votes; see `softgold.read_study`."""

    item: ItemColumn = None
    annotator: AnnotatorColumn = None
    vote: VoteColumn = None
    task: TaskColumn = None
    items: ItemsTable = None
    wide: Wide = False
    duplicates: Duplicates = "error"
    format: Format = None
    question: Question = None
    positive: Positive = None
    anonymous: Anonymous = False
    max_bytes: MaxBytes = None

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


def with_reading_options(
    command: Callable[..., None], *, without: Collection[str] = ("anonymous", "max_bytes")
) -> Callable[..., None]:
    """Give a command one option per field of `ReadingOptions`, in place of its parameter `reading`.

    Args:
        command: Function with a keyword-only parameter `reading`.
        without: Fields that are not options of this command.
    """
    kinds = get_type_hints(ReadingOptions, include_extras=True)
    shown = {field.name: field.default for field in fields(ReadingOptions) if field.name not in without}
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(PARAMETERS.get(name, name), keyword, default=default, annotation=kinds[name])
        for name, default in shown.items()
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        chosen = {name: given.pop(PARAMETERS.get(name, name)) for name in shown}
        command(**given, reading=ReadingOptions(**chosen))

    signature = inspect.signature(command, eval_str=True)
    others = [parameter.replace(kind=keyword) for parameter in signature.parameters.values()]
    place = list(signature.parameters).index("reading")
    parameters = [*others[:place], *options, *others[place + 1 :]]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


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
