"""The table of boxes and masks that several raters drew, and how much any two of them overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.imaging.detection.ranges import expand_ranges, split_by_size

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Rle = dict[str, Any]

_CHUNK_PAIRS = 4_000_000


@dataclass(frozen=True, eq=False)
class DetectionTable:
    """N annotations that R raters drew on I images, sorted by image and rater, in source order within those.

    Attributes:
        image: Image of each annotation, shape (N,).
        rater: Rater of each annotation, shape (N,).
        category: Category of each annotation, shape (N,).
        boxes: x, y, width, height, shape (N, 4).
        image_ids: Ids as text, length I.
        rater_ids: Ids as text, sorted, length R: raters are linked in this order.
        category_ids: Ids as text, length C.
        category_names: What to call the categories, length C.
        looked_image: Image of each look, shape (L,), sorted by image and rater. A look is a rater who examined an
            image, whether or not anything was drawn.
        looked_rater: Rater of each look, shape (L,).
        masks: Compressed run lengths of each annotation, as in pycocotools; None for boxes.
        notes: What the reader had to decide, one sentence each.

    Example:
        >>> table = DetectionTable.from_boxes({"x": {"ann": [(1, [0, 0, 10, 10])], "bob": []}})
        >>> len(table), table.n_images, table.raters_per_image.tolist()
        (1, 1, [2])
    """

    image: IntArray
    rater: IntArray
    category: IntArray
    boxes: FloatArray
    image_ids: pd.Index[str]
    rater_ids: pd.Index[str]
    category_ids: pd.Index[str]
    category_names: pd.Index[str]
    looked_image: IntArray
    looked_rater: IntArray
    masks: tuple[Rle, ...] | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def from_boxes(cls, images: Mapping[Any, Mapping[Any, Sequence[tuple[Any, Sequence[float]]]]]) -> DetectionTable:
        """Build a table from `{image: {rater: [(category, [x, y, w, h]), ...]}}`.

        A rater with an empty list looked and saw nothing; a rater who is not named did not look.
        """
        looks = [(str(image), str(rater)) for image, raters in images.items() for rater in raters]
        rows = [
            (str(image), str(rater), str(category), box)
            for image, raters in images.items()
            for rater, drawn in raters.items()
            for category, box in drawn
        ]
        return cls.from_columns(
            image=[row[0] for row in rows],
            rater=[row[1] for row in rows],
            category=[row[2] for row in rows],
            boxes=np.array([row[3] for row in rows], dtype=np.float64).reshape(len(rows), 4),
            looks=looks,
            image_ids=pd.Index([str(image) for image in images], dtype="str"),
        )

    @classmethod
    def from_columns(
        cls,
        *,
        image: Sequence[str] | pd.Index[str],
        rater: Sequence[str] | pd.Index[str],
        category: Sequence[str] | pd.Index[str],
        boxes: FloatArray,
        looks: Sequence[tuple[str, str]] = (),
        image_ids: pd.Index[str] | None = None,
        category_names: Mapping[str, str] | None = None,
        masks: Sequence[Rle] | None = None,
        notes: Sequence[str] = (),
    ) -> DetectionTable:
        """Build a table from one entry per annotation, and check the boxes; who drew on an image also looked at it.

        Args:
            image: Image ids.
            rater: Rater ids.
            category: Category ids.
            boxes: x, y, width, height, shape (N, 4).
            looks: Further (image, rater) pairs: raters who looked and may have drawn nothing.
            image_ids: All images in their order; by default those of the annotations, then of the looks.
            category_names: Names of category ids, where they differ.
            masks: Run lengths of each annotation.
            notes: What the reader had to decide.
        """
        check_boxes(boxes)
        seen = pd.Index([look[0] for look in looks], dtype="str"), pd.Index([look[1] for look in looks], dtype="str")
        looked = [pd.Index(list(ids), dtype="str").append(more) for ids, more in zip((image, rater), seen, strict=True)]
        images = looked[0].unique() if image_ids is None else image_ids
        raters, categories = sort_ids(looked[1].unique()), sort_ids(set(category))
        look_codes = np.unique(_codes(images, looked[0]) * max(len(raters), 1) + _codes(raters, looked[1]))
        rows = _codes(images, image), _codes(raters, rater), _codes(categories, category)
        order = np.lexsort((rows[1], rows[0]))
        names = category_names or {}
        return cls(
            image=rows[0][order],
            rater=rows[1][order],
            category=rows[2][order],
            boxes=boxes[order],
            image_ids=images,
            rater_ids=raters,
            category_ids=categories,
            category_names=pd.Index([names.get(name, name) for name in categories], dtype="str"),
            looked_image=look_codes // max(len(raters), 1),
            looked_rater=look_codes % max(len(raters), 1),
            masks=None if masks is None else tuple(masks[row] for row in order),
            notes=tuple(notes),
        )

    def __len__(self) -> int:
        return len(self.image)

    @property
    def n_images(self) -> int:
        """Number of images I."""
        return len(self.image_ids)

    @property
    def n_categories(self) -> int:
        """Number of categories C."""
        return len(self.category_ids)

    @cached_property
    def raters_per_image(self) -> IntArray:
        """How many raters looked at each image, shape (I,)."""
        return np.bincount(self.looked_image, minlength=self.n_images).astype(np.int64)

    @cached_property
    def slot(self) -> IntArray:
        """Place of each annotation's rater among the raters of its image, in sorted order, shape (N,)."""
        first_look = np.cumsum(self.raters_per_image) - self.raters_per_image
        place = np.arange(len(self.looked_image)) - first_look[self.looked_image]
        n_raters = len(self.rater_ids)
        looks = self.looked_image * n_raters + self.looked_rater
        return place[np.searchsorted(looks, self.image * n_raters + self.rater)]

    def take_images(self, keep: NDArray[np.bool_]) -> DetectionTable:
        """Return the table of the images marked in `keep`, shape (I,), all raters and categories still known."""
        return self.take_rows(rows=keep[self.image], looks=keep[self.looked_image], keep=keep)

    def take_raters(self, *raters: int) -> DetectionTable:
        """Return what these raters (codes) drew, on the images at which all of them looked."""
        looks = np.isin(self.looked_rater, raters)
        keep = np.bincount(self.looked_image[looks], minlength=self.n_images) == len(raters)
        rows = np.isin(self.rater, raters) & keep[self.image]
        return self.take_rows(rows=rows, looks=looks & keep[self.looked_image], keep=keep)

    def take_rows(
        self, *, rows: NDArray[np.bool_], looks: NDArray[np.bool_], keep: NDArray[np.bool_]
    ) -> DetectionTable:
        """Return the table of the marked annotations (N,), looks (L,) and images (I,)."""
        new_code = np.cumsum(keep) - 1
        return DetectionTable(
            image=new_code[self.image[rows]],
            rater=self.rater[rows],
            category=self.category[rows],
            boxes=self.boxes[rows],
            image_ids=self.image_ids[keep],
            rater_ids=self.rater_ids,
            category_ids=self.category_ids,
            category_names=self.category_names,
            looked_image=new_code[self.looked_image[looks]],
            looked_rater=self.looked_rater[looks],
            masks=None if self.masks is None else tuple(self.masks[row] for row in np.flatnonzero(rows)),
            notes=self.notes,
        )


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Pairs of annotations of two raters of one image that overlap, sorted by first, then second.

    Attributes:
        first: Row of the rater who comes first, shape (E,).
        second: Row of the rater who comes later, shape (E,).
        iou: Intersection over union, above 0, shape (E,).
    """

    first: IntArray
    second: IntArray
    iou: FloatArray

    def where(self, keep: NDArray[np.bool_]) -> Overlaps:
        """Return the pairs marked in `keep`, shape (E,)."""
        return Overlaps(self.first[keep], self.second[keep], self.iou[keep])


def find_overlaps(table: DetectionTable) -> Overlaps:
    """Return every overlapping pair of annotations that two raters drew on one image.

    >>> drawn = {"ann": [(1, [0, 0, 10, 10])], "bob": [(1, [90, 90, 5, 5]), (1, [0, 0, 10, 5])]}
    >>> pairs = find_overlaps(DetectionTable.from_boxes({"x": drawn}))
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.iou.tolist()
    ([0], [2], [0.5])
    """
    if table.masks is not None:
        from softgold.imaging.detection.masks import mask_overlaps

        return Overlaps(*mask_overlaps(table.masks, table.image, table.rater))
    partners, start = _later_partners(table)
    parts = []
    for rows in split_by_size(partners, _CHUNK_PAIRS):
        first, second = expand_ranges(rows, start, partners)
        iou = box_iou(table.boxes[first], table.boxes[second])
        hit = iou > 0
        parts.append((first[hit], second[hit], iou[hit]))
    if not parts:
        return Overlaps(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Overlaps(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def box_iou(a: FloatArray, b: FloatArray) -> FloatArray:
    """Intersection over union of boxes `x, y, w, h`, row by row, shape (E,); 0 where nothing overlaps.

    The order of operations is that of pycocotools, so that a threshold cuts at the same boxes.

    >>> box_iou(np.array([[0.0, 0, 10, 10]]), np.array([[5.0, 0, 10, 10]])).round(4).tolist()
    [0.3333]
    """
    low = np.maximum(a[:, :2], b[:, :2])
    high = np.minimum(a[:, 2:] + a[:, :2], b[:, 2:] + b[:, :2])
    side = np.maximum(high - low, 0.0)
    shared = side[:, 0] * side[:, 1]
    union = a[:, 2] * a[:, 3] + b[:, 2] * b[:, 3] - shared
    iou: FloatArray = np.divide(shared, union, out=np.zeros(len(a)), where=shared > 0)
    return iou


def check_boxes(boxes: FloatArray, where: Callable[[int], str] | None = None) -> None:
    """Raise unless every box is finite with a width and height of at least 0; `where` says where each came from."""
    bad = ~np.isfinite(boxes).all(axis=1) | (boxes[:, 2:] < 0).any(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        place = f"annotation {row + 1}" if where is None else where(row)
        rule = "a width and height of at least 0" if np.isfinite(boxes[row]).all() else "four finite numbers"
        raise InputError(f"a box x, y, w, h needs {rule}, got {boxes[row].tolist()} ({place})")


def sort_ids(ids: Any) -> pd.Index[str]:
    """Return ids sorted as numbers if all of them are whole numbers, else as text."""
    texts = [str(name) for name in ids]
    numeric = all(text.isdecimal() for text in texts)
    return pd.Index(sorted(texts, key=lambda text: (int(text), text) if numeric else (0, text)), dtype="str")


def _codes(ids: pd.Index[str], values: Any) -> IntArray:
    return ids.get_indexer(pd.Index(values, dtype="str")).astype(np.int64)


def _later_partners(table: DetectionTable) -> tuple[IntArray, IntArray]:
    """For each row, how many rows of its image belong to later raters, and where they begin."""
    groups = table.image * max(len(table.rater_ids), 1) + table.rater
    start = np.searchsorted(groups, groups, side="right")
    end = np.searchsorted(table.image, table.image, side="right")
    return end - start, start
