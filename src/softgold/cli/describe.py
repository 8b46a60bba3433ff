"""`softgold describe`: counts, agreement and problems of a vote table."""

from __future__ import annotations

import typer

from softgold.cli.common import AsJson, Votes, print_data, print_json
from softgold.cli.reading import ReadingOptions, with_reading_options

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("describe")(with_reading_options(describe))


def describe(
    votes: Votes,
    reading: ReadingOptions,
    as_json: AsJson = False,
) -> None:
    """Describe a vote table and list problems found.

    Prints counts, votes per item and per annotator, connected components and agreement.
    """
    study = reading.read_study(votes)
    found = {name: table.describe() for name, table in study.votes.items()}
    if as_json:
        print_json(found[""] if study.kind == "single" else {study.kind: found})
    elif study.kind == "single":
        print_data(f"{found['']}\n")
    else:
        print_data("\n".join(f"{name}\n{description}\n" for name, description in found.items()))
