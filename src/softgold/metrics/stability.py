"""How stable a ranking of models is under resampling, and how two metrics agree over models."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import linregress, rankdata

from softgold.checks import as_finite, check_same_length
from softgold.errors import InputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RankingStability:
    """Agreement between the rankings of models in different replicates.

    Attributes:
        mean_pairwise: Mean Spearman correlation over pairs of replicates; NaN with fewer than two.
        mean_vs_reference: Mean Spearman correlation with the reference ranking; NaN without one.
        n_used: Replicates that rank the models.
        n_dropped: Replicates left out, because a value was undefined or all models were equal.

    Example:
        >>> found = ranking_stability([[0.9, 0.8, 0.7], [0.9, 0.7, 0.8]])
        >>> round(found.mean_pairwise, 3), found.n_used
        (0.5, 2)
    """

    mean_pairwise: float
    mean_vs_reference: float
    n_used: int
    n_dropped: int


def ranking_stability(
    metric_values: ArrayLike, *, reference: ArrayLike | None = None, probability: ArrayLike | None = None
) -> RankingStability:
    """Mean Spearman correlation between the rankings of K models in B replicates, and with a reference.

    With z_b the centred average ranks of replicate b, scaled to length 1, the mean over all pairs is
    (|sum z_b|^2 - B) / (B (B - 1)): no pair is formed. For enumerated resamples, where a row stands for all replicates
    equal to it, it is |sum P_b z_b|^2.

    Args:
        metric_values: A metric of each model (column) in each replicate (row), shape (B, K); NaN where undefined.
        reference: The metric on the full data, shape (K,).
        probability: Probability of each row when they were enumerated, shape (B,).

    Returns:
        Both means and the number of rows used and dropped.

    Reference:
        Lionetti et al., figure 3, with unit, coefficient and comparison fixed as above.

    >>> rows = [[0.9, 0.8, 0.7], [0.9, 0.7, 0.8], [0.8, 0.9, 0.7]]
    >>> ranking_stability(rows, reference=[0.9, 0.8, 0.7])
    RankingStability(mean_pairwise=0.16666..., mean_vs_reference=0.66666..., n_used=3, n_dropped=0)
    """
    values = _as_table(metric_values)
    z = _unit_ranks(values)
    used = ~np.isnan(z).any(axis=1) if values.shape[1] else np.zeros(len(values), dtype=bool)
    weights = _row_weights(probability, len(values))
    pairwise = _mean_pairwise(z[used], None if weights is None else weights[used])
    against = math.nan
    if reference is not None and used.any():
        target = _unit_ranks(_as_reference(reference, values.shape[1])[None, :])[0]
        against = float(np.average(z[used] @ target, weights=None if weights is None else weights[used]))
    return RankingStability(pairwise, against, int(used.sum()), int((~used).sum()))


def r_squared(x: ArrayLike, y: ArrayLike) -> float:
    """Squared Pearson correlation of two metrics over models: the R^2 of a straight line through their values.

    Args:
        x: One metric of each model, shape (K,).
        y: The other metric of each model, shape (K,).

    Returns:
        A value in [0, 1]; NaN if a metric is constant or there are fewer than two models.

    Reference:
        Lionetti et al., figure 1.

    >>> r_squared([0.958, 0.877, 0.928, 0.915], [0.903, 0.866, 0.924, 0.912])
    0.46...
    """
    a, b = as_finite(x, "x"), as_finite(y, "y")
    check_same_length(len(a), y=b)
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(linregress(a, b).rvalue ** 2)


def _unit_ranks(values: FloatArray) -> FloatArray:
    """Average ranks of each row, centred and scaled to length 1; NaN for a row with NaN or without differences."""
    # Models that are equal must not be ranked by the rounding of their sums.
    ranks = np.asarray(rankdata(np.round(values, 12), axis=1, nan_policy="propagate"))
    centred = ranks - (values.shape[1] + 1) / 2
    length = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(centred, length, out=np.full(centred.shape, np.nan), where=length > 0))


def _mean_pairwise(z: FloatArray, weights: FloatArray | None) -> float:
    if weights is None:
        count = len(z)
        return float((np.sum(z.sum(axis=0) ** 2) - count) / (count * (count - 1))) if count > 1 else math.nan
    return float(np.sum((weights @ z / weights.sum()) ** 2)) if len(z) else math.nan


def _as_table(metric_values: ArrayLike) -> FloatArray:
    values = np.asarray(metric_values, dtype=np.float64)
    if values.ndim != 2:
        raise InputError(f"metric_values must have 2 dimensions, replicates by models, got shape {values.shape}")
    return values


def _as_reference(reference: ArrayLike, n_models: int) -> FloatArray:
    values = np.asarray(reference, dtype=np.float64)
    if values.shape != (n_models,):
        raise InputError(f"reference must have one value for each of {n_models} models, got shape {values.shape}")
    return values


def _row_weights(probability: ArrayLike | None, length: int) -> FloatArray | None:
    if probability is None:
        return None
    weights = as_finite(probability, "probability")
    check_same_length(length, probability=weights)
    if (weights < 0).any():
        raise InputError(f"probability must not be negative, got {weights.min()}")
    return weights
