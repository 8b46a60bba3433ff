"""Finding columns, by the name that the caller gave or by common names."""

from __future__ import annotations

from softgold.errors import InputError
from softgold.readers.base import Source, shorten

Role = tuple[str, ...]

# The first name is the canonical one and gives the option its name.
TASK: Role = ("task",)
ITEM: Role = (
    *("item", "task", "example", "image", "unit"),
    *("item_id", "task_id", "example_id", "image_id", "unit_id", "_unit_id", "hitid", "hit_id"),
)
ANNOTATOR: Role = (
    *("annotator", "worker", "rater", "user", "subject", "performer", "labeler", "labeller"),
    *("annotator_id", "worker_id", "_worker_id", "workerid", "rater_id", "user_id", "performer_id", "labeler_id"),
)
VOTE: Role = ("vote", "label", "response", "value", "answer")
EXPERT: Role = (*ANNOTATOR, "expert", "expert_id")
RATING: Role = ("rating", *VOTE, "score")
MODEL: Role = ("model",)
SCORE: Role = ("score",)


def find_column(source: Source, role: Role, given: str | None = None, *, is_option: bool = True) -> int:
    """Return the position of the column for a role, or say which columns there are.

    Args:
        source: The table.
        role: Names that the column may have.
        given: Name that the caller was given for it.
        is_option: Whether there is an option to give such a name.
    """
    position = find_optional(source, role, given)
    if position is None:
        advice = f"name it with --{role[0]}-col ({role[0]}=)" if is_option else f"call it {role[0]}"
        raise InputError(
            f"{source.name} has no {role[0]} column: looked for {', '.join(_main_names(role))} among "
            f"{listed(source.columns)}{_separator_hint(source)}; {advice}"
        )
    return position


def _main_names(role: Role) -> list[str]:
    return [name for name in role if not name.endswith("id")]


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
            raise InputError(f"{source.name} has no column {given!r}; it has {listed(source.columns)}")
    else:
        found = _without_task([at for at, name in enumerate(source.columns) if has_role(name, role)], source)
    if len(found) > 1:
        names = ", ".join(shorten(source.columns[position]) for position in found)
        raise InputError(
            f"{source.name} has several columns that could be the {role[0]}: {names}; "
            f"choose one with --{role[0]}-col ({role[0]}=)"
        )
    return found[0] if found else None


def has_role(name: str, role: Role) -> bool:
    """Say whether a column of this name can have the role."""
    return name.strip().casefold() in role


def _without_task(found: list[int], source: Source) -> list[int]:
    """Beside another column for the items, a column `task` says which question a vote answers."""
    others = [position for position in found if not has_role(source.columns[position], TASK)]
    return others if len(others) == 1 and len(found) == 2 else found


def find_task(source: Source, item: int) -> int | None:
    """Return the position of the column with the questions of a study, which is not the one with the items."""
    found = [at for at, name in enumerate(source.columns) if has_role(name, TASK) and at != item]
    return found[0] if len(found) == 1 else None


def listed(columns: tuple[str, ...], limit: int = 12) -> str:
    """Return names in quotes, the first dozen of them."""
    names = ", ".join(shorten(name) for name in columns[:limit]) or "none"
    return names + (f" and {len(columns) - limit} more" if len(columns) > limit else "")


def _separator_hint(source: Source) -> str:
    if len(source.columns) == 1 and any(mark in source.columns[0] for mark in ";\t,|"):
        return " (the cells seem to be separated by another character)"
    return ""
