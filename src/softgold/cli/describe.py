"""`softgold describe`: counts, agreement and problems of a vote table."""

from __future__ import annotations

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    AsJson,
    Duplicates,
    Format,
    ItemColumn,
    ItemsTable,
    MaxBytes,
    Positive,
    Question,
    TaskColumn,
    VoteColumn,
    Votes,
    Wide,
    print_data,
    print_json,
)
from softgold.cli.reading import ReadingOptions

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("describe")(describe)


def describe(
    votes: Votes,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    task_col: TaskColumn = None,
    items: ItemsTable = None,
    wide: Wide = False,
    duplicates: Duplicates = "error",
    format: Format = None,
    question: Question = None,
    positive: Positive = None,
    max_bytes: MaxBytes = None,
    as_json: AsJson = False,
) -> None:
    """Describe a vote table and list problems found.

    Prints counts, votes per item and per annotator, connected components and agreement.
    """
    reading = ReadingOptions(
        item=item_col,
        annotator=annotator_col,
        vote=vote_col,
        task=task_col,
        items=items,
        wide=wide,
        duplicates=duplicates,
        format=format,
        question=question,
        positive=positive,
        max_bytes=max_bytes,
    )
    study = reading.read(votes)
    found = {name: table.describe() for name, table in study.votes.items()}
    if study.kind == "single":
        if as_json:
            print_json(found[""])
        else:
            print_data(f"{found['']}\n")
    elif as_json:
        print_json({study.kind: found})
    else:
        print_data("".join(f"{name}\n{description}\n\n" for name, description in found.items()))
