"""Options for reading vote tables, shared by every command that takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

from softgold.cli.common import (
    AnnotatorColumn,
    Duplicates,
    Format,
    ItemColumn,
    Positive,
    Question,
    VoteColumn,
    Wide,
    say,
)

if TYPE_CHECKING:
    from softgold.tables.votes import VoteTable

__all__ = ["ReadingOptions", "with_reading_options"]


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

    @property
    def columns(self) -> dict[str, str | None]:
        """Names of the columns, as arguments of the readers."""
        return {"item": self.item_col, "annotator": self.annotator_col, "vote": self.vote_col}

    @property
    def selection(self) -> dict[str, str | None]:
        """What to take from an export, as arguments of the readers."""
        return {"format": self.format, "question": self.question, "positive": self.positive}

    def read_votes(self, source: str, *, quiet: bool = False, max_bytes: int | None = None) -> VoteTable:
        """Read a vote table and say which export it came from, if any."""
        from softgold.readers import read_votes

        arguments: dict[str, Any] = {**self.columns, **self.selection}
        table = read_votes(source, wide=self.wide, duplicates=self.duplicates, max_bytes=max_bytes, **arguments)
        say(table.origin, quiet=quiet or not table.origin)
        return table


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
