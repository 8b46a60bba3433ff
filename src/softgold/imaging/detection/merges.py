"""Where one rater drew one thing and another rater drew two: candidates for merged or unmerged instances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgold.imaging.detection.boxes import DetectionTable, Overlaps, box_iou
from softgold.imaging.detection.ranges import expand_ranges, split_by_size

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_CHUNK_PAIRS = 2_000_000


@dataclass(frozen=True, eq=False)
class Merges:
    """Two annotations of one rater and category, against one annotation of another rater.

    Attributes:
        rows: The single annotation and the two, shape (E, 3).
        iou: Overlap of the single one with the two merged: their enclosing box, or the union of the masks; shape (E,).
        same_category: Whether all three have one category, shape (E,).
    """

    rows: IntArray
    iou: FloatArray
    same_category: BoolArray


def find_merges(table: DetectionTable, overlaps: Overlaps, threshold: float) -> Merges:
    """Return every merge of two annotations that overlaps a single one by at least `threshold`.

    Args:
        table: What two raters of each image drew.
        overlaps: Its overlaps.
        threshold: Smallest overlap of interest, above 0.

    Example:
        >>> from softgold.imaging.detection.boxes import find_overlaps
        >>> drawn = {"A": [(1, [0, 0, 10, 10]), (1, [10, 0, 10, 10])], "B": [(1, [0, 0, 20, 10])]}
        >>> table = DetectionTable.from_boxes({"x": drawn})
        >>> find_merges(table, find_overlaps(table), 0.5).rows.tolist()
        [[2, 0, 1]]
    """
    single, part = _both_ways(overlaps) if table.masks is not None else _near_boxes(table, threshold)
    one, two, other = _combine(table, single, part)
    if table.masks is None:
        iou = _enclosing_iou(table.boxes, one, two, other)
    else:
        from softgold.imaging.detection.masks import mask_unions_iou

        iou = mask_unions_iou(table.masks, one, two, other)
    kept = iou >= threshold
    rows = np.column_stack([other, one, two])[kept]
    return Merges(rows, iou[kept], table.category[rows[:, 0]] == table.category[rows[:, 1]])


def _both_ways(overlaps: Overlaps) -> tuple[IntArray, IntArray]:
    # A mask that misses the single one only lowers the overlap of the other part, which then matches better alone.
    single = np.concatenate([overlaps.first, overlaps.second])
    part = np.concatenate([overlaps.second, overlaps.first])
    return single, part


def _near_boxes(table: DetectionTable, threshold: float) -> tuple[IntArray, IntArray]:
    """Pairs (single, part) of which an enclosing box could reach the threshold, whatever the other part is."""
    slot = table.slot
    start = np.searchsorted(table.image * 2 + slot, table.image * 2 + 1 - slot, side="left")
    end = np.searchsorted(table.image * 2 + slot, table.image * 2 + 1 - slot, side="right")
    count = end - start
    kept = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for rows in split_by_size(count, _CHUNK_PAIRS):
        single, part = expand_ranges(rows, start, count)
        near = _could_reach(table.boxes[single], table.boxes[part], threshold)
        kept.append((single[near], part[near]))
    return np.concatenate([pair[0] for pair in kept]), np.concatenate([pair[1] for pair in kept])


def _could_reach(single: FloatArray, part: FloatArray, threshold: float) -> BoolArray:
    """Whether a box around `part` can overlap `single` by the threshold.

    Such a box covers at least that share of the single one, so of each of its sides, and is at most 1 / threshold
    times as large; the smallest box that holds the part and covers the share of each side must not be larger.
    """
    low, high = part[:, :2], part[:, :2] + part[:, 2:]
    single_low, single_high = single[:, :2], single[:, :2] + single[:, 2:]
    shared = np.minimum(high, single_high) - np.maximum(low, single_low)
    gap = np.maximum(-shared, 0.0)
    missing = np.maximum(threshold * single[:, 2:] - np.maximum(shared, 0.0), 0.0)
    smallest = (part[:, 2:] + gap + missing).prod(axis=1)
    # A little room, so that rounding never loses a candidate.
    return np.asarray(smallest * threshold <= single[:, 2:].prod(axis=1) * (1 + 1e-9))


def _combine(table: DetectionTable, single: IntArray, part: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Every two parts of one category that share a single one."""
    order = np.lexsort((part, table.category[part], single))
    single, part = single[order], part[order]
    group = single * max(table.n_categories, 1) + table.category[part]
    place = np.arange(len(group))
    later = np.searchsorted(group, group, side="right") - place - 1
    one, two = expand_ranges(place, place + 1, later)
    return part[one], part[two], single[one]


def _enclosing_iou(boxes: FloatArray, one: IntArray, two: IntArray, other: IntArray) -> FloatArray:
    low = np.minimum(boxes[one, :2], boxes[two, :2])
    high = np.maximum(boxes[one, :2] + boxes[one, 2:], boxes[two, :2] + boxes[two, 2:])
    return box_iou(np.concatenate([low, high - low], axis=1), boxes[other])
