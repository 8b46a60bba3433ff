"""Checks that the metrics share: clean arrays of one length, with weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, as_probabilities, as_weights, check_same_length

FloatArray = NDArray[np.float64]


def targets_and_scores(
    p: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return soft labels in [0, 1], finite scores and weights, each of shape (n,)."""
    return _aligned(p, sample_weight, scores=as_finite(scores, "scores"))


def targets_and_predictions(
    p: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return soft labels and predicted probabilities, both in [0, 1], and weights, each of shape (n,)."""
    return _aligned(p, sample_weight, predicted=as_probabilities(predicted, "predicted"))


def _aligned(
    p: ArrayLike, sample_weight: ArrayLike | None, **named: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    targets = as_probabilities(p, "p")
    check_same_length(len(targets), **named)
    (values,) = named.values()
    return targets, values, weights_or_ones(sample_weight, len(targets))


def weights_or_ones(sample_weight: ArrayLike | None, length: int) -> FloatArray:
    """Return the weights that were given, or ones."""
    weights = as_weights(sample_weight, length)
    return np.ones(length) if weights is None else weights
