"""Problems found in the votes themselves."""

from __future__ import annotations

from softgold.models.base import ComponentReport, Notice


def data_notices(positives: float, n_votes: float, components: tuple[ComponentReport, ...]) -> tuple[Notice, ...]:
    """Return the problems of the votes that limit the fit, given the number of positive votes and of all votes."""
    found = []
    if positives in {0, n_votes}:
        word = "positive" if positives else "negative"
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
