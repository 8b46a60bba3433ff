"""`softgold fit` of votes that stay on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgold.cli.checkpoints import with_checkpoints
from softgold.cli.common import print_json, say
from softgold.cli.reading import ReadingOptions
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.models.base import FitState, Model, OnProgress
    from softgold.scale import StreamedFit, StreamPlan


@dataclass(frozen=True)
class StreamOptions:
    """Options of the command that concern writing; each field is an option of the same name."""

    samples: int | None
    csv: bool
    resume: bool
    force: bool
    quiet: bool
    as_json: bool


def plan_stream(source: str, memory: str | None, reading: ReadingOptions) -> StreamPlan | None:
    """Return how to fit votes on disk, or None where they are read into memory."""
    from softgold.scale import choose_plan

    given = (reading.item_col, reading.annotator_col, reading.vote_col)
    names = ("wide", "format", "question", "task_col", "items", "anonymous")
    needed = [name for name in names if getattr(reading, name)]
    plan = choose_plan(source, memory, given)
    if plan is None or not needed:
        return plan
    if not plan.asked:
        return None
    option = needed[0].replace("_", "-")
    raise UsageError(f"--{option} reads votes into memory; it cannot be used with several files or with --memory")


def fit_streamed(
    plan: StreamPlan, model: Model, settings: Any, output: Path, reading: ReadingOptions, options: StreamOptions
) -> None:
    """Fit votes on disk and write the run."""
    from softgold.errors import warn
    from softgold.runs import save_streamed
    from softgold.runs.checkpoint import checkpoint_path, discard_checkpoint
    from softgold.scale import build_votes, check_streamable, workspace

    if options.samples is not None:
        raise UsageError("--samples has no meaning for votes on disk, whose p are exact; leave out --memory")
    check_streamable(model, settings)
    quiet, checkpoint = options.quiet, checkpoint_path(output)
    say(plan.sentence, quiet=quiet)
    with workspace(output) as folder:
        with _rows_bar(plan, quiet=quiet) as advance:
            store = build_votes(plan, folder, positive=reading.positive, duplicates=reading.duplicates, on_rows=advance)
        for message in store.warnings:
            warn(message)

        def work(on_progress: OnProgress, begin: FitState | None) -> StreamedFit:
            from softgold.scale import fit_store

            arguments: dict[str, Any] = {"model": model.name, "settings": settings, "part_votes": plan.part_votes}
            return fit_store(store, **arguments, on_progress=on_progress, resume=begin)

        flags: dict[str, Any] = {"resume": options.resume, "force": options.force, "quiet": quiet}
        fitted = with_checkpoints(work, model, settings, output, store.digest(), votes=store.n_votes, **flags)
        save_streamed(fitted, output, csv=options.csv, source=plan.files.name, force=options.force)
        _answer(fitted, output, options)
    discard_checkpoint(checkpoint)


def _answer(fitted: StreamedFit, output: Path, options: StreamOptions) -> None:
    summary, found = fitted.summary(), fitted.diagnostics
    if options.as_json:
        elbo = found.elbo[-1] if found.elbo else None
        more = {"steps": found.steps, "elbo": elbo, "learned": found.learned, "components": len(found.components)}
        print_json({"run": output, **vars(summary), **more})
        return
    lines = [f"{name}: {text}" for name, text in summary.rows() if name != "warning"]  # warned of already
    say("\n".join([*lines, f"written: {output}"]), quiet=options.quiet)


def _rows_bar(plan: StreamPlan, *, quiet: bool) -> Any:
    """Give a function that advances a bar with rows per second and time left."""
    import sys
    from contextlib import contextmanager

    @contextmanager
    def bar() -> Any:
        if quiet or not sys.stderr.isatty():
            yield lambda rows: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("reading"), BarColumn(), TaskProgressColumn(show_speed=True), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task("", total=plan.votes)
            yield lambda rows: shown.advance(task, rows)

    return bar()
