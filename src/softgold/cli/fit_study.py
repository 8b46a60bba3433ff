"""`softgold fit` on several questions or classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgold.cli.common import progress, say
from softgold.errors import InputError, UsageError

if TYPE_CHECKING:
    from softgold.models.base import Fit, Model
    from softgold.tables.study import StudyVotes


def fit_study(
    study: StudyVotes, model: Model, settings: Any, output: Path, *, samples: int | None, source: str, **flags: bool
) -> dict[str, Fit]:
    """Fit every question or class by itself and write one run directory.

    Args:
        study: The votes.
        model: The model.
        settings: Its settings.
        output: Where to write.
        samples: As in `Fit.save`.
        source: File that the votes came from.
        **flags: `resume`, `force` and `quiet`.
    """
    from softgold.models.tasks import fit_tasks
    from softgold.runs import save_study

    if flags["resume"]:
        raise UsageError("--resume goes on with one question; fits of several questions begin anew")
    if study.kind == "single":
        raise UsageError("one question is no study")
    for name, votes in study.votes.items():
        if votes.n_items == 1:
            raise InputError(
                f"the question {name!r} has one item, which teaches nothing: leave it out, or check --task-col"
            )
    noun = "classes" if study.kind == "classes" else "questions"
    say(f"{len(study.votes)} {noun}: {', '.join(list(study.votes)[:12])}", quiet=flags["quiet"])
    options = {name: getattr(settings, name) for name in model.options}
    with progress("fitting", len(study.votes), quiet=flags["quiet"]) as advance:
        fits = fit_tasks(study.votes, model=model.name, on_task=lambda task: advance(1), **options)
    save_study(fits, output, kind=study.kind, samples=samples, source=source, force=flags["force"])
    return fits


def study_lines(fits: dict[str, Fit]) -> list[str]:
    """Return one line per question."""
    width = max(len(name) for name in fits)
    lines = []
    for name, fit in fits.items():
        found = fit.summary()
        wrong = f"{found.expected_wrong:.1%} wrong labels to expect at 0.5"
        lines.append(f"{name:<{width}}  {found.items:,} items, {found.positives:,} positive, {wrong}")
    return lines
