"""Aggregators without a model: majority, the share of positive votes, and the mean of ratings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from softgold.checks import check_choice, check_in_range, check_ordered_pair, check_pair
from softgold.errors import UsageError
from softgold.ratings import RatingTable
from softgold.softlabels import SoftLabels
from softgold.votes import VoteTable

__all__ = ["Majority", "Mean", "RatingMean", "Tie"]

Tie = Literal["positive", "negative"]
TIES: tuple[Tie, ...] = ("positive", "negative")


@dataclass(frozen=True)
class Majority:
    """Majority vote: p is 1 or 0, and 0.5 at a tie, whatever the order of the rows.

    Attributes:
        tie: Side on which a tie falls when a hard label is wanted; None for no hard labels. p stays 0.5.

    Example:
        >>> votes = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 0, 1], ["x", "y"], ["ann", "bob"])
        >>> Majority().aggregate(votes).p.tolist()
        [0.5, 1.0]
        >>> Majority(tie="negative").aggregate(votes).label.tolist()
        [0, 1]
    """

    tie: Tie | None = None

    def __post_init__(self) -> None:
        if self.tie is not None:
            check_choice(self.tie, TIES, "tie")

    @property
    def name(self) -> str:
        """`majority`."""
        return "majority"

    def aggregate(self, votes: VoteTable) -> SoftLabels:
        """Return the majority of each item's votes."""
        shares = Mean().aggregate(votes)
        p = shares.majority
        label = None
        if self.tie is not None:
            label = (p >= 0.5 if self.tie == "positive" else p > 0.5).astype(np.int8)
        return replace(shares, p=p, method=self.name, label=label)


@dataclass(frozen=True)
class Mean:
    """Share of positive votes, with or without a Beta(a, b) prior: p = (n_positive + a) / (n_votes + a + b).

    Attributes:
        smoothing: (a, b) of the prior, in votes that were not cast; None for the plain share.

    Example:
        >>> votes = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 0, 1], ["x", "y"], ["ann", "bob"])
        >>> Mean().aggregate(votes).p.tolist()
        [0.5, 1.0]
        >>> Mean(smoothing=(1, 1)).aggregate(votes).p.round(4).tolist()
        [0.5, 0.6667]
    """

    smoothing: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.smoothing is not None and min(check_pair(self.smoothing, "smoothing")) < 0:
            raise UsageError(f"smoothing must not be negative, got {self.smoothing!r}")

    @property
    def name(self) -> str:
        """`mean`."""
        return "mean"

    def aggregate(self, votes: VoteTable) -> SoftLabels:
        """Return the share of positive votes of each item."""
        a, b = self.smoothing or (0.0, 0.0)
        p = (votes.item_positives + a) / (votes.item_counts + a + b)
        # Averaged repeats have weights such as 1/3, whose sum may pass 1 by a rounding.
        p = np.clip(p, 0.0, 1.0)
        return SoftLabels(
            item_ids=votes.item_ids,
            p=p,
            expected_vote=p,
            n_votes=votes.item_counts,
            n_positive=votes.item_positives,
            method=self.name,
        )


@dataclass(frozen=True)
class RatingMean:
    """Mean rating mapped from its scale to [0, 1], and a hard label where the mean lies strictly above a cut.

    Attributes:
        cut: Threshold on the original scale; None for no hard labels. Ratings strictly above the cut, or above
            the middle of the scale where there is no cut, are counted as positive.

    Example:
        >>> ratings = RatingTable(
        ...     np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1.0, 2.0, 1.0]), ["x", "y"], ["ann", "bob"], (0, 2)
        ... )
        >>> labels = RatingMean(cut=1).aggregate(ratings)
        >>> labels.p.tolist(), labels.label.tolist()
        ([0.75, 0.5], [1, 0])
    """

    cut: float | None = None

    @property
    def name(self) -> str:
        """`mean`."""
        return "mean"

    def aggregate(self, ratings: RatingTable) -> SoftLabels:
        """Return the mean rating of each item on [0, 1]."""
        low, high = check_ordered_pair(ratings.scale, "scale")
        cut = (low + high) / 2 if self.cut is None else check_in_range(self.cut, low, high, "cut")
        p = np.clip((ratings.item_means - low) / (high - low), 0.0, 1.0)
        return SoftLabels(
            item_ids=ratings.item_ids,
            p=p,
            expected_vote=p,
            n_votes=ratings.item_counts,
            n_positive=ratings.item_sums((ratings.ratings > cut).astype(np.float64)),
            method=self.name,
            rating_mean=p,
            label=None if self.cut is None else (ratings.item_means > cut).astype(np.int8),
        )
