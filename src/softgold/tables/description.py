"""What is in a vote table: counts, distributions, agreement, and what its owner should know.

The functions take the arrays of the table, so that the table can offer the description itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Agreement", "Distribution", "VoteDescription", "describe_agreement", "describe_votes", "distribution"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# With fewer votes than this, giving one answer only says little about an annotator.
MANY_VOTES = 10


@dataclass(frozen=True)
class Distribution:
    """Five numbers and the mean of some counts."""

    minimum: int
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: int
    mean: float


@dataclass(frozen=True)
class Agreement:
    """How far votes on the same item agree.

    Attributes:
        n_items: Items with at least two votes, on which the other figures rest.
        unanimous: Items of those on which all votes are equal.
        tied: Items of those with as many positive as negative votes.
        share: Chance that two votes drawn from the same item are equal, averaged over the items; NaN without items.
    """

    n_items: int
    unanimous: int
    tied: int
    share: float


@dataclass(frozen=True)
class VoteDescription:
    """What is in a vote table.

    Attributes:
        n_items: Items with a vote.
        n_annotators: Annotators with a vote.
        n_votes: Votes; repeats that were averaged count once.
        n_positive: Positive votes.
        positive_share: Share of positive votes.
        n_abstentions: Empty votes in the source.
        n_silent_items: Items that nobody voted on.
        n_silent_annotators: Annotators who never voted.
        votes_per_item: Distribution over items.
        votes_per_annotator: Distribution over annotators.
        n_single_vote_items: Items with one vote.
        n_components: Parts of the data that share neither items nor annotators.
        largest_component_share: Share of the items in the largest of them.
        agreement: How far votes on the same item agree.
        n_constant_annotators: Annotators with many votes, all of them equal.
        warnings: What the owner should know, one sentence each.
    """

    n_items: int
    n_annotators: int
    n_votes: int
    n_positive: float
    positive_share: float
    n_abstentions: int
    n_silent_items: int
    n_silent_annotators: int
    votes_per_item: Distribution
    votes_per_annotator: Distribution
    n_single_vote_items: int
    n_components: int
    largest_component_share: float
    agreement: Agreement
    n_constant_annotators: int
    warnings: tuple[str, ...]

    def rows(self) -> list[tuple[str, str]]:
        """Return the description as pairs of a name and a text, for printing."""
        agreed = self.agreement
        return [
            ("items", f"{self.n_items:,} ({self.n_single_vote_items:,} with one vote)"),
            ("annotators", f"{self.n_annotators:,}"),
            ("votes", f"{self.n_votes:,} ({self.positive_share:.1%} positive)"),
            ("abstentions", f"{self.n_abstentions:,}"),
            ("votes per item", _five_numbers(self.votes_per_item)),
            ("votes per annotator", _five_numbers(self.votes_per_annotator)),
            ("components", f"{self.n_components:,} (largest has {self.largest_component_share:.1%} of the items)"),
            ("agreement", f"{agreed.share:.1%} of the pairs of votes on an item" if agreed.n_items else "unknown"),
            ("unanimous items", f"{agreed.unanimous:,} of {agreed.n_items:,} with two votes or more"),
            ("tied items", f"{agreed.tied:,}"),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{name:<{width}}  {text}" for name, text in self.rows()]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def distribution(counts: IntArray) -> Distribution:
    """Summarise counts.

    >>> distribution(np.array([1, 2, 3, 10]))
    Distribution(minimum=1, lower_quartile=1.75, median=2.5, upper_quartile=4.75, maximum=10, mean=4.0)
    """
    low, first, middle, third, high = np.quantile(counts, [0, 0.25, 0.5, 0.75, 1])
    return Distribution(int(low), float(first), float(middle), float(third), int(high), float(counts.mean()))


def describe_agreement(counts: IntArray, positives: FloatArray, squares: FloatArray) -> Agreement:
    """Describe how far the votes of each item agree.

    The share is the observed agreement of Fleiss (1971), for items with different numbers of votes.

    Args:
        counts: Votes of each item, shape (I,).
        positives: Sum of the votes of each item, shape (I,).
        squares: Sum of their squares, shape (I,); the same as the sum unless some votes are means of repeats.

    >>> describe_agreement(np.array([2, 2, 1]), np.array([1.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0]))
    Agreement(n_items=2, unanimous=1, tied=1, share=0.5)
    """
    several = counts >= 2
    n, k, q = counts[several].astype(np.float64), positives[several], squares[several]
    if len(n) == 0:
        return Agreement(0, 0, 0, float("nan"))
    # Sums over pairs of different voters: (sum)^2 less the sum of squares, for x and for 1 - x.
    equal_pairs = (k**2 - q + (n - k) ** 2 - (n - 2 * k + q)) / (n * (n - 1))
    return Agreement(
        n_items=len(n),
        unanimous=int(np.isclose(np.minimum(k, n - k), 0).sum()),
        tied=int(np.isclose(2 * k, n).sum()),
        share=float(equal_pairs.mean()),
    )


def describe_votes(
    *,
    item_counts: IntArray,
    item_positives: FloatArray,
    item_squares: FloatArray,
    annotator_counts: IntArray,
    annotator_positives: FloatArray,
    item_components: NDArray[np.integer],
    n_abstentions: int,
    n_silent_items: int,
    n_silent_annotators: int,
    notes: Sequence[str],
) -> VoteDescription:
    """Describe a vote table by its counts and sums of votes per item (I,) and per annotator (A,)."""
    n_votes, n_positive = int(item_counts.sum()), float(item_positives.sum())
    component_sizes = np.bincount(item_components)
    steady = np.isclose(np.minimum(annotator_positives, annotator_counts - annotator_positives), 0)
    facts = {
        "n_single_vote_items": int((item_counts == 1).sum()),
        "n_components": len(component_sizes),
        "n_constant_annotators": int((steady & (annotator_counts >= MANY_VOTES)).sum()),
    }
    return VoteDescription(
        n_items=len(item_counts),
        n_annotators=len(annotator_counts),
        n_votes=n_votes,
        n_positive=n_positive,
        positive_share=n_positive / n_votes,
        n_abstentions=n_abstentions,
        n_silent_items=n_silent_items,
        n_silent_annotators=n_silent_annotators,
        votes_per_item=distribution(item_counts),
        votes_per_annotator=distribution(annotator_counts),
        largest_component_share=float(component_sizes.max() / len(item_counts)),
        agreement=describe_agreement(item_counts, item_positives, item_squares),
        warnings=(*notes, *_warnings(n_votes, n_positive, len(annotator_counts), **facts)),
        **facts,
    )


def _warnings(
    n_votes: int,
    n_positive: float,
    n_annotators: int,
    *,
    n_single_vote_items: int,
    n_components: int,
    n_constant_annotators: int,
) -> list[str]:
    found = []
    if n_positive in (0, n_votes):
        found.append(f"every vote is {'positive' if n_positive else 'negative'}: nothing tells the items apart")
    if n_annotators == 1:
        found.append("there is one annotator: agreement and abilities cannot be told from the votes")
    if n_components > 1:
        found.append(f"the votes fall into {n_components} components that share neither items nor annotators")
    if n_single_vote_items:
        found.append(f"items with a single vote: {n_single_vote_items}")
    if n_constant_annotators:
        found.append(f"annotators with {MANY_VOTES} votes or more, all of them equal: {n_constant_annotators}")
    return found


def _five_numbers(values: Distribution) -> str:
    quartiles = f"{values.lower_quartile:g} / {values.median:g} / {values.upper_quartile:g}"
    return f"{values.minimum:,} to {values.maximum:,}, quartiles {quartiles}, mean {values.mean:.2f}"
