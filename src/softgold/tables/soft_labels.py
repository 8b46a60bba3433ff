"""Soft-label table, one row per item: made by every model and baseline, read by every later stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import entr

from softgold.tables.ids import restore_ids
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]

COLUMNS = (
    "item",
    "p",
    "expected_vote",
    "b_mean",
    "b_sd",
    "b_lo",
    "b_hi",
    "n_votes",
    "n_positive",
    "mean_vote",
    "majority",
    "uncertainty",
    "entropy",
)


def binary_entropy(p: FloatArray) -> FloatArray:
    """Return the entropy of a Bernoulli(p) in nats, with 0 log 0 = 0.

    >>> binary_entropy(np.array([0.0, 0.5])).round(4).tolist()
    [0.0, 0.6931]
    """
    return entr(p) + entr(1.0 - p)


def _whole_if_possible(counts: FloatArray) -> NDArray[np.float64] | NDArray[np.int64]:
    """Return counts as integers unless some are fractions (averaged repeats) or unknown."""
    return counts.astype(np.int64) if np.array_equal(counts, np.rint(counts)) else counts


@dataclass(frozen=True, eq=False)
class DifficultySummary:
    """Posterior of each item's signed difficulty b: mean, sd, 95 % credible interval; each of shape (I,)."""

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class SoftLabels:
    """Soft labels of I items.

    Attributes:
        item_ids: Ids as text, in order of first appearance, length I.
        p: Soft label: probability that the item is positive, shape (I,).
        expected_vote: Expected share of positive votes from these annotators, shape (I,).
        n_votes: Votes per item, shape (I,).
        n_positive: Positive votes per item, shape (I,).
        method: Name of the model or baseline.
        difficulty: Posterior of the signed difficulty; None (empty cells in the file) for baselines.
        rating_mean: Mean rating mapped to [0, 1], shape (I,), if the source was ratings.
        label: Hard labels 0 or 1, shape (I,), if they were asked for; adds a column `label`.

    Example:
        >>> from softgold.readers import read_soft_labels
        >>> labels = read_soft_labels(pd.DataFrame({"item": ["x", "y"], "p": [0.9, 0.4]}))
        >>> labels.p.tolist(), labels.uncertainty.round(2).tolist()
        ([0.9, 0.4], [0.1, 0.4])
    """

    item_ids: pd.Index[str]
    p: FloatArray
    expected_vote: FloatArray
    n_votes: NDArray[np.int64]
    n_positive: FloatArray
    method: str
    difficulty: DifficultySummary | None = None
    rating_mean: FloatArray | None = None
    label: NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return len(self.item_ids)

    def select(self, items: NDArray[np.bool_]) -> SoftLabels:
        """Return the soft labels of some of the items, given by a mask of shape (I,)."""
        b = self.difficulty
        return replace(
            self,
            item_ids=self.item_ids[items],
            p=self.p[items],
            expected_vote=self.expected_vote[items],
            n_votes=self.n_votes[items],
            n_positive=self.n_positive[items],
            difficulty=None
            if b is None
            else DifficultySummary(b.mean[items], b.sd[items], b.low[items], b.high[items]),
            rating_mean=None if self.rating_mean is None else self.rating_mean[items],
            label=None if self.label is None else self.label[items],
        )

    def __repr__(self) -> str:
        return f"SoftLabels: {len(self):,} items by {self.method}"

    @property
    def mean_vote(self) -> FloatArray:
        """Share of positive votes, or the mean rating mapped to [0, 1]; shape (I,)."""
        if self.rating_mean is not None:
            return self.rating_mean
        # A table from elsewhere may have no number of votes.
        shares = np.full(len(self), np.nan)
        np.divide(self.n_positive, self.n_votes, out=shares, where=self.n_votes > 0)
        return shares

    @property
    def majority(self) -> FloatArray:
        """Strict majority of the votes, 1 or 0, and 0.5 for a tie; shape (I,)."""
        margin = 2 * self.n_positive - self.n_votes
        # Weights of averaged repeats, such as 1/3, do not add up exactly.
        return np.where(np.abs(margin) < 1e-9, 0.5, margin > 0)

    @property
    def uncertainty(self) -> FloatArray:
        """min(p, 1 - p), the probability that a label cut at 0.5 is wrong; shape (I,)."""
        return np.minimum(self.p, 1 - self.p)

    def to_frame(self) -> pd.DataFrame:
        """Return the table to export: `COLUMNS`, and `label` if there is one.

        Item ids that were whole numbers in a frame are whole numbers again, so that tables can be merged by item.
        """
        missing = np.full(len(self), np.nan)
        b = self.difficulty or DifficultySummary(missing, missing, missing, missing)
        columns = {
            "item": restore_ids(self.item_ids),
            "p": self.p,
            "expected_vote": self.expected_vote,
            "b_mean": b.mean,
            "b_sd": b.sd,
            "b_lo": b.low,
            "b_hi": b.high,
            "n_votes": self.n_votes,
            "n_positive": _whole_if_possible(self.n_positive),
            "mean_vote": self.mean_vote,
            "majority": self.majority,
            "uncertainty": self.uncertainty,
            "entropy": binary_entropy(self.p),
        }
        if self.label is not None:
            columns["label"] = self.label
        return pd.DataFrame(columns)


@runtime_checkable
class Aggregator(Protocol):
    """What baselines offer: votes in, soft labels out."""

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        ...

    def aggregate(self, votes: VoteTable) -> SoftLabels:
        """Return one soft label per item of `votes`, in its order."""
        ...
