"""Description of a vote table: counts, distributions, agreement, problems found.

The functions take arrays, not the table, so that the table can import this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# An annotator with fewer votes than this may give one answer throughout by chance.
MANY_VOTES = 10
ITEMS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Distribution:
    """Five-number summary and mean of counts."""

    minimum: int
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: int
    mean: float


@dataclass(frozen=True)
class Agreement:
    """Agreement of votes on the same item.

    Attributes:
        n_items: Items with at least two votes; the other figures are about these.
        unanimous: Items on which all votes are equal.
        tied: Items with as many positive as negative votes.
        share: Probability that two votes drawn from one item are equal, mean over items; NaN without items.
    """

    n_items: int
    unanimous: int
    tied: int
    share: float


@dataclass(frozen=True)
class VoteDescription:
    """Description of a vote table.

    Attributes:
        n_items: Items with a vote.
        n_annotators: Annotators with a vote.
        n_votes: Votes; repeats that were averaged count once.
        n_positive: Positive votes.
        positive_share: Share of positive votes.
        n_abstentions: Empty votes in the source.
        n_silent_items: Items with abstentions only.
        n_silent_annotators: Annotators with abstentions only.
        votes_per_item: Distribution over items.
        votes_per_annotator: Distribution over annotators.
        n_single_vote_items: Items with one vote.
        n_components: Connected components: parts that share neither items nor annotators.
        largest_component_share: Share of the items in the largest component.
        agreement: Agreement of votes on the same item.
        n_constant_annotators: Annotators with at least 10 votes, all equal.
        warnings: Problems found, one sentence each.
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
        """Return the lines to print, as pairs of name and text."""
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
            ("unanimous items", f"{agreed.unanimous:,} of {agreed.n_items:,} with at least two votes"),
            ("tied items", f"{agreed.tied:,}"),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{name:<{width}}  {text}" for name, text in self.rows()]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def distribution(counts: IntArray) -> Distribution:
    """Return the five-number summary and mean of counts.

    >>> distribution(np.array([1, 2, 3, 10]))
    Distribution(minimum=1, lower_quartile=1.75, median=2.5, upper_quartile=4.75, maximum=10, mean=4.0)
    """
    low, first, middle, third, high = np.quantile(counts, [0, 0.25, 0.5, 0.75, 1])
    return Distribution(int(low), float(first), float(middle), float(third), int(high), float(counts.mean()))


def describe_agreement(counts: IntArray, positives: FloatArray, squares: FloatArray) -> Agreement:
    """Return the agreement of votes on the same item.

    The share is the observed agreement of Fleiss (1971), extended to unequal numbers of votes.

    Args:
        counts: Votes per item, shape (I,).
        positives: Sum of votes per item, shape (I,).
        squares: Sum of squared votes per item, shape (I,); equal to the sum unless repeats were averaged.

    >>> describe_agreement(np.array([2, 2, 1]), np.array([1.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0]))
    Agreement(n_items=2, unanimous=1, tied=1, share=0.5)
    """
    n_items = unanimous = tied = 0
    share = 0.0
    for start in range(0, len(counts), ITEMS_AT_ONCE):
        rows = slice(start, start + ITEMS_AT_ONCE)
        several = counts[rows] >= 2
        n, k, q = (part[rows][several].astype(np.float64) for part in (counts, positives, squares))
        n_items += len(n)
        unanimous += int(np.isclose(np.minimum(k, n - k), 0).sum())
        tied += int(np.isclose(2 * k, n).sum())
        # Sum over pairs of different voters: (sum)^2 minus the sum of squares, for x and for 1 - x.
        share += float(((k**2 - q + (n - k) ** 2 - (n - 2 * k + q)) / (n * (n - 1))).sum())
    return Agreement(n_items, unanimous, tied, share / n_items if n_items else float("nan"))


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
    """Describe a vote table from counts and sums of votes per item (I,) and per annotator (A,)."""
    n_votes, n_positive = int(item_counts.sum()), float(item_positives.sum())
    component_sizes = np.bincount(item_components)
    constant = np.isclose(np.minimum(annotator_positives, annotator_counts - annotator_positives), 0)
    facts = {
        "n_single_vote_items": int((item_counts == 1).sum()),
        "n_components": len(component_sizes),
        "n_constant_annotators": int((constant & (annotator_counts >= MANY_VOTES)).sum()),
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
        found.append(f"every vote is {'positive' if n_positive else 'negative'}: the items cannot be told apart")
    if n_annotators == 1:
        found.append("there is only one annotator: agreement and abilities cannot be estimated")
    if n_components > 1:
        found.append(f"the votes fall into {n_components} components that share neither items nor annotators")
    if n_single_vote_items:
        found.append(f"items with a single vote: {n_single_vote_items}")
    if n_constant_annotators:
        found.append(f"annotators with at least {MANY_VOTES} votes, all equal: {n_constant_annotators}")
    return found


def _five_numbers(values: Distribution) -> str:
    quartiles = f"{values.lower_quartile:g} / {values.median:g} / {values.upper_quartile:g}"
    return f"{values.minimum:,} to {values.maximum:,}, quartiles {quartiles}, mean {values.mean:.2f}"
