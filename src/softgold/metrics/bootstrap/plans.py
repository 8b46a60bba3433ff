"""What a bootstrap redraws: items or groups of items, the votes of each item, or a panel of experts.

A plan knows the labels, and no models or metrics.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, gammaln, xlog1py, xlogy

from softgold.metrics.bootstrap.draws import Counts, Draw, DrawnLabels, FixedLabels, FloatArray

HardRule = Literal[">", ">="]
VoteRule = Literal["share", ">", ">="]

# Up to this many votes per item, one uniform and a table of the binomial distribution beat NumPy's binomial.
MAX_TABULATED_VOTES = 127
UNIFORMS_AT_ONCE = 1 << 18
UNIFORMS_KEPT = 1 << 21


class Plan(Protocol):
    """What is resampled."""

    @property
    def n_items(self) -> int:
        """Number of items."""
        ...

    @property
    def n_distinct(self) -> float:
        """How many different resamples there are; infinity when they are too many to enumerate."""
        ...

    def observed(self) -> Draw:
        """Return the data as they are, as one resample."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw `count` resamples; drawing them in several calls gives the same ones."""
        ...

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every distinct resample and its probability."""
        ...


@dataclass(frozen=True, eq=False)
class ItemPlan:
    """Items, or whole groups of items, are drawn with replacement; labels stay with their items.

    Attributes:
        labels: Labels of one kind or several, each of shape (n,).
        groups: Number of the group of each item from 0, shape (n,); None where every item is by itself.
        n_groups: Number of groups; some may have no item here, but items elsewhere.
    """

    labels: tuple[FloatArray, ...]
    groups: NDArray[np.intp] | None
    n_groups: int

    @classmethod
    def of_items(cls, *labels: FloatArray) -> ItemPlan:
        """Redraw single items."""
        return cls(labels, None, len(labels[0]))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.n_groups if self.groups is None else len(self.groups)

    @property
    def n_distinct(self) -> float:
        """Number of multisets of groups."""
        return _n_multisets(self.n_groups)

    def observed(self) -> Draw:
        """Return every item once."""
        return self._draw_of(np.ones((self.n_groups, 1), dtype=np.uint8))

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw as many groups as there are, with replacement."""
        # A byte is enough: up to 255 groups the count cannot exceed it, and beyond, one group drawn more than 255
        # times has a probability below 1e-500.
        rows = np.empty((count, self.n_groups), dtype=np.uint8)
        for row in rows:
            row[:] = np.bincount(rng.integers(0, self.n_groups, size=self.n_groups), minlength=self.n_groups)
        return self._draw_of(np.ascontiguousarray(rows.T))

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every multiset of groups."""
        weight, probability = _multisets(self.n_groups)
        return self._draw_of(weight.T), probability

    def _draw_of(self, copies: NDArray[np.number]) -> Draw:
        weight = copies if self.groups is None else copies.take(self.groups, axis=0)
        return Draw(weight, tuple(FixedLabels(values) for values in self.labels), weight.shape[1])


@dataclass(frozen=True, eq=False)
class VotePlan:
    """The votes of each item are drawn with replacement; the items stay.

    Attributes:
        n_positive: Positive votes of each item, whole numbers, shape (n,).
        n_votes: Votes of each item, likewise.
        rules: The kinds of label: "share": share of positive votes; ">" or ">=": 1 when that share is above (or at
            least) one half.
    """

    n_positive: Counts
    n_votes: Counts
    rules: tuple[VoteRule, ...] = ("share",)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.n_votes)

    @property
    def n_distinct(self) -> float:
        """Number of tables of counts that can arise: a unanimous item has one outcome, others have several."""
        outcomes = self.n_votes[self._contested] + 1
        return math.prod(outcomes.tolist()) if np.log2(outcomes).sum() < 60 else math.inf

    def observed(self) -> Draw:
        """Return the votes as they were given."""
        return self._draw_of(self.n_positive[:, None])

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw the positive votes of each item from its own votes: binomial counts."""
        if self.n_votes.max(initial=0) > MAX_TABULATED_VOTES:
            share = self.n_positive / self.n_votes
            return self._draw_of(rng.binomial(self.n_votes, share, size=(count, self.n_items)).T)
        rows = np.zeros((count, self.n_items), dtype=np.uint8)
        step = max(1, UNIFORMS_AT_ONCE // self.n_items)
        for start in range(0, count, step):
            for first in range(0, self.n_items, UNIFORMS_AT_ONCE):
                items = slice(first, first + UNIFORMS_AT_ONCE)
                some = rows[start : start + step, items]
                uniform = rng.random(some.shape)
                for at_most in self._at_most(items):
                    some += uniform >= at_most
        return self._draw_of(np.ascontiguousarray(rows.T))

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every table of counts with its product of binomial probabilities."""
        which = np.flatnonzero(self._contested)
        n_votes, share = self.n_votes[which], self.n_positive[which] / self.n_votes[which]
        counts = np.array(list(itertools.product(*(range(n + 1) for n in n_votes))), dtype=np.int64)
        counts = counts.reshape(len(counts), len(which))  # one row if no item is contested
        log_probability = gammaln(n_votes + 1) - gammaln(counts + 1) - gammaln(n_votes - counts + 1)
        log_probability += xlogy(counts, share) + xlog1py(n_votes - counts, -share)
        table = np.repeat(self.n_positive[:, None], len(counts), axis=1)
        table[which] = counts.T
        return self._draw_of(table), _normalised(log_probability.sum(axis=1))

    @cached_property
    def _cumulative(self) -> tuple[FloatArray, NDArray[np.uint16]]:
        """P(at most v positive votes) for v = 0, 1, ... (rows) and each kind of item, and the kind of every item.

        A kind is a pair of n_votes and n_positive: there are few, however many items there are.
        """
        most = int(self.n_votes.max(initial=0))
        kind = (self.n_votes * (most + 1) + self.n_positive).astype(np.uint16)  # at most MAX_TABULATED_VOTES votes
        codes = np.flatnonzero(np.bincount(kind))
        number = np.zeros((most + 1) ** 2, dtype=np.uint16)
        number[codes] = np.arange(len(codes))
        n_votes, n_positive = np.divmod(codes, most + 1)
        votes = np.arange(most)[:, None]
        tabulated = bdtr(np.minimum(votes, n_votes), n_votes, n_positive / n_votes)
        return np.where(votes < n_votes, tabulated, 1.0), number[kind]

    def _at_most(self, items: slice) -> Iterator[FloatArray]:
        """Yield P(at most v positive votes) of some items, for v = 0, 1, ...; kept where there is room for all."""
        table, kind = self._cumulative
        if len(table) * len(kind) <= UNIFORMS_KEPT:
            yield from self._expanded[:, items]
        else:
            yield from (row[kind[items]] for row in table)

    @cached_property
    def _expanded(self) -> FloatArray:
        table, kind = self._cumulative
        return table[:, kind]

    @property
    def _contested(self) -> NDArray[np.bool_]:
        return (self.n_positive > 0) & (self.n_positive < self.n_votes)

    def _draw_of(self, counts: Counts) -> Draw:
        weight = np.ones((self.n_items, 1), dtype=np.uint8)
        return Draw(weight, tuple(self._labels(counts, rule) for rule in self.rules), counts.shape[1])

    def _labels(self, counts: Counts, rule: VoteRule) -> DrawnLabels:
        if rule == "share":
            are_equal = self.n_votes.min(initial=1) == self.n_votes.max(initial=1)
            return DrawnLabels(counts, self.n_votes[:1] if are_equal else self.n_votes)
        # 2 c > n exactly when c > n // 2, and 2 c >= n exactly when c > (n - 1) // 2.
        most_negative = (self.n_votes if rule == ">" else self.n_votes - 1) // 2
        hard = counts > most_negative[:, None].astype(counts.dtype)
        return DrawnLabels(hard.astype(np.uint8), np.ones(1))


@dataclass(frozen=True, eq=False)
class PanelPlan:
    """Experts are drawn with replacement into a panel of the same size, and items with them if asked.

    The label is the panel's strict majority: an even split is negative.

    Attributes:
        labels: Labels 0 and 1 of each expert, shape (R, n).
        resample_items: Whether a resample also redraws the items.
    """

    labels: FloatArray
    resample_items: bool

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.labels.shape[1])

    @property
    def n_distinct(self) -> float:
        """Number of multisets of experts, times that of items if they are redrawn."""
        return _n_multisets(len(self.labels)) * (_n_multisets(self.n_items) if self.resample_items else 1)

    def observed(self) -> Draw:
        """Return the majority of all experts."""
        return Draw.from_rows(np.ones((1, self.n_items)), self._majority(np.ones((1, len(self.labels)))))

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw panels, and items with them if asked."""
        # One stream of uniforms, resample by resample, so that draws do not depend on how many are asked for at once.
        n_experts = len(self.labels)
        uniform = rng.random((count, n_experts + (self.n_items if self.resample_items else 0)))
        panels = _count_rows((uniform[:, :n_experts] * n_experts).astype(np.int64), n_experts)
        if not self.resample_items:
            return Draw.from_rows(np.ones((1, self.n_items)), self._majority(panels))
        picks = (uniform[:, n_experts:] * self.n_items).astype(np.int64)
        return Draw.from_rows(_count_rows(picks, self.n_items), self._majority(panels))

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every panel, with every multiset of items if they are redrawn."""
        panels, probability = _multisets(len(self.labels))
        if not self.resample_items:
            return Draw.from_rows(np.ones((1, self.n_items)), self._majority(panels)), probability
        weight, item_probability = _multisets(self.n_items)
        labels = np.repeat(self._majority(panels), len(weight), axis=0)
        both = np.outer(probability, item_probability).ravel()
        return Draw.from_rows(np.tile(weight, (len(panels), 1)), labels), both

    def _majority(self, panels: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(2 * (panels @ self.labels) > len(self.labels))


def _count_rows(picks: NDArray[np.int64], n: int) -> FloatArray:
    """Count how often each of 0 ... n - 1 is in each row; shape (len(picks), n)."""
    flat = (picks + np.arange(len(picks))[:, None] * n).ravel()
    return np.bincount(flat, minlength=len(picks) * n).reshape(len(picks), n).astype(np.float64)


def _n_multisets(n: int) -> float:
    return math.comb(2 * n - 1, n) if n < 30 else math.inf


def _multisets(n: int) -> tuple[FloatArray, FloatArray]:
    """Every multiset of n out of n as rows of multiplicities, and its multinomial probability."""
    picks = np.array(list(itertools.combinations_with_replacement(range(n), n)), dtype=np.int64).reshape(-1, n)
    counts = _count_rows(picks, n)
    return counts, _normalised(-gammaln(counts + 1).sum(axis=1))


def _normalised(log_probability: FloatArray) -> FloatArray:
    probability = np.exp(log_probability - log_probability.max())
    return np.asarray(probability / probability.sum())
