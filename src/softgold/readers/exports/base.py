"""The contract of a platform's reader: recognise a file by its content, and return an `Export`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from softgold.readers.contents import Content
from softgold.readers.exports.export import Export
from softgold.readers.exports.glimpse import Glimpse


@dataclass(frozen=True)
class ReadOptions:
    """What the user chose.

    Attributes:
        item: Field of the export that names the items, in place of the platform's own id.
        question: The one question to read.
        keep_names: Leave names and e-mail addresses of annotators as they are.
    """

    item: str | None = None
    question: str | None = None
    keep_names: bool = False


@dataclass(frozen=True)
class ExportFormat:
    """A platform's export.

    Attributes:
        name: As on the command line.
        title: As in messages.
        recognise: Says whether the first records of the files are of this format.
        read: Reads the files.
        whole_folder: Several files belong together; of another format, each file of a folder is an export of its own.
    """

    name: str
    title: str
    recognise: Callable[[Sequence[Glimpse]], bool]
    read: Callable[[Content, ReadOptions], Export]
    whole_folder: bool = False


def any_file(is_one: Callable[[Glimpse], object]) -> Callable[[Sequence[Glimpse]], bool]:
    """Return the `recognise` of a format that one of the files shows."""
    return lambda files: any(is_one(file) for file in files)


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object of JSON, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return an array of JSON, or an empty one for anything else."""
    return value if isinstance(value, list) else []
