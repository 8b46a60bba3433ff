"""Plans of resampling: what a bootstrap replicate draws anew, and every distinct draw where they are few.

A plan knows the labels and nothing of models or metrics. Its draws are rows of weights (how often each item is in the
replicate) and rows of targets (the labels of the items in it).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, gammaln, xlog1py, xlogy

__all__ = ["Draw", "HardRule", "ItemPlan", "PanelPlan", "Plan", "VotePlan"]

FloatArray = NDArray[np.float64]
HardRule = Literal[">", ">="]

# Up to so many votes an item, counting the steps of its distribution below one uniform beats NumPy's binomial (and the
# counts fit into a byte).
MAX_TABULATED_VOTES = 127


@dataclass(frozen=True, eq=False)
class Draw:
    """Resamples, one a row: weight and target of each item, both of shape (C, n), or (1, n) where all rows share it."""

    weight: FloatArray
    targets: FloatArray

    def __len__(self) -> int:
        return max(len(self.weight), len(self.targets))

    def rows(self, start: int, stop: int) -> Draw:
        """Return the resamples from `start` to before `stop`."""
        weight = self.weight[start:stop] if len(self.weight) > 1 else self.weight
        return Draw(weight, self.targets[start:stop] if len(self.targets) > 1 else self.targets)


class Plan(Protocol):
    """What is resampled."""

    @property
    def n_items(self) -> int:
        """Number of items."""
        ...

    @property
    def n_distinct(self) -> float:
        """How many different resamples there are; infinity for a number beyond enumeration."""
        ...

    def observed(self) -> Draw:
        """Return the data as they are, one row."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw `count` resamples; drawing them in several calls gives the same ones."""
        ...

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every distinct resample and its probability."""
        ...


@dataclass(frozen=True, eq=False)
class ItemPlan:
    """Items are drawn with replacement, each with its soft label; p of shape (n,)."""

    p: FloatArray

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.p)

    @property
    def n_distinct(self) -> float:
        """Number of multisets of n items."""
        return _n_multisets(self.n_items)

    def observed(self) -> Draw:
        """Return every item once."""
        return Draw(np.ones((1, self.n_items)), self.p[None, :])

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw n items with replacement, `count` times."""
        return Draw(_multiplicities(rng, count, self.n_items), self.p[None, :])

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every multiset of items."""
        weight, probability = _multisets(self.n_items)
        return Draw(weight, self.p[None, :]), probability


@dataclass(frozen=True, eq=False)
class VotePlan:
    """Each item's votes are drawn with replacement; the items stay.

    Attributes:
        n_positive: Positive votes of each item, shape (n,).
        n_votes: Votes of each item, shape (n,).
        hard_rule: None: the target is the share of positive votes; otherwise 1 when that share is `>` (or `>=`) 1/2.
    """

    n_positive: NDArray[np.int64]
    n_votes: NDArray[np.int64]
    hard_rule: HardRule | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.n_votes)

    @property
    def n_distinct(self) -> float:
        """Number of tables of counts that can arise: unanimous items have one outcome, others all of theirs."""
        outcomes = self.n_votes[self._contested] + 1
        return math.prod(outcomes.tolist()) if np.log2(outcomes).sum() < 60 else math.inf

    def observed(self) -> Draw:
        """Return the votes as they were given."""
        return self._draw_of(self.n_positive[None, :])

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw the positive votes of each item from its own: binomial counts."""
        if self.n_votes.max(initial=0) > MAX_TABULATED_VOTES:
            share = self.n_positive / self.n_votes
            return self._draw_of(rng.binomial(self.n_votes, share, size=(count, self.n_items)))
        uniform = rng.random((count, self.n_items))
        counts = np.zeros(uniform.shape, dtype=np.int8)
        table, kind = self._cumulative
        for at_most in table:
            counts += uniform >= at_most[kind]
        return self._draw_of(counts)

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every table of counts with its product of binomial probabilities."""
        which = np.flatnonzero(self._contested)
        n_votes, share = self.n_votes[which], self.n_positive[which] / self.n_votes[which]
        counts = np.array(list(itertools.product(*(range(n + 1) for n in n_votes))), dtype=np.int64)
        counts = counts.reshape(-1, len(which))
        log_probability = gammaln(n_votes + 1) - gammaln(counts + 1) - gammaln(n_votes - counts + 1)
        log_probability += xlogy(counts, share) + xlog1py(n_votes - counts, -share)
        table = np.repeat(self.n_positive[None, :], len(counts), axis=0)
        table[:, which] = counts
        return self._draw_of(table), _normalised(log_probability.sum(axis=1))

    @cached_property
    def _cumulative(self) -> tuple[FloatArray, NDArray[np.intp]]:
        """P(at most v positive votes) for v = 0, 1, ... (rows) and each kind of item, and the kind of every item.

        A kind is a pair of n_votes and n_positive: there are few, however many items there are.
        """
        most = int(self.n_votes.max(initial=0))
        codes, kind = np.unique(self.n_votes * (most + 1) + self.n_positive, return_inverse=True)
        n_votes, n_positive = np.divmod(codes, most + 1)
        votes = np.arange(most)[:, None]
        tabulated = bdtr(np.minimum(votes, n_votes), n_votes, n_positive / n_votes)
        return np.where(votes < n_votes, tabulated, 1.0), kind

    @property
    def _contested(self) -> NDArray[np.bool_]:
        return (self.n_positive > 0) & (self.n_positive < self.n_votes)

    def _draw_of(self, counts: NDArray[np.integer]) -> Draw:
        weight = np.ones((1, self.n_items))
        if self.hard_rule is None:
            return Draw(weight, counts / self.n_votes)
        twice = 2 * counts.astype(np.int64)
        hard = twice > self.n_votes if self.hard_rule == ">" else twice >= self.n_votes
        return Draw(weight, hard.astype(np.float64))


@dataclass(frozen=True, eq=False)
class PanelPlan:
    """Experts are drawn with replacement into a panel of the same size, and the items with them if so asked.

    The label is the panel's strict majority: an even split is negative.

    Attributes:
        labels: Labels 0 and 1 of each expert, shape (R, n).
        resample_items: Whether a replicate also draws the items anew.
    """

    labels: FloatArray
    resample_items: bool

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.labels.shape[1])

    @property
    def n_distinct(self) -> float:
        """Number of multisets of experts, times that of items if they are drawn too."""
        return _n_multisets(len(self.labels)) * (_n_multisets(self.n_items) if self.resample_items else 1)

    def observed(self) -> Draw:
        """Return the majority of all experts."""
        return Draw(np.ones((1, self.n_items)), self._majority(np.ones((1, len(self.labels)))))

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw panels and, with them, items."""
        # One stream of uniforms, replicate by replicate, so that the draws do not depend on how many are asked at once.
        n_experts = len(self.labels)
        uniform = rng.random((count, n_experts + (self.n_items if self.resample_items else 0)))
        panels = _count_rows((uniform[:, :n_experts] * n_experts).astype(np.int64), n_experts)
        if not self.resample_items:
            return Draw(np.ones((1, self.n_items)), self._majority(panels))
        picks = (uniform[:, n_experts:] * self.n_items).astype(np.int64)
        return Draw(_count_rows(picks, self.n_items), self._majority(panels))

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every panel, with every multiset of items if they are drawn too."""
        panels, probability = _multisets(len(self.labels))
        if not self.resample_items:
            return Draw(np.ones((1, self.n_items)), self._majority(panels)), probability
        weight, item_probability = _multisets(self.n_items)
        targets = np.repeat(self._majority(panels), len(weight), axis=0)
        return Draw(np.tile(weight, (len(panels), 1)), targets), np.outer(probability, item_probability).ravel()

    def _majority(self, panels: FloatArray) -> FloatArray:
        return (2 * (panels @ self.labels) > len(self.labels)).astype(np.float64)


def _multiplicities(rng: np.random.Generator, count: int, n: int) -> FloatArray:
    """Draw n of n with replacement, `count` times, and count how often each was drawn; shape (count, n)."""
    return _count_rows(rng.integers(0, n, size=(count, n)), n)


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
