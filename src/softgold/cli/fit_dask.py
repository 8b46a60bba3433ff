"""`softgold fit --dask`: a fit on the workers of a Dask cluster, written as any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from softgold.cli.checkpoints import sweep_bar
from softgold.cli.reading import ReadingOptions
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.models.base import Fit


def fit_on_cluster(
    votes: str,
    address: str,
    model: str,
    options: Mapping[str, Any],
    reading: ReadingOptions,
    *,
    memory: str | None,
    resume: bool,
    quiet: bool,
) -> Fit:
    """Fit votes on a cluster and bring the result here.

    Args:
        votes: Path, folder or pattern.
        address: Address of the scheduler, or "local".
        model: Name of the model.
        options: Settings of the model.
        reading: How to read the votes.
        memory: What --memory was given.
        resume: Whether --resume was given.
        quiet: Show no progress.
    """
    from softgold.scale.cluster import connect
    from softgold.scale.dask import checked_settings, files_of, fit

    _refuse(reading, votes, memory=memory, resume=resume)
    checked_settings(model, options)
    files_of(votes)  # what can be said before workers are started
    columns: dict[str, Any] = {**reading.columns, "positive": reading.positive, "duplicates": reading.duplicates}
    with connect(address) as client, sweep_bar(None, quiet=quiet) as show:
        return fit(votes, client, model=model, on_progress=show, **columns, **options).to_local()


def _refuse(reading: ReadingOptions, votes: str, *, memory: str | None, resume: bool) -> None:
    """Raise for what a fit on a cluster cannot do."""
    given = {
        "--wide": reading.wide,
        "--format": reading.format,
        "--question": reading.question,
        "--task-col": reading.task_col,
        "--items": reading.items,
        "--anonymous": reading.anonymous,
        "--memory": memory,
        "--resume": resume,
    }
    for name, value in given.items():
        if value:
            raise UsageError(f"{name} does not go with --dask, which fits plain tables with one row per vote in one go")
    if votes == "-":
        raise UsageError("--dask reads files, which every worker opens; standard input is none")
