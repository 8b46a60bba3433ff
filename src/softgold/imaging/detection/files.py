"""Reading what raters drew: a long table `image, annotator, category, x, y, w, h`, or COCO JSON with raters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from softgold.checks import check_choice
from softgold.errors import InputError, warn
from softgold.imaging.detection.agreement import check_raters
from softgold.imaging.detection.boxes import DetectionTable, check_boxes
from softgold.imaging.detection.coco import read_coco
from softgold.readers import TableLike
from softgold.readers.base import Source, cell_error
from softgold.readers.cells import code_ids, parse_numbers
from softgold.readers.columns import ANNOTATOR, Role, find_column
from softgold.readers.sources import open_source
from softgold.readers.tasks import SomeRows

FloatArray = NDArray[np.float64]
Looked = Literal["listed", "all"]
Single = Literal["error", "skip"]
Lone = Literal["error", "keep"]

IMAGE: Role = ("image", "item", "task", "example", "unit", "image_id")
CATEGORY: Role = ("category", "label", "class", "class_name", "category_id")
SIDES: tuple[Role, ...] = (("x",), ("y",), ("w", "width"), ("h", "height"))


def read_detections(
    source: TableLike,
    *,
    masks: bool = False,
    looked: Looked = "listed",
    single: Single = "error",
    lone_categories: Lone = "error",
    image: str | None = None,
    annotator: str | None = None,
    category: str | None = None,
) -> DetectionTable:
    """Read what several raters drew on images, and check that they can be compared.

    A table has one row per annotation; a row with image and annotator alone says that this rater looked and saw
    nothing. COCO JSON (`.json`, `.json.gz`) has the rater on each annotation (`annotator`, `rater`, `worker`, `user`
    or `subject`, also with `_id`), and may list on each image who looked (`raters`, `rater_list`, `annotators` or
    `annotator_list`).

    Args:
        source: Path, `-` for standard input, or a data frame.
        masks: Compare the segmentations of COCO JSON, not the boxes.
        looked: Who looked at an image: those who are `listed` (who drew on it, have an empty row, or are named on
            the image), or `all` raters at all images.
        single: What to do with an image at which fewer than two raters looked: an error, or skip it.
        lone_categories: What to do with a category that only one rater ever used, usually another
            spelling: an error, or keep it.
        image: Name of the column of images.
        annotator: Name of the column, or of the key on each annotation, with the rater.
        category: Name of the column of categories.

    Example:
        >>> frame = pd.DataFrame({"image": ["i", "i"], "annotator": ["a", "b"], "category": ["cat", "cat"],
        ...                       "x": [0, 1], "y": [0, 0], "w": [9, 9], "h": [9, 9]})
        >>> table = read_detections(frame)
        >>> len(table), list(table.rater_ids), list(table.category_ids)
        (2, ['a', 'b'], ['cat'])
    """
    check_choice(looked, ("listed", "all"), "looked")
    check_choice(single, ("error", "skip"), "single")
    check_choice(lone_categories, ("error", "keep"), "lone_categories")
    if isinstance(source, str | os.PathLike) and str(source).lower().endswith((".json", ".json.gz")):
        table = read_coco(Path(source), masks=masks, rater_key=annotator)
    elif masks:
        raise InputError("masks are read from COCO JSON (.json); a table has boxes only")
    else:
        table = _read_table(open_source(source), image, annotator, category)
    table = _everyone_looked(table) if looked == "all" else table
    table = _without_singles(table) if single == "skip" else table
    table = _note_flat_boxes(table)
    check_raters(table)
    _check_lone_categories(table, lone_categories)
    for note in table.notes:
        warn(note)
    return table


def _read_table(source: Source, image: str | None, annotator: str | None, category: str | None) -> DetectionTable:
    roles = ((IMAGE, image), (ANNOTATOR, annotator), (CATEGORY, category), *((side, None) for side in SIDES))
    positions = [find_column(source, role, given) for role, given in roles]
    cells = source.load(positions)
    images, raters = (code_ids(source, positions[place], cells[place]) for place in (0, 1))
    boxes, drawn = _read_boxes(source, positions[3:], cells[3:])
    rows = np.flatnonzero(drawn)
    image_ids, rater_ids = images.index(), raters.index()
    looks = zip(image_ids.take(images.codes[~drawn]), rater_ids.take(raters.codes[~drawn]), strict=True)
    return DetectionTable.from_columns(
        image=image_ids.take(images.codes[rows]),
        rater=rater_ids.take(raters.codes[rows]),
        category=_read_categories(SomeRows(source, rows), positions[2], cells[2].take(pa.array(rows))),
        boxes=boxes[rows],
        looks=list(looks),
        image_ids=image_ids,
    )


def _read_boxes(
    source: Source, positions: Sequence[int], cells: Sequence[pa.ChunkedArray]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Boxes, shape (n, 4), and whether each row has one, shape (n,)."""
    sides = [parse_numbers(source, at, column, "a side") for at, column in zip(positions, cells, strict=True)]
    boxes = np.column_stack(sides)
    absent = np.isnan(boxes)
    drawn = np.asarray(~absent.all(axis=1))
    unfinished = drawn & absent.any(axis=1)
    if unfinished.any():
        row = int(np.argmax(unfinished))
        column = positions[int(np.argmax(absent[row]))]
        raise cell_error(
            source, row, column, "a box needs all of x, y, w, h; leave all of them empty for 'saw nothing'"
        )
    rows = np.flatnonzero(drawn)
    check_boxes(boxes[rows], lambda row: f"{source.name}, {source.where(int(rows[row]))}")
    return boxes, drawn


