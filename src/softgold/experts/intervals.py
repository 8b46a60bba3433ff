"""How sure a threshold is: other panels of the same experts, other draws of the same kind of items, both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import FloatArray
from softgold.experts.choice import Choice, Evidence, ThresholdRule
from softgold.experts.panel import ExpertPanel, Tie, draw_panels
from softgold.metrics.intervals import percentile_interval

__all__ = ["ThresholdInterval", "item_interval", "joint_interval", "panel_interval", "prevalence_sensitivity"]

_CHUNK_CELLS = 2_000_000


@dataclass(frozen=True, eq=False)
class ThresholdInterval:
    """Distribution of the threshold over resampled experts, items, or both, and what it does to the labels.

    Attributes:
        source: What was resampled: "panel", "items" or "both".
        low: Lower end of the interval: the smallest threshold with at least (1 - level) / 2 of the chance at or below.
        high: Upper end, likewise.
        level: Its level.
        positives_low: Positive items of the data set if the threshold were at its upper end.
        positives_high: Positive items if it were at its lower end.
        thresholds: The distinct thresholds, ascending, shape (D,).
        probability: Chance of each, shape (D,).
        replicates: Number of resamples, or of panel compositions when all were enumerated.
        exact: Whether the distribution was enumerated and not drawn.
        no_choice: Chance that the rule finds no bin (the threshold is then 0.5, or dropped under a target rule).
    """

    source: str
    low: float
    high: float
    level: float
    positives_low: int
    positives_high: int
    thresholds: FloatArray
    probability: FloatArray
    replicates: int
    exact: bool
    no_choice: float

    @property
    def is_point(self) -> bool:
        """Whether the interval is a single threshold."""
        return self.low == self.high


def panel_interval(
    evidence: Evidence,
    panel: ExpertPanel,
    rule: ThresholdRule,
    all_p: FloatArray,
    *,
    tie: Tie = "negative",
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> ThresholdInterval:
    """Resample the panel: as many experts as there are, with replacement (CleanPatrick, appendix G).

    Small panels are enumerated exactly (see `draw_panels`); `replicates` and `seed` serve the larger ones.
    """
    draws = draw_panels(panel.n_experts, replicates=replicates, seed=seed)
    parts = [
        evidence.choose(rule, panel.majorities(draws.seats[rows], tie))
        for rows in _chunks(len(draws.seats), len(evidence.p))
    ]
    return _interval("panel", _joined(parts), draws.probability, all_p, level, draws.exact)


def item_interval(
    evidence: Evidence,
    panel: ExpertPanel,
    rule: ThresholdRule,
    all_p: FloatArray,
    *,
    tie: Tie = "negative",
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> ThresholdInterval:
    """Resample the labelled items within their bins, as the sampling design drew them; the panel stays."""
    rng = np.random.default_rng(seed)
    labels = panel.majority(tie)[None, :]
    parts = [
        evidence.choose(rule, labels, _item_copies(evidence, rows.stop - rows.start, rng))
        for rows in _chunks(replicates, len(evidence.p))
    ]
    return _interval("items", _joined(parts), np.full(replicates, 1 / replicates), all_p, level, False)


def joint_interval(
    evidence: Evidence,
    panel: ExpertPanel,
    rule: ThresholdRule,
    all_p: FloatArray,
    *,
    tie: Tie = "negative",
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> ThresholdInterval:
    """Resample the panel and the items within their bins at once: the interval to quote for the threshold."""
    rng = np.random.default_rng(seed)
    experts = panel.n_experts
    parts = []
    for rows in _chunks(replicates, len(evidence.p)):
        size = rows.stop - rows.start
        seats = rng.multinomial(experts, np.full(experts, 1 / experts), size=size)
        parts.append(evidence.choose(rule, panel.majorities(seats, tie), _item_copies(evidence, size, rng)))
    return _interval("both", _joined(parts), np.full(replicates, 1 / replicates), all_p, level, False)


def prevalence_sensitivity(p: FloatArray, threshold: float, *, reach: float = 0.15, steps: int = 12) -> pd.DataFrame:
    """Return positives and prevalence for thresholds around t, `offset, threshold, positives, prevalence`.

    Thresholds t - reach .. t + reach, cut to [0, 1] (CleanPatrick, appendix G).

    >>> prevalence_sensitivity(np.array([0.1, 0.6, 0.7, 0.9]), 0.65, reach=0.1, steps=2)["positives"].tolist()
    [3, 2, 1]
    """
    offset = np.linspace(-reach, reach, steps + 1)
    thresholds = np.clip(threshold + offset, 0.0, 1.0)
    positives = count_positives(p, thresholds)
    columns = {"offset": offset, "threshold": thresholds, "positives": positives, "prevalence": positives / len(p)}
    return pd.DataFrame(columns)


def count_positives(p: FloatArray, thresholds: FloatArray) -> NDArray[np.int64]:
    """Return the number of items with p >= t for each threshold t, shape of `thresholds`."""
    return np.asarray(len(p) - np.searchsorted(np.sort(p), thresholds, side="left"), dtype=np.int64)


def _item_copies(evidence: Evidence, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    copies = np.zeros((size, len(evidence.p)), dtype=np.int64)
    for number in np.unique(evidence.bin):
        members = np.flatnonzero(evidence.bin == number)
        copies[:, members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), size=size)
    return copies


def _chunks(total: int, width: int) -> Iterator[slice]:
    step = max(1, _CHUNK_CELLS // max(width, 1))
    return (slice(start, min(start + step, total)) for start in range(0, total, step))


def _joined(parts: list[Choice]) -> Choice:
    return Choice(np.concatenate([part.bin for part in parts]), np.concatenate([part.threshold for part in parts]))


def _interval(
    source: str, choice: Choice, probability: FloatArray, all_p: FloatArray, level: float, exact: bool
) -> ThresholdInterval:
    defined = ~np.isnan(choice.threshold)
    low, high = percentile_interval(choice.threshold, level, probability)
    values, place = np.unique(choice.threshold[defined], return_inverse=True)
    chance = np.bincount(place, weights=probability[defined], minlength=len(values)).astype(np.float64)
    fewest, most = count_positives(all_p, np.array([high, low])) if defined.any() else (0, 0)
    return ThresholdInterval(
        source=source,
        low=low,
        high=high,
        level=level,
        positives_low=int(fewest),
        positives_high=int(most),
        thresholds=values,
        probability=chance / chance.sum() if len(chance) else chance,
        replicates=len(probability),
        exact=exact,
        no_choice=float(probability[choice.bin < 0].sum()),
    )
