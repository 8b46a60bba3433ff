"""Ceilings of soft metrics: what chance and the soft labels themselves score, and who carries the positive mass."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from softgold.evaluation.alignment import TaskData
from softgold.evaluation.metrics import MetricSpec
from softgold.evaluation.result import Notice
from softgold.metrics import brier_score, log_loss
from softgold.metrics.bootstrap.plans import ItemPlan
from softgold.metrics.bootstrap.rankings import RankingSums, rank_items, ranking_sums

FloatArray = NDArray[np.float64]

# A unanimous item with at least this many votes is clear.
MANY_VOTES = 5
# Clear items of the other class may carry this share of the mass of a class before it is worth a warning.
MUCH = 0.1


@dataclass(frozen=True)
class Reference:
    """The scale of a soft metric; NaN where there is none.

    Attributes:
        chance: What scores without information get: a random ranking, or for losses the best constant prediction.
        ceiling: What the soft labels score against themselves, the best possible value.
    """

    chance: float = nan
    ceiling: float = nan

    def share(self, value: FloatArray) -> FloatArray:
        """Return how far values are on the way from chance to the ceiling; NaN where both are equal."""
        distance = self.ceiling - self.chance
        return (value - self.chance) / distance if abs(distance) > 1e-12 else np.full(np.shape(value), nan)


def references(specs: tuple[MetricSpec, ...], soft: FloatArray) -> dict[str, Reference]:
    """Return the reference of each metric, by name; without ends for metrics against hard labels.

    Balanced Brier has none: it is not proper, and a prediction other than the soft label gets the least value. ECE has
    a ceiling of 0, which any constant at the mean reaches as well, and so no chance.

    >>> from softgold.evaluation.metrics import metric_specs
    >>> found = references(metric_specs(["soft_auroc"], (), 3), np.array([1.0, 0.5, 0.0]))
    >>> round(found["soft_auroc"].ceiling, 4)
    0.9444
    """
    ranking, mean = _own_ranking(soft, max((spec.length for spec in specs), default=0)), float(soft.mean())
    constant = np.full(len(soft), mean)
    found = {
        "soft_auroc": Reference(0.5, float(ranking.auroc()[0])),
        "soft_ap": Reference(mean, float(ranking.average_precision()[0])),
        "brier": Reference(brier_score(soft, constant), brier_score(soft, soft)),
        "log_loss": Reference(log_loss(soft, constant), log_loss(soft, soft)),
        "ece": Reference(nan, 0.0),
    }
    for spec in specs:
        if _is_soft_list(spec):
            found[spec.name] = Reference(mean, float(ranking.precision_at(spec.length)[0]))
    return {spec.name: found.get(spec.name, Reference()) for spec in specs}


def _own_ranking(soft: FloatArray, longest: int) -> RankingSums:
    """Return the sums down the ranking of the soft labels by themselves, which are not held for every item."""
    return ranking_sums(rank_items(soft), ItemPlan.of_items(soft).observed(), (0,), longest)[0]


def _is_soft_list(spec: MetricSpec) -> bool:
    return spec.labels == "soft" and spec.length > 0


def positive_mass_notices(task: TaskData) -> list[Notice]:
    """Warn where clear items carry much of the mass of the class that they do not belong to.

    A unanimously negative item with many votes is a clear negative. Its soft label is small, but there may be so many
    of them that soft metrics spend much of their weight on "positives" among them.
    """
    enough = task.n_votes >= MANY_VOTES
    sides = (
        ("negative", "positive", enough & (task.n_positive == 0), task.soft),
        ("positive", "negative", enough & (task.n_positive == task.n_votes), 1 - task.soft),
    )
    notices = []
    for own, other, clear, mass in sides:
        share = float(mass[clear].sum() / mass.sum()) if mass.sum() > 0 else 0.0
        if share >= MUCH:
            text = (
                f"{int(clear.sum()):,} of {len(task):,} items are unanimously {own} with {MANY_VOTES} votes or more, "
                f"yet their soft labels make up {share:.0%} of the {other} mass: soft metrics stay low even for a "
                "perfect model, so read them against their ceiling"
            )
            notices.append(Notice("positive mass", text))
    return notices
