"""`softgold report`: one HTML page on a run or on label convergence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softgold.cli.common import Force, Quiet, say
from softgold.errors import InputError


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or what convergence wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; report.html in RUN if left out."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page that shows what a run has found.

    The page needs no network. Its sections follow from the files in the directory: fit, calibrate, evaluate and
    convergence each add theirs.
    """
    from softgold.output import check_target

    if not run.is_dir():
        from softgold.readers.base import web_address

        raise InputError(f"there is no run {web_address(run) or run}; 'softgold fit' makes one")
    from softgold.runs import is_study, report_path

    check_target(output or report_path(run), force=force)
    from softgold.report import write_report
    from softgold.runs.limits import check_memory

    if not is_study(run):
        check_memory(run, "report")
    path = write_report(run, output, force=force)
    say(f"written: {path}", quiet=quiet)
