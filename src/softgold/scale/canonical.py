"""Kinds of items and annotators of votes on disk: the same as `models.crowd.classes` finds in memory.

Colours take one pass over the parts per round. Colours and numbers of the items are held in memory, votes are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.models.crowd.classes import MOST_ROUNDS, WORTHWHILE, Colours
from softgold.models.crowd.threads import in_order, worker_pool
from softgold.scale.store import FloatArray, VoteStore
from softgold.tables.hashing import mixed
from softgold.tables.parts import PartVotes, StorePart

Orientation = bool  # whether the opposite of each vote is taken


def _signs(votes: PartVotes, opposite: Orientation) -> Colours:
    values = 1 - votes.votes if opposite else votes.votes
    sign = mixed(values.astype(np.uint64) + np.uint64(1))
    return sign if votes.weights is None else mixed(sign ^ votes.weights.view(np.uint64))


def refine_store(store: VoteStore, *, opposite: Orientation = False) -> tuple[Colours, Colours]:
    """Return the colours of items and annotators, as `refine` does for a table in memory."""
    items, people = np.zeros(store.n_items, np.uint64), np.zeros(store.n_annotators, np.uint64)
    count = (1, 1)
    with worker_pool() as pool:
        sums = np.zeros(store.n_annotators, np.uint64)

        def start(part: StorePart) -> Colours:
            votes = store.load(part)
            found = np.zeros(store.n_annotators, np.uint64)
            np.add.at(found, votes.annotators, mixed(_signs(votes, opposite)))
            return found

        for found in in_order(start, store.parts, pool):
            sums += found
        for _ in range(MOST_ROUNDS):
            people = mixed(people + mixed(sums))

            def colour(part: StorePart, people: Colours = people) -> Colours:
                votes = store.load(part)
                sign, here = _signs(votes, opposite), slice(part.first_item, part.first_item + part.n_items)
                seen = np.add.reduceat(mixed(people[votes.annotators] ^ sign), votes.starts[:-1])
                items[here] = mixed(items[here] + mixed(seen))
                found = np.zeros(store.n_annotators, np.uint64)
                np.add.at(found, votes.annotators, mixed(np.repeat(items[here], votes.counts) ^ sign))
                return found

            sums = np.zeros(store.n_annotators, np.uint64)
            for found in in_order(colour, store.parts, pool):
                sums += found
            now = _distinct(items), _distinct(people)
            if now in {count, (store.n_items, store.n_annotators)}:
                return items, people
            count = now
    return np.arange(store.n_items, dtype=np.uint64), np.arange(store.n_annotators, dtype=np.uint64)


def _distinct(values: Colours) -> int:
    ordered = np.sort(values)
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of items and annotators, as in `classes.VoteClasses`.

    Attributes:
        item: Kind of each item, shape (I,).
        annotator: Kind of each annotator, shape (A,).
        item_weight: Number of items of each kind; None where it is 1 for all.
        annotator_weight: Number of annotators of each kind.
        n_items: Number of kinds of items.
    """

    item: NDArray[np.int32] | NDArray[np.int64]
    annotator: NDArray[np.intp]
    item_weight: FloatArray | None
    annotator_weight: FloatArray
    n_items: int

    @property
    def merged(self) -> bool:
        """Whether a kind may stand for several items or annotators."""
        return self.item_weight is not None

    def shown(self) -> NDArray[np.bool_]:
        """Return which items stand for their kind: the first of each, shape (I,)."""
        found = np.ones(len(self.item), bool)
        if self.item_weight is not None:
            found[:] = False
            found[np.unique(self.item, return_index=True)[1]] = True
        return found


def find_kinds(colours: tuple[Colours, Colours], *, merge: bool = True) -> Kinds:
    """Return the kinds that `vote_classes` finds with these colours."""
    items, people = colours
    if merge and _distinct(items) + _distinct(people) <= WORTHWHILE * (len(items) + len(people)):
        item, annotator = (np.unique(side, return_inverse=True)[1] for side in colours)
        sizes = [np.bincount(side).astype(np.float64) for side in (item, annotator)]
        return Kinds(_smaller(item), annotator, sizes[0], sizes[1], len(sizes[0]))
    annotator = np.argsort(np.argsort(people, kind="stable"))
    order = np.argsort(items, kind="stable")
    item = np.empty(len(items), np.int64)
    item[order] = np.arange(len(items))
    return Kinds(_smaller(item), annotator, None, np.ones(len(people)), len(items))


def _smaller(numbers: NDArray[Any]) -> NDArray[np.int32] | NDArray[np.int64]:
    return numbers.astype(np.int32) if len(numbers) < 2**31 else numbers


def is_opposite(store: VoteStore) -> Orientation:
    """Return whether `classes.oriented` would take the opposite votes."""
    surplus = 0.0
    for _, votes in store.each():
        signs = 2.0 * votes.votes - 1
        surplus += float(np.dot(signs, np.ones(len(signs)) if votes.weights is None else votes.weights))
    if abs(surplus) < 1e-9:  # as many yes as no votes: the colours decide
        here, there = (refine_store(store, opposite=opposite)[0].max() for opposite in (False, True))
        return bool(here > there)
    return surplus > 0
