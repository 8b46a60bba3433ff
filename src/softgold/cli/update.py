"""`softgold update`: new votes for a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    AsJson,
    ItemColumn,
    Quiet,
    VoteColumn,
    Votes,
    Wide,
    print_json,
    progress,
    say,
)

if TYPE_CHECKING:
    from softgold.models.base import Progress


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory of 'softgold fit'.")],
    votes: Votes,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    wide: Wide = False,
    duplicates: Annotated[
        Literal["error", "first", "last", "all"],
        typer.Option("--duplicates", help="What to do when somebody voted differently on the same item before."),
    ] = "error",
    cost: Annotated[
        float | None, typer.Option("--cost", metavar="X", help="What one vote costs, for the history.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add votes to a run and fit it again from where it stood.

    The run directory is replaced at once or not at all, with the model and the settings of the run. Its rounds are kept
    in run.json. A calibration in it stays, and is reported as made with older soft labels.
    """
    from softgold.planning import update_run
    from softgold.readers import read_votes

    table = read_votes(votes, item=item_col, annotator=annotator_col, vote=vote_col, wide=wide, duplicates=duplicates)
    with progress("Fitting", None, quiet=quiet) as advance:

        def on_progress(at: Progress) -> None:
            advance(1)

        found = update_run(run, table, duplicates=duplicates, cost_per_vote=cost, source=votes, on_progress=on_progress)
    say(str(found), quiet=quiet)
    if as_json:
        names = ("history", "new_items", "new_annotators", "largest_change")
        print_json({name: getattr(found, name) for name in names} | {"sweeps": found.fit.diagnostics.sweeps})
