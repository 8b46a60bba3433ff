"""Items and annotators that the votes cannot tell apart are merged.

Items with the same votes by the same annotators, or by annotators who are themselves alike, have the same posterior
in every sweep, and so do annotators with the same votes on items that are alike. One of each kind is fitted and
counted as often as it occurs: three readers give at most eight kinds of items, and a million annotators with one vote
each a few hundred kinds of annotators. Kinds are found by colour refinement of the vote graph: every node is coloured
by the colours of its neighbours until no colour splits. Colours depend neither on the order of the rows nor on ids, and
kinds are numbered by colour: the same votes give the same table of kinds, whatever their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import FloatArray
from softgold.tables.hashing import mixed
from softgold.tables.votes import VoteTable

Colours = NDArray[np.uint64]

MOST_ROUNDS = 12
WORTHWHILE = 0.8  # share of the items and annotators above which the kinds are left alone


@dataclass(frozen=True, eq=False)
class VoteClasses:
    """A smaller table, equivalent to all votes.

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


def vote_classes(
    votes: VoteTable, *, merge: bool = True, colours: tuple[Colours, Colours] | None = None
) -> VoteClasses:
    """Return the kinds of items and annotators of a table, in canonical order.

    Without `merge`, and where hardly any are alike, every item and every annotator is a kind of its own. `colours` are
    those of `refine`, where they are known already.

    >>> table = VoteTable.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0], ["x", "y"], ["ann", "bob"])
    >>> vote_classes(table).item_weight.tolist()
    [2.0]
    """
    colours = colours or refine(votes)
    item, annotator = (np.unique(side, return_inverse=True)[1] for side in colours)
    if not merge or item.max() + annotator.max() + 2 > WORTHWHILE * (votes.n_items + votes.n_annotators):
        item, annotator = (np.argsort(np.argsort(side, kind="stable")) for side in colours)
    sizes = [np.bincount(side).astype(np.float64) for side in (item, annotator)]
    _, first = np.unique(item, return_index=True)
    chosen = np.isin(votes.item_codes, first)
    n_kinds = len(sizes[1])
    key = (item[votes.item_codes[chosen]] * n_kinds + annotator[votes.annotator_codes[chosen]]) * 2
    kinds, place = np.unique(key + votes.votes[chosen], return_inverse=True)
    weights = np.bincount(place, None if votes.weights is None else votes.weights[chosen]).astype(np.float64)
    codes = kinds // 2 // n_kinds, kinds // 2 % n_kinds, kinds % 2
    ids = ([str(number) for number in range(len(side))] for side in sizes)
    table = VoteTable.from_codes(*codes, *ids, weights=weights if (weights != 1).any() else None)
    return VoteClasses(table, item, annotator, *sizes)


def oriented(votes: VoteTable) -> VoteTable:
    """Return the votes or their opposites: those with fewer yes votes, so that a table and its opposite give the same.

    >>> table = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 1, 0], ["x", "y"], ["ann", "bob"])
    >>> oriented(table).votes.tolist()
    [0, 0, 1]
    """
    opposite = replace(votes, votes=1 - votes.votes)
    surplus = float(np.dot(2.0 * votes.votes - 1, np.ones(votes.n_votes) if votes.weights is None else votes.weights))
    if abs(surplus) < 1e-9:  # as many yes as no votes: the colours decide
        surplus = float(refine(votes)[0].max() > refine(opposite)[0].max())
    return opposite if surplus > 0 else votes


def refine(votes: VoteTable) -> tuple[Colours, Colours]:
    """Return the colours of items and annotators when no colour splits any more."""
    sign = mixed(votes.votes.astype(np.uint64) + np.uint64(1))
    if votes.weights is not None:
        sign = mixed(sign ^ votes.weights.view(np.uint64))
    sides = [(votes.item_codes, votes.n_items), (votes.annotator_codes, votes.n_annotators)]
    orders = [np.argsort(codes, kind="stable") for codes, _ in sides]
    starts = [np.searchsorted(side[0][order], np.arange(side[1])) for side, order in zip(sides, orders, strict=True)]
    colours = [np.zeros(votes.n_items, np.uint64), np.zeros(votes.n_annotators, np.uint64)]
    count = (1, 1)
    for _ in range(MOST_ROUNDS):
        for here, there in ((1, 0), (0, 1)):
            seen = mixed(colours[there][sides[there][0]] ^ sign)[orders[here]]
            colours[here] = mixed(colours[here] + mixed(np.add.reduceat(seen, starts[here])))
        now = len(np.unique(colours[0])), len(np.unique(colours[1]))
        if now in {count, (votes.n_items, votes.n_annotators)}:
            return colours[0], colours[1]
        count = now
    # Not settled: what still differs is not merged.
    return np.arange(votes.n_items, dtype=np.uint64), np.arange(votes.n_annotators, dtype=np.uint64)
