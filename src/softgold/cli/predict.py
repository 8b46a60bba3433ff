"""`softgold predict`: soft labels of new votes with the abilities of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softgold.cli.common import Force, OptionalOutput, Quiet, Votes, say, write_or_print
from softgold.cli.reading import ReadingOptions, study_frame, with_reading_options
from softgold.errors import InputError

if TYPE_CHECKING:
    from softgold.models.base import Posterior
    from softgold.tables.study import StudyVotes
    from softgold.tables.votes import VoteTable


@with_reading_options
def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory of 'softgold fit'.")],
    votes: Votes,
    output: OptionalOutput = None,
    *,
    reading: ReadingOptions,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Score new votes with the abilities of a fitted run.

    Items may be known or new; only the votes given here count. Annotators who were not in the run are members of the
    fitted population. A run with several questions or classes needs votes on the same ones.
    """
    from softgold.output import check_target

    if output is not None:
        check_target(output, force=force)
    posteriors, kind = _posteriors(run)
    study = reading.read_study(votes, quiet=quiet)
    tables = _matched(study, posteriors, kind, run)
    labels = {name: posteriors[name].predict(table) for name, table in tables.items()}
    write_or_print(study_frame(labels, study.kind), output, force=force)
    for name, table in tables.items():
        unknown = int((posteriors[name].annotator_ids.get_indexer(table.annotator_ids) < 0).sum())
        told = f"{table.n_items:,} items; {unknown} of {table.n_annotators} annotators were not in the run"
        say(f"{name}: {told}" if name else told, quiet=quiet)


def _posteriors(run: Path) -> tuple[dict[str, Posterior], str]:
    """Return the posterior of each question of the run, and whether it has one, several, or classes."""
    from softgold.output import reading as reading_run
    from softgold.runs import is_study, open_run, open_study

    with reading_run(run):
        if not is_study(run):
            return {"": open_run(run).fit.posterior}, "single"
        study = open_study(run)
        return {name: task.fit.posterior for name, task in study.tasks.items()}, study.kind


def _matched(study: StudyVotes, posteriors: dict[str, Posterior], kind: str, run: Path) -> dict[str, VoteTable]:
    """Return the votes on each question of the run; those on others are an error."""
    import numpy as np

    unknown = [name for name in study.votes if name not in posteriors]
    if unknown:
        known = ", ".join(repr(name) for name in list(posteriors)[:8]) if "" not in posteriors else "a single question"
        given = f"are on {unknown[0]!r}" if unknown[0] else "have no task; name the column with --task-col"
        raise InputError(f"{run} has {known}; the votes {given}")
    tables = dict(study.votes)
    if "classes" in (study.kind, kind):
        first = next(iter(tables.values()))
        nothing = np.zeros(first.n_votes, dtype=np.int8)
        # A class that nobody chose here has votes too: all against it.
        tables = {name: tables.get(name, replace(first, votes=nothing)) for name in posteriors}
    return tables
