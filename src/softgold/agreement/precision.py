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

from softgold.agreement.boxes import DetectionTable, Overlaps, find_overlaps
from softgold.agreement.detection import IOU_THRESHOLDS, as_thresholds, check_raters
from softgold.agreement.matching import largest_matching, match_in_order
from softgold.checks import check_choice
from softgold.errors import InputError

__all__ = [
    "Confidence",
    "ModifiedMap",
    "PairMatches",
    "map_of_matches",
    "match_pairs",
    "mean_directions",
    "modified_map",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

Confidence = Literal["tied", "coco"]

RECALLS = np.linspace(0.0, 1.0, 101)
MAX_DETECTIONS = 1000
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
    """Return the mean average precision between the two raters of each image (paper 002, section 4.1).

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
    ranks = _ranks(table)
    first, second = (_OrderedMatches.of(table, same, cuts, ranks, detector=slot) for slot in (1, 0))
    return _BothOrders(thresholds, first, second)


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
        return cls(thresholds, (_drawn(table, 0), _drawn(table, 1)), matched)

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
            precision[hit] *= _recalls_reached(recall) / len(RECALLS)
            result.append(_mean_over_categories(precision, truth > 0))
        return np.stack(result, axis=-1)


@dataclass(frozen=True, eq=False)
class _OrderedMatches:
    """Detections of one direction in COCO's order (category, image, file), and which of them match at which threshold.

    Attributes:
        truths: Annotations of the other rater, shape (I, C).
        image: Image of each detection.
        category_start: Where the detections of each category begin, shape (C,).
        hit: The detection of each match, sorted by threshold.
        hit_image: Its image.
        hit_group: Its threshold and category, threshold x C + category.
        n_thresholds: T.
    """

    truths: sparse.csr_array
    image: IntArray
    category_start: IntArray
    hit: IntArray
    hit_image: IntArray
    hit_group: IntArray
    n_thresholds: int

    @classmethod
    def of(
        cls, table: DetectionTable, same: Overlaps, cuts: FloatArray, ranks: IntArray, *, detector: int
    ) -> _OrderedMatches:
        detection, truth = (same.second, same.first) if detector == 1 else (same.first, same.second)
        counted = ranks[detection] < MAX_DETECTIONS
        matched = match_in_order(detection[counted], truth[counted], same.iou[counted], ranks, cuts)
        rows = np.flatnonzero((table.slot == detector) & (ranks < MAX_DETECTIONS))
        rows = rows[np.argsort(table.category[rows], kind="stable")]
        threshold, hit = np.nonzero(matched[rows].T)
        return cls(
            truths=_drawn(table, 1 - detector),
            image=table.image[rows],
            category_start=np.searchsorted(table.category[rows], np.arange(table.n_categories)),
            hit=hit,
            hit_image=table.image[rows][hit],
            hit_group=threshold * table.n_categories + table.category[rows][hit],
            n_thresholds=len(cuts),
        )

    def precision(self, subset: NDArray[np.bool_], truths: FloatArray) -> FloatArray:
        """Mean average precision over the categories of one subset, shape (T,).

        Args:
            subset: Whether each image is in it, shape (I,).
            truths: Its annotations of each category by the rater who is the truth, shape (C,).
        """
        so_far = np.cumsum(np.concatenate([[False], subset[self.image]]))
        kept = np.flatnonzero(subset[self.hit_image])
        group = self.hit_group[kept]
        category = group % len(truths)
        n_hits = _place_within(group)
        n_detections = so_far[self.hit[kept] + 1] - so_far[self.category_start][category]
        envelope = _best_from_here(n_hits / n_detections, group)
        points = _recalls_reached(n_hits / truths[category])
        gained = np.where(n_hits == 1, points, np.diff(points, prepend=0))
        sums = np.bincount(group, weights=gained * envelope, minlength=self.n_thresholds * len(truths))
        average = sums.reshape(self.n_thresholds, len(truths)) / len(RECALLS)
        return _mean_over_categories(average, np.broadcast_to(truths > 0, average.shape))


@dataclass(frozen=True, eq=False)
class _BothOrders:
    thresholds: FloatArray
    first_truth: _OrderedMatches
    second_truth: _OrderedMatches

    def directions(self, subsets: sparse.csr_array) -> FloatArray:
        result = np.empty((subsets.shape[0], len(self.thresholds), 2))
        for place, matches in enumerate((self.first_truth, self.second_truth)):
            truths = (subsets @ matches.truths).toarray()
            for row in range(subsets.shape[0]):
                member = np.zeros(subsets.shape[1], dtype=bool)
                member[subsets.indices[subsets.indptr[row] : subsets.indptr[row + 1]]] = True
                result[row, :, place] = matches.precision(member, truths[row])
        return result


def _mean_over_categories(average: FloatArray, counted: NDArray[np.bool_]) -> FloatArray:
    total = np.where(counted, average, 0.0).sum(axis=-1)
    n_counted = counted.sum(axis=-1)
    return np.where(n_counted > 0, total / np.maximum(n_counted, 1), np.nan)


def _recalls_reached(recall: FloatArray) -> IntArray:
    """How many of the 101 recalls are at most `recall`, compared as floats exactly as a search would."""
    guess = (recall * 100).astype(np.int64)
    guess += RECALLS[np.minimum(guess + 1, 100)] <= recall
    guess -= RECALLS[np.minimum(guess, 100)] > recall
    return np.minimum(guess, 100) + 1


def _place_within(group: IntArray) -> IntArray:
    """1, 2, 3, ... within each run of equal values."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(starts, append=len(group))
    return np.arange(1, len(group) + 1) - np.repeat(starts, lengths)


def _best_from_here(value: FloatArray, group: IntArray) -> FloatArray:
    """Largest value from each position to the end of its group; values in (0, 1], groups in runs."""
    # A higher floor for each earlier group lets one running maximum serve all of them.
    floor = np.cumsum(np.diff(group[::-1], prepend=-1) != 0).astype(np.float64)
    return (np.maximum.accumulate(value[::-1] + floor) - floor)[::-1]


def _ranks(table: DetectionTable) -> IntArray:
    """Place of each row among those of its image, rater and category, from 0, shape (N,)."""
    group = (table.image * 2 + table.slot) * table.n_categories + table.category
    order = np.argsort(group, kind="stable")
    ranks = np.empty(len(group), dtype=np.int64)
    ranks[order] = _place_within(group[order]) - 1
    return ranks


def _drawn(table: DetectionTable, slot: int) -> sparse.csr_array:
    rows = table.slot == slot
    shape = (table.n_images, table.n_categories)
    return sparse.csr_array((np.ones(int(rows.sum())), (table.image[rows], table.category[rows])), shape=shape)


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
