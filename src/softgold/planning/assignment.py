"""Assignment of people to items: the ablest where it matters, nobody twice, some votes to learn about newcomers."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.planning.beliefs import Beliefs
from softgold.planning.crew import Crew
from softgold.planning.outcomes import vote_values
from softgold.readers.base import counted
from softgold.tables.parts import VotesInParts

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MOST_SAMPLED, LEAST_SAMPLED = 500, 20  # items of the plan that members' votes are compared on
SAMPLED_PAIRS = 20_000_000  # of items and members, where that leaves enough items
MEMBERS_AT_ONCE = 10_000
EXPLORE = 0.1  # share of the votes for newcomers
NEWCOMER_VOTES = 10  # an annotator with fewer votes than these is a newcomer
NOBODY = -1


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

    def by_row(self, n_rows: int) -> list[str]:
        """Return the annotators of each row of the plan, separated by semicolons; empty where there is nobody."""
        names = [""] * n_rows
        for row, name in zip(self.rows.tolist(), self.annotators, strict=True):
            names[row] = f"{names[row]}; {name}" if names[row] else name
        return names

    def __str__(self) -> str:
        if not len(self.annotators):
            return "nobody"
        votes = self.annotators.value_counts()
        return f"{counted(len(votes), 'annotator')} with up to {counted(int(votes.max()), 'vote')} each"


@dataclass(frozen=True, eq=False)
class Voters:
    """Which members of a crew cannot vote on each of N items, because they have.

    Attributes:
        members: The members, item by item, shape (M,).
        starts: Where each item begins, shape (N + 1,).
    """

    members: IntArray
    starts: IntArray

    @classmethod
    def of(cls, votes: VotesInParts, items: IntArray, crew: Crew) -> Voters:
        """Return the members who have voted on each of some items."""
        place = np.full(votes.n_items, -1, dtype=np.int32)
        place[items] = np.arange(len(items))
        member = np.full(votes.n_annotators, NOBODY, dtype=np.int32)
        known = crew.places(votes.annotator_ids)
        member[known[known >= 0]] = np.flatnonzero(known >= 0)
        found = []
        for part, some in votes.each():
            at, who = place[part.rows][some.items], member[some.annotators]
            both = (at >= 0) & (who >= 0)
            found.append(np.stack([at[both], who[both]]))
        rows, members = np.concatenate(found, axis=1)
        order = np.argsort(rows, kind="stable")
        return cls(members[order].astype(np.int64), np.searchsorted(rows[order], np.arange(len(items) + 1)))


class _Desk:
    """The assignment in progress: S slots, each a vote wanted on an item.

    Attributes:
        left: Votes that each member may still give.
        seats: Item by item, the members who have voted on it, then its slots: `NOBODY` or the member chosen.
        place: Where each slot is in `seats`.
    """

    def __init__(self, voters: Voters, votes_wanted: IntArray, capacity: IntArray) -> None:
        self.left: list[int] = capacity.tolist()
        rows = np.repeat(np.arange(len(votes_wanted)), votes_wanted)
        ends = voters.starts[rows + 1]
        self.seats = array("i", np.insert(voters.members, ends, NOBODY).astype(np.int32).tobytes())
        starts = voters.starts + np.concatenate([[0], np.cumsum(votes_wanted)])
        self.place = _packed(ends + np.arange(len(rows)))  # every slot before it has moved the ends by one
        self._first, self._end = _packed(starts[rows]), _packed(starts[rows + 1])

    @property
    def n_slots(self) -> int:
        return len(self.place)

    @property
    def open(self) -> list[int]:
        """Slots without a member, in order."""
        return [slot for slot, place in enumerate(self.place) if self.seats[place] == NOBODY]

    @property
    def chosen(self) -> IntArray:
        """Member of each slot, shape (S,)."""
        return np.array([self.seats[place] for place in self.place], dtype=np.int64)

    def raise_limits(self, votes: IntArray) -> None:
        """Let each member give more votes, or fewer where it is negative, shape (C,)."""
        self.left = (np.array(self.left) + votes).tolist()

    def is_new(self, member: int, slot: int) -> bool:
        return member not in self.seats[self._first[slot] : self._end[slot]]

    def can(self, member: int, slot: int) -> bool:
        return self.left[member] > 0 and self.is_new(member, slot)

    def give(self, slot: int, member: int) -> None:
        self.seats[self.place[slot]] = member
        self.left[member] -= 1

    def take_back(self, slot: int) -> int:
        member = self.seats[self.place[slot]]
        self.seats[self.place[slot]] = NOBODY
        self.left[member] += 1
        return member


def _packed(numbers: IntArray) -> array[int]:
    """Return whole numbers in a form that is small, and fast to read one by one."""
    return array("q", numbers.astype(np.int64).tobytes())


def assign(
    beliefs: Beliefs, items: IntArray, votes_wanted: IntArray, crew: Crew, explore: float, voters: Voters
) -> Assignment:
    """Assign people to the votes of a plan.

    What a vote is worth is about a product of what the item has to gain and of how much the annotator's votes tell on
    such items, and a sum of such products is largest when those who tell most go where there is most to gain. How much
    they tell is known badly while they have few votes, so that nobody gets more than their pace (`Crew.pace`) as long
    as others can vote.

    Args:
        beliefs: The beliefs.
        items: Numbers of the plan's items, the most valuable first, shape (N,).
        votes_wanted: Votes wanted on each, shape (N,).
        crew: Who is free.
        explore: Share of the votes for newcomers, spread evenly over the plan.
        voters: Who cannot vote on these items.
    """
    desk = _Desk(voters, votes_wanted, crew.capacity)
    n_votes = crew.n_votes(beliefs)
    explored = _explore(desk, n_votes, explore)
    order = np.argsort(-_worth(beliefs, items, crew), kind="stable").tolist()
    beyond_pace = np.maximum(crew.capacity - crew.pace(beliefs, desk.n_slots), 0)
    desk.raise_limits(-beyond_pace)
    _fill(desk, order)
    desk.raise_limits(beyond_pace)
    _fill(desk, order)
    _make_room(desk, order)
    chosen = desk.chosen
    filled = np.flatnonzero(chosen != NOBODY)
    rows = np.repeat(np.arange(len(items)), votes_wanted)
    who = chosen[filled]
    explores = np.isin(filled, explored) & (n_votes[who] < NEWCOMER_VOTES)
    return Assignment(rows[filled], crew.annotator_ids[who], explores)


def _worth(beliefs: Beliefs, items: IntArray, crew: Crew) -> FloatArray:
    """Return what a vote of each member is worth on average over the items of the plan, shape (C,)."""
    worth = np.empty(len(crew.capacity))
    size = int(np.clip(SAMPLED_PAIRS // len(worth), LEAST_SAMPLED, MOST_SAMPLED))
    some = np.sort(items[:: max(1, len(items) // size)])
    mass, sure = beliefs.masses(some), beliefs.certainty[some]
    skills = crew.skills(beliefs)
    for start in range(0, len(worth), MEMBERS_AT_ONCE):
        members = np.arange(start, min(start + MEMBERS_AT_ONCE, len(worth)))
        yes = beliefs.chances(skills.take(members))
        worth[members] = vote_values(mass, beliefs.states.positive, yes, sure).mean(axis=0)
    return worth


def _explore(desk: _Desk, n_votes: IntArray, share: float) -> IntArray:
    """Give evenly spaced slots to those with fewest votes; return the slots."""
    newcomers = [(int(count), member) for member, count in enumerate(n_votes) if count < NEWCOMER_VOTES]
    count = round(share * desk.n_slots) if newcomers else 0
    slots = np.unique(np.linspace(0, desk.n_slots - 1, count + 2)[1:-1].astype(np.int64)) if count else np.array([])
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
    passed = 0  # members who were asked in vain; once there were as many as members, those who are done are left out
    for slot in desk.open:
        if passed >= len(order):
            order, passed = [one for one in order if desk.left[one] > 0], 0
        for tried, member in enumerate(order):
            if desk.can(member, slot):
                desk.give(slot, member)
                passed += tried
                break
        else:
            passed += len(order)


def _make_room(desk: _Desk, order: list[int]) -> None:
    """Fill open slots with people who have no votes left: one of their slots goes to somebody who has."""
    for slot in desk.open:
        heirs = [one for one in order if desk.left[one] > 0]
        holders = {one for one in order if desk.left[one] == 0 and desk.is_new(one, slot)} if heirs else set()
        if holders:
            _swap(desk, slot, holders, heirs)


def _swap(desk: _Desk, slot: int, holders: set[int], heirs: list[int]) -> None:
    for other, place in enumerate(desk.place):
        if desk.seats[place] not in holders:
            continue
        heir = next((one for one in heirs if desk.can(one, other)), None)
        if heir is not None:
            holder = desk.take_back(other)
            desk.give(other, heir)
            desk.give(slot, holder)
            return
