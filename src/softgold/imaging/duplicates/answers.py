"""From votes on pairs to the answers of a round, through any aggregator."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_choice, check_in_range
from softgold.errors import InputError, UsageError
from softgold.imaging.duplicates.plan import DuplicatePlan
from softgold.tables.soft_labels import Aggregator, SoftLabels
from softgold.tables.votes import VoteTable

BoolArray = NDArray[np.bool_]
Missing = Literal["error", "negative"]


def answers_from_votes(
    plan: DuplicatePlan,
    votes: VoteTable,
    aggregator: Aggregator,
    *,
    threshold: float = 0.5,
    missing: Missing = "error",
) -> BoolArray:
    """Aggregate votes on pairs and return the answers to the awaited round.

    Votes on pairs of earlier rounds may be in the table: they help an aggregator that learns about annotators.

    Args:
        plan: A plan with an awaited round.
        votes: Votes whose items are the pairs, as named in `DuplicatePlan.questions`.
        aggregator: Any baseline that turns votes into soft labels.
        threshold: A pair is positive if its soft label is above this.
        missing: Whether a pair without a vote is an error, or negative.
    """
    return answers_from_labels(plan, aggregator.aggregate(votes), threshold=threshold, missing=missing)


def answers_from_labels(
    plan: DuplicatePlan, labels: SoftLabels, *, threshold: float = 0.5, missing: Missing = "error"
) -> BoolArray:
    """Return the answers to the awaited round by soft labels of its pairs, shape (q,); see `answers_from_votes`."""
    check_choice(missing, ("error", "negative"), "missing")
    check_in_range(threshold, 0, 1, "threshold")
    if plan.awaited is None:
        raise UsageError("no round awaits answers; propose the next one first")
    items = plan.questions()["item"]
    unknown = ~labels.item_ids.isin(items)
    if unknown.any():
        raise InputError(
            f"{labels.item_ids[unknown][0]!r} is not a pair of this plan (and {int(unknown.sum()) - 1} more); "
            "the items of the votes must be the names in the column 'item' of the proposed pairs"
        )
    awaited = items.iloc[-len(plan.awaited) :]
    place = labels.item_ids.get_indexer(pd.Index(awaited))
    if (place < 0).any() and missing == "error":
        name = awaited.iloc[int(np.argmax(place < 0))]
        raise InputError(
            f"{int((place < 0).sum())} of {len(awaited)} pairs of round {len(plan.rounds)} have no vote, {name!r} "
            "first; wait for them, or count them as negative (--missing negative)"
        )
    return np.where(place >= 0, labels.p[place] > threshold, False)
