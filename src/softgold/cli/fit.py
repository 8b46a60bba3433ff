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
    AnnotatorColumn,
    AsJson,
    Duplicates,
    Force,
    ItemColumn,
    Quiet,
    Seed,
    VoteColumn,
    Votes,
    Wide,
    print_json,
    say,
)
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.glad.fitting import Fit, FitSettings, FitState, Progress
    from softgold.votes import VoteTable

__all__ = ["register"]

CHECKPOINT_SECONDS = 2.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit")(fit_command)


def fit_command(
    votes: Votes,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUN", help="Run directory to write.")],
    engine: Annotated[
        Literal["svi", "coordinate"], typer.Option("--engine", help="Pyro SVI, or the deterministic engine.")
    ] = "svi",
    prior: Annotated[
        Literal["default", "paper"],
        typer.Option("--prior", help="Difficulty scale learned from the votes, or CleanPatrick's vague prior."),
    ] = "default",
    seed: Seed = 0,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", metavar="N", help="Cap on steps (svi) or sweeps (coordinate).")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", metavar="N", help="Write p as the share of N posterior draws, not exactly."),
    ] = None,
    init: Annotated[
        Literal["coordinate", "consensus", "paper"], typer.Option("--init", help="Where svi starts.")
    ] = "coordinate",
    family: Annotated[
        Literal["free", "gaussian"], typer.Option("--family", help="Factors of coordinate: exact, or Normal.")
    ] = "free",
    batch_items: Annotated[
        int | None, typer.Option("--batch-items", metavar="N", help="Items per step of svi; all if left out.")
    ] = None,
    device: Annotated[str, typer.Option("--device", help="Where svi computes: cpu or cuda.")] = "cpu",
    ability_mean: Annotated[
        float | None, typer.Option("--ability-mean", help="Prior mean of the abilities, in place of 0.")
    ] = None,
    ability_scale: Annotated[
        float | None, typer.Option("--ability-scale", help="Prior spread of the abilities, in place of 1.")
    ] = None,
    difficulty_scale: Annotated[
        float | None, typer.Option("--difficulty-scale", help="Prior spread of the difficulties, fixed at this.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside RUN.")] = False,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    wide: Wide = False,
    duplicates: Duplicates = "error",
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit the model to votes and write a run directory.

    RUN gets soft_labels.csv, annotators.csv, posterior.npz, votes.parquet and run.json, all of them or none. An
    interrupted fit leaves a checkpoint beside RUN; --resume goes on from it.
    """
    from softgold.checks import check_positive_int
    from softgold.glad.fitting import FitSettings
    from softgold.glad.priors import resolve_prior
    from softgold.output import check_target
    from softgold.readers import read_votes

    resolved = resolve_prior(
        prior, ability_mean=ability_mean, ability_scale=ability_scale, difficulty_scale=difficulty_scale
    )
    settings = FitSettings(engine, resolved, seed, init, family, max_steps, batch_items, device)
    if samples is not None:
        check_positive_int(samples, "--samples")
    check_target(output, force=force, directory=True)
    table = read_votes(votes, item=item_col, annotator=annotator_col, vote=vote_col, wide=wide, duplicates=duplicates)
    fitted = _fit_with_checkpoints(table, settings, output, resume=resume, quiet=quiet)
    _finish(fitted, table, output, samples=samples, source=votes, force=force)
    if as_json:
        print_json(_answer(fitted, output))
    else:
        say(_summary(fitted, output), quiet=quiet)


def _fit_with_checkpoints(table: VoteTable, settings: FitSettings, output: Path, *, resume: bool, quiet: bool) -> Fit:
    from softgold.glad.checkpoint import checkpoint_path, load_checkpoint, save_checkpoint
    from softgold.glad.fitting import fit
    from softgold.glad.storage import votes_digest

    path, digest = checkpoint_path(output), votes_digest(table)
    if resume and not path.is_file():
        raise UsageError(f"there is no checkpoint {path} to resume from; fit without --resume")
    begin = load_checkpoint(path, settings, digest) if resume else None
    keeper = _Keeper(lambda state: save_checkpoint(path, state, settings, digest))
    arguments: dict[str, Any] = vars(settings)
    try:
        with _progress_bar(quiet=quiet) as show:

            def on_progress(progress: Progress) -> None:
                show(progress)
                keeper.see(progress)

            return fit(table, **arguments, on_progress=on_progress, resume=begin)
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


def _finish(fitted: Fit, table: VoteTable, output: Path, *, samples: int | None, source: str, force: bool) -> None:
    from softgold.glad.checkpoint import checkpoint_path
    from softgold.glad.storage import save_run

    checkpoint = checkpoint_path(output)  # before the folder that `.` may stand for is replaced
    save_run(fitted, table, output, samples=samples, source=source, force=force)
    checkpoint.unlink(missing_ok=True)


def _answer(fitted: Fit, output: Path) -> dict[str, Any]:
    diagnostics, labels = fitted.diagnostics, fitted.posterior.soft_labels()
    return {
        "run": output,
        "engine": diagnostics.engine,
        "items": len(labels),
        "annotators": len(fitted.posterior.annotator_ids),
        "votes": int(labels.n_votes.sum()),
        "steps": diagnostics.steps,
        "converged": diagnostics.converged,
        "reason": diagnostics.reason,
        "elbo": diagnostics.elbo[-1] if diagnostics.elbo else None,
        "difficulty_scale": diagnostics.difficulty_scale,
        "positive_at_half": int((labels.p >= 0.5).sum()),
        "mean_uncertainty": float(labels.uncertainty.mean()),
        "adversarial_annotators": int((fitted.posterior.abilities.p_adversarial > 0.95).sum()),
        "components": len(diagnostics.components),
        "seconds": diagnostics.seconds,
        "warnings": diagnostics.warnings,
    }


def _summary(fitted: Fit, output: Path) -> str:
    answer = _answer(fitted, output)
    size = "{engine}: {items:,} items, {annotators:,} annotators, {votes:,} votes".format(**answer)
    return (
        f"{size}, {answer['steps']} steps in {answer['seconds']:.1f} s ({answer['reason']})\n"
        f"positive at p >= 0.5: {answer['positive_at_half']:,} items; expected share of wrong labels there: "
        f"{answer['mean_uncertainty']:.1%}\n"
        f"annotators who are adversarial with probability above 0.95: {answer['adversarial_annotators']}\n"
        f"written: {output}"
    )
