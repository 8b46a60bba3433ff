"""`softgold describe`: counts, agreement and problems of a vote table."""

from __future__ import annotations

from softgold.cli.common import AsJson, Votes, print_data, print_json
from softgold.cli.reading import ReadingOptions, with_reading_options
from softgold.cli.text import one_line


@with_reading_options
def command(
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
        print_data("\n".join(f"{one_line(name)}\n{description}\n" for name, description in found.items()))
