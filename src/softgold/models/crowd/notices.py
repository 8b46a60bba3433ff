"""Problems found in the votes themselves."""

from __future__ import annotations

from softgold.models.base import ComponentReport, Notice
from softgold.tables.votes import VoteTable

__all__ = ["data_notices"]


def data_notices(votes: VoteTable, components: tuple[ComponentReport, ...]) -> tuple[Notice, ...]:
    """Return what in the votes limits the fit."""
    found = []
    if votes.votes.min() == votes.votes.max():
        word = "positive" if votes.votes.max() else "negative"
        text = f"every vote is {word}: nothing in the table tells annotators or items apart, and p rests on the prior"
        found.append(Notice("data", text))
    alone = [part for part in components if part.annotators == 1]
    if alone:
        text = "a single annotator, whom nothing can check: p there is only as good as the assumption that they help"
        found.append(Notice("orientation", f"{_count(alone, components)} {text}"))
    torn = [part for part in components if part.certainty < 1 and part.annotators > 1]
    if torn:
        least = min(part.certainty for part in torn)
        text = (
            "annotators who divide into camps, and nothing tells which camp is right: p there mixes both readings "
            f"(weight of the likelier one from {least:.2f}) and is drawn towards 0.5"
        )
        found.append(Notice("orientation", f"{_count(torn, components)} {text}"))
    return tuple(found)


def _count(some: list[ComponentReport], components: tuple[ComponentReport, ...]) -> str:
    items = sum(part.items for part in some)
    return f"{len(some)} of {len(components)} connected components ({items} items) have"
