"""`softgold fit`: votes to a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softgold.cli.checkpoints import with_checkpoints
from softgold.cli.common import (
    AsJson,
    Force,
    Quiet,
    Votes,
    print_json,
    say,
)
from softgold.cli.fit_dask import fit_on_cluster
from softgold.cli.fit_streamed import StreamOptions, fit_streamed, plan_stream
from softgold.cli.fit_study import fit_study, study_lines
from softgold.cli.reading import ReadingOptions, with_reading_options

if TYPE_CHECKING:
    from softgold.models.base import Fit, FitState, Model, OnProgress
    from softgold.tables.votes import VoteTable


@with_reading_options
def command(
    votes: Votes,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUN", help="Run directory to write.")],
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="two-class, glad (the published model), majority or mean.")
    ] = "two-class",
    engine: Annotated[
        Literal["svi", "coordinate"] | None,
        typer.Option("--engine", help="svi (Pyro; the default), or coordinate (deterministic, needs no torch)."),
    ] = None,
    prevalence: Annotated[
        str | None,
        typer.Option(
            "--prevalence",
            metavar="able|share|majority|VALUE",
            help="two-class: the share of positive items, by able annotators (default), votes, majorities, or given.",
        ),
    ] = None,
    prior: Annotated[
        Literal["default", "paper"] | None,
        typer.Option("--prior", help="glad: difficulty scale learned (default), or CleanPatrick's vague prior."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, metavar="N", help="Seed of svi; 0 if left out.")] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", metavar="N", help="Cap on steps (svi) or sweeps (coordinate).")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", metavar="N", help="Write p as the share of N posterior draws, not exactly."),
    ] = None,
    init: Annotated[
        Literal["coordinate", "paper"] | None,
        typer.Option("--init", help="glad: start svi at coordinate's solution, or run the published recipe."),
    ] = None,
    batch_items: Annotated[
        int | None,
        typer.Option("--batch-items", metavar="N", help="Items per step of svi, in place of its choice."),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="Where svi computes: cpu or cuda.")
    ] = None,
    ability_mean: Annotated[
        float | None, typer.Option("--ability-mean", help="glad: prior mean of the abilities, in place of 0.")
    ] = None,
    ability_scale: Annotated[
        float | None, typer.Option("--ability-scale", help="glad: prior spread of the abilities, in place of 1.")
    ] = None,
    difficulty_scale: Annotated[
        float | None, typer.Option("--difficulty-scale", help="glad: spread of the difficulties, fixed at this.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Fit on a Dask cluster: tcp://host:port, or local."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Leave votes on disk and hold about this much, such as 2GB."),
    ] = None,
    csv: Annotated[
        bool, typer.Option("--csv", help="Write soft_labels.csv beside soft_labels.parquet, for votes on disk.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside RUN.")] = False,
    *,
    reading: ReadingOptions,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to votes and write a run directory.

    RUN gets soft_labels.csv, annotators.csv, posterior.npz, votes.parquet and run.json, all of them or none. An
    interrupted fit leaves a checkpoint beside RUN; --resume goes on from it.

    Several questions (a task column) and several classes (more than two values) are each fitted by themselves; RUN then
    has a folder for each below tasks/, and tables of all on top.

    VOTES may be a pattern such as 'votes/*.parquet', or a folder of Parquet files. Votes in several files, and votes
    that memory would not hold, stay on disk; RUN then gets soft_labels.parquet.
    """
    from softgold.checks import check_positive_int
    from softgold.models.base import find_model
    from softgold.output import check_target

    given = {
        "engine": engine,
        "prevalence": _share_or_name(prevalence),
        "prior": prior,
        "seed": seed,
        "max_steps": max_steps,
        "init": init,
        "batch_items": batch_items,
        "device": device,
        "ability_mean": ability_mean,
        "ability_scale": ability_scale,
        "difficulty_scale": difficulty_scale,
    }
    chosen = find_model(model)
    options = {name: value for name, value in given.items() if value is not None}
    settings = chosen.checked_settings(**options)
    if samples is not None:
        check_positive_int(samples, "--samples")
    check_target(output, force=force, directory=True)
    if dask is not None:
        fitted = fit_on_cluster(votes, dask, model, options, reading, memory=memory, resume=resume, quiet=quiet)
        fitted.save(output, samples=samples, source=votes, force=force)
        _say_fit(fitted, output, as_json=as_json, quiet=quiet)
        return
    plan = plan_stream(votes, memory, reading)
    if plan is not None:
        streaming = StreamOptions(samples=samples, csv=csv, resume=resume, force=force, quiet=quiet, as_json=as_json)
        fit_streamed(plan, chosen, settings, output, reading, streaming)
        return
    study = reading.read_study(votes, quiet=quiet)
    if study.kind != "single":
        flags = {"resume": resume, "force": force, "quiet": quiet}
        fits = fit_study(study, chosen, settings, output, samples=samples, source=votes, **flags)
        if as_json:
            tasks = {name: fit.summary() for name, fit in fits.items()}
            print_json({"run": output, "kind": study.kind, "tasks": tasks})
        else:
            say("\n".join([*study_lines(fits), f"written: {output}"]), quiet=quiet)
        return
    table = study.only
    fitted = _fit_with_checkpoints(table, chosen, settings, output, resume=resume, force=force, quiet=quiet)
    _finish(fitted, output, samples=samples, source=votes, force=force)
    _say_fit(fitted, output, as_json=as_json, quiet=quiet)


def _say_fit(fitted: Fit, output: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(_answer(fitted, output))
        return
    lines = [line for line in fitted.summary().rows() if line[0] != "warning"]  # warned of already
    say("\n".join(f"{name}: {text}" for name, text in lines), quiet=quiet)
    say(f"written: {output}", quiet=quiet)


def _share_or_name(prevalence: str | None) -> float | str | None:
    """Return a number where one was given."""
    try:
        return None if prevalence is None else float(prevalence)
    except ValueError:
        return prevalence


def _fit_with_checkpoints(
    table: VoteTable, model: Model, settings: Any, output: Path, *, resume: bool, force: bool, quiet: bool
) -> Fit:
    from softgold.models.base import fit
    from softgold.runs import votes_digest

    arguments: dict[str, Any] = {name: getattr(settings, name) for name in model.options}

    def work(on_progress: OnProgress, begin: FitState | None) -> Fit:
        return fit(table, model=model.name, **arguments, on_progress=on_progress, resume=begin)

    flags = {"resume": resume, "force": force, "quiet": quiet}
    return with_checkpoints(work, model, settings, output, votes_digest(table), **flags)


def _finish(fitted: Fit, output: Path, *, samples: int | None, source: str, force: bool) -> None:
    from softgold.runs.checkpoint import checkpoint_path, discard_checkpoint

    checkpoint = checkpoint_path(output)  # before the folder that `.` may stand for is replaced
    fitted.save(output, samples=samples, source=source, force=force)
    discard_checkpoint(checkpoint)


def _answer(fitted: Fit, output: Path) -> dict[str, Any]:
    found = fitted.diagnostics
    return {
        "run": output,
        **vars(fitted.summary()),
        "steps": found.steps,
        "elbo": found.elbo[-1] if found.elbo else None,
        "learned": found.learned,
        "components": len(found.components),
    }
