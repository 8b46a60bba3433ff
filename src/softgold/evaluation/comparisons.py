"""Who is first and who changes places between an ordinary metric and its soft twin, and what the resamples separate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from softgold.evaluation.measures import Measured, ranks
from softgold.evaluation.result import Lead, RankComparison, Swap
from softgold.metrics import r_squared

FloatArray = NDArray[np.float64]


def compare_ranks(
    measured: Sequence[Measured], beats: Mapping[str, FloatArray], models: tuple[str, ...], level: float
) -> tuple[RankComparison, ...]:
    """Compare each ordinary metric with its soft twin.

    Args:
        measured: The metrics.
        beats: By metric, the share of resamples in which the model of the row is better than that of the column.
        models: Names of the models.
        level: Mass of the intervals. One model is better than another where it is so in (1 + level) / 2 of the
            resamples or more: where the percentile interval of their difference lies above zero.
    """
    by_name = {one.spec.name: one for one in measured}
    pairs = [(one, by_name[one.spec.soft_twin]) for one in measured if one.spec.soft_twin in by_name]
    return tuple(_compare(hard, soft, beats, models, (1 + level) / 2) for hard, soft in pairs)


def _compare(
    ordinary: Measured, soft: Measured, beats: Mapping[str, FloatArray], models: tuple[str, ...], needed: float
) -> RankComparison:
    before, after = ranks(ordinary.value, False), ranks(soft.value, False)
    defined = np.isfinite(ordinary.value) & np.isfinite(soft.value)
    won_before, won_after = beats[ordinary.spec.name], beats[soft.spec.name]
    pairs = [(a, b) for a in range(len(models)) for b in range(len(models)) if a != b and defined[a] and defined[b]]
    swaps = tuple(
        Swap(
            models[a],
            models[b],
            float(won_before[a, b]),
            float(won_after[b, a]),
            bool(won_before[a, b] >= needed and won_after[b, a] >= needed),
        )
        for a, b in pairs
        if before[a] < before[b] and after[a] > after[b]
    )
    ties = tuple(
        (models[a], models[b]) for a, b in pairs if a < b and (before[a] == before[b]) != (after[a] == after[b])
    )
    return RankComparison(
        ordinary=ordinary.spec.name,
        soft=soft.spec.name,
        # A line through two points fits them always.
        r_squared=r_squared(ordinary.value[defined], soft.value[defined]) if defined.sum() >= 3 else nan,
        best_ordinary=_lead(before, won_before, models, needed),
        best_soft=_lead(after, won_after, models, needed),
        moved=tuple(models[a] for a in np.flatnonzero(defined & (before != after))),
        swaps=swaps,
        ties=ties,
    )


def _lead(places: FloatArray, won: FloatArray, models: tuple[str, ...], needed: float) -> Lead:
    if np.isnan(places).all():
        return Lead((), (), "", nan)
    first = np.flatnonzero(places == np.nanmin(places))
    others = [at for at in range(len(models)) if at != first[0] and not np.isnan(places[at])]
    if not others:
        return Lead((models[first[0]],), (), "", nan)
    behind = [at for at in others if at not in first]
    closest = min(behind or others, key=lambda at: won[first[0], at])
    rivals = [at for at in behind if not won[first[0], at] >= needed]
    rivals.sort(key=lambda at: places[at])
    return Lead(
        tuple(models[at] for at in first),
        tuple(models[at] for at in rivals),
        models[closest],
        float(won[first[0], closest]),
    )
