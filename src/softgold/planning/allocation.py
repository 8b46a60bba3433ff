"""Which items get the next votes: a batch in which every vote goes where it is worth most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_in_range, check_positive_int
from softgold.errors import BudgetError, UsageError
from softgold.models.base import Fit, Posterior
from softgold.planning.assignment import EXPLORE, Assignment, Voters, assign
from softgold.planning.beliefs import Beliefs
from softgold.planning.crew import Crew
from softgold.planning.outcomes import Outlook, look_ahead
from softgold.tables.parts import VotesInParts
from softgold.tables.study import are_strangers

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PLAN_COLUMNS = (
    "item",
    "priority",
    "p",
    "n_votes",
    "votes_suggested",
    "expected_error_before",
    "expected_error_after",
)
ANNOTATORS_SUGGESTED = "annotators_suggested"
MAX_PER_ITEM = 3
MOST_PER_ITEM = 20  # the number of outcomes of so many votes is in the tens of thousands
ITEMS_AT_ONCE = 1 << 20
CLOSED = 0.01**2  # a vote that is expected to move p by less than 0.01 (root mean square) is not worth buying


@dataclass(frozen=True, eq=False)
class VotePlan:
    """A batch of votes to buy, one row per item that gets any, the most valuable first; N rows.

    Attributes:
        item_ids: The items, length N.
        priority: What the next vote is worth: the expected fall of the item's Brier score, E[(p' - p)^2], shape (N,).
        p: Soft labels now, shape (N,).
        n_votes: Votes now, shape (N,).
        votes_suggested: Votes to buy, shape (N,).
        error_before: Chance that the label is wrong now, min(p, 1 - p), shape (N,).
        error_after: The same after the suggested votes, in expectation, shape (N,).
        n_items: Items of the whole table.
        table_error_before: Expected share of wrong labels in the whole table now.
        table_error_after: The same after the batch.
        assignment: Who votes on what; votes that nobody can give have no row in it.
    """

    item_ids: pd.Index[str]
    priority: FloatArray
    p: FloatArray
    n_votes: IntArray
    votes_suggested: IntArray
    error_before: FloatArray
    error_after: FloatArray
    n_items: int
    table_error_before: float
    table_error_after: float
    assignment: Assignment | None = None

    @property
    def budget(self) -> int:
        """Votes in the batch."""
        return int(self.votes_suggested.sum())

    def to_frame(self) -> pd.DataFrame:
        """Return one row per item, with `annotators_suggested` where the plan names people."""
        values: tuple[Any, ...] = (
            self.item_ids,
            self.priority,
            self.p,
            self.n_votes,
            self.votes_suggested,
            self.error_before,
            self.error_after,
        )
        frame = pd.DataFrame(dict(zip(PLAN_COLUMNS, values, strict=True)))
        if self.assignment is None:
            return frame
        return frame.assign(**{ANNOTATORS_SUGGESTED: self.assignment.by_row(len(frame))})

    def to_votes(self) -> pd.DataFrame:
        """Return one row per vote that somebody can give, with its `annotator`; empty if the plan names nobody."""
        frame = self.to_frame().drop(columns=ANNOTATORS_SUGGESTED, errors="ignore")
        if self.assignment is None:
            return frame.iloc[:0]
        rows = frame.iloc[self.assignment.rows].reset_index(drop=True)
        rows.insert(1, "annotator", self.assignment.annotators)
        rows.insert(2, "explores", self.assignment.explores)
        return rows

    def __str__(self) -> str:
        after = 100 * self.table_error_after
        by = "" if self.assignment is None else f" by {self.assignment}"
        return (
            f"{self.budget:,} votes on {len(self.item_ids):,} of {self.n_items:,} items{by}: the expected share of "
            f"wrong labels falls from {100 * self.table_error_before:.2f} % to {after:.2f} %"
        )


def plan_votes(
    fitted: Fit | Posterior,
    budget: int,
    *,
    votes: VotesInParts | None = None,
    annotators: Crew | None = None,
    explore: float = EXPLORE,
    max_per_item: int = MAX_PER_ITEM,
    with_people: bool = True,
) -> VotePlan:
    """Return which items should get the next `budget` votes, and from which annotators.

    A vote is worth the expected fall of the item's Brier score, E[(p' - p)^2], over the answer of an annotator like
    those of the table. Within an item every further vote of the batch is worth less, so that no item takes all.
    Those whose votes tell most are asked where there is most to gain: nobody twice on an item, and nobody for more
    than twice their share of the votes so far as long as others can vote.

    Args:
        fitted: A fit of a crowd model, or its posterior together with `votes`.
        budget: Number of votes to buy.
        votes: The votes that a posterior was fitted to; not needed with a fit.
        annotators: Who is free; then the plan has only votes that they can give, worth what theirs are. Left out,
            the annotators of the table are asked, unless its votes are those of strangers.
        explore: Share of the votes for the annotators who are known least.
        max_per_item: Most votes on one item in this batch.
        with_people: Whether to suggest annotators where none are given.

    Returns:
        The plan, with `.to_frame()` (one row per item) and `.to_votes()` (one row per vote).

    Raises:
        BudgetError: The budget is larger than the number of votes that are worth buying.
        UsageError: The budget is larger than what the annotators can give.

    Example:
        >>> import softgold
        >>> study = softgold.simulate(n_items=200, n_annotators=20, seed=0)
        >>> plan = plan_votes(softgold.fit(study.votes, engine="coordinate"), 50)
        >>> plan.budget, plan.table_error_after < plan.table_error_before
        (50, True)
    """
    beliefs = Beliefs.of(fitted, votes)
    budget = check_positive_int(budget, "budget")
    max_per_item = check_positive_int(max_per_item, "max_per_item", maximum=MOST_PER_ITEM)
    check_in_range(explore, 0.0, 1.0, "explore")
    crew = Crew.of(beliefs) if annotators is None else annotators
    outlook = look_ahead(beliefs, crew.pool(beliefs), max_per_item)
    limit = np.broadcast_to(max_per_item, beliefs.n_items)
    if annotators is not None:
        _check_capacity(annotators, budget)
        limit = np.minimum(limit, annotators.n_free(beliefs.votes))
    wanted = allocate(outlook, budget, limit)
    priority, error = outlook.brier[:, 0] - outlook.brier[:, 1], outlook.error
    del outlook  # of millions of items, each of its arrays takes hundreds of MB
    assignment = None
    if annotators is not None or (with_people and not are_strangers(crew.annotator_ids)):
        chosen = _by_value(priority, wanted)
        voters = Voters.of(beliefs.votes, chosen, crew)
        assignment = assign(beliefs, chosen, wanted[chosen], crew, explore, voters)
        assignment = replace(assignment, rows=chosen[assignment.rows])
        if annotators is not None:
            wanted = np.bincount(assignment.rows, minlength=beliefs.n_items)
    before, after = error[:, 0].copy(), np.take_along_axis(error, wanted[:, None], axis=1)[:, 0]
    del error
    return _plan(beliefs, priority, before, after, wanted, assignment)


def _check_capacity(crew: Crew, budget: int) -> None:
    total = int(crew.capacity.sum())
    if budget > total:
        raise UsageError(
            f"a budget of {budget:,} is above what is left: the {len(crew.capacity):,} annotators may give {total:,} "
            "votes together; lower the budget, or raise their capacity"
        )


def allocate(outlook: Outlook, budget: int, limit: IntArray) -> IntArray:
    """Return the votes of each item, shape (I,): the `budget` most valuable ones of all that could be bought.

    The value of the n-th vote on an item is the fall of its expected Brier score from n - 1 votes to n, but never more
    than that of the vote before it, which has to be bought first.
    """
    depth = outlook.brier.shape[1] - 1
    worth = np.concatenate([value[value > CLOSED] for value in _values(outlook, limit)])
    open_votes = len(worth)
    if not (limit > 0).any():
        raise BudgetError("no item is open: everybody who is free has voted on every item", 0)
    if open_votes == 0:
        raise BudgetError(
            "no item is open: one more vote is not expected to move any soft label by more than 0.01; no vote is worth "
            "buying",
            0,
        )
    if budget > open_votes:
        raise BudgetError(
            f"a budget of {budget:,} is above what is left: with at most {depth} votes per item, {open_votes:,} votes "
            "are expected to move a soft label by more than 0.01; lower the budget, or allow more votes per item "
            "(--max-per-item)",
            open_votes,
        )
    worth.partition(open_votes - budget)
    least = float(worth[open_votes - budget])
    equal = budget - int((worth > least).sum())  # of equal values the first are bought
    found = np.empty(len(outlook.brier), dtype=np.int64)
    for start, value in zip(range(0, len(found), ITEMS_AT_ONCE), _values(outlook, limit), strict=True):
        chosen = np.asarray(value > least)
        some = np.flatnonzero(value == least)[:equal]
        chosen.ravel()[some] = True
        equal -= len(some)
        found[start : start + len(value)] = chosen.sum(axis=1)
    return found


def _values(outlook: Outlook, limit: IntArray) -> Iterator[FloatArray]:
    """Give the values of the votes on some items at a time, shape (n, N)."""
    for start in range(0, len(outlook.brier), ITEMS_AT_ONCE):
        rows = slice(start, start + ITEMS_AT_ONCE)
        value = outlook.brier[rows, :-1] - outlook.brier[rows, 1:]
        np.minimum.accumulate(value, axis=1, out=value)
        value[np.arange(value.shape[1]) >= limit[rows, None]] = -np.inf
        yield value


def _by_value(priority: FloatArray, wanted: IntArray) -> IntArray:
    """Return the items that get votes, the one whose next vote is worth most first."""
    chosen = np.flatnonzero(wanted)
    return chosen[np.argsort(-priority[chosen], kind="stable")]


def _plan(
    beliefs: Beliefs,
    priority: FloatArray,
    before: FloatArray,
    after: FloatArray,
    wanted: IntArray,
    assignment: Assignment | None,
) -> VotePlan:
    """Return the plan; arguments of shape (I,), and the assignment with the items of the whole table as its rows."""
    chosen = _by_value(priority, wanted)  # an item may have lost all its votes because nobody was free
    if assignment is not None:
        place = np.full(len(wanted), -1)
        place[chosen] = np.arange(len(chosen))
        assignment = replace(assignment, rows=place[assignment.rows])
    posterior = beliefs.posterior
    return VotePlan(
        posterior.item_ids[chosen],
        priority[chosen],
        posterior.soft_labels().p[chosen],
        posterior.item_counts[chosen],
        wanted[chosen],
        before[chosen],
        after[chosen],
        beliefs.n_items,
        float(before.mean()),
        float(after.mean()),
        assignment,
    )
