"""Simulated model scores with a chosen AUROC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import rankdata

from softgold.simulation.result import Truth
from softgold.tables.scores import Scores

FloatArray = NDArray[np.float64]

AUROC_TOLERANCE = 1e-4
LARGEST_LOGIT = 30.0
LEAST_SIGNAL = 0.01


def model_scores(truth: Truth, aurocs: Sequence[float], ambiguity: Sequence[float], rng: np.random.Generator) -> Scores:
    """Draw scores in (0, 1) of the models `model_1`, `model_2`, ..., one per target AUROC.

    score = sigmoid(d s + e) with e ~ N(0, 1) and signal s = +-r^g, with the sign of the true class. r is the clarity of
    the item over the median of |b|, at least 0.01, so that tricky items have almost no signal. d is chosen so that the
    AUROC on these items is the target. The exponent g is the model's ambiguity: at 0 the model errs on clear, ambiguous
    and tricky items alike; at 1 its errors are on items on which people disagree or are wrong too. Of two models with
    equal AUROC, metrics against soft labels prefer the one with more ambiguity.

    Args:
        truth: Truth of the simulation, with items of both classes.
        aurocs: Target of each model, in [0.5, 1).
        ambiguity: Ambiguity of each model, in [0, 1].
        rng: Random generator.
    """
    relative = np.maximum(truth.clarity / np.median(np.abs(truth.difficulty)), LEAST_SIGNAL)
    sign = np.where(truth.label == 1, 1.0, -1.0)
    values = np.empty((len(sign), len(aurocs)))
    for model, (auroc, exponent) in enumerate(zip(aurocs, ambiguity, strict=True)):
        noise = rng.standard_normal(len(sign))
        logits = _scale_to_auroc(truth.label == 1, sign * relative**exponent, noise, auroc)
        # Above LARGEST_LOGIT the sigmoid rounds to 1, and ties would change the AUROC.
        values[:, model] = expit(logits * min(1.0, LARGEST_LOGIT / np.abs(logits).max()))
    return Scores(truth.item_ids, tuple(f"model_{number + 1}" for number in range(len(aurocs))), values)


def _scale_to_auroc(positive: NDArray[np.bool_], signal: FloatArray, noise: FloatArray, target: float) -> FloatArray:
    """Return d * signal + noise with the AUROC nearest to `target`.

    Positives have the larger signal in every pair, so that the AUROC rises with d and bisection finds it.
    """
    low, high = 0.0, 1.0
    while _auroc(positive, high * signal + noise) < target and high < 1e9:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        reached = _auroc(positive, middle * signal + noise)
        if abs(reached - target) < AUROC_TOLERANCE:
            return middle * signal + noise
        low, high = (low, middle) if reached > target else (middle, high)
    return high * signal + noise


def _auroc(positive: NDArray[np.bool_], values: FloatArray) -> float:
    """Return the AUROC, from the rank sum of the positives."""
    n_positive = int(positive.sum())
    rank_sum = rankdata(values)[positive].sum()
    return float((rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * (len(values) - n_positive)))
