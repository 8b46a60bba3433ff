"""The expert map p_calibrated = sigmoid(a + s logit p), fitted by maximum a posteriori, many fits at once.

The prior a ~ N(0, 1), log s ~ N(0, 0.5^2) is centred on "p is right": with no labels the map is the identity, and every
label moves it a little. Fitted without a prior to all labels of 22 public tables (scripts/bench/experts.py), a has a
root mean square of 0.94 and log s of 0.35.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit, ndtri

from softgold.checks import FloatArray

EPSILON = 1e-3
"""Soft labels are kept this far from 0 and 1 before their logit is taken: the 0 and 1 of a share of three votes would
otherwise decide the slope alone."""
INTERCEPT_SD = 1.0
LOG_SLOPE_SD = 0.5
NEVER = float(np.nextafter(1.0, 2.0))
"""The threshold when no soft label is high enough: just above 1."""

PRIOR_PRECISION = np.array([INTERCEPT_SD**-2, LOG_SLOPE_SD**-2])
MAX_STEPS = 200
TOLERANCE = 1e-8
# A block of replicates that stays in the cache.
CELLS_AT_ONCE = 1 << 15
LONGEST_STEP = 2.0
# The posterior of (a, log s) is represented by this many by this many points of equal probability.
POSTERIOR_POINTS = 48
BAND_NODES = 241


@dataclass(frozen=True)
class LogitMap:
    """p_calibrated = sigmoid(intercept + slope logit p), with the normal approximation of its posterior.

    Intercept 0 and slope 1 leave p as it is; a slope below 1 reduces confidence, the intercept corrects bias.

    Attributes:
        intercept: a.
        slope: s, positive.
        intercept_sd: Posterior standard deviation of a.
        log_slope_sd: Posterior standard deviation of log s.
        correlation: Posterior correlation of a and log s.

    Example:
        >>> identity = LogitMap(0.0, 1.0, INTERCEPT_SD, LOG_SLOPE_SD, 0.0)
        >>> identity.apply([0.2, 0.7]).tolist(), identity.crossing(0.5)
        ([0.2, 0.7], 0.5)
    """

    intercept: float
    slope: float
    intercept_sd: float
    log_slope_sd: float
    correlation: float

    def apply(self, p: ArrayLike) -> FloatArray:
        """Return p_calibrated, same shape as p."""
        return np.asarray(expit(self.intercept + self.slope * log_odds(p)))

    def band(self, p: ArrayLike, level: float) -> tuple[FloatArray, FloatArray]:
        """Return both ends of the pointwise credible band of p_calibrated, each of the shape of p."""
        intercepts, slopes = self._posterior_points()
        nodes = np.linspace(log_odds(0.0), log_odds(1.0), BAND_NODES)
        values = intercepts[:, None] + slopes[:, None] * nodes
        ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        low, high = (np.asarray(expit(np.interp(log_odds(p), nodes, end))) for end in ends)
        return low, high

    def crossing(self, cut: float) -> float:
        """Return the threshold: the lowest p with p_calibrated >= cut."""
        return float(crossings(np.array([self.intercept]), np.array([self.slope]), cut)[0])

    def crossing_interval(self, cut: float, level: float) -> tuple[float, float]:
        """Return the credible interval of the threshold."""
        thresholds = crossings(*self._posterior_points(), cut)
        low, high = np.quantile(thresholds, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def _posterior_points(self) -> tuple[FloatArray, FloatArray]:
        """Return intercepts and slopes of equal posterior probability, each of shape (points,)."""
        normal = ndtri((np.arange(POSTERIOR_POINTS) + 0.5) / POSTERIOR_POINTS)
        first, second = (axis.ravel() for axis in np.meshgrid(normal, normal))
        rest = np.sqrt(max(0.0, 1 - self.correlation**2))
        log_slope = np.log(self.slope) + self.log_slope_sd * (self.correlation * first + rest * second)
        return self.intercept + self.intercept_sd * first, np.exp(log_slope)


def log_odds(p: ArrayLike) -> FloatArray:
    """Return logit p with p kept `EPSILON` from 0 and 1; same shape."""
    return np.asarray(logit(np.clip(np.asarray(p, dtype=np.float64), EPSILON, 1 - EPSILON)))


def crossings(intercept: FloatArray, slope: FloatArray, cut: float) -> FloatArray:
    """Return the lowest p that each map sends to `cut` or above, shape (M,); 0 if all are, `NEVER` if none is."""
    with np.errstate(over="ignore", divide="ignore"):
        at = (logit(cut) - intercept) / slope
    ends = log_odds(0.0), log_odds(1.0)
    return np.where(at <= ends[0], 0.0, np.where(at > ends[1], NEVER, expit(at)))


def effective_weight(weight: FloatArray, mass: FloatArray) -> FloatArray:
    """Scale design weights to sum to the effective number of labels (sum w)^2 / sum w^2 (Kish); shape (M, N).

    Unequal weights carry less information than their number; the prior should count for more then.

    Args:
        weight: Design weights of M replicates, shape (M, N); 0 without a label.
        mass: How often each label was drawn, shape (M, N): a label drawn twice is two labels of half its weight.

    >>> effective_weight(np.array([[1.0, 1.0, 4.0]]), np.ones((1, 3))).round(2).tolist()
    [[0.33, 0.33, 1.33]]
    """
    total = weight.sum(axis=1, keepdims=True)
    squares = (weight**2 / np.maximum(mass, 1.0)).sum(axis=1, keepdims=True)
    return np.asarray(weight * np.divide(total, squares, out=np.zeros_like(total), where=squares > 0))


def fit_logit_maps(
    p: FloatArray, labels: NDArray[np.generic], weight: FloatArray, centre: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Fit M maps at once by damped Newton steps on the log posterior of (a, log s).

    One call of scipy.optimize per bootstrap replicate would take many times as long.

    Args:
        p: Soft labels, shape (N,).
        labels: 0 or 1 where the weight is not 0, shape (M, N).
        weight: Weights, shape (M, N), each row summing to the number of labels that it is worth.
        centre: Centre of the prior of (a, log s) in each replicate, shape (M, 2); zeros if None.

    Returns:
        (a, log s) of each replicate, shape (M, 2), and their posterior precision, shape (M, 2, 2).
    """
    prior = np.zeros((len(weight), 2)) if centre is None else centre
    distinct, place = np.unique(p, return_inverse=True)
    total, positive = _by_value(weight, place, len(distinct)), _by_value(weight * (labels == 1), place, len(distinct))
    theta, precision = np.empty((len(weight), 2)), np.empty((len(weight), 2, 2))
    step = max(1, CELLS_AT_ONCE // max(len(distinct), 1))
    for start in range(0, len(weight), step):
        rows = slice(start, start + step)
        theta[rows], precision[rows] = _fit_block(log_odds(distinct), total[rows], positive[rows], prior[rows])
    return theta, precision


def _by_value(weight: FloatArray, place: NDArray[np.intp], n_values: int) -> FloatArray:
    """Sum weights of items with equal p, shape (M, distinct values)."""
    if n_values == len(place):
        return np.asarray(weight[:, np.argsort(place)])
    rows, columns = np.arange(len(place)), place
    member = sparse.csr_array((np.ones(len(place)), (rows, columns)), shape=(len(place), n_values))
    return np.asarray(weight @ member)


def _fit_block(
    x: FloatArray, total: FloatArray, positive: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    theta, damping = prior.copy(), np.ones(len(prior))
    loss, gradient, precision = _evaluate(theta, x, total, positive, prior)
    active = np.arange(len(prior))
    for _ in range(MAX_STEPS):
        curvature = precision[active].copy()
        # The part of the curvature in log s that has no expectation; left out where it is negative, as Newton's step
        # would then leave the mode. Without it steps overshoot to the other side of the mode, over and over.
        bend = gradient[active, 1] - (theta[active, 1] - prior[active, 1]) * PRIOR_PRECISION[1]
        curvature[:, 1, 1] += np.maximum(bend, 0.0)
        step = -np.linalg.solve(curvature, gradient[active][:, :, None])[:, :, 0]
        length = np.abs(step).max(axis=1)
        going = length >= TOLERANCE
        if not going.any():
            break
        active, step, length = active[going], step[going], length[going]
        shrink = damping[active] * np.minimum(1.0, LONGEST_STEP / length)
        trial = theta[active] + shrink[:, None] * step
        new = _evaluate(trial, x, total[active], positive[active], prior[active])
        better = new[0] <= loss[active] + 1e-12 * (1 + np.abs(loss[active]))
        damping[active] = np.where(better, np.minimum(1.0, 2 * damping[active]), damping[active] / 4)
        took = active[better]
        theta[took], loss[took], gradient[took], precision[took] = (
            trial[better], new[0][better], new[1][better], new[2][better],
        )  # fmt: skip
    return theta, precision


def _evaluate(
    theta: FloatArray, x: FloatArray, total: FloatArray, positive: FloatArray, prior: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return negative log posterior (M,), its gradient (M, 2) and expected curvature (M, 2, 2)."""
    slope = np.exp(theta[:, 1])
    odds = theta[:, :1] + slope[:, None] * x
    small = np.exp(-np.abs(odds))
    q = np.where(odds >= 0, 1.0, small) / (1 + small)
    softplus = np.maximum(odds, 0.0) + np.log1p(small)
    residual, variance = total * q - positive, total * (small / (1 + small) ** 2)
    away = theta - prior
    loss = (total * softplus - positive * odds).sum(axis=1) + 0.5 * (away**2) @ PRIOR_PRECISION
    sums, moments = residual @ np.vander(x, 2, increasing=True), variance @ np.vander(x, 3, increasing=True)
    gradient = sums * np.column_stack([np.ones_like(slope), slope]) + away * PRIOR_PRECISION
    precision = np.empty((len(theta), 2, 2))
    precision[:, 0, 0] = moments[:, 0] + PRIOR_PRECISION[0]
    precision[:, 1, 1] = slope**2 * moments[:, 2] + PRIOR_PRECISION[1]
    precision[:, 0, 1] = precision[:, 1, 0] = slope * moments[:, 1]
    return loss, gradient, precision
