"""Scores of predicted probabilities against soft labels, and the threshold with the best F1.

A score is a loss of each item and its weighted mean. For a soft label p the loss is the expected one over a label drawn
from p, so it equals the score of the data in which each item is a positive of weight p and a negative of weight 1 - p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, xlog1py, xlogy

from softgold.checks import check_choice
from softgold.metrics.inputs import targets_and_predictions
from softgold.metrics.ranked import Ranking

FloatArray = NDArray[np.float64]
LabelNoise = Literal["include", "exclude"]


@dataclass(frozen=True)
class StratifiedBrier:
    """Brier score of the positives and of the negatives; NaN for a class that is absent.

    Example:
        >>> round(stratified_brier([1, 0, 0], [0.8, 0.3, 0.1]).negative, 3)
        0.05
    """

    positive: float
    negative: float

    @property
    def balanced_sum(self) -> float:
        """Balanced Brier score, the sum of both: in [0, 2], 0.5 for a constant prediction of 0.5."""
        return self.positive + self.negative

    @property
    def balanced_mean(self) -> float:
        """Mean of both: in [0, 1], 0.25 for a constant prediction of 0.5."""
        return self.balanced_sum / 2


@dataclass(frozen=True)
class F1Threshold:
    """Operating point with the highest F1: call an item positive when its score is at least `threshold`.

    Example:
        >>> best = best_f1_threshold([1, 0, 1, 0], [0.9, 0.6, 0.5, 0.1])
        >>> best.threshold, round(best.f1, 3), round(best.precision, 3), best.recall
        (0.5, 0.8, 0.667, 1.0)
    """

    threshold: float
    f1: float
    precision: float
    recall: float


def brier_score(
    p: ArrayLike, predicted: ArrayLike, *, label_noise: LabelNoise = "include", sample_weight: ArrayLike | None = None
) -> float:
    """Brier score: mean of p (1 - q)^2 + (1 - p) q^2 for predictions q.

    Args:
        p: Soft labels in [0, 1], shape (n,).
        predicted: Predicted probabilities q in [0, 1], shape (n,).
        label_noise: `include`: expected score over labels drawn from p, whose least value is the mean of p (1 - p);
            `exclude`: without that value, which leaves the mean of (p - q)^2. The same for binary labels.
        sample_weight: Weight of each item, shape (n,).

    Returns:
        The score in [0, 1]; NaN without items.

    Reference:
        Mosquera et al., Understanding the impact of class imbalance ..., section 2.2.3.

    >>> round(brier_score([1, 0, 0, 1, 0], [0.8, 0.3, 0.1, 0.4, 0.6]), 3)
    0.172
    >>> brier_score([0.5], [0.5]), brier_score([0.5], [0.5], label_noise="exclude")
    (0.25, 0.0)
    """
    check_choice(label_noise, ("include", "exclude"), "label_noise")
    targets, q, weights = targets_and_predictions(p, predicted, sample_weight)
    losses = (targets - q) ** 2
    if label_noise == "include":
        losses += targets * (1 - targets)
    return _mean(losses, weights)


def log_loss(
    p: ArrayLike, predicted: ArrayLike, *, label_noise: LabelNoise = "include", sample_weight: ArrayLike | None = None
) -> float:
    """Logarithmic loss in nats: mean of -p log q - (1 - p) log(1 - q), with 0 log 0 = 0 and no clipping.

    Args:
        p, predicted, sample_weight: As in `brier_score`.
        label_noise: `include`: cross entropy; `exclude`: minus the entropy of p, the Kullback-Leibler divergence.

    Returns:
        The loss; infinite if probability 0 was given to something that happened, NaN without items.

    >>> round(log_loss([1, 0], [0.5, 0.5]), 4), log_loss([1, 0], [1, 0]), log_loss([1], [0])
    (0.6931, 0.0, inf)
    """
    check_choice(label_noise, ("include", "exclude"), "label_noise")
    targets, q, weights = targets_and_predictions(p, predicted, sample_weight)
    losses = np.asarray(-xlogy(targets, q) - xlog1py(1 - targets, -q), dtype=np.float64)
    if label_noise == "exclude":
        np.maximum(losses - entr(targets) - entr(1 - targets), 0, out=losses)
    # Zero added to a loss of minus zero makes a plain zero.
    return _mean(losses, weights) + 0.0


def stratified_brier(p: ArrayLike, predicted: ArrayLike, *, sample_weight: ArrayLike | None = None) -> StratifiedBrier:
    """Brier score of each class by itself: mean of (1 - q)^2 weighted by p, and of q^2 weighted by 1 - p.

    Args:
        p, predicted, sample_weight: As in `brier_score`.

    Returns:
        Both scores, their sum and their mean.

    Reference:
        Wallace and Dahabreh (2014), as used by Mosquera et al., section 2.2.3.

    >>> result = stratified_brier([1, 0, 0, 1, 0], [0.8, 0.3, 0.1, 0.4, 0.6])
    >>> round(result.positive, 4), round(result.negative, 4), round(result.balanced_mean, 4)
    (0.2, 0.1533, 0.1767)
    """
    targets, q, weights = targets_and_predictions(p, predicted, sample_weight)
    return StratifiedBrier(_mean((1 - q) ** 2, weights * targets), _mean(q**2, weights * (1 - targets)))


def balanced_brier(p: ArrayLike, predicted: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Balanced Brier score as published: the sum, not the mean, of the scores of both classes.

    A model that always says 0 scores 1, however rare positives are. `stratified_brier(...).balanced_mean` is the mean.

    Args:
        p, predicted, sample_weight: As in `brier_score`.

    Returns:
        The sum in [0, 2]; NaN when a class is absent.

    Reference:
        Mosquera et al., Understanding the impact of class imbalance ..., section 2.2.3.

    >>> balanced_brier([1] + 99 * [0], 100 * [0.0]), brier_score([1] + 99 * [0], 100 * [0.0])
    (1.0, 0.01)
    """
    return stratified_brier(p, predicted, sample_weight=sample_weight).balanced_sum


def best_f1_threshold(p: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None) -> F1Threshold:
    """The threshold t that maximises F1 = 2 TP / (n+ + predicted positives) of "positive if score >= t".

    TP is the sum of p over the items called positive. Of equal maxima the highest threshold is taken: the shortest
    list.

    Args:
        p: Soft labels in [0, 1], shape (n,).
        scores: Model scores, shape (n,). Choose the threshold on a tuning set, not on the test set.
        sample_weight: Weight of each item, shape (n,).

    Returns:
        The operating point; NaN throughout without positives.

    Reference:
        Mosquera et al., section 2.2.3 (operating points).

    >>> best_f1_threshold([1, 1, 0, 0], [0.9, 0.6, 0.5, 0.1])
    F1Threshold(threshold=0.6, f1=1.0, precision=1.0, recall=1.0)
    """
    ranking = Ranking.from_scores(p, scores, sample_weight)
    if not ranking.n_positive > 0:
        return F1Threshold(math.nan, math.nan, math.nan, math.nan)
    found, called = ranking.groups.positives, ranking.groups.weight
    f1 = 2 * found / (ranking.n_positive + called)
    # Rounding must not choose between equal maxima.
    best = int(np.argmax(f1 >= f1.max() * (1 - 1e-12)))
    precision, recall = found[best] / called[best], found[best] / ranking.n_positive
    return F1Threshold(float(ranking.thresholds[best]), float(f1[best]), float(precision), float(recall))


def _mean(losses: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()
    return float((weights[weights > 0] @ losses[weights > 0]) / total) if total > 0 else math.nan
