"""Average precision of annotations ranked in file order, as pycocotools ranks detections of equal confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from softgold.imaging.detection.boxes import DetectionTable, Overlaps
from softgold.imaging.detection.matching import match_in_order

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

RECALLS = np.linspace(0.0, 1.0, 101)
MAX_DETECTIONS = 1000


@dataclass(frozen=True, eq=False)
class OrderedMatches:
    """Matches of both directions in COCO's order; a `PairMatches`."""

    thresholds: FloatArray
    first_truth: _Direction
    second_truth: _Direction

    @classmethod
    def of(cls, table: DetectionTable, same: Overlaps, thresholds: FloatArray, cuts: FloatArray) -> OrderedMatches:
        """Match the overlaps of equal category, one annotation after the other."""
        ranks = _ranks(table)
        return cls(thresholds, *(_Direction.of(table, same, cuts, ranks, detector=slot) for slot in (1, 0)))

    def directions(self, subsets: sparse.csr_array) -> FloatArray:
        """Mean average precision of each subset, shape (B, T, 2)."""
        result = np.empty((subsets.shape[0], len(self.thresholds), 2))
        for place, matches in enumerate((self.first_truth, self.second_truth)):
            truths = (subsets @ matches.truths).toarray()
            for row in range(subsets.shape[0]):
                member = np.zeros(subsets.shape[1], dtype=bool)
                member[subsets.indices[subsets.indptr[row] : subsets.indptr[row + 1]]] = True
                result[row, :, place] = matches.precision(member, truths[row])
        return result


@dataclass(frozen=True, eq=False)
class _Direction:
    """Detections of one direction in COCO's order (category, image, file), and which of them match.

    Attributes:
        truths: Annotations of the other rater, shape (I, C).
        image: Image of each detection, shape (D,).
        category: Its category, shape (D,).
        matched: Whether it matches at each threshold, shape (T, D).
    """

    truths: sparse.csr_array
    image: IntArray
    category: IntArray
    matched: NDArray[np.bool_]

    @classmethod
    def of(
        cls, table: DetectionTable, same: Overlaps, cuts: FloatArray, ranks: IntArray, *, detector: int
    ) -> _Direction:
        detection, truth = (same.second, same.first) if detector == 1 else (same.first, same.second)
        counted = ranks[detection] < MAX_DETECTIONS
        matched = match_in_order(detection[counted], truth[counted], same.iou[counted], ranks, cuts)
        rows = np.flatnonzero((table.slot == detector) & (ranks < MAX_DETECTIONS))
        rows = rows[np.argsort(table.category[rows], kind="stable")]
        truths = drawn_by(table, 1 - detector)
        return cls(truths, table.image[rows], table.category[rows], np.ascontiguousarray(matched[rows].T))

    def precision(self, subset: NDArray[np.bool_], truths: FloatArray) -> FloatArray:
        """Mean average precision over the categories of one subset, shape (T,).

        Args:
            subset: Whether each image is in it, shape (I,).
            truths: Its annotations of each category by the rater who is the truth, shape (C,).
        """
        chosen = np.flatnonzero(subset[self.image])
        average = np.zeros((len(self.matched), len(truths)))
        if len(chosen):
            ranked = _Ranked.of(self.category[chosen], truths)
            # One threshold at a time, so that what is worked on stays in the cache.
            for row, matched in zip(average, self.matched, strict=True):
                row[ranked.category] = ranked.average_precision(np.flatnonzero(matched[chosen]))
        return mean_over_categories(average, np.broadcast_to(truths > 0, average.shape))


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Detections of a subset, ranked category by category.

    Attributes:
        category: The K categories that occur, shape (K,).
        starts: Where the detections of each begin, and where the last ends, shape (K + 1,).
        gained: Recalls that the first, second, ... match reaches, for one category after the other.
        offset: Where the recalls of each category begin, shape (K,).
    """

    category: IntArray
    starts: IntArray
    gained: IntArray
    offset: IntArray

    @classmethod
    def of(cls, category: IntArray, truths: FloatArray) -> _Ranked:
        starts = np.flatnonzero(np.diff(category, prepend=-1))
        gained, offset = _recalls_gained(truths[category[starts]].astype(np.int64))
        return cls(category[starts], np.append(starts, len(category)), gained, offset)

    def average_precision(self, hit: IntArray) -> FloatArray:
        """Average precision of each category, shape (K,), when these detections, ascending, are the matches."""
        first = np.searchsorted(hit, self.starts)
        counts = np.diff(first)
        before = np.arange(len(hit)) - np.repeat(first[:-1], counts)
        place = hit - np.repeat(self.starts[:-1], counts)
        # A higher floor for each earlier category lets one running maximum, from the end, serve all of them.
        floor = np.repeat(np.arange(len(counts), 0.0, -1.0), counts)
        envelope = np.maximum.accumulate(((before + 1) / (place + 1) + floor)[::-1])[::-1] - floor
        worth = envelope * self.gained[before + np.repeat(self.offset, counts)]
        sums = np.zeros(len(counts))
        sums[counts > 0] = np.add.reduceat(worth, first[:-1][counts > 0]) if len(hit) else 0.0
        return sums / len(RECALLS)


def mean_over_categories(average: FloatArray, counted: NDArray[np.bool_]) -> FloatArray:
    """Mean over the last axis of the categories that count; NaN where none does."""
    total = np.where(counted, average, 0.0).sum(axis=-1)
    n_counted = counted.sum(axis=-1)
    return np.where(n_counted > 0, total / np.maximum(n_counted, 1), np.nan)


def recalls_reached(recall: FloatArray) -> IntArray:
    """How many of the 101 recalls are at most `recall`, compared as floats exactly as a search would."""
    guess = (recall * 100).astype(np.int64)
    guess += RECALLS[np.minimum(guess + 1, 100)] <= recall
    guess -= RECALLS[np.minimum(guess, 100)] > recall
    return np.minimum(guess, 100) + 1


def _recalls_gained(truths: IntArray) -> tuple[IntArray, IntArray]:
    """Recalls that each further match reaches, for one number of truths after the other, and where each begins."""
    offset = np.cumsum(truths) - truths
    hits = np.arange(1, int(truths.sum()) + 1) - np.repeat(offset, truths)
    reached = recalls_reached(hits / np.repeat(truths, truths))
    return np.where(hits == 1, reached, np.diff(reached, prepend=0)), offset


def _ranks(table: DetectionTable) -> IntArray:
    """Place of each row among those of its image, rater and category, from 0, shape (N,)."""
    group = (table.image * 2 + table.slot) * table.n_categories + table.category
    order = np.argsort(group, kind="stable")
    ranks = np.empty(len(group), dtype=np.int64)
    ranks[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    return ranks


def drawn_by(table: DetectionTable, slot: int) -> sparse.csr_array:
    """How many annotations of each category the rater of a slot drew on each image, shape (I, C)."""
    rows = table.slot == slot
    shape = (table.n_images, table.n_categories)
    return sparse.csr_array((np.ones(int(rows.sum())), (table.image[rows], table.category[rows])), shape=shape)
