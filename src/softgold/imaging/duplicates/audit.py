"""Audit of a plan: pairs that are near in other representations, judged by people (CleanPatrick, appendix H)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgold.checks import check_in_range, check_positive_int
from softgold.errors import InputError
from softgold.imaging.duplicates.neighbours import closest_pairs
from softgold.imaging.duplicates.plan import DuplicatePlan
from softgold.imaging.duplicates.spaces import EmbeddingSpace, MatrixSpace
from softgold.metrics.intervals import wilson_interval

IntArray = NDArray[np.int64]


def sample_audit(
    plan: DuplicatePlan,
    spaces: Mapping[str, EmbeddingSpace | MatrixSpace],
    *,
    top: int = 5000,
    per_source: int = 150,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw pairs for people to judge from those that are nearest elsewhere and that the plan never asked.

    For each other representation the `top` nearest pairs are taken that the plan did not propose, and `per_source` of
    them are drawn at random; a pair is drawn once over all representations.

    Args:
        plan: A plan with answers.
        spaces: Other representations of the same samples, by name.
        top: Pairs to draw from in each.
        per_source: Pairs to draw in each.
        seed: Seed of the draw.

    Returns:
        `item, source, first, second, distance, pool, same_component`: `pool` is how many pairs were drawn from, and
        `same_component` whether the plan has the pair in one component already, though it never asked.
    """
    check_positive_int(top, "top")
    check_positive_int(per_source, "per_source")
    rng = np.random.default_rng(seed)
    asked = {pair for part in plan.rounds for pair in zip(part.first.tolist(), part.second.tolist(), strict=True)}
    parts = []
    for source, space in spaces.items():
        if len(space) != len(plan.ids):
            raise InputError(f"{source!r} has {len(space)} samples, and the plan has {len(plan.ids)}")
        first, second, distance = closest_pairs(space, top, exclude=asked)
        drawn = np.sort(rng.permutation(len(first))[:per_source])
        asked |= set(zip(first[drawn].tolist(), second[drawn].tolist(), strict=True))
        parts.append(
            pd.DataFrame({
                "source": source,
                "first": plan.ids.take(first[drawn]),
                "second": plan.ids.take(second[drawn]),
                "distance": distance[drawn],
                "pool": len(first),
                "same_component": plan.component[first[drawn]] == plan.component[second[drawn]],
            })
        )  # fmt: skip
    if not parts:
        raise InputError("an audit needs at least one other representation")
    sample = pd.concat(parts, ignore_index=True)
    sample.insert(0, "item", pd.Index([f"audit{place:05d}" for place in range(1, len(sample) + 1)], dtype="str"))
    return sample


@dataclass(frozen=True)
class AuditBound:
    """Result of an audit of one representation.

    Attributes:
        source: The representation.
        n_audited: Pairs that were judged.
        n_duplicates: Near duplicates among them.
        n_missed: Those of them that the plan does not have in one component either.
        share: Share of near duplicates.
        low: Lower end of its Wilson interval.
        high: Upper end.
        pool: Pairs that the audited ones stand for.
        at_most: Near duplicates in the pool at the upper end.
    """

    source: str
    n_audited: int
    n_duplicates: int
    n_missed: int
    share: float
    low: float
    high: float
    pool: int
    at_most: float


def audit_bounds(sample: pd.DataFrame, positive: ArrayLike, *, level: float = 0.95) -> list[AuditBound]:
    """Bound the share of near duplicates among the pairs that a plan never asked, for each representation.

    Args:
        sample: The table of `sample_audit`.
        positive: Whether each pair was judged to be one of near duplicates, in the order of the table.
        level: Level of the intervals.

    Example:
        >>> sample = pd.DataFrame({"source": ["pHash"] * 150, "pool": 5000, "same_component": False})
        >>> [bound] = audit_bounds(sample, [0] * 150)
        >>> round(bound.high, 4)
        0.025
    """
    check_in_range(level, 0, 1, "level", ends="open")
    answers = np.asarray(positive)
    if answers.shape != (len(sample),) or not np.isin(answers, (0, 1)).all():
        raise InputError(f"answers must be {len(sample)} values of 0 and 1, got shape {answers.shape}")
    judged = sample.assign(positive=answers.astype(bool))
    return [_bound(str(source), rows, level) for source, rows in judged.groupby("source", sort=False)]


def _bound(source: str, rows: pd.DataFrame, level: float) -> AuditBound:
    found = int(rows["positive"].sum())
    low, high = wilson_interval(found, len(rows), level=level)
    pool = int(rows["pool"].iloc[0])
    missed = int((rows["positive"] & ~rows["same_component"]).sum())
    return AuditBound(source, len(rows), found, missed, found / len(rows), low, high, pool, high * pool)