def _read_categories(source: Source, column: int, cells: pa.ChunkedArray) -> pd.Index[str]:
    if not len(cells):
        return pd.Index([], dtype="str")
    named = code_ids(source, column, cells)
    return named.index().take(named.codes)


def _everyone_looked(table: DetectionTable) -> DetectionTable:
    n_raters = len(table.rater_ids)
    return replace(
        table,
        looked_image=np.repeat(np.arange(table.n_images), n_raters),
        looked_rater=np.tile(np.arange(n_raters), table.n_images),
    )


def _without_singles(table: DetectionTable) -> DetectionTable:
    keep = table.raters_per_image >= 2
    n_left_out = int((~keep).sum())
    if not n_left_out:
        return table
    if not keep.any():
        raise InputError(f"no image was seen by two raters, of {table.n_images}; agreement needs two raters per image")
    noun = "image was" if n_left_out == 1 else "images were"
    note = f"{n_left_out} {noun} seen by fewer than two raters and left out"
    kept = table.take_images(keep)
    return replace(kept, notes=(*kept.notes, note))


def _check_lone_categories(table: DetectionTable, rule: Lone) -> None:
    used = np.unique(np.column_stack([table.category, table.rater]), axis=0)
    raters_of = np.bincount(used[:, 0], minlength=table.n_categories)
    lone = np.flatnonzero(raters_of == 1)
    if rule == "keep" or not len(lone):
        return
    name = table.category_names[lone[0]]
    who = table.rater_ids[used[used[:, 0] == lone[0], 1][0]]
    others = f" (and {len(lone) - 1} more such categories)" if len(lone) > 1 else ""
    raise InputError(
        f"category {name!r} was used by one rater only, {who!r}{others}: if it is another spelling, correct it; if the "
        "others really never used it, say so (--lone-categories keep), and it counts as a disagreement"
    )


def _note_flat_boxes(table: DetectionTable) -> DetectionTable:
    flat = int((table.boxes[:, 2:] == 0).any(axis=1).sum())
    noun = "annotation has" if flat == 1 else "annotations have"
    note = f"{flat} {noun} no area and can match nothing"
    return replace(table, notes=(*table.notes, note)) if flat else table
