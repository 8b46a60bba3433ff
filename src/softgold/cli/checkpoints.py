"""Fits on the command line: a bar that shows how far they are, and checkpoints that they go on from."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from softgold.cli.common import say
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.models.base import FitState, Model, OnProgress, Progress


CHECKPOINT_SECONDS = 2.0

Fitted = TypeVar("Fitted")


def with_checkpoints(
    work: Callable[[OnProgress, FitState | None], Fitted],
    model: Model,
    settings: Any,
    output: Path,
    digest: str,
    *,
    resume: bool,
    force: bool,
    quiet: bool,
    votes: int | None = None,
) -> Fitted:
    """Do a fit that stores its state beside the run every few seconds, or go on from such a state.

    Args:
        work: The fit, given what to call after every step, and the state to go on from.
        model: The model.
        settings: Its settings.
        output: The run directory.
        digest: Digest of the votes.
        resume: Go on from the checkpoint.
        force: Discard the checkpoint of another fit.
        quiet: Draw no bar.
        votes: Number of votes that a sweep goes through, to show its speed.
    """
    from softgold.runs.checkpoint import checkpoint_path, claim_checkpoint, load_checkpoint, save_checkpoint

    path = checkpoint_path(output)
    if resume and not path.is_file():
        raise UsageError(f"there is no checkpoint {path} to resume from; fit without --resume")
    begin = load_checkpoint(path, model, settings, digest) if resume else None
    claim_checkpoint(path, model, settings, digest, force=force)
    keeper = _Keeper(lambda state: save_checkpoint(path, state, model, settings, digest))
    try:
        with sweep_bar(votes, quiet=quiet) as show:

            def on_progress(progress: Progress) -> None:
                show(progress)
                keeper.see(progress)

            return work(on_progress, begin)
    except (KeyboardInterrupt, SystemExit):  # Ctrl-C, or a request to end; the bar is gone, and hides nothing
        if keeper.keep():
            say(f"checkpoint: {path}\ngo on with the same command and --resume")
        raise


@contextmanager
def sweep_bar(votes: int | None, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows a stage, its steps and the bound; on a terminal only, and not when quiet."""
    if quiet or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[bound]}"), TimeElapsedColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, pace = bar.add_task("starting", total=None, bound=""), Pace(votes)

        def show(progress: Progress) -> None:
            bound = f"ELBO {progress.elbo:,.1f}" if progress.elbo == progress.elbo else ""
            what = "sweep" if progress.stage == "coordinate" else "step"
            bound = ", ".join(text for text in (bound, pace.after(progress)) if text)
            bar.update(task, description=f"{progress.stage}, {what} {progress.step}", bound=bound)

        yield show


class Pace:
    """How fast sweeps over a known number of votes are, and how long they will go on.

    The largest change of p falls by about the same factor per sweep, and sweeps end where it is small enough.
    """

    def __init__(self, votes: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._votes, self._clock = votes, clock
        self._before = clock()
        self._changes: list[float] = []

    def after(self, progress: Progress) -> str:
        """Return votes per second and time left, or nothing where they are not known."""
        if self._votes is None or progress.stage != "coordinate":
            return ""
        now = self._clock()
        seconds, self._before = now - self._before, now
        self._changes.append(float(getattr(progress.snapshot(), "change", float("nan"))))
        speed = f"{self._votes / max(seconds, 1e-9):,.0f} votes/s"
        left = self._sweeps_left()
        return speed if left is None else f"{speed}, about {left * seconds:,.0f} s left"

    def _sweeps_left(self) -> float | None:
        import math

        from softgold.models.crowd.coordinate import P_TOLERANCE

        recent = [change for change in self._changes[-6:] if 0 < change < math.inf]
        if len(recent) < 3 or recent[-1] >= recent[0]:
            return None
        rate = math.log(recent[0] / recent[-1]) / (len(recent) - 1)
        return max(1.0, math.log(recent[-1] / P_TOLERANCE) / rate)


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
