"""Every format by name, and which of them a file is."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from softgold.errors import InputError, UsageError
from softgold.readers.contents import Content
from softgold.readers.exports.glimpse import look_at, look_into

if TYPE_CHECKING:
    from softgold.readers.exports.base import ExportFormat, ReadOptions
    from softgold.readers.exports.export import Export

# A module of this package per name, with a dash for an underscore; `table` is any table of votes.
FORMAT_NAMES = (
    *("label-studio", "prodigy", "labelbox", "cvat", "potato", "doccano", "toloka"),
    *("mturk", "ground-truth", "appen", "argilla", "lewidi", "peerannot"),
)
TABLE = "table"


def find_format(name: str) -> ExportFormat | None:
    """Return a format by its name; None for `table`."""
    if name == TABLE:
        return None
    if name not in FORMAT_NAMES:
        raise UsageError(f"there is no format {name!r}; choose one of {', '.join((*FORMAT_NAMES, TABLE))}")
    module = import_module(f"softgold.readers.exports.{name.replace('-', '_')}")
    found: ExportFormat = module.FORMAT
    return found


def recognise(content: Content) -> ExportFormat | None:
    """Return the format that the content has, or None for a plain table; two that fit are an error."""
    files = look_into(content)
    formats = [found for name in FORMAT_NAMES if (found := find_format(name)) is not None]
    fitting = [found for found in formats if found.recognise(files)]
    if len(fitting) > 1:
        names = ", ".join(found.name for found in fitting)
        raise InputError(f"{content.name} could be an export of several tools; choose one with --format: {names}")
    return fitting[0] if fitting else None


def read_as(found: ExportFormat, content: Content, options: ReadOptions) -> Export:
    """Read content in a format; other files of a folder, such as a README, are left out."""
    if content.several and not found.whole_folder:
        members = tuple(member for member in content.members if found.recognise([look_at(member)]))
        content = replace(content, members=members or content.members)
    return found.read(content, options)
