"""Which column is which: by the name the caller gave, or by the names that such columns commonly have."""

from __future__ import annotations

from softgold.errors import InputError
from softgold.readers.base import Source, shorten

__all__ = ["ANNOTATOR", "EXPERT", "ITEM", "MODEL", "RATING", "SCORE", "VOTE", "Role", "find_column", "find_optional"]

Role = tuple[str, ...]

# The first name is the canonical one and gives the option its name.
ITEM: Role = ("item", "task", "example", "image", "unit")
ANNOTATOR: Role = ("annotator", "worker", "rater", "user", "subject")
VOTE: Role = ("vote", "label", "response", "value", "answer")
EXPERT: Role = (*ANNOTATOR, "expert")
RATING: Role = ("rating", *VOTE, "score")
MODEL: Role = ("model",)
SCORE: Role = ("score",)


def find_column(source: Source, role: Role, given: str | None = None) -> int:
    """Return the position of the column for a role, or say which columns there are."""
    position = find_optional(source, role, given)
    if position is None:
        raise InputError(
            f"{source.name} has no {role[0]} column: looked for {', '.join(role)} among {_listed(source.columns)}"
            f"{_separator_hint(source)}; name it with --{role[0]}-col ({role[0]}=)"
        )
    return position


def find_optional(source: Source, role: Role, given: str | None = None) -> int | None:
    """Return the position of the column for a role, or None when no column has one of its names.

    Args:
        source: The table.
        role: Names that are accepted, in any case.
        given: The name that the caller chose, which must be there exactly once.
    """
    if given is not None:
        found = [position for position, name in enumerate(source.columns) if name == given]
        if not found:
            raise InputError(f"{source.name} has no column {given!r}; it has {_listed(source.columns)}")
    else:
        found = [position for position, name in enumerate(source.columns) if name.strip().casefold() in role]
    if len(found) > 1:
        names = ", ".join(shorten(source.columns[position]) for position in found)
        raise InputError(
            f"{source.name} has several columns that could be the {role[0]}: {names}; "
            f"choose one with --{role[0]}-col ({role[0]}=)"
        )
    return found[0] if found else None


def _listed(columns: tuple[str, ...], limit: int = 12) -> str:
    names = ", ".join(shorten(name) for name in columns[:limit])
    return names + (f" and {len(columns) - limit} more" if len(columns) > limit else "")


def _separator_hint(source: Source) -> str:
    if len(source.columns) == 1 and any(mark in source.columns[0] for mark in ";\t,|"):
        return " (the cells seem to be separated by another character: CSV has commas, TSV has tabs)"
    return ""
