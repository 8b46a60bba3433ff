"""Masks through pycocotools: run lengths from polygons, their overlaps, and their unions (extra `detection`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.errors import InputError, UsageError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Rle = dict[str, Any]

# A run length of a 32-bit image needs no more.
MOST_BITS = 35
# Annotation tools clip polygons near the border; points farther out mean a damaged file.
MOST_TIMES_OUTSIDE = 10
LONGEST_OUTLINE = 10_000_000


def to_rle(segmentation: Any, height: int, width: int, where: str) -> Rle:
    """Return compressed run lengths of a COCO segmentation: polygons, or run lengths compressed or not.

    Args:
        segmentation: Polygons as lists of x, y; or an object with `size` and `counts`.
        height: Height of the image.
        width: Width of the image.
        where: Its place in the file, for the message.

    Example:
        >>> rle = to_rle([[0, 0, 4, 0, 4, 4, 0, 4]], 10, 10, "annotation 1")
        >>> mask_area([rle]).tolist()
        [16.0]
    """
    coco = _pycocotools()
    if isinstance(segmentation, dict):
        return _from_run_lengths(segmentation, height, width, where, coco)
    _check_polygons(segmentation, height, width, where)
    return dict(coco.merge(coco.frPyObjects(segmentation, height, width)))


def mask_area(masks: Sequence[Rle]) -> FloatArray:
    """Pixels of each mask, shape (N,)."""
    return np.asarray(_pycocotools().area(list(masks)), dtype=np.float64)


def mask_box(masks: Sequence[Rle]) -> FloatArray:
    """Enclosing box x, y, w, h of each mask, shape (N, 4)."""
    return np.asarray(_pycocotools().toBbox(list(masks)), dtype=np.float64).reshape(-1, 4)


def mask_overlaps(masks: Sequence[Rle], image: IntArray, rater: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Pairs of masks that two raters drew on one image and that overlap: rows, rows, intersection over union."""
    coco = _pycocotools()
    groups = _groups(image, rater)
    parts = []
    for rows_of in groups:
        for a, b in combinations(rows_of, 2):
            iou = np.asarray(coco.iou([masks[i] for i in a], [masks[i] for i in b], [0] * len(b)))
            i, j = np.nonzero(iou)
            parts.append((a[i], b[j], iou[i, j]))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    first, second, overlap = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((second, first))
    return first[order], second[order], overlap[order]


def mask_unions_iou(masks: Sequence[Rle], one: IntArray, two: IntArray, other: IntArray) -> FloatArray:
    """Intersection over union of `one` and `two` merged with `other`, row by row, shape (E,)."""
    coco = _pycocotools()
    values = [
        coco.iou([coco.merge([masks[i], masks[j]])], [masks[k]], [0])[0][0]
        for i, j, k in zip(one, two, other, strict=True)
    ]
    return np.asarray(values, dtype=np.float64)


def _from_run_lengths(segmentation: Rle, height: int, width: int, where: str, coco: ModuleType) -> Rle:
    counts, size = segmentation.get("counts"), segmentation.get("size")
    if not isinstance(counts, list | str | bytes) or size != [height, width]:
        raise InputError(
            f"a mask needs 'counts' and a 'size' of [{height}, {width}] like its image, got {size} ({where})"
        )
    if isinstance(counts, list):
        if any(not isinstance(run, int) or run < 0 for run in counts) or sum(counts) != height * width:
            raise InputError(f"the run lengths of a mask must be whole and add up to {height * width} ({where})")
        return dict(coco.frPyObjects(segmentation, height, width))
    data = counts.encode("utf-8", "replace") if isinstance(counts, str) else counts
    runs = decode_counts(data)
    if runs is None or any(run < 0 for run in runs) or sum(runs) != height * width:
        raise InputError(f"the compressed run lengths of a mask must add up to {height * width} ({where})")
    return {"size": [height, width], "counts": data}


def decode_counts(data: bytes) -> list[int] | None:
    """Return the run lengths in COCO's compressed text, or None if it is damaged.

    Each number is in groups of five bits, one per character from "0", lowest first; the sixth bit says that more
    follow, and the highest of the last group is the sign. From the fourth on, a number is the difference to the
    one two places before. pycocotools reads past the end of damaged text, or never stops.

    >>> decode_counts(b"0:Z2"), decode_counts(b"~~~~~~~~")
    ([0, 10, 74], None)
    """
    runs: list[int] = []
    value = shift = 0
    for byte in data:
        group = byte - 48
        if not 0 <= group < 64 or shift > MOST_BITS:
            return None
        value |= (group & 31) << shift
        shift += 5
        if group & 32:
            continue
        value -= (1 << shift) if group & 16 else 0
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    return runs if shift == 0 else None


def _check_polygons(segmentation: Any, height: int, width: int, where: str) -> None:
    if not isinstance(segmentation, list) or not segmentation or not all(map(_is_polygon, segmentation)):
        raise InputError(f"a polygon needs three or more points as a list x, y, x, y, ... of finite numbers ({where})")
    # pycocotools walks along every edge, keeps all its steps, and counts them in 32 bits.
    farthest = max(abs(value) for polygon in segmentation for value in polygon)
    if farthest > MOST_TIMES_OUTSIDE * max(height, width):
        raise InputError(
            f"a polygon of a mask has the coordinate {farthest:g}, far outside of its image of {height} by {width} "
            f"({where})"
        )
    longest = max(_outline(np.asarray(polygon, dtype=np.float64)) for polygon in segmentation)
    if max(longest, farthest) > LONGEST_OUTLINE:
        raise InputError(f"the outline of a mask is longer than {LONGEST_OUTLINE:,} pixels ({where})")


def _outline(polygon: FloatArray) -> float:
    """Length of the closed outline in steps of a pixel, diagonal ones included."""
    points = polygon.reshape(-1, 2)
    return float(np.abs(points - np.roll(points, 1, axis=0)).max(axis=1).sum())


def _is_polygon(points: Any) -> bool:
    numbers = isinstance(points, list) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
        for value in points
    )
    return numbers and len(points) >= 6 and len(points) % 2 == 0


def _groups(image: IntArray, rater: IntArray) -> list[list[IntArray]]:
    """Rows of each rater of each image; the rows are sorted by image and rater."""
    if not len(image):
        return []
    images = np.split(np.arange(len(image)), np.flatnonzero(np.diff(image)) + 1)
    return [np.split(rows, np.flatnonzero(np.diff(rater[rows])) + 1) for rows in images]


def _pycocotools() -> ModuleType:
    try:
        from pycocotools import mask
    except ImportError:
        raise UsageError("masks need pycocotools: pip install 'softgold[detection]'") from None
    module: ModuleType = mask
    return module
