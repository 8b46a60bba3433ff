"""`softgold fit`: votes to a run directory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softgold.cli.common import (
    AsJson,
    Force,
    Quiet,
    Votes,
    print_json,
    say,
)
from softgold.cli.fit_study import fit_study, study_lines
from softgold.cli.reading import ReadingOptions, with_reading_options
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.models.base import Fit, FitState, Model, Progress
    from softgold.tables.votes import VoteTable

__all__ = ["register"]

CHECKPOINT_SECONDS = 2.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit")(with_reading_options(fit_command))


def fit_command(
    votes: Votes,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUN", help="Run directory to write.")],
    model: Annotated[
        str, typer.Option("--model", help="two-class, glad (the published model), majority or mean.")
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
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of svi; 0 if left out.")] = None,
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
    device: Annotated[str | None, typer.Option("--device", help="Where svi computes: cpu or cuda.")] = None,
    ability_mean: Annotated[
        float | None, typer.Option("--ability-mean", help="glad: prior mean of the abilities, in place of 0.")
    ] = None,
    ability_scale: Annotated[
        float | None, typer.Option("--ability-scale", help="glad: prior spread of the abilities, in place of 1.")
    ] = None,
    difficulty_scale: Annotated[
        float | None, typer.Option("--difficulty-scale", help="glad: spread of the difficulties, fixed at this.")
    ] = None,
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
    settings = chosen.checked_settings(**{name: value for name, value in given.items() if value is not None})
    if samples is not None:
        check_positive_int(samples, "--samples")
    check_target(output, force=force, directory=True)
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
    if as_json:
        print_json(_answer(fitted, output))
    else:
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
    from softgold.runs.checkpoint import checkpoint_path, claim_checkpoint, load_checkpoint, save_checkpoint

    path, digest = checkpoint_path(output), votes_digest(table)
    if resume and not path.is_file():
        raise UsageError(f"there is no checkpoint {path} to resume from; fit without --resume")
    begin = load_checkpoint(path, model, settings, digest) if resume else None
    claim_checkpoint(path, model, settings, digest, force=force)
    keeper = _Keeper(lambda state: save_checkpoint(path, state, model, settings, digest))
    arguments: dict[str, Any] = {name: getattr(settings, name) for name in model.options}
    try:
        with _progress_bar(quiet=quiet) as show:

            def on_progress(progress: Progress) -> None:
                show(progress)
                keeper.see(progress)

            return fit(table, model=model.name, **arguments, on_progress=on_progress, resume=begin)
    except (KeyboardInterrupt, SystemExit):  # Ctrl-C, or a request to end; the bar is gone, and hides nothing
        if keeper.keep():
            say(f"checkpoint: {path}\ngo on with the same command and --resume")
        raise


@contextmanager
def _progress_bar(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows a stage, its steps and the bound; on a terminal only, and not when quiet."""
    if quiet or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[bound]}"), TimeElapsedColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None, bound="")

        def show(progress: Progress) -> None:
            bound = f"ELBO {progress.elbo:,.1f}" if progress.elbo == progress.elbo else ""
            what = "sweep" if progress.stage == "coordinate" else "step"
            bar.update(task, description=f"{progress.stage}, {what} {progress.step}", bound=bound)

        yield show


class _Keeper:
    """Takes the state of a fit every few seconds, and stores it; the first is stored only if the fit is interrupted."""

    def __init__(self, store: Callable[[FitState], None]) -> None:
        self._store = store
        self._state: FitState | None = None
        self._taken = time.monotonic()

    def see(self, progress: Progress) -> None:
        if self._state is None:
            self._state = progress.snapshot()
        elif time.monotonic() - self._taken > CHECKPOINT_SECONDS:
            self._state = progress.snapshot()
            self._taken = time.monotonic()
            self._store(self._state)

    def keep(self) -> bool:
        """Store the latest state, and say whether there was one."""
        if self._state is None:
            return False
        self._store(self._state)
        return True


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
