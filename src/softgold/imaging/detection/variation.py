"""How two raters differ: in boundary, in class, by missing or merging things (Label Convergence, appendix C)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgold.checks import check_in_range
from softgold.imaging.detection.agreement import IOU_THRESHOLDS, as_thresholds, check_raters
from softgold.imaging.detection.boxes import DetectionTable, Overlaps, find_overlaps
from softgold.imaging.detection.matching import greedy_disjoint
from softgold.imaging.detection.merges import Merges, find_merges

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

TYPES = ("correct", "merge", "wrong_class", "merge_wrong_class", "missing", "bad_boundary")


@dataclass(frozen=True, eq=False)
class Variation:
    """Counts of each type of variation.

    `correct`, `wrong_class` and `bad_boundary` count pairs of annotations; `merge` and `merge_wrong_class` count one
    annotation against two; `missing` counts annotations that one rater drew and the other did not. The two of a pair
    with a bad boundary are among the `missing`, as the published procedure counts them; `missed_or_additional`
    leaves them out.

    Attributes:
        counts: One row per pair of raters and threshold: `rater_a, rater_b, threshold, n_images`, `TYPES`,
            `missed_or_additional`.
        images: One row per image, pair of raters and threshold at which they differ, the most variations first:
            `image, rater_a, rater_b, threshold`, `TYPES`, `missed_or_additional`, `n_variations`.
        boundary_iou: Overlap from which two annotations of one class are one thing with a bad boundary.
    """

    counts: pd.DataFrame
    images: pd.DataFrame
    boundary_iou: float

    def total(self, threshold: float | None = None) -> dict[str, int]:
        """Sum over pairs of raters at one threshold, by default the lowest."""
        at = self.counts["threshold"].min() if threshold is None else threshold
        rows = self.counts.loc[np.isclose(self.counts["threshold"], at)]
        return {name: int(rows[name].sum()) for name in (*TYPES, "missed_or_additional")}


def variation_types(
    table: DetectionTable, thresholds: ArrayLike = IOU_THRESHOLDS, *, boundary_iou: float = 0.1
) -> Variation:
    """Sort what each pair of raters drew on each image into types of variation, for each overlap threshold.

    Five greedy steps, the highest overlap first and every annotation used once: same class; two annotations of one
    class, merged, against one of that class; other class; merged against one of another class; what is left is
    missing on the other side. An overlap of at least the threshold matches. Two annotations are merged to their
    enclosing box, masks to their union. Afterwards those left over that have the same class and overlap by
    `boundary_iou` at least are counted as pairs with a bad boundary.

    Args:
        table: What was drawn, with two raters or more on every image.
        thresholds: Overlaps, each in (0, 1].
        boundary_iou: Smallest overlap of two annotations of the same thing.

    Example:
        >>> drawn = {"A": [(1, [0, 0, 10, 10]), (1, [10, 0, 10, 10])], "B": [(1, [0, 0, 20, 10]), (2, [90, 0, 9, 9])]}
        >>> variation_types(DetectionTable.from_boxes({"x": drawn}), [0.6]).total()["merge"]
        1
    """
    check_raters(table)
    check_in_range(boundary_iou, 0, 1, "boundary_iou")
    cuts = as_thresholds(thresholds)
    parts = []
    for a, b in combinations(range(int(table.raters_per_image.max())), 2):
        pair = _two_slots(table, a, b)
        overlaps = find_overlaps(pair)
        merges = find_merges(pair, overlaps, float(cuts[0]))
        parts += [_frame(pair, cut, _types_at(pair, overlaps, merges, cut, boundary_iou)) for cut in cuts]
    per_image = pd.concat(parts, ignore_index=True)
    return Variation(_by_pair(per_image), _differing(per_image), boundary_iou)


def _types_at(
    table: DetectionTable, overlaps: Overlaps, merges: Merges, threshold: float, boundary_iou: float
) -> dict[str, IntArray]:
    """Counts of each type on each image, shape (I,) each."""
    free = np.ones(len(table), dtype=bool)
    pairs = np.column_stack([overlaps.first, overlaps.second])
    same = table.category[overlaps.first] == table.category[overlaps.second]
    near = overlaps.iou >= threshold
    close = merges.iou >= threshold
    steps = (
        ("correct", pairs, overlaps.iou, near & same),
        ("merge", merges.rows, merges.iou, close & merges.same_category),
        ("wrong_class", pairs, overlaps.iou, near & ~same),
        ("merge_wrong_class", merges.rows, merges.iou, close & ~merges.same_category),
    )
    counts = {name: _take(table, free, rows, iou, allowed) for name, rows, iou, allowed in steps}
    counts["missing"] = np.bincount(table.image[free], minlength=table.n_images)
    loose = same & (overlaps.iou >= boundary_iou)
    counts["bad_boundary"] = _take(table, free, pairs, overlaps.iou, loose)
    return counts


def _take(table: DetectionTable, free: BoolArray, rows: IntArray, iou: FloatArray, allowed: BoolArray) -> IntArray:
    """Match greedily among the free annotations, mark them as used, and count per image."""
    candidates = np.flatnonzero(allowed)
    candidates = candidates[free[rows[candidates]].all(axis=1)]
    taken = rows[candidates[greedy_disjoint(rows[candidates], iou[candidates])]]
    free[taken.ravel()] = False
    return np.bincount(table.image[taken[:, 0]], minlength=table.n_images)


def _two_slots(table: DetectionTable, a: int, b: int) -> DetectionTable:
    """What the a-th and b-th rater of each image drew, on images that have both."""
    first_look = np.cumsum(table.raters_per_image) - table.raters_per_image
    place = np.arange(len(table.looked_image)) - first_look[table.looked_image]
    return table.take_rows(
        rows=np.isin(table.slot, (a, b)) & (table.raters_per_image > b)[table.image],
        looks=np.isin(place, (a, b)) & (table.raters_per_image > b)[table.looked_image],
        keep=table.raters_per_image > b,
    )


def _frame(table: DetectionTable, threshold: float, counts: dict[str, IntArray]) -> pd.DataFrame:
    looked = table.rater_ids.take(table.looked_rater).to_numpy().reshape(-1, 2)
    frame = pd.DataFrame({
        "image": table.image_ids,
        "rater_a": looked[:, 0],
        "rater_b": looked[:, 1],
        "threshold": threshold,
        **{name: counts[name] for name in TYPES},
    })  # fmt: skip
    frame["missed_or_additional"] = frame["missing"] - 2 * frame["bad_boundary"]
    return frame


def _by_pair(per_image: pd.DataFrame) -> pd.DataFrame:
    grouped = per_image.groupby(["rater_a", "rater_b", "threshold"], sort=True)
    counts = grouped[[*TYPES, "missed_or_additional"]].sum()
    counts.insert(0, "n_images", grouped.size())
    return counts.reset_index()


def _differing(per_image: pd.DataFrame) -> pd.DataFrame:
    kinds = ["bad_boundary", "wrong_class", "merge", "merge_wrong_class", "missed_or_additional"]
    frame = per_image.assign(n_variations=per_image[kinds].sum(axis=1))
    frame = frame[frame["n_variations"] > 0]
    return frame.sort_values(["threshold", "n_variations"], ascending=[True, False], kind="stable", ignore_index=True)
