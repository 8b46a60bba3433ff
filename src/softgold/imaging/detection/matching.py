"""Matchings on sparse sets of pairs, for all images at once: a pair's ends are rows, so images never mix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def best_assignment(left: IntArray, right: IntArray, gain: FloatArray) -> BoolArray:
    """Choose pairs, each end at most once, with the largest total gain (the Hungarian method); shape (E,).

    Pairs that share no end with another are taken at once, a node with several partners takes its best (the first
    of equals), and only larger groups are solved as assignment problems.

    Args:
        left: One end of each pair, shape (E,).
        right: The other end, shape (E,); the two sides are numbered apart.
        gain: What the pair is worth, above 0, shape (E,).

    Example:
        >>> left, right = np.array([0, 0, 1]), np.array([0, 1, 0])
        >>> best_assignment(left, right, np.array([0.9, 0.6, 0.6])).tolist()
        [False, True, True]
    """
    chosen = np.zeros(len(gain), dtype=bool)
    if not len(gain):
        return chosen
    left, n_left = _compact(left)
    right, n_right = _compact(right)
    links = sparse.coo_array((np.ones(len(left), np.int8), (left, right + n_left)), shape=(n_left + n_right,) * 2)
    count, labels = connected_components(links, directed=False)
    knot = labels[left].astype(np.int64)
    n_lefts = np.bincount(labels[:n_left], minlength=count)
    n_rights = np.bincount(labels[n_left:], minlength=count)
    star = np.minimum(n_lefts, n_rights)[knot] == 1
    chosen[_best_of_each(knot, gain, np.flatnonzero(star))] = True
    rest = np.flatnonzero(~star)
    rest = rest[np.argsort(knot[rest], kind="stable")]
    for edges in np.split(rest, np.flatnonzero(np.diff(knot[rest])) + 1):
        chosen[edges[_assign_densely(left[edges], right[edges], gain[edges])]] = True
    return chosen


def largest_matching(left: IntArray, right: IntArray) -> BoolArray:
    """Choose as many pairs as possible, each end at most once, shape (E,); of equal choices any one.

    >>> largest_matching(np.array([0, 0, 1]), np.array([0, 1, 0])).tolist()
    [False, True, True]
    """
    if not len(left):
        return np.zeros(0, dtype=bool)
    left, n_left = _compact(left)
    right, n_right = _compact(right)
    places = left.astype(np.int32), right.astype(np.int32)  # SciPy 1.14 matches no wider ones
    pairs = sparse.csr_array((np.ones(len(left), np.int8), places), shape=(n_left, n_right))
    partner = maximum_bipartite_matching(pairs, perm_type="column")
    return np.asarray(partner[left] == right)


def greedy_disjoint(nodes: IntArray, score: FloatArray) -> BoolArray:
    """Take entries by descending score, without those that share a node with one taken before; shape (E,).

    Equal scores go by position. An entry that comes first at all its nodes is taken in the same sweep as the others
    of its kind, which gives what taking one at a time would give.

    Args:
        nodes: The nodes of each entry, shape (E, k).
        score: Score of each entry, shape (E,).

    Example:
        >>> greedy_disjoint(np.array([[0, 5], [0, 6], [1, 6]]), np.array([0.6, 0.9, 0.8])).tolist()
        [False, True, False]
    """
    order = np.argsort(-score, kind="stable")
    places, count = _compact(nodes.ravel())
    places = places.reshape(nodes.shape)[order]
    taken = np.zeros(len(score), dtype=bool)
    left = np.arange(len(score))
    while len(left):
        first = np.full(count, len(score))
        np.minimum.at(first, places[left].ravel(), np.repeat(left, nodes.shape[1]))
        winners = left[(first[places[left]] == left[:, None]).all(axis=1)]
        taken[order[winners]] = True
        used = np.zeros(count, dtype=bool)
        used[places[winners].ravel()] = True
        left = left[~used[places[left]].any(axis=1)]
    return taken


def match_in_order(
    detection: IntArray, truth: IntArray, iou: FloatArray, rank: IntArray, thresholds: FloatArray
) -> BoolArray:
    """Match detections one after the other to their best free truth, as COCO does, at every threshold at once.

    Args:
        detection: Row of the detection of each pair, shape (E,).
        truth: Row of the truth of each pair, shape (E,).
        iou: Overlap of each pair, shape (E,).
        rank: When each row comes up within its image and category, shape (N,); rows of one rank share no truth.
        thresholds: Overlaps from which a pair may match, shape (T,).

    Returns:
        Whether each row was matched as a detection, shape (N, T).

    Example:
        >>> pairs = np.array([0, 1]), np.array([2, 2]), np.array([0.6, 0.8])
        >>> match_in_order(*pairs, rank=np.array([0, 1, 0]), thresholds=np.array([0.5, 0.75])).T.tolist()
        [[True, False, False], [False, True, False]]
    """
    # COCO keeps the later of two equally good truths.
    order = np.lexsort((-truth, -iou, detection, rank[detection]))
    detection, truth, iou = detection[order], truth[order], iou[order]
    turn_of = rank[detection] * len(rank) + detection
    choice = np.arange(len(detection)) - np.searchsorted(turn_of, turn_of)
    turns = np.lexsort((choice, rank[detection]))
    matched = np.zeros((len(rank), len(thresholds)), dtype=bool)
    free = np.ones((len(rank), len(thresholds)), dtype=bool)
    key = rank[detection[turns]] * (choice.max(initial=0) + 1) + choice[turns]
    for turn in np.split(turns, np.flatnonzero(np.diff(key)) + 1):
        d, t = detection[turn], truth[turn]
        fits = free[t] & ~matched[d] & (iou[turn, None] >= thresholds)
        matched[d] |= fits
        free[t] &= ~fits
    return matched


def _compact(values: IntArray) -> tuple[IntArray, int]:
    names, codes = np.unique(values, return_inverse=True)
    return codes, len(names)


def _best_of_each(group: IntArray, gain: FloatArray, edges: IntArray) -> IntArray:
    order = edges[np.lexsort((edges, -gain[edges], group[edges]))]
    return np.asarray(order[np.diff(group[order], prepend=-1) != 0])


def _assign_densely(left: IntArray, right: IntArray, gain: FloatArray) -> IntArray:
    """Positions of the chosen pairs of one knot."""
    rows, n_rows = _compact(left)
    columns, n_columns = _compact(right)
    table = np.zeros((n_rows, n_columns))
    table[rows, columns] = gain
    partner = np.full(n_rows, -1)
    chosen_rows, chosen_columns = linear_sum_assignment(table, maximize=True)
    partner[chosen_rows] = chosen_columns
    return np.flatnonzero(partner[rows] == columns)
