"""Assignment of people to items: the ablest where it matters, nobody twice, some votes to learn about newcomers."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.planning.beliefs import Beliefs
from softgold.planning.crew import Crew
from softgold.planning.outcomes import vote_values

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

SAMPLED_ITEMS = 500
NEWCOMER_VOTES = 10  # an annotator with fewer votes than these is a newcomer


@dataclass(frozen=True, eq=False)
class Assignment:
    """Votes to ask for, each array of shape (V,), in the order of the plan.

    Attributes:
        rows: Row of the plan that each vote belongs to.
        annotators: Who gives it.
        explores: Whether it is meant to learn about a newcomer.
    """

    rows: IntArray
    annotators: pd.Index[str]
    explores: NDArray[np.bool_]

    def __str__(self) -> str:
        votes = self.annotators.value_counts()
        return f"{len(votes):,} annotators with up to {votes.max() if len(votes) else 0:,} votes each"


@dataclass
class _Desk:
    """The assignment in progress.

    Attributes:
        left: Votes that each member may still give.
        taken: Members who have voted on, or are assigned to, the item of each row.
        chosen: Member of each slot, -1 while there is none.
    """

    rows: IntArray
    left: list[int]
    taken: list[set[int]]
    chosen: list[int] = field(default_factory=list)

    def can(self, member: int, slot: int) -> bool:
        return self.left[member] > 0 and member not in self.taken[self.rows[slot]]

    def give(self, slot: int, member: int) -> None:
        self.chosen[slot] = member
        self.left[member] -= 1
        self.taken[self.rows[slot]].add(member)

    def take_back(self, slot: int) -> int:
        member = self.chosen[slot]
        self.chosen[slot] = -1
        self.left[member] += 1
        self.taken[self.rows[slot]].discard(member)
        return member


def assign(beliefs: Beliefs, items: IntArray, votes_wanted: IntArray, crew: Crew, explore: float) -> Assignment:
    """Assign people to the votes of a plan.

    What a vote is worth is about a product of what the item has to gain and of how much the annotator's votes tell on
    such items, and a sum of such products is largest when those who tell most go where there is most to gain.

    Args:
        beliefs: The beliefs.
        items: Numbers of the plan's items, the most valuable first, shape (N,).
        votes_wanted: Votes wanted on each, shape (N,).
        crew: Who is free.
        explore: Share of the votes for newcomers, spread evenly over the plan.
    """
    rows = np.repeat(np.arange(len(items)), votes_wanted)
    desk = _Desk(rows, crew.capacity.tolist(), _voters(beliefs, items, crew), [-1] * len(rows))
    explored = _explore(desk, crew.n_votes(beliefs), explore)
    _fill(desk, np.argsort(-_worth(beliefs, items, crew), kind="stable").tolist())
    filled = np.flatnonzero(np.array(desk.chosen) >= 0)
    who = np.array(desk.chosen, dtype=np.int64)[filled]
    return Assignment(rows[filled], crew.annotator_ids[who], np.isin(filled, explored))


def _worth(beliefs: Beliefs, items: IntArray, crew: Crew) -> FloatArray:
    """Return what a vote of each member is worth on average over the items of the plan, shape (C,)."""
    some = np.sort(items[:: max(1, len(items) // SAMPLED_ITEMS)])
    chances = beliefs.chances(crew.skills(beliefs))
    values = vote_values(beliefs.masses(some), beliefs.states.positive, chances, beliefs.certainty[some])
    worth: FloatArray = values.mean(axis=0)
    return worth


def _voters(beliefs: Beliefs, items: IntArray, crew: Crew) -> list[set[int]]:
    """Return which members have voted on each of some items."""
    votes = beliefs.votes
    place = np.full(votes.n_items, -1, dtype=np.int32)
    place[items] = np.arange(len(items))
    member = np.full(votes.n_annotators, -1)
    known = crew.places(votes.annotator_ids)
    member[known[known >= 0]] = np.flatnonzero(known >= 0)
    found: list[set[int]] = [set() for _ in items]
    for part, some in votes.each():
        at, who = place[part.rows][some.items], member[some.annotators]
        both = (at >= 0) & (who >= 0)
        for row, one in zip(at[both].tolist(), who[both].tolist(), strict=True):
            found[row].add(one)
    return found


def _explore(desk: _Desk, n_votes: IntArray, share: float) -> IntArray:
    """Give evenly spaced slots to those with fewest votes; return the slots."""
    newcomers = [(int(count), member) for member, count in enumerate(n_votes) if count < NEWCOMER_VOTES]
    count = round(share * len(desk.rows)) if newcomers else 0
    slots = np.unique(np.linspace(0, len(desk.rows) - 1, count + 2)[1:-1].astype(np.int64)) if count else np.array([])
    heapq.heapify(newcomers)
    done = []
    for slot in slots.astype(np.int64).tolist():
        passed: list[tuple[int, int]] = []
        while newcomers and not desk.can(newcomers[0][1], slot):
            passed.append(heapq.heappop(newcomers))
        if newcomers:
            votes, member = heapq.heappop(newcomers)
            desk.give(slot, member)
            done.append(slot)
            passed.append((votes + 1, member))
        for entry in passed:
            if desk.left[entry[1]] > 0:
                heapq.heappush(newcomers, entry)
    return np.array(done, dtype=np.int64)


def _fill(desk: _Desk, order: list[int]) -> None:
    """Give every open slot, the most valuable first, to the ablest who can take it."""
    for slot in range(len(desk.rows)):
        if desk.chosen[slot] >= 0:
            continue
        member = next((one for one in order if desk.can(one, slot)), None)
        if member is not None:
            desk.give(slot, member)
        else:
            _swap(desk, slot, order)
        if member is not None and desk.left[member] == 0:
            order = [one for one in order if desk.left[one] > 0]


def _swap(desk: _Desk, slot: int, order: list[int]) -> None:
    """Free a person who can take the slot: one of their earlier slots goes to someone with votes left."""
    for earlier in range(slot):
        holder = desk.chosen[earlier]
        if holder < 0 or holder in desk.taken[desk.rows[slot]]:
            continue
        heir = next((one for one in order if desk.can(one, earlier)), None)
        if heir is not None:
            desk.take_back(earlier)
            desk.give(earlier, heir)
            desk.give(slot, holder)
            return
