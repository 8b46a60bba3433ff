"""Selective prediction: how fast the risk falls when the least confident cases are left to people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from softgold.checks import as_finite, check_choice, check_same_length
from softgold.metrics.inputs import weights_or_ones
from softgold.metrics.sweep import rank

FloatArray = NDArray[np.float64]
Integral = Literal["riemann", "trapezoid"]


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """One entry per distinct confidence, descending; each of shape (G,).

    Attributes:
        coverage: Share of the cases with at least this confidence, the last entry 1.
        risk: Mean risk of those cases.
        thresholds: The distinct confidences.

    Example:
        >>> risk_coverage_curve([0.1, 0.4, 0.2], [3, 1, 2]).thresholds.tolist()
        [3.0, 2.0, 1.0]
    """

    coverage: FloatArray
    risk: FloatArray
    thresholds: FloatArray


@dataclass(frozen=True, eq=False)
class _Cases:
    """Weight and summed risk of each group of equal confidence, and their running sums; each of shape (G,)."""

    group_weight: FloatArray
    group_risk: FloatArray
    weight: FloatArray
    risk: FloatArray
    thresholds: FloatArray


def risk_coverage_curve(
    risk: ArrayLike, confidence: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> RiskCoverageCurve:
    """Selective risk and coverage at every distinct confidence.

    Args:
        risk: Loss of each case (1 - Dice, or 0 and 1), shape (n,).
        confidence: Confidence in each case, for instance the negative uncertainty, shape (n,).
        sample_weight: Copies of each case, shape (n,).

    Returns:
        The curve; empty without cases.

    Reference:
        Kahl et al., ValUES, equations 5 and 6.

    >>> curve = risk_coverage_curve([0.1, 0.4, 0.2], [3, 1, 2])
    >>> curve.risk.round(4).tolist(), curve.coverage.round(4).tolist()
    ([0.1, 0.15, 0.2333], [0.3333, 0.6667, 1.0])
    """
    cases = _sorted_cases(risk, confidence, sample_weight)
    total = cases.weight[-1:]
    return RiskCoverageCurve(cases.weight / total, cases.risk / cases.weight, cases.thresholds)


def aurc(
    risk: ArrayLike,
    confidence: ArrayLike,
    *,
    integral: Integral = "riemann",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the risk-coverage curve.

    - `riemann`: the mean over k = 1 ... n of the risk of the k most confident cases, in expectation over the order
      of cases that tie;
    - `trapezoid`: between the distinct confidences, beginning at coverage 0 with the first risk. It interpolates over
      a group of ties, and so can reward a confidence that cannot tell the cases apart.

    Args:
        risk, confidence, sample_weight: As in `risk_coverage_curve`.
        integral: Which area.

    Returns:
        The area, between the least and the greatest risk; NaN without cases.

    Reference:
        Kahl et al., ValUES, equation 7, with coverage ascending and the missing first point supplied.

    >>> risk, confidence = [0.1, 0.4, 0.2, 0.8, 0.05], [5, 3, 4, 1, 2]
    >>> round(aurc(risk, confidence), 8), round(aurc(risk, confidence, integral="trapezoid"), 8)
    (0.19616667, 0.17516667)
    """
    check_choice(integral, ("riemann", "trapezoid"), "integral")
    cases = _sorted_cases(risk, confidence, sample_weight)
    if not len(cases.weight):
        return math.nan
    return _riemann(cases) if integral == "riemann" else _trapezoid(cases)


def excess_aurc(
    risk: ArrayLike,
    confidence: ArrayLike,
    *,
    integral: Integral = "riemann",
    sample_weight: ArrayLike | None = None,
) -> float:
    """AURC minus that of the oracle, which ranks the cases by their risk; both by the same integral.

    Args:
        risk, confidence, sample_weight: As in `risk_coverage_curve`.
        integral: Which area; by `riemann` the excess is never negative, and 0 for the oracle.

    Returns:
        The excess; NaN without cases.

    Reference:
        Kahl et al., ValUES, equation 8. Its code subtracts a Riemann optimum from a trapezoid.

    >>> excess_aurc([0.1, 0.2, 0.3, 0.9], [4, 3, 2, 1])
    0.0
    """
    ours = aurc(risk, confidence, integral=integral, sample_weight=sample_weight)
    best = aurc(risk, -as_finite(risk, "risk"), integral=integral, sample_weight=sample_weight)
    # No order beats the oracle's; what is below zero by Riemann is rounding.
    return ours - best if integral == "trapezoid" or math.isnan(ours) else max(0.0, ours - best)


def _sorted_cases(risk: ArrayLike, confidence: ArrayLike, sample_weight: ArrayLike | None) -> _Cases:
    losses, values = as_finite(risk, "risk"), as_finite(confidence, "confidence")
    check_same_length(len(losses), confidence=values)
    weights = weights_or_ones(sample_weight, len(losses))
    kept = weights > 0
    losses, values, weights = losses[kept], values[kept], weights[kept]
    order = rank(values)
    weight, loss = weights[order.items], (weights * losses)[order.items]
    if order.starts is not None:
        weight, loss = np.add.reduceat(weight, order.starts), np.add.reduceat(loss, order.starts)
    return _Cases(weight, loss, weight.cumsum(), loss.cumsum(), order.thresholds)


def _riemann(cases: _Cases) -> float:
    """Sum over k of the expected risk of the first k, a group of ties at a time, over n.

    After K cases of summed risk S come g that tie, of mean risk m: the k-th risk is expected to be m + (S - K m) / k,
    and 1/k sums to a difference of harmonic numbers - of digammas, for weights that are not whole.
    """
    before, mean = cases.weight - cases.group_weight, cases.group_risk / cases.group_weight
    harmonic = digamma(cases.weight + 1) - digamma(before + 1)
    earlier = cases.risk - cases.group_risk - before * mean
    return float((cases.group_risk + earlier * harmonic).sum() / cases.weight[-1])


def _trapezoid(cases: _Cases) -> float:
    risk, coverage = cases.risk / cases.weight, cases.weight / cases.weight[-1]
    return float(np.trapezoid(np.append(risk[0], risk), np.append(0.0, coverage)))
