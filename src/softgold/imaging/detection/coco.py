"""COCO JSON in which each annotation says who drew it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.imaging.detection.boxes import DetectionTable, check_boxes
from softgold.readers.contents import open_content

FloatArray = NDArray[np.float64]
Entry = Mapping[str, Any]

RATER_KEYS = tuple(
    f"{name}{end}" for name in ("annotator", "rater", "worker", "user", "subject") for end in ("", "_id")
)
# Run lengths are counted in 32 bits.
MOST_PIXELS = 2**31 - 1
LOOKED_KEYS = ("raters", "rater_list", "annotators", "annotator_list")


def read_coco(path: Path, *, masks: bool = False, rater_key: str | None = None) -> DetectionTable:
    """Read the boxes or masks of a COCO file, images in ascending order of their ids, as in pycocotools.

    Crowd regions are left out: a region covers many objects, so that one-to-one matching does not apply.

    Args:
        path: A `.json` or `.json.gz` file.
        masks: Read the segmentations, not the boxes.
        rater_key: Key on each annotation that names the rater; by default whichever of `RATER_KEYS` is there.
    """
    name = str(path)
    data = _load(path)
    images = _by_id(_entries(data, "images", name), f"{name}, images")
    categories = _by_id(_entries(data, "categories", name), f"{name}, categories") if "categories" in data else None
    everything = _entries(data, "annotations", name)
    drawn = [(place, entry) for place, entry in enumerate(everything) if not entry.get("iscrowd")]
    where = [_where(name, place, entry) for place, entry in drawn]
    entries = [entry for _, entry in drawn]
    key = rater_key or _find_rater_key(entries, name)
    runs = [_mask(entry, images, at) for entry, at in zip(entries, where, strict=True)] if masks else None
    order = sorted(images, key=_as_number_or_text)
    n_crowds = len(everything) - len(drawn)
    return DetectionTable.from_columns(
        image=[_known(entry, "image_id", images, at) for entry, at in zip(entries, where, strict=True)],
        rater=[_text(entry, key, at) for entry, at in zip(entries, where, strict=True)],
        category=[_known(entry, "category_id", categories, at) for entry, at in zip(entries, where, strict=True)],
        boxes=_boxes(entries, where) if runs is None else _mask_boxes(runs, where),
        looks=[(image, rater) for image in order for rater in _who_looked(images[image], f"{name}, image {image!r}")],
        image_ids=pd.Index(order, dtype="str"),
        category_names={key: str(entry.get("name", key)) for key, entry in (categories or {}).items()},
        masks=runs,
        notes=[f"{n_crowds} crowd regions were left out"] if n_crowds else [],
    )


def _load(path: Path) -> Mapping[str, Any]:
    try:
        content = open_content(path)
        if content.several:
            raise InputError(f"{path} is not COCO JSON: it holds {len(content.members)} files")
        data = json.loads(content.members[0].read())
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or an integer of thousands of digits
        raise InputError(f"{path} is not JSON that can be read: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} is not COCO JSON: it must be an object with 'images' and 'annotations'")
    return data


def _entries(data: Mapping[str, Any], key: str, name: str) -> list[Entry]:
    entries = data.get(key)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{name} is not COCO JSON: it needs a list of objects under {key!r}")
    return entries


def _by_id(entries: Sequence[Entry], where: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for place, entry in enumerate(entries):
        key = _text(entry, "id", f"{where}[{place}]")
        if key in found:
            raise InputError(f"{where}[{place}]: the id {key!r} is duplicated")
        found[key] = entry
    return found


def _find_rater_key(entries: Sequence[Entry], name: str) -> str:
    found = [key for key in RATER_KEYS if any(key in entry for entry in entries)]
    if len(found) == 1 or (not found and not entries):
        return found[0] if found else RATER_KEYS[0]
    if not found:
        raise InputError(
            f"{name}: no annotation says who drew it; each needs one of {', '.join(RATER_KEYS)}, or a key that is "
            "named with --annotator-col"
        )
    raise InputError(
        f"{name}: annotations have several keys for the rater, {', '.join(found)}; name one with --annotator-col"
    )


def _where(name: str, place: int, entry: Entry) -> str:
    number = f" (id {entry['id']})" if "id" in entry else ""
    return f"{name}, annotations[{place}]{number}"


def _text(entry: Entry, key: str, where: str) -> str:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise InputError(f"{where}: {key!r} must be a text or a number, got {value!r}")
    return str(value)


def _known(entry: Entry, key: str, known: Mapping[str, Entry] | None, where: str) -> str:
    value = _text(entry, key, where)
    if known is not None and value not in known:
        raise InputError(f"{where}: {key} {value!r} is not listed in the file")
    return value


def _boxes(entries: Sequence[Entry], where: Sequence[str]) -> FloatArray:
    boxes = np.empty((len(entries), 4))
    for row, entry in enumerate(entries):
        box = entry.get("bbox")
        numbers = isinstance(box, list) and all(isinstance(side, int | float) for side in box)
        if not numbers or len(box or ()) != 4:
            raise InputError(f"{where[row]}: 'bbox' must be four numbers x, y, w, h, got {box!r}")
        try:
            boxes[row] = box
        except OverflowError:
            raise InputError(f"{where[row]}: 'bbox' has a number that is too large") from None
    check_boxes(boxes, lambda row: where[row])
    return boxes


def _mask(entry: Entry, images: Mapping[str, Entry], where: str) -> dict[str, Any]:
    from softgold.imaging.detection.masks import to_rle

    image = images[_known(entry, "image_id", images, where)]
    height, width = (_side(image, key, where) for key in ("height", "width"))
    if height * width > MOST_PIXELS:
        raise InputError(
            f"{where}: an image of {height} by {width} has more pixels than masks can have ({MOST_PIXELS:,})"
        )
    if "segmentation" not in entry:
        raise InputError(f"{where}: there is no 'segmentation'; leave out --masks to compare boxes")
    return to_rle(entry["segmentation"], height, width, where)


def _side(image: Entry, key: str, where: str) -> int:
    value = image.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MOST_PIXELS or value % 1:
        raise InputError(f"{where}: masks need the {key!r} of the image in pixels, got {_shown(value)}")
    return int(value)


def _shown(value: object) -> str:
    """Return a value for a message: Python refuses to print integers of more than some thousand digits."""
    try:
        return repr(value)
    except ValueError:
        return "an integer of thousands of digits"


def _mask_boxes(masks: Sequence[dict[str, Any]], where: Sequence[str]) -> FloatArray:
    from softgold.imaging.detection.masks import mask_area, mask_box

    boxes, areas = mask_box(masks), mask_area(masks)
    for row, (box, area) in enumerate(zip(boxes, areas, strict=True)):
        height, width = masks[row]["size"]
        if area > box[2] * box[3] or box[0] + box[2] > width or box[1] + box[3] > height:
            raise InputError(f"{where[row]}: the run lengths of the mask do not fit the image")
    return boxes


def _who_looked(image: Entry, where: str) -> list[str]:
    lists = [image[key] for key in LOOKED_KEYS if key in image]
    if not all(isinstance(raters, list) for raters in lists):
        raise InputError(f"{where}: who looked must be a list of rater ids")
    return [_text({"rater": rater}, "rater", where) for raters in lists for rater in raters]


def _as_number_or_text(text: str) -> tuple[int, int, str]:
    """Sort numbers by length, then by digits: Python does not parse integers of thousands of digits."""
    digits = text.lstrip("0")
    return (0, len(digits), digits) if text.isascii() and text.isdecimal() else (1, 0, text)
