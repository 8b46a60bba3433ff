"""Mean average precision between two raters: one is taken for the truth, the other for the detector, then reversed.

What depends on the boxes is computed once; the precision of any subset of images is then a matter of counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from softgold.checks import check_choice
from softgold.errors import InputError
from softgold.imaging.detection.agreement import IOU_THRESHOLDS, as_thresholds, check_raters
from softgold.imaging.detection.boxes import DetectionTable, Overlaps, find_overlaps
from softgold.imaging.detection.matching import largest_matching
from softgold.imaging.detection.ordered import RECALLS, OrderedMatches, drawn_by, mean_over_categories, recalls_reached

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

Confidence = Literal["tied", "coco"]

_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class ModifiedMap:
    """Mean average precision of two raters against each other at T thresholds.

    Attributes:
        thresholds: Overlap from which two annotations match, shape (T,).
        first_truth: The first rater of each image taken for the truth, shape (T,); -1 if that rater drew nothing.
        second_truth: The second rater taken for the truth, shape (T,).
        mean: Mean of the two directions, shape (T,); of the one that is defined if only one is; -1 if none is.
    """

    thresholds: FloatArray
    first_truth: FloatArray
    second_truth: FloatArray
    mean: FloatArray

    @property
    def map(self) -> float:
        """Mean of both directions, averaged over the thresholds."""
        return float(self.mean.mean())


def modified_map(
    table: DetectionTable, thresholds: ArrayLike = IOU_THRESHOLDS, *, confidence: Confidence = "tied"
) -> ModifiedMap:
    """Return the mean average precision between the two raters of each image (Label Convergence, section 4.1).

    COCO's precision interpolated at 101 recalls, categories averaged, both directions averaged. A match needs the
    same category and an overlap of *at least* the threshold. A category that the rater who is the truth never drew
    is left out of that direction.

    Raters state no confidence, so all annotations have the same. With `tied`, the default, they stand or fall
    together: one operating point, as many matches as possible, nothing depends on the order of the annotations.
    With `coco`, they are ranked in the order of the images and of the file, as pycocotools would (at most 1,000 of
    a category on an image): for reproduction only, because reversing two boxes can double the result.

    Args:
        table: What was drawn, with exactly two raters on every image.
        thresholds: Overlaps, each in (0, 1].
        confidence: `tied` or `coco`.

    Example:
        >>> drawn = {"A": [(1, [0, 0, 10, 10]), (1, [20, 0, 10, 10])], "B": [(1, [99, 0, 10, 10]), (1, [0, 0, 10, 10])]}
        >>> modified_map(DetectionTable.from_boxes({"x": drawn}), [0.5]).mean.round(4).tolist()
        [0.2525]
    """
    matches = match_pairs(table, find_overlaps(table), as_thresholds(thresholds), confidence)
    return map_of_matches(matches, table.n_images)


class PairMatches(Protocol):
    """The matches of two raters, from which the precision of any subset of the images follows."""

    @property
    def thresholds(self) -> FloatArray:
        """Overlaps, shape (T,)."""
        ...

    def directions(self, subsets: sparse.csr_array) -> FloatArray:
        """Mean average precision of each subset, shape (B, T, 2): first rater the truth, second rater the truth.

        Args:
            subsets: 1 where a subset has an image, shape (B, I).
        """
        ...


def match_pairs(
    table: DetectionTable, overlaps: Overlaps, thresholds: FloatArray, confidence: Confidence = "tied"
) -> PairMatches:
    """Match the annotations of the two raters of every image, at every threshold."""
    check_choice(confidence, ("tied", "coco"), "confidence")
    _check_two_raters(table)
    same = overlaps.where(table.category[overlaps.first] == table.category[overlaps.second])
    # COCO's guard, so that a threshold of 1 is met by identical boxes.
    cuts = np.minimum(thresholds, 1 - 1e-10)
    if confidence == "tied":
        return _TiedMatches.of(table, same, thresholds, cuts)
    return OrderedMatches.of(table, same, thresholds, cuts)


def map_of_matches(matches: PairMatches, n_images: int) -> ModifiedMap:
    """Return the mean average precision over all images."""
    directions = matches.directions(sparse.csr_array(np.ones((1, n_images))))[0]
    values = (*directions.T, mean_directions(directions))
    return ModifiedMap(matches.thresholds, *(np.where(np.isnan(value), -1.0, value) for value in values))


def mean_directions(directions: FloatArray) -> FloatArray:
    """Mean over the last axis of the directions that are defined; NaN where none is.

    >>> mean_directions(np.array([[0.2, 0.4], [np.nan, 0.4], [np.nan, np.nan]])).round(4).tolist()
    [0.3, 0.4, nan]
    """
    known = np.isfinite(directions)
    total = np.where(known, directions, 0.0).sum(axis=-1)
    return np.where(known.any(axis=-1), total / np.maximum(known.sum(axis=-1), 1), np.nan)


@dataclass(frozen=True, eq=False)
class _TiedMatches:
    """How many annotations of each category each rater drew and how many of them match; additive over images."""

    thresholds: FloatArray
    drawn: tuple[sparse.csr_array, sparse.csr_array]
    matched: sparse.csr_array  # images x (thresholds x categories)

    @classmethod
    def of(cls, table: DetectionTable, same: Overlaps, thresholds: FloatArray, cuts: FloatArray) -> _TiedMatches:
        cells = []
        for place, cut in enumerate(cuts):
            near = same.where(same.iou >= cut)
            rows = near.first[largest_matching(near.first, near.second)]
            cells.append((table.image[rows], place * table.n_categories + table.category[rows]))
        image, column = (np.concatenate(part) for part in zip(*cells, strict=True))
        shape = (table.n_images, len(cuts) * table.n_categories)
        matched = sparse.csr_array((np.ones(len(image)), (image, column)), shape=shape)
        return cls(thresholds, (drawn_by(table, 0), drawn_by(table, 1)), matched)

    def directions(self, subsets: sparse.csr_array) -> FloatArray:
        parts = [self._directions(subsets[rows]) for rows in _chunks(subsets.shape[0], self.matched.shape[1])]
        return np.concatenate(parts)

    def _directions(self, subsets: sparse.csr_array) -> FloatArray:
        drawn = [(subsets @ part).toarray()[:, None, :] for part in self.drawn]
        matched = (subsets @ self.matched).toarray().reshape(subsets.shape[0], len(self.thresholds), -1)
        hit = matched > 0
        result = []
        for truth, detector in (drawn, drawn[::-1]):
            precision = matched / np.maximum(detector, 1.0)
            recall = (matched / np.maximum(truth, 1.0))[hit]
            precision[hit] *= recalls_reached(recall) / len(RECALLS)
            result.append(mean_over_categories(precision, truth > 0))
        return np.stack(result, axis=-1)


def _check_two_raters(table: DetectionTable) -> None:
    check_raters(table)
    more = np.flatnonzero(table.raters_per_image != 2)
    if len(more):
        raise InputError(
            f"image {table.image_ids[more[0]]!r} has {table.raters_per_image[more[0]]} raters, and the mean average "
            "precision is between two: take a pair of raters, or infer it from alpha"
        )


def _chunks(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, _CHUNK_CELLS // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, start + step)
