"""Items and annotators that the votes cannot tell apart, taken together.

Items with the same votes by the same annotators, or by annotators who are themselves alike, have the same posterior
in every sweep, and so do annotators with the same votes on items that are alike. One of each kind is fitted and
counted as often as it occurs: three readers give at most eight kinds of items, and a million annotators with one vote
each a few hundred kinds of annotators. Kinds are found by colour refinement of the vote graph: every node is coloured
by the colours of its neighbours until no colour splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgold.tables.votes import VoteTable

__all__ = ["CanonicalVotes", "VoteClasses", "canonical_votes", "vote_classes"]

FloatArray = NDArray[np.float64]
Colours = NDArray[np.uint64]

MOST_ROUNDS = 12
WORTHWHILE = 0.8  # share of the items and annotators above which the kinds are left alone


@dataclass(frozen=True, eq=False)
class VoteClasses:
    """A smaller table that stands for all votes.

    Attributes:
        votes: The votes of one item and one annotator of each kind.
        item: Kind of each item of the whole table, shape (I,).
        annotator: Kind of each annotator, shape (A,).
        item_weight: Number of items of each kind.
        annotator_weight: Number of annotators of each kind.
    """

    votes: VoteTable
    item: NDArray[np.intp]
    annotator: NDArray[np.intp]
    item_weight: FloatArray
    annotator_weight: FloatArray


def vote_classes(votes: VoteTable) -> VoteClasses:
    """Return the kinds of items and annotators of a table.

    >>> table = VoteTable.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0], ["x", "y"], ["ann", "bob"])
    >>> vote_classes(table).item_weight.tolist()
    [2.0]
    """
    items, annotators = _refine(votes)
    item_kinds, first_item, item = _numbered(items)
    annotator_kinds, _, annotator = _numbered(annotators)
    if item_kinds + annotator_kinds > WORTHWHILE * (votes.n_items + votes.n_annotators):
        return VoteClasses(
            votes,
            np.arange(votes.n_items),
            np.arange(votes.n_annotators),
            np.ones(votes.n_items),
            np.ones(votes.n_annotators),
        )
    chosen = np.isin(votes.item_codes, first_item)
    weights = np.ones(votes.n_votes) if votes.weights is None else votes.weights
    key = (item[votes.item_codes] * annotator_kinds + annotator[votes.annotator_codes]) * 2 + votes.votes
    kinds, place = np.unique(key[chosen], return_inverse=True)
    table = VoteTable.from_codes(
        kinds // 2 // annotator_kinds,
        kinds // 2 % annotator_kinds,
        kinds % 2,
        [str(number) for number in range(item_kinds)],
        [str(number) for number in range(annotator_kinds)],
        weights=np.bincount(place, weights[chosen]),
    )
    return VoteClasses(
        table, item, annotator, np.bincount(item).astype(np.float64), np.bincount(annotator).astype(np.float64)
    )


@dataclass(frozen=True, eq=False)
class CanonicalVotes:
    """The same votes in an order that depends neither on that of the rows nor on ids.

    Attributes:
        votes: The votes, items and annotators numbered by colour.
        annotator: New number of each annotator, shape (A,).
    """

    votes: VoteTable
    annotator: NDArray[np.intp]


def canonical_votes(votes: VoteTable) -> CanonicalVotes:
    """Return the votes in canonical order, so that random numbers fall on the same annotators and items."""
    items, annotators = (np.argsort(colours, kind="stable") for colours in _refine(votes))
    item, annotator = np.argsort(items), np.argsort(annotators)
    item_codes, annotator_codes = item[votes.item_codes], annotator[votes.annotator_codes]
    order = np.lexsort((votes.votes, annotator_codes, item_codes))
    table = VoteTable.from_codes(
        item_codes[order],
        annotator_codes[order],
        votes.votes[order],
        votes.item_ids[items],
        votes.annotator_ids[annotators],
        weights=None if votes.weights is None else votes.weights[order],
    )
    return CanonicalVotes(table, annotator)


def _refine(votes: VoteTable) -> tuple[Colours, Colours]:
    """Return the colours of items and annotators when no colour splits any more."""
    sign = _mixed(votes.votes.astype(np.uint64) + np.uint64(1))
    if votes.weights is not None:
        sign = _mixed(sign ^ votes.weights.view(np.uint64))
    sides = [(votes.item_codes, votes.n_items), (votes.annotator_codes, votes.n_annotators)]
    orders = [np.argsort(codes, kind="stable") for codes, _ in sides]
    starts = [np.searchsorted(side[0][order], np.arange(side[1])) for side, order in zip(sides, orders, strict=True)]
    colours = [np.zeros(votes.n_items, np.uint64), np.zeros(votes.n_annotators, np.uint64)]
    count = (1, 1)
    for _ in range(MOST_ROUNDS):
        for here, there in ((1, 0), (0, 1)):
            seen = _mixed(colours[there][sides[there][0]] ^ sign)[orders[here]]
            colours[here] = _mixed(colours[here] + _mixed(np.add.reduceat(seen, starts[here])))
        now = len(np.unique(colours[0])), len(np.unique(colours[1]))
        if now == count or sum(now) > WORTHWHILE * (votes.n_items + votes.n_annotators):
            return colours[0], colours[1]
        count = now
    # Not settled: what differs still has not been found to be alike.
    return np.arange(votes.n_items, dtype=np.uint64), np.arange(votes.n_annotators, dtype=np.uint64)


def _mixed(values: Colours) -> Colours:
    """Return well-mixed 64-bit numbers (the finaliser of SplitMix64), so that sums of them tell multisets apart."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _numbered(colours: Colours) -> tuple[int, NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of colours, the first node of each, and each node's, in the order of first appearance."""
    _, first, place = np.unique(colours, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return len(first), np.sort(first), rank[place]
