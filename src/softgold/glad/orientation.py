"""Which way up: the sign that the votes cannot tell, settled for each connected component of the vote graph.

With abilities centred on zero, (c, b) -> (-c, -b) leaves the posterior as it is, separately in every component. The
convention is that a component's annotators are helpful on the whole: a component whose vote-weighted mean ability is
negative is turned over. Where that mean is not clearly different from zero, or there is one annotator only, nothing
supports the convention: the component gets the sign of its consensus and is reported as undetermined. A fit knows one
of two mirror images; where helpful and adversarial annotators are nearly in balance, the soft labels mix both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from softgold.votes import VoteTable

__all__ = ["ComponentReport", "Orientation", "orient", "upright_probability"]

FloatArray = NDArray[np.float64]
Verdict = Literal["kept", "flipped", "undetermined"]

CLEAR_MARGIN = 1.0  # posterior standard deviations that the mean ability must be away from zero
SURE_MARGIN = 3.0  # standard deviations of the balance from where on the other way up is not considered


@dataclass(frozen=True)
class ComponentReport:
    """A connected component and what was done about its sign.

    Attributes:
        items: Number of items.
        annotators: Number of annotators.
        votes: Number of votes.
        mean_ability: Vote-weighted mean ability, as oriented.
        margin: The same in units of its posterior standard deviation.
        orientation: "kept", "flipped", or "undetermined" (and given the sign of its consensus).
    """

    items: int
    annotators: int
    votes: int
    mean_ability: float
    margin: float
    orientation: Verdict


@dataclass(frozen=True, eq=False)
class Orientation:
    """Signs by which to multiply the fitted values, and the report of each component.

    Attributes:
        items: Sign of each item, shape (I,).
        annotators: Sign of each annotator, shape (A,).
        components: The report of each component.
    """

    items: FloatArray
    annotators: FloatArray
    components: tuple[ComponentReport, ...]


def orient(
    votes: VoteTable,
    ability_mean: FloatArray,
    ability_sd: FloatArray,
    item_lean: FloatArray,
    *,
    symmetric: bool = True,
) -> Orientation:
    """Return the orientation of each component.

    Args:
        votes: The votes.
        ability_mean: Posterior means of the abilities, shape (A,).
        ability_sd: Posterior standard deviations, shape (A,).
        item_lean: Which way each item leans and how far, shape (I,): the mean of b, or P(b > 0) - 1/2.
        symmetric: Whether the prior of the abilities is; if it is not, it has fixed the sign and nothing is turned.
    """
    parts = votes.components
    people = np.bincount(parts.annotators, minlength=parts.count)
    weight = votes.annotator_counts.astype(np.float64)
    total = np.bincount(parts.annotators, weights=weight, minlength=parts.count)
    mean = np.bincount(parts.annotators, weights=weight * ability_mean, minlength=parts.count) / total
    variance = np.bincount(parts.annotators, weights=(weight * ability_sd) ** 2, minlength=parts.count) / total**2
    margin = mean / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    clear = (people > 1) & (np.abs(margin) >= CLEAR_MARGIN)
    against = np.where(clear, mean < 0, _leans_against_the_votes(votes, item_lean))
    sign = np.where(against & symmetric, -1.0, 1.0)
    verdicts: list[Verdict] = [
        ("flipped" if turned < 0 else "kept") if sure or not symmetric else "undetermined"
        for turned, sure in zip(sign, clear, strict=True)
    ]
    sizes = zip(np.bincount(parts.items, minlength=parts.count), people, total, strict=True)
    reports = tuple(
        ComponentReport(int(items), int(annotators), int(count), float(turn * level), float(turn * far), verdict)
        for (items, annotators, count), turn, level, far, verdict in zip(
            sizes, sign, mean, margin, verdicts, strict=True
        )
    )
    return Orientation(sign[parts.items], sign[parts.annotators], reports)


def upright_probability(votes: VoteTable, helpful: FloatArray) -> FloatArray:
    """Return how likely each item's component is the right way up, shape (I,), from 0.5 to 1.

    Counted by votes, more helpful than adversarial annotators is the right way up. The balance of the two is a sum of
    independent signs, so nearly Normal; the scale of the abilities, which the votes tell poorly, does not enter. A
    component with a single annotator, who is taken to be helpful, counts as certain.

    Args:
        votes: The votes.
        helpful: P(ability > 0) of each annotator, as oriented, shape (A,).
    """
    parts = votes.components
    weight = votes.annotator_counts.astype(np.float64)
    balance = np.bincount(parts.annotators, weights=weight * (2 * helpful - 1), minlength=parts.count)
    variance = np.bincount(parts.annotators, weights=weight**2 * 4 * helpful * (1 - helpful), minlength=parts.count)
    total = np.bincount(parts.annotators, weights=weight, minlength=parts.count)
    # The last vote on either side decides nothing, however sure the signs are.
    margin = np.abs(balance) / np.sqrt(variance + total)
    alone = np.bincount(parts.annotators, minlength=parts.count) == 1
    certainty: FloatArray = np.where(alone | (margin > SURE_MARGIN), 1.0, ndtr(margin))
    return certainty[parts.items]


def _leans_against_the_votes(votes: VoteTable, item_lean: FloatArray) -> NDArray[np.bool_]:
    """Whether the items of each component lean against their own majorities, taken together."""
    majority = 2 * votes.item_positives - votes.item_counts
    agreement = np.bincount(votes.components.items, weights=majority * item_lean, minlength=votes.components.count)
    return agreement < 0
