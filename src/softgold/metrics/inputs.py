"""What the metrics share at their edge: clean arrays of one length, weights always present."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, as_probabilities, as_weights, check_same_length

__all__ = ["targets_and_predictions", "targets_and_scores", "weights_or_ones"]

FloatArray = NDArray[np.float64]


def targets_and_scores(
    p: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return soft labels in [0, 1], finite scores and weights, each of shape (n,)."""
    targets = as_probabilities(p, "p")
    values = as_finite(scores, "scores")
    check_same_length(len(targets), scores=values)
    return targets, values, weights_or_ones(sample_weight, len(targets))


def targets_and_predictions(
    p: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return soft labels and predicted probabilities, both in [0, 1], and weights, each of shape (n,)."""
    targets = as_probabilities(p, "p")
    values = as_probabilities(predicted, "predicted")
    check_same_length(len(targets), predicted=values)
    return targets, values, weights_or_ones(sample_weight, len(targets))


def weights_or_ones(sample_weight: ArrayLike | None, length: int) -> FloatArray:
    """Return the weights that were given, or ones."""
    weights = as_weights(sample_weight, length)
    return np.ones(length) if weights is None else weights
