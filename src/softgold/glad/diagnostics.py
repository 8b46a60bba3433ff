"""How a fit went, apart from what it says."""

from __future__ import annotations

from dataclasses import dataclass

from softgold.glad.orientation import ComponentReport
from softgold.votes import VoteTable

__all__ = ["Diagnostics", "data_warnings"]


@dataclass(frozen=True)
class Diagnostics:
    """How a fit went.

    Attributes:
        engine: "svi" or "coordinate".
        elbo: Evidence lower bound after each step or sweep (for `svi`, an estimate from one draw).
        steps: Steps of `svi`, sweeps of `coordinate`.
        sweeps: Sweeps of the coordinate engine, also where they were only the start of `svi`.
        seconds: Time that the fit took.
        converged: Whether it stopped because it had settled.
        reason: Why it stopped, in words.
        difficulty_scale: Scale of the difficulties in force, learned or given.
        components: Connected components of the vote graph and what was done about their sign.
        warnings: What the owner of the data should know, one sentence each.
    """

    engine: str
    elbo: tuple[float, ...]
    steps: int
    sweeps: int
    seconds: float
    converged: bool
    reason: str
    difficulty_scale: float
    components: tuple[ComponentReport, ...]
    warnings: tuple[str, ...]


def data_warnings(votes: VoteTable, components: tuple[ComponentReport, ...]) -> tuple[str, ...]:
    """Return what in the votes themselves limits the fit."""
    found = []
    if votes.votes.min() == votes.votes.max():
        word = "positive" if votes.votes.max() else "negative"
        found.append(
            f"every vote is {word}: nothing in the table tells annotators or items apart, and p rests on the prior"
        )
    unsure = [part for part in components if part.orientation == "undetermined"]
    alone = [part for part in unsure if part.annotators == 1]
    if alone:
        found.append(
            f"{_count(alone, components)} a single annotator, whom nothing can check: whether they are helpful is not "
            "in the votes, and p there is only as good as that assumption"
        )
    torn = [part for part in unsure if part.annotators > 1]
    if torn:
        found.append(
            f"{_count(torn, components)} votes too few or too divided to tell which annotators are helpful; p there "
            "mixes both ways of reading them, and is drawn towards 0.5"
        )
    return tuple(found)


def _count(some: list[ComponentReport], components: tuple[ComponentReport, ...]) -> str:
    items = sum(part.items for part in some)
    return f"{len(some)} of {len(components)} connected components ({items} items) have"
