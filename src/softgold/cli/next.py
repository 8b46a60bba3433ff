"""`softgold next`: which votes to buy, what they would change, and which control questions to show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgold.cli.common import AsJson, Force, OptionalOutput, Quiet, Seed, print_json, print_table, say, write_or_print
from softgold.errors import InputError, UsageError

if TYPE_CHECKING:
    from softgold.models.base import Posterior
    from softgold.planning import ControlPlan, Crew, Forecast, VotePlan
    from softgold.runs import Run


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory of 'softgold fit'.")],
    budget: Annotated[int | None, typer.Option("--budget", metavar="N", help="Votes to buy.")] = None,
    output: OptionalOutput = None,
    annotators: Annotated[
        str | None,
        typer.Option(
            "--annotators",
            metavar="FILE",
            help="Who is free: annotator, and optionally capacity. Left out: the run's annotators.",
        ),
    ] = None,
    explore: Annotated[
        float, typer.Option(help="Share of the votes that newcomers get, to learn how able they are.")
    ] = 0.1,
    max_per_item: Annotated[int, typer.Option(help="Most votes on one item in this batch.")] = 3,
    show_forecast: Annotated[bool, typer.Option("--forecast", help="Say what further votes would change.")] = False,
    target_error: Annotated[
        float | None, typer.Option(metavar="E", help="Share of wrong labels to reach; implies --forecast.")
    ] = None,
    ambiguous: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the items to ask an expert about.")
    ] = None,
    controls: Annotated[
        str | None, typer.Option(metavar="ANNOTATOR", help="Choose control questions for this annotator instead.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="Question (or class) of a run with several.")
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say which votes to buy next, and when to stop.

    With --budget, writes one row per item to buy votes on, with suggested annotators. With --annotators FILE, writes
    one row per vote. With --forecast, writes the expected share of wrong labels as a function of further votes. With
    --controls, writes the items that tell most about one annotator.
    """
    from softgold.output import check_target, reading
    from softgold.planning import Forecast, VotePlan, forecast, plan_controls, plan_votes
    from softgold.runs import is_study
    from softgold.runs.limits import check_memory

    wants_forecast = show_forecast or target_error is not None or ambiguous is not None
    if budget is None and not wants_forecast:
        raise UsageError("say how many votes to buy with --budget N, or ask for a forecast with --forecast")
    if controls is not None and (wants_forecast or annotators is not None):
        raise UsageError("--controls goes with --budget alone: it asks about one annotator, not about the campaign")
    for target in (output, ambiguous):
        if target is not None:
            check_target(target, force=force)
    if controls is not None and budget is None:
        raise UsageError("say how many control questions to show with --budget N")
    if not is_study(run):
        check_memory(run, "next")
    with reading(run):  # votes that were fitted on disk are read while they are planned for
        opened = _open(run, task)
        fitted, votes = opened.brief_posterior, opened.votes_in_parts
        crew = None if annotators is None else _crew(annotators, fitted, explore, quiet)
        found: ControlPlan | Forecast | VotePlan
        if controls is not None and budget is not None:
            found = plan_controls(fitted, controls, budget, votes=votes)
        elif wants_forecast:
            found = forecast(fitted, votes=votes, target_error=target_error, annotators=crew, seed=seed)
        else:
            among: dict[str, Any] = {"annotators": crew, "explore": explore, "max_per_item": max_per_item}
            found = plan_votes(fitted, budget or 0, votes=votes, **among)
    if isinstance(found, Forecast):
        _write_forecast(found, budget, output, ambiguous, force, quiet, as_json)
    else:
        _write_plan(found, crew, output, force, quiet, as_json)
        if isinstance(found, VotePlan):
            _describe_annotators(found, budget or 0, crew, quiet)


def _open(path: Path, task: str | None) -> Run:
    """Return a run, or one question of a run with several."""
    from softgold.readers.base import shorten
    from softgold.runs import is_study, open_run, open_study

    if not is_study(path):
        if task is not None:
            raise UsageError(f"{path} has one question; leave out --task")
        return open_run(path)
    runs = open_study(path).tasks
    if task is None or task not in runs:
        names = ", ".join(shorten(name) for name in list(runs)[:12])
        raise UsageError(f"{path} has {len(runs)} questions; choose one with --task: {names}")
    return runs[task]


def _crew(source: str, fitted: Posterior, explore: float, quiet: bool) -> Crew:
    from softgold.planning import read_crew

    crew = read_crew(source)
    strangers = int((crew.places(fitted.annotator_ids) < 0).sum())
    total = len(crew.annotator_ids)
    if strangers == total and explore < 1:
        raise InputError(
            f"none of the {total:,} annotators of {source} has a vote in the run; check their ids, or give --explore 1 "
            "if all of them are newcomers"
        )
    if strangers:
        say(f"{strangers:,} of {total:,} annotators are not in the run and count as newcomers", quiet=quiet)
    return crew


def _write_plan(
    plan: ControlPlan | VotePlan, crew: Crew | None, output: Path | None, force: bool, quiet: bool, as_json: bool
) -> None:
    from softgold.planning import VotePlan

    if output is not None or not as_json:
        table = plan.to_votes() if isinstance(plan, VotePlan) and crew is not None else plan.to_frame()
        write_or_print(table, output, force=force)
    say(str(plan), quiet=quiet)
    if not as_json:
        return
    if isinstance(plan, VotePlan):
        names = ("budget", "n_items", "table_error_before", "table_error_after")
        print_json({**{name: getattr(plan, name) for name in names}, "items": len(plan.item_ids)})
    else:
        print_json(plan)


def _describe_annotators(plan: VotePlan, budget: int, crew: Crew | None, quiet: bool) -> None:
    """Say where the suggested annotators come from, and how many votes none of them can give."""
    if plan.assignment is None:
        say("no annotators are suggested: the votes of the run do not name any", quiet=quiet)
        return
    missing = budget - len(plan.assignment.rows)
    if crew is not None and missing:
        say(f"{missing:,} votes are not placed: whoever is free has voted on these items", quiet=quiet)
    elif missing:
        say(f"for {missing:,} votes no annotator is left: all have voted on these items", quiet=quiet)
    if crew is None:
        say("annotators are suggested from the whole run; --annotators FILE says who is free", quiet=quiet)


def _write_forecast(
    found: Forecast,
    budget: int | None,
    output: Path | None,
    ambiguous: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    from softgold.output import write_tables

    tables = [(output, found.to_frame()), (ambiguous, found.ambiguous.to_frame())]
    write_tables([(path, table) for path, table in tables if path is not None], force=force)
    if output is None and not as_json:
        print_table(found.to_frame())
    say(str(found), quiet=quiet)
    if budget is not None:
        say(_at_budget(found, budget), quiet=quiet)
    if as_json:
        print_json({**vars(found), "ambiguous": list(found.ambiguous.item_ids)})


def _at_budget(found: Forecast, budget: int) -> str:
    placed, even = found.adaptive.error_at(budget), found.uniform.error_at(budget)
    low, high = 100 * placed[1], 100 * placed[2]
    return (
        f"with {budget:,} more votes about {100 * placed[0]:.1f} % are wrong ({low:.1f} - {high:.1f} %), "
        f"{100 * even[0]:.1f} % if spread evenly"
    )
