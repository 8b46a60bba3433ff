"""Intervals of a threshold: over other panels of the same experts, other items of the same kind, and both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import FloatArray
from softgold.experts.evidence import Evidence
from softgold.experts.logit_map import INTERCEPT_SD, LOG_SLOPE_SD
from softgold.experts.panel import ExpertPanel, LabelArray, Tie, draw_panels
from softgold.experts.rules import Choice, ThresholdRule, choose, row_chunks
from softgold.metrics.intervals import percentile_interval

IntervalSource = Literal["panel", "items", "both"]
SOURCES: tuple[IntervalSource, ...] = ("panel", "items", "both")


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How to resample.

    Attributes:
        tie: Label of an item on which the experts are evenly split.
        n_bootstrap: Number of resamples of each bootstrap.
        level: Level of the intervals.
        seed: Seed of everything random.
    """

    tie: Tie = "negative"
    n_bootstrap: int = 2000
    level: float = 0.95
    seed: int = 0

    @property
    def redrawn(self) -> str:
        """What is drawn beside experts, in words."""
        return "items"


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
        n_resamples: Number of resamples, or of panel compositions when all were enumerated.
        exact: Whether the distribution was enumerated and not drawn.
        no_choice: Chance that the rule finds no threshold (0.5 is taken then, or none under a target rule).
    """

    source: IntervalSource
    low: float
    high: float
    level: float
    positives_low: int
    positives_high: int
    thresholds: FloatArray
    probability: FloatArray
    n_resamples: int
    exact: bool
    no_choice: float

    @property
    def is_point(self) -> bool:
        """Whether the interval is a single threshold."""
        return self.low == self.high


@dataclass(frozen=True, eq=False)
class _Draws:
    """Replicates of labels and items: `parts` gives them in pieces that fit into memory."""

    parts: Iterator[Choice]
    probability: FloatArray
    exact: bool


def threshold_interval(
    source: IntervalSource,
    evidence: Evidence,
    panel: ExpertPanel,
    rule: ThresholdRule,
    all_p: FloatArray,
    settings: Resampling | None = None,
) -> ThresholdInterval:
    """Return the interval of the threshold over one source of chance.

    Args:
        source: "panel": as many experts as there are, drawn with replacement (CleanPatrick, appendix G); few experts
            are enumerated exactly (see `draw_panels`). "items": labelled items drawn anew within their strata, as the
            sampling design drew them, or whole groups of them. "both": both at once, the interval to quote. When
            items are drawn, the prior of the logit map is drawn too, so that few labels give a wide interval and not a
            narrow one at 0.5.
        evidence: The labelled items.
        panel: The experts' answers about them.
        rule: The rule that chooses the threshold.
        all_p: Soft labels of the whole data set, for the number of positives.
        settings: How to resample.
    """
    how = settings or Resampling()
    if source == "panel":
        draws = _panel_draws(evidence, panel, rule, how)
    else:
        parts = _item_draws(evidence, panel, rule, how, panel.n_experts if source == "both" else 0)
        draws = _Draws(parts, np.full(how.n_bootstrap, 1 / how.n_bootstrap), exact=False)
    choices = list(draws.parts)
    joined = Choice(
        np.concatenate([choice.threshold for choice in choices]), np.concatenate([choice.found for choice in choices])
    )
    return _summarise(source, joined, draws, all_p, how.level)


def draw_items(evidence: Evidence, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw labelled items with replacement, and return how often each was drawn, shape (size, N).

    Items are drawn within their strata, as the sampling design drew them; with groups, whole groups are drawn instead.
    """
    if evidence.groups is not None:
        return _draw_groups(evidence.groups, size, rng)
    n, stratum = len(evidence.p), evidence.design.stratum
    row = np.arange(size)[:, None] * n
    copies = np.zeros(size * n, dtype=np.int64)
    for number in np.unique(stratum):
        members = np.flatnonzero(stratum == number)
        picked = members[rng.integers(len(members), size=(size, len(members)))]
        copies += np.bincount((row + picked).ravel(), minlength=size * n)
    return copies.reshape(size, n)


def _draw_groups(groups: NDArray[np.intp], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    n_groups = int(groups.max(initial=-1)) + 1
    picked = rng.integers(max(n_groups, 1), size=(size, n_groups)) + np.arange(size)[:, None] * n_groups
    copies = np.bincount(picked.ravel(), minlength=size * n_groups).reshape(size, n_groups)
    return np.asarray(copies[:, groups], dtype=np.int64)


def draw_labels(panel: ExpertPanel, n_experts: int, size: int, tie: Tie, rng: np.random.Generator) -> LabelArray:
    """Return majorities of panels of `n_experts` drawn with replacement, shape (size, N); of the whole panel if 0."""
    if n_experts == 0:
        return np.broadcast_to(panel.majority(tie), (size, len(panel.item_ids)))
    seats = rng.multinomial(n_experts, np.full(n_experts, 1 / n_experts), size=size)
    return panel.majorities(seats, tie)


def prevalence_sensitivity(p: FloatArray, threshold: float, *, reach: float = 0.15, steps: int = 12) -> pd.DataFrame:
    """Return positives and prevalence for thresholds around t: `offset, threshold, positives, prevalence`.

    Thresholds t - reach .. t + reach, cut to [0, 1] (CleanPatrick, appendix G).

    >>> prevalence_sensitivity(np.array([0.1, 0.6, 0.7, 0.9]), 0.65, reach=0.1, steps=2)["positives"].tolist()
    [3, 2, 1]
    """
    offset = np.linspace(-reach, reach, steps + 1)
    thresholds = np.where(offset == 0, threshold, np.clip(threshold + offset, 0.0, 1.0))
    positives = count_positives(p, thresholds)
    columns = {"offset": offset, "threshold": thresholds, "positives": positives, "prevalence": positives / len(p)}
    return pd.DataFrame(columns)


def count_positives(p: FloatArray, thresholds: FloatArray) -> NDArray[np.int64]:
    """Return the number of items with p >= t for each threshold t, shape of `thresholds`."""
    return np.asarray(len(p) - np.searchsorted(np.sort(p), thresholds, side="left"), dtype=np.int64)


def _panel_draws(evidence: Evidence, panel: ExpertPanel, rule: ThresholdRule, how: Resampling) -> _Draws:
    draws = draw_panels(panel.n_experts, n_bootstrap=how.n_bootstrap, seed=how.seed)
    parts = (
        choose(evidence, rule, panel.majorities(draws.seats[rows], how.tie))
        for rows in row_chunks(len(draws.seats), len(evidence.p))
    )
    return _Draws(parts, draws.probability, draws.exact)


def _item_draws(
    evidence: Evidence, panel: ExpertPanel, rule: ThresholdRule, how: Resampling, drawn_experts: int
) -> Iterator[Choice]:
    rng = np.random.default_rng(how.seed)
    for rows in row_chunks(how.n_bootstrap, len(evidence.p)):
        size = rows.stop - rows.start
        labels = draw_labels(panel, drawn_experts, size, how.tie, rng)
        copies = draw_items(evidence, size, rng)
        centre = rng.normal(0.0, (INTERCEPT_SD, LOG_SLOPE_SD), size=(size, 2))
        yield choose(evidence, rule, labels, copies, centre)


def _summarise(
    source: IntervalSource, choice: Choice, draws: _Draws, all_p: FloatArray, level: float
) -> ThresholdInterval:
    probability = draws.probability
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
        n_resamples=len(probability),
        exact=draws.exact,
        no_choice=float(probability[~choice.found].sum()),
    )
