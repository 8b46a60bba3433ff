"""A look at the start of a file: its first JSON value, or the header of its table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from softgold.errors import InputError
from softgold.readers.contents import Content, Member
from softgold.readers.jsonstream import looks_like_json, open_json
from softgold.readers.rows import read_header

# A folder of worker responses has one file per item; the first ones tell what they all are.
MOST_LOOKED_AT = 32
Kind = Literal["json", "table", "parquet", "xml", "other"]


@dataclass(frozen=True)
class Glimpse:
    """What the start of a file shows.

    Attributes:
        name: Name of the file, with the folders above it.
        kind: What it is.
        first: The first JSON object of an array, of lines, or the only one; empty if it is no object.
        is_array: The JSON is one array.
        header: Names of the columns of a table; column types of a Parquet file are in `types`.
        types: Type of each column of a Parquet file, as text.
    """

    name: str
    kind: Kind
    first: dict[str, Any] = field(default_factory=dict, repr=False)
    is_array: bool = False
    header: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


def look_into(content: Content) -> Sequence[Glimpse]:
    """Look at the first files of the content."""
    return [look_at(member) for member in content.members[:MOST_LOOKED_AT]]


def look_at(member: Member) -> Glimpse:
    """Look at the start of one file; a damaged file shows nothing."""
    head = member.head
    if head.startswith(b"PAR1"):
        return _look_at_parquet(member)
    if _is_xml(head):
        return Glimpse(member.name, "xml")
    if b"\0" in head[:4096]:
        return Glimpse(member.name, "other")
    if looks_like_json(head):
        seen = _look_at_json(member)
        if seen is not None:
            return seen
    return Glimpse(member.name, "table", header=_header(member))


def _is_xml(head: bytes) -> bool:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith((b"<?xml", b"<annotations"))


def _look_at_json(member: Member) -> Glimpse | None:
    try:
        values = open_json(member)
        with closing(iter(values)) as start:  # type: ignore[type-var]
            first = next(islice(start, 1), None)
    except InputError:
        return None
    return Glimpse(member.name, "json", first if isinstance(first, dict) else {}, values.is_array)


def _header(member: Member) -> tuple[str, ...]:
    try:
        return read_header(member)
    except InputError:
        return ()


def _look_at_parquet(member: Member) -> Glimpse:
    import pyarrow as pa
    import pyarrow.parquet as arrow_parquet

    try:
        with member.open() as stream:
            schema = arrow_parquet.read_schema(member.path or pa.BufferReader(stream.read()))
            return Glimpse(
                member.name, "parquet", header=tuple(schema.names), types=tuple(str(kind) for kind in schema.types)
            )
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return Glimpse(member.name, "other")
