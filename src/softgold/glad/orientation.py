"""Which way up: the sign that the votes cannot tell, settled for each connected component of the vote graph.

With abilities centred on zero, (c, b) -> (-c, -b) leaves the posterior as it is, separately in every component. The
convention is that a component's annotators are helpful on the whole: a component whose vote-weighted mean ability is
negative is turned over. Where nothing supports the convention, the component keeps the sign of its consensus and is
reported as undetermined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softgold.votes import VoteTable

__all__ = ["ComponentReport", "Orientation", "orient"]

FloatArray = NDArray[np.float64]
Verdict = Literal["kept", "flipped", "undetermined"]

CLEAR_MARGIN = 2.0  # posterior standard deviations that the mean ability must be away from zero


@dataclass(frozen=True)
class ComponentReport:
    """A connected component and what was done about its sign.

    Attributes:
        items: Number of items.
        annotators: Number of annotators.
        votes: Number of votes.
        mean_ability: Vote-weighted mean ability, as oriented.
        margin: The same in units of its posterior standard deviation.
        orientation: "kept", "flipped", or "undetermined" (and kept).
    """

    items: int
    annotators: int
    votes: int
    mean_ability: float
    margin: float
    orientation: Verdict


@dataclass(frozen=True, eq=False)
class Orientation:
    """Signs by which to multiply the fitted values, and the report of each component."""

    items: FloatArray
    annotators: FloatArray
    components: tuple[ComponentReport, ...]


def orient(
    votes: VoteTable, ability_mean: FloatArray, ability_sd: FloatArray, *, symmetric: bool = True
) -> Orientation:
    """Return the orientation of each component.

    Args:
        votes: The votes.
        ability_mean: Posterior means of the abilities, shape (A,).
        ability_sd: Posterior standard deviations, shape (A,).
        symmetric: Whether the prior of the abilities is; if it is not, it has fixed the sign and nothing is turned.
    """
    parts = votes.components
    weight = votes.annotator_counts.astype(np.float64)
    total = np.bincount(parts.annotators, weights=weight, minlength=parts.count)
    mean = np.bincount(parts.annotators, weights=weight * ability_mean, minlength=parts.count) / total
    variance = np.bincount(parts.annotators, weights=(weight * ability_sd) ** 2, minlength=parts.count) / total**2
    margin = mean / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    people = np.bincount(parts.annotators, minlength=parts.count)
    things = np.bincount(parts.items, minlength=parts.count)
    clear = (people > 1) & (np.abs(margin) >= CLEAR_MARGIN)
    flip = clear & (mean < 0) & symmetric
    sign = np.where(flip, -1.0, 1.0)
    verdicts: list[Verdict] = [
        "flipped" if turned else "kept" if sure or not symmetric else "undetermined"
        for turned, sure in zip(flip, clear, strict=True)
    ]
    reports = tuple(
        ComponentReport(
            int(things[k]),
            int(people[k]),
            int(total[k]),
            float(sign[k] * mean[k]),
            float(sign[k] * margin[k]),
            verdicts[k],
        )
        for k in range(parts.count)
    )
    return Orientation(sign[parts.items], sign[parts.annotators], reports)
