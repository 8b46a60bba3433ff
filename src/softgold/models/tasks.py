"""Several questions in one study: each is fitted by itself, side by side on the cores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from softgold.errors import SoftgoldWarning, UsageError
from softgold.models.base import DEFAULT_MODEL, Fit, fit
from softgold.tables.votes import VoteTable

# Starting processes takes about three seconds: less work than this is done in this one.
WORTH_PROCESSES = 6.0


def fit_tasks(
    votes: Mapping[str, VoteTable],
    *,
    model: str = DEFAULT_MODEL,
    n_jobs: int | None = None,
    on_task: Callable[[str], None] = lambda task: None,
    **options: Any,
) -> dict[str, Fit]:
    """Fit a model to the votes on each of several questions, with its own abilities and prevalence.

    Args:
        votes: Votes by the name of the question (or class).
        model: As in `softgold.fit`.
        n_jobs: Most processes at a time; the number of cores if left out. The results do not depend on it.
        on_task: Called with the name of each question that is done.
        **options: Settings of the model, as in `softgold.fit`.

    Returns:
        A fit for each question, in the order of `votes`.

    Example:
        >>> from softgold.simulation import simulate
        >>> votes = {name: simulate(n_items=60, n_annotators=12, seed=seed).votes for seed, name in enumerate("ab")}
        >>> list(fit_tasks(votes, engine="coordinate"))
        ['a', 'b']
    """
    if not votes:
        raise UsageError("there is no question to fit")
    names = sorted(votes, key=lambda name: -votes[name].n_votes)
    done = {names[0]: _fit_named(names[0], votes[names[0]], model, options)}
    on_task(names[0])
    rest = names[1:]
    cores = (os.cpu_count() or 1) if n_jobs is None else n_jobs
    expected = done[names[0]].diagnostics.seconds * len(rest)
    found = _one_by_one if cores == 1 or expected < WORTH_PROCESSES else _in_processes
    for name, result in found(rest, votes, model, options, cores):
        done[name] = result
        on_task(name)
    return {name: done[name] for name in votes}


def _one_by_one(names: list[str], votes: Mapping[str, VoteTable], model: str, options: Any, cores: int) -> Any:
    return ((name, _fit_named(name, votes[name], model, options)) for name in names)


def _in_processes(names: list[str], votes: Mapping[str, VoteTable], model: str, options: Any, cores: int) -> Any:
    from joblib import Parallel, delayed

    jobs = (delayed(_fit_silently)(name, votes[name], model, options) for name in names)
    for name, result in Parallel(n_jobs=cores, return_as="generator")(jobs):
        # Warnings of another process are not seen here.
        for notice in result.diagnostics.notices:
            if notice.kind != "reader":
                warnings.warn(f"{name}: {notice.text}", notice.category, stacklevel=2)
        yield name, result


def _fit_named(name: str, votes: VoteTable, model: str, options: Any) -> Fit:
    """Fit, and say in each warning which question it is about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SoftgoldWarning)
        result = fit(votes, model=model, **options)
    for warning in caught:
        warnings.warn(f"{name}: {warning.message}", warning.category, stacklevel=3)
    return result


def _fit_silently(name: str, votes: VoteTable, model: str, options: Any) -> tuple[str, Fit]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SoftgoldWarning)
        return name, fit(votes, model=model, **options)
