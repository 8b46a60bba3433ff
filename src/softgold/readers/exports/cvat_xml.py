"""CVAT for images 1.1, an XML file per task or job: tags of images, chosen by the assignee.

The file does not say who drew or chose what; one file per annotator is needed, and its assignee, or else its name,
is the annotator.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from softgold.errors import InputError
from softgold.readers.base import printable
from softgold.readers.contents import Member
from softgold.readers.exports.builder import ExportBuilder, each_file
from softgold.readers.exports.glimpse import Glimpse

QUESTION = "tag"
SHAPES = {"box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton", "track"}


def recognise(files: Sequence[Glimpse]) -> bool:
    """Say whether the files are XML; no other platform here writes that."""
    return bool(files) and all(file.kind == "xml" for file in files)


def _read_file(builder: ExportBuilder, member: Member) -> None:
    root = _parse(member)
    annotator = _annotator(root, member)
    builder.counts["shapes"] += sum(element.tag in SHAPES for element in root.iter())
    for image in root.iter("image"):
        labels = [tag.get("label") for tag in image.iter("tag")]
        item = image.get(builder.options.item or "name") or image.get("id")
        if labels:
            builder.answer(item, annotator, QUESTION, labels)
        else:
            builder.counts["unannotated"] += not any(element.tag in SHAPES for element in image)


def _parse(member: Member) -> ElementTree.Element:
    data = member.read()
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:  # entities can unfold to any size
        raise InputError(f"{member.display}: XML with its own entities is not read")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, RecursionError, LookupError) as error:
        raise InputError(f"{member.display} is not valid XML: {printable(error)}") from None
    if root.tag != "annotations":
        raise InputError(f"{member.display} is not a CVAT file: its root is {root.tag!r}, not 'annotations'")
    return root


def _annotator(root: ElementTree.Element, member: Member) -> str:
    for path in ("meta//assignee/username", "meta//segment/..//assignee/username"):
        name = root.findtext(path)
        if name and name.strip():
            return name.strip()
    return member.stem


read = each_file("CVAT for images", _read_file, named=True)
