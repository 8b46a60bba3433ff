"""The experts' answers, their majority, and the panels that a bootstrap draws from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgold.agreement import NominalLabels
from softgold.checks import FloatArray, check_choice
from softgold.errors import InputError
from softgold.tables.experts import ExpertLabels
from softgold.tables.votes import VoteTable

LabelArray = NDArray[np.int8]
Tie = Literal["negative", "positive"]

NO_LABEL = -1
EXACT_PANELS = 10_000
"""Panels are enumerated up to this many distinct ones (8 experts), and drawn at random above."""


@dataclass(frozen=True, eq=False)
class ExpertPanel:
    """Answers of E experts about N items; experts may have labelled different items.

    Attributes:
        expert_ids: Names of the experts, length E.
        item_ids: The items that at least one of them labelled, length N.
        answers: 0, 1, or `NO_LABEL`, int8, shape (E, N).
        unsure: Where an expert answered "unsure", which counts as no label, shape (E, N).

    Example:
        >>> panel = ExpertPanel.from_matrix([[0, 1, None], [1, 1, 0], [1, 0, None]])
        >>> panel.majority().tolist()
        [1, 1, 0]
    """

    expert_ids: pd.Index[Any]
    item_ids: pd.Index[Any]
    answers: LabelArray
    unsure: NDArray[np.bool_]

    @classmethod
    def from_matrix(cls, rows: Sequence[Sequence[int | None]], experts: Sequence[str] | None = None) -> ExpertPanel:
        """Build from one row per expert and one column per item; None is no label."""
        if not rows or len({len(row) for row in rows}) != 1:
            raise InputError("a panel needs at least one expert, and one entry per item from each")
        table = np.array([[NO_LABEL if value is None else value for value in row] for row in rows])
        if not np.isin(table, (NO_LABEL, 0, 1)).all():
            raise InputError("expert labels must be 0, 1 or missing")
        names = experts if experts is not None else [f"expert {number + 1}" for number in range(len(rows))]
        return cls(pd.Index(names), pd.RangeIndex(table.shape[1]), table.astype(np.int8), np.zeros(table.shape, bool))

    @classmethod
    def from_labels(cls, experts: ExpertLabels) -> ExpertPanel:
        """Build from labels in long form, one per expert and item; experts who gave none have a row without labels."""
        table = experts.table
        if table.weights is not None or table.n_votes != len(np.unique(_pairs(table))):
            raise InputError(
                "an expert labelled an item more than once; read the labels with duplicates='first' or 'last'"
            )
        names = pd.Index([*table.annotator_ids, *table.abstained_annotators], dtype="str")
        answers = np.full((len(names), table.n_items), NO_LABEL, dtype=np.int8)
        answers[table.annotator_codes, table.item_codes] = table.votes
        return cls(names, table.item_ids, answers, np.zeros(answers.shape, bool))

    @property
    def n_experts(self) -> int:
        """Number of experts E."""
        return len(self.expert_ids)

    def majority(self, tie: Tie = "negative") -> LabelArray:
        """Return the majority of those who labelled each item, shape (N,); `tie` decides even splits."""
        return np.asarray(self.majorities(np.ones((1, self.n_experts)), tie)[0])

    def majorities(self, panels: ArrayLike, tie: Tie = "negative") -> LabelArray:
        """Return the majority labels of many panels, shape (M, N); `NO_LABEL` where nobody of a panel labelled.

        Args:
            panels: How often each expert sits on each panel, shape (M, E).
            tie: Label of an even split.
        """
        check_choice(tie, get_args(Tie), "tie")
        seats = np.asarray(panels, dtype=np.float64)
        positive = seats @ (self.answers == 1)
        negative = seats @ (self.answers == 0)
        label = positive >= negative if tie == "positive" else positive > negative
        return np.where(positive + negative > 0, label, NO_LABEL).astype(np.int8)

    def others(self, tie: Tie = "negative") -> LabelArray:
        """Return the majority of the panel without each expert, shape (E, N)."""
        return self.majorities(1 - np.eye(self.n_experts), tie)

    def take(self, experts: NDArray[np.bool_], items: NDArray[np.bool_]) -> ExpertPanel:
        """Return some of the experts on some of the items, given by masks of shapes (E,) and (N,)."""
        both = np.ix_(experts, items)
        return ExpertPanel(self.expert_ids[experts], self.item_ids[items], self.answers[both], self.unsure[both])

    def nominal(self) -> NominalLabels:
        """Return the answers as nominal labels, for coefficients of agreement."""
        raters, units = np.nonzero(self.answers != NO_LABEL)
        categories = pd.Index([0, 1])
        return NominalLabels(
            units, raters, self.answers[raters, units], len(self.item_ids), self.expert_ids, categories
        )


def _pairs(table: VoteTable) -> NDArray[np.int64]:
    return table.annotator_codes.astype(np.int64) * table.n_items + table.item_codes


@dataclass(frozen=True, eq=False)
class PanelDraws:
    """Panels of E seats drawn with replacement from E experts.

    Attributes:
        seats: How often each expert sits on each panel, shape (M, E).
        probability: Chance of each panel, shape (M,), summing to 1.
        exact: Whether these are all panels there are.
    """

    seats: NDArray[np.int64]
    probability: FloatArray
    exact: bool


def draw_panels(n_experts: int, *, n_bootstrap: int = 2000, seed: int = 0) -> PanelDraws:
    """Return all panels with their chances when they are few, and random ones otherwise.

    Three experts have 27 ordered panels but 10 compositions. Enumerating compositions, weighted by their multinomial
    coefficients, gives the bootstrap distribution exactly.

    >>> draws = draw_panels(3)
    >>> len(draws.seats), draws.exact, float(draws.probability.max())  # one seat each: 6 of 27
    (10, True, 0.2222222222222222)
    """
    if comb(max(2 * n_experts - 1, 0), n_experts) <= EXACT_PANELS:
        return all_panels(n_experts)
    rng = np.random.default_rng(seed)
    seats = rng.multinomial(n_experts, np.full(n_experts, 1 / n_experts), size=n_bootstrap)
    return PanelDraws(seats, np.full(n_bootstrap, 1 / n_bootstrap), exact=False)


def all_panels(n_experts: int) -> PanelDraws:
    """Return every composition of a panel of `n_experts` seats, with its chance."""
    members = np.array(list(combinations_with_replacement(range(n_experts), n_experts)))
    seats = (members[:, :, None] == np.arange(n_experts)).sum(axis=1)
    orders = [factorial(n_experts) // prod(factorial(seat) for seat in row) for row in seats.tolist()]
    return PanelDraws(seats, np.array(orders) / float(n_experts) ** n_experts, exact=True)
