"""Agreement of raters who draw boxes or masks: Krippendorff's alpha after matching what they drew.

On each image the annotations of the raters are linked to units, one label per rater and "nothing there" where a rater
drew nothing, and alpha is computed on the units (Label Convergence, appendix B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from softgold.agreement.nominal import alpha_of_sums
from softgold.checks import as_finite, check_choice
from softgold.errors import InputError, UsageError
from softgold.imaging.detection.boxes import DetectionTable, Overlaps, find_overlaps
from softgold.imaging.detection.matching import best_assignment

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

IOU_THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
FILLER = "*"
"""Marks "this rater drew nothing here" where units are shown; it cannot be confused with a category."""


@dataclass(frozen=True, eq=False)
class DetectionAlpha:
    """Alpha at T thresholds on I images.

    Attributes:
        thresholds: Overlap above which two annotations may be the same thing, shape (T,).
        per_image: Alpha of each image, shape (T, I); NaN for an image on which no rater drew, if those are skipped.
        mean_image: Mean over images, shape (T,).
        pooled: Alpha of the units of all images together, shape (T,).
        n_empty: Images on which no rater drew anything.
    """

    thresholds: FloatArray
    per_image: FloatArray
    mean_image: FloatArray
    pooled: FloatArray
    n_empty: int

    @property
    def alpha(self) -> float:
        """Mean over images, averaged over the thresholds."""
        return float(self.mean_image.mean())


def detection_alpha(
    table: DetectionTable,
    thresholds: ArrayLike = IOU_THRESHOLDS,
    *,
    empty: Literal["one", "skip"] = "one",
    legacy: bool = False,
) -> DetectionAlpha:
    """Return Krippendorff's alpha of what the raters drew, for each overlap threshold.

    Two annotations of different raters may be linked if their intersection over union is *above* the threshold;
    among those the Hungarian method takes the pairs of the largest total overlap. With three raters and more, the
    raters are added one after the other in sorted order, each matched to the earlier ones in turn (greedy, so the
    result can depend on that order). A rater who drew nothing for a unit has the label "nothing there", a category
    of its own; among three raters, two who both saw nothing agree.

    Args:
        table: What was drawn, with two raters or more on every image.
        thresholds: Overlaps, each in (0, 1].
        empty: Count an image on which no rater drew as full agreement (1), or skip it.
        legacy: As in the published code: pairs below the threshold take part in the assignment, category 0 means
            "nothing there", and the alpha of each image is rounded to four decimals.

    Example:
        >>> images = {"x": {"ann": [(1, [0, 0, 20, 20])], "bob": [(2, [0, 0, 20, 20]), (1, [0, 0, 20, 18])]}}
        >>> detection_alpha(DetectionTable.from_boxes(images), [0.5]).mean_image.round(4).tolist()
        [-0.2]
    """
    check_choice(empty, ("one", "skip"), "empty")
    sums = AlphaSums.of(table, find_overlaps(table), as_thresholds(thresholds), legacy=legacy)
    return sums.alpha(empty)


@dataclass(frozen=True, eq=False)
class AlphaSums:
    """Sums per image from which alpha follows; they add up over images, so that a subset of images costs one sum.

    Attributes:
        thresholds: Shape (T,).
        agreeing: Diagonal of the coincidence matrix, shape (T, I).
        fillers: Labels "nothing there", shape (T, I).
        labels: Labels of each category, shape (I, C).
        decimals: Decimals to which the alpha of an image is rounded, or None.
    """

    thresholds: FloatArray
    agreeing: FloatArray
    fillers: FloatArray
    labels: sparse.csr_array
    decimals: int | None = None

    @classmethod
    def of(
        cls, table: DetectionTable, overlaps: Overlaps, thresholds: FloatArray, *, legacy: bool = False
    ) -> AlphaSums:
        """Link the annotations at every threshold and sum up."""
        check_raters(table)
        as_filler = table.category_ids == "0" if legacy else np.zeros(table.n_categories, dtype=bool)
        real = ~as_filler[table.category]
        linked = [link_units(table, overlaps, threshold, legacy=legacy) for threshold in thresholds]
        sums = [_unit_sums(table, unit, real) for unit in linked]
        ones = np.ones(int(real.sum()))
        shape = (table.n_images, table.n_categories)
        return cls(
            thresholds=thresholds,
            agreeing=np.array([agreeing for agreeing, _ in sums]),
            fillers=np.array([fillers for _, fillers in sums]),
            labels=sparse.csr_array((ones, (table.image[real], table.category[real])), shape=shape),
            decimals=4 if legacy else None,
        )

    def alpha(self, empty: Literal["one", "skip"]) -> DetectionAlpha:
        """Return alpha per image, its mean, and pooled."""
        per_image = self.per_image(empty)
        with_value = np.isfinite(per_image)
        n_images = np.maximum(with_value.sum(axis=1), 1)
        mean = np.where(with_value, per_image, 0.0).sum(axis=1) / n_images
        everything = sparse.csr_array(np.ones((1, per_image.shape[1])))
        return DetectionAlpha(
            thresholds=self.thresholds,
            per_image=per_image,
            mean_image=np.where(with_value.any(axis=1), mean, np.nan),
            pooled=self.pooled(everything)[0],
            n_empty=int((self._size()[0] == 0).sum()),
        )

    def per_image(self, empty: Literal["one", "skip"]) -> FloatArray:
        """Alpha of each image, shape (T, I)."""
        within = (self.labels.multiply(self.labels).sum(axis=1) - self.labels.sum(axis=1))[None, :]
        size = self._size()
        alpha = alpha_of_sums(self.agreeing, size, within + self.fillers * (self.fillers - 1.0))
        if self.decimals is not None:
            alpha = alpha.round(self.decimals)
        return np.where(size == 0, 1.0 if empty == "one" else np.nan, alpha)

    def pooled(self, subsets: sparse.csr_array) -> FloatArray:
        """Alpha of the units of several images together, one row per subset, shape (B, T).

        Args:
            subsets: How often each subset has each image, shape (B, I).
        """
        labels = subsets @ self.labels
        within = labels.multiply(labels).sum(axis=1) - labels.sum(axis=1)
        fillers = subsets @ self.fillers.T
        size = labels.sum(axis=1)[:, None] + fillers
        return alpha_of_sums(subsets @ self.agreeing.T, size, within[:, None] + fillers * (fillers - 1.0))

    def _size(self) -> FloatArray:
        return np.asarray(self.labels.sum(axis=1)[None, :] + self.fillers)


def link_units(table: DetectionTable, overlaps: Overlaps, threshold: float, *, legacy: bool = False) -> IntArray:
    """Return the unit of each annotation, shape (N,): annotations of several raters with one number are one thing.

    Units are numbered as they are found: those of the first raters in source order, then what the next raters add.

    Args:
        table: What was drawn.
        overlaps: Its overlaps.
        threshold: Pairs must overlap by more than this.
        legacy: Assign before the threshold is applied, as the published code does.
    """
    unit = np.full(len(table), -1)
    n_units = 0
    slots = table.slot
    for slot in range(int(table.raters_per_image.max(initial=0))):
        filled = np.zeros(n_units, dtype=bool)
        for earlier in range(slot):
            between = (
                (slots[overlaps.first] == earlier) & (slots[overlaps.second] == slot) & (unit[overlaps.second] < 0)
            )
            pairs = overlaps.where(between)
            pairs = pairs.where(~filled[unit[pairs.first]])
            pairs = pairs.where(_same_thing(pairs, threshold, legacy))
            unit[pairs.second] = unit[pairs.first]
            filled[unit[pairs.first]] = True
        found = np.flatnonzero((slots == slot) & (unit < 0))
        unit[found] = n_units + np.arange(len(found))
        n_units += len(found)
    return unit


def unit_labels(table: DetectionTable, unit: IntArray) -> list[list[tuple[str, ...]]]:
    """Return the labels of the units of each image: one category id per rater, in sorted order, `FILLER` for nothing.

    >>> table = DetectionTable.from_boxes({"x": {"ann": [(7, [0, 0, 9, 9])], "bob": []}, "y": {"ann": [], "bob": []}})
    >>> unit_labels(table, link_units(table, find_overlaps(table), 0.5))
    [[('7', '*')], []]
    """
    members: list[dict[int, list[str]]] = [{} for _ in range(table.n_images)]
    for row in np.argsort(unit, kind="stable"):
        image = int(table.image[row])
        labels = members[image].setdefault(int(unit[row]), [FILLER] * int(table.raters_per_image[image]))
        labels[int(table.slot[row])] = str(table.category_ids[table.category[row]])
    return [[tuple(labels) for labels in units.values()] for units in members]


def as_thresholds(values: ArrayLike) -> FloatArray:
    """Return overlap thresholds in ascending order, or say what is wrong with them.

    >>> as_thresholds([0.75, 0.5]).tolist()
    [0.5, 0.75]
    """
    thresholds = np.unique(as_finite(np.atleast_1d(np.asarray(values)), "thresholds"))
    fine = (thresholds > 0) & (thresholds <= 1)
    if not len(thresholds) or not fine.all():
        raise UsageError(f"overlap thresholds must lie in (0, 1], got {thresholds[~fine].tolist() or 'none'}")
    return thresholds


def check_raters(table: DetectionTable) -> None:
    """Raise unless two raters or more looked at every image."""
    alone = np.flatnonzero(table.raters_per_image < 2)
    if table.n_images == 0:
        raise InputError("there are no images to compare raters on")
    if len(alone):
        image = table.image_ids[alone[0]]
        who = table.rater_ids[table.looked_rater[table.looked_image == alone[0]]]
        seen_by = f"only by {who[0]!r}" if len(who) else "by no rater"
        others = f" (and {len(alone) - 1} more)" if len(alone) > 1 else ""
        raise InputError(
            f"image {image!r} was seen {seen_by}{others}, and agreement needs two raters per image: say that every "
            "rater looked at every image (--looked all), list who looked, or leave such images out (--single skip)"
        )


def _same_thing(pairs: Overlaps, threshold: float, legacy: bool) -> BoolArray:
    near = pairs.iou > threshold
    if not legacy:
        near[near] = best_assignment(pairs.first[near], pairs.second[near], pairs.iou[near])
        return near
    candidate = np.isin(pairs.first, pairs.first[near]) & np.isin(pairs.second, pairs.second[near])
    chosen = np.zeros_like(near)
    among = pairs.where(candidate)
    chosen[candidate] = best_assignment(among.first, among.second, among.iou)
    return chosen & near


def _unit_sums(table: DetectionTable, unit: IntArray, real: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Coincidence diagonal and fillers of each image; rows that are not `real` count as fillers."""
    n_units = int(unit.max(initial=-1)) + 1
    image = np.zeros(n_units, dtype=np.int64)
    image[unit] = table.image
    raters = table.raters_per_image[image]
    fillers = raters - np.bincount(unit[real], minlength=n_units)
    label, count = np.unique(unit[real] * table.n_categories + table.category[real], return_counts=True)
    same = np.bincount(label // max(table.n_categories, 1), weights=count * (count - 1.0), minlength=n_units)
    agreeing = (same + fillers * (fillers - 1.0)) / (raters - 1.0)
    return _per_image(table, image, agreeing), _per_image(table, image, fillers)


def _per_image(table: DetectionTable, image: IntArray, value: NDArray[np.generic]) -> FloatArray:
    return np.bincount(image, weights=value.astype(np.float64), minlength=table.n_images).astype(np.float64)
