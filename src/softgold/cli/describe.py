"""`softgold describe`: counts, agreement and problems of a vote table."""

from __future__ import annotations

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    AsJson,
    Duplicates,
    Format,
    ItemColumn,
    MaxBytes,
    Positive,
    Question,
    VoteColumn,
    Votes,
    Wide,
    print_data,
    print_json,
    say,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("describe")(describe)


def describe(
    votes: Votes,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
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
    from softgold.readers import read_votes

    table = read_votes(
        votes,
        item=item_col,
        annotator=annotator_col,
        vote=vote_col,
        wide=wide,
        duplicates=duplicates,
        format=format,
        question=question,
        positive=positive,
        max_bytes=max_bytes,
    )
    say(table.origin, quiet=not table.origin)
    description = table.describe()
    if as_json:
        print_json(description)
    else:
        print_data(f"{description}\n")
