"""Platt scaling: a two-parameter logistic map from scores to probabilities, fitted with smoothed targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from softgold.checks import as_finite, check_choice, check_same_length
from softgold.errors import InputError, UsageError
from softgold.metrics.inputs import targets_and_scores

FloatArray = NDArray[np.float64]
Pooling = Literal["pooled", "legacy"]

MAX_STEPS = 100


@dataclass(frozen=True)
class PlattScaling:
    """The fitted map: probability = 1 / (1 + exp(a score + b)), so a is negative when high scores are good."""

    a: float
    b: float

    def transform(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probability of each score, same shape.

        >>> PlattScaling(a=-1.0, b=0.0).transform([0.0, 100.0]).tolist()
        [0.5, 1.0]
        """
        return np.asarray(expit(-(self.a * as_finite(scores, "scores", ndim=None) + self.b)))


def platt_scaling(
    p: ArrayLike,
    scores: ArrayLike,
    *,
    pooling: Pooling = "pooled",
    images: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> PlattScaling:
    """Fit Platt scaling by maximum likelihood with Platt's smoothed targets.

    With N+ = sum w p and N- = sum w (1 - p), a positive has target (N+ + 1) / (N+ + 2), a negative 1 / (N- + 2), and a
    soft label their mixture. For an uncertainty u (of a pixel, say) give its negative as the score and whether
    the prediction was correct as p.

    Args:
        p: Labels, or correctness, in [0, 1], shape (n,).
        scores: Scores, higher for positive, shape (n,).
        pooling: `pooled`: one fit to all; `legacy`: one fit per image and the plain mean of (a, b), as in the published
            ValUES code - for reproduction, since the mean of fits is not a fit.
        images: Which image each row belongs to, shape (n,); needed by `legacy` and only there.
        sample_weight: Weight of each row, shape (n,).

    Returns:
        The map, with its `transform`.

    Reference:
        Platt (1999) with the targets of Lin, Lin and Weng (2007); Kahl et al., ValUES, appendix A.5.

    >>> fit = platt_scaling([1, 1, 0, 1, 0, 0], [3, 2, 1.5, 1, 0.5, 0])
    >>> fit.transform([0, 3]).round(3).tolist()
    [0.226, 0.829]
    """
    check_choice(pooling, ("pooled", "legacy"), "pooling")
    targets, values, weights = targets_and_scores(p, scores, sample_weight)
    if not len(targets):
        raise InputError("platt_scaling needs at least one row")
    if (images is not None) != (pooling == "legacy"):
        raise UsageError("images must be given with pooling='legacy', and only then")
    counted = weights > 0
    if images is None:
        return _fit(targets[counted], values[counted], weights[counted])
    names = np.asarray(images)
    check_same_length(len(targets), images=names)
    rows = [(names == name) & counted for name in np.unique(names[counted])]
    fits = [_fit(targets[row], values[row], weights[row]) for row in rows]
    return PlattScaling(float(np.mean([fit.a for fit in fits])), float(np.mean([fit.b for fit in fits])))


def _fit(p: FloatArray, scores: FloatArray, weights: FloatArray) -> PlattScaling:
    """Newton's method with step halving on the convex negative log likelihood, in standardised scores."""
    centre, spread = scores.min(), np.ptp(scores) or 1.0
    design = np.column_stack([(scores - centre) / spread, np.ones_like(scores)])
    positive, negative = weights @ p, weights @ (1 - p)
    targets = p * (positive + 1) / (positive + 2) + (1 - p) / (negative + 2)
    beta = np.array([0.0, np.log((positive + 1) / (negative + 1))])
    for _ in range(MAX_STEPS):
        step = _newton_step(beta, design, targets, weights)
        loss = _loss(beta, design, targets, weights)
        while _loss(beta + step, design, targets, weights) > loss * (1 + 1e-12):
            step /= 2
        beta = beta + step
        if np.abs(step).max() <= 1e-13 * (1 + np.abs(beta).max()):
            break
    return PlattScaling(a=float(-beta[0] / spread), b=float(beta[0] * centre / spread - beta[1]))


def _newton_step(beta: FloatArray, design: FloatArray, targets: FloatArray, weights: FloatArray) -> FloatArray:
    q = expit(design @ beta)
    gradient = design.T @ (weights * (q - targets))
    curvature = (design * (weights * q * (1 - q))[:, None]).T @ design
    # Equal scores leave the slope free: the shortest solution of the singular system keeps it at zero.
    return np.asarray(np.linalg.lstsq(curvature, -gradient, rcond=1e-14)[0], dtype=np.float64)


def _loss(beta: FloatArray, design: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
    logits = design @ beta
    return -float(weights @ (targets * log_expit(logits) + (1 - targets) * log_expit(-logits)))
