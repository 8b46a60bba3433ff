"""`softgold predict`: soft labels of new votes with the abilities of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    Duplicates,
    Force,
    ItemColumn,
    OptionalOutput,
    Quiet,
    VoteColumn,
    Votes,
    Wide,
    say,
    write_or_print,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory of 'softgold fit'.")],
    votes: Votes,
    output: OptionalOutput = None,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    wide: Wide = False,
    duplicates: Duplicates = "error",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Score new votes with the abilities of a fitted run.

    Items may be known or new; only the votes given here count.

    Annotators who were not in the run are members of the fitted population.
    """
    from softgold.output import check_target
    from softgold.readers import read_votes
    from softgold.runs import open_run

    if output is not None:
        check_target(output, force=force)
    posterior = open_run(run).fit.posterior
    table = read_votes(votes, item=item_col, annotator=annotator_col, vote=vote_col, wide=wide, duplicates=duplicates)
    labels = posterior.predict(table)
    write_or_print(labels.to_frame(), output, force=force)
    strangers = int((posterior.annotator_ids.get_indexer(table.annotator_ids) < 0).sum())
    say(f"{len(labels):,} items; {strangers} of {table.n_annotators} annotators were not in the run", quiet=quiet)
