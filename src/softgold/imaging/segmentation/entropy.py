"""Entropy of predictions, split into what the samples share and what they disagree about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from softgold.checks import as_probabilities, as_weights, check_choice
from softgold.errors import InputError

FloatArray = NDArray[np.float64]
Roles = Literal["bayesian", "ambiguity"]

# Softmax outputs in single precision sum to one only so well.
SUM_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class EntropyDecomposition:
    """Entropy of a prediction and its two parts, in nats, each of the shape of what is predicted.

    Attributes:
        predictive_entropy: Entropy of the mean prediction.
        expected_entropy: Mean entropy of the single predictions.
        mutual_information: The difference, what the samples disagree about; never negative.
        roles: Which part is which kind: `bayesian` or `ambiguity`.
    """

    predictive_entropy: FloatArray
    expected_entropy: FloatArray
    mutual_information: FloatArray
    roles: Roles

    @property
    def aleatoric(self) -> FloatArray:
        """The part that more data would not remove."""
        return self.expected_entropy if self.roles == "bayesian" else self.mutual_information

    @property
    def epistemic(self) -> FloatArray:
        """The part that more data would remove."""
        return self.mutual_information if self.roles == "bayesian" else self.expected_entropy


def entropy_decomposition(
    probabilities: ArrayLike, *, roles: Roles = "bayesian", sample_weight: ArrayLike | None = None
) -> EntropyDecomposition:
    """Split the entropy of predictions into the expected entropy of the samples and their mutual information.

    H(mean of the samples) = mean of H(sample) + MI, in nats, with 0 log 0 = 0.

    Args:
        probabilities: Class probabilities of S samples (ensemble members, dropout or augmentation passes, draws of a
            latent variable), shape (S, ..., C), each summing to 1 over the last axis.
        roles: `bayesian`: samples vary because the model is not known, so that their mutual information is epistemic
            and their expected entropy aleatoric. `ambiguity`: samples are the variants that an ambiguity-modelling
            network (such as a stochastic segmentation network) has learnt from its raters, so that the roles swap.
        sample_weight: Weight of each sample, shape (S,).

    Returns:
        The three entropies, each of shape (...).

    Reference:
        Kahl et al., ValUES, equations 1 and 15.

    >>> parts = entropy_decomposition([[[0.9, 0.1]], [[0.2, 0.8]]])
    >>> parts.predictive_entropy.round(4).tolist(), parts.epistemic.round(4).tolist()
    ([0.6881], [0.2754])
    """
    check_choice(roles, ("bayesian", "ambiguity"), "roles")
    samples = as_distributions(probabilities, "probabilities")
    weights = as_weights(sample_weight, len(samples))
    share = np.full(len(samples), 1 / len(samples)) if weights is None else weights / weights.sum()
    mean, expected = np.zeros(samples.shape[1:]), np.zeros(samples.shape[1:-1])
    for part, sample in zip(share, samples, strict=True):
        mean += part * sample
        expected += part * entr(sample).sum(axis=-1)
    return decomposition(entr(mean).sum(axis=-1), expected, roles)


def one_minus_max_probability(probabilities: ArrayLike) -> FloatArray:
    """Uncertainty of a single prediction: 1 minus the largest class probability.

    Args:
        probabilities: Class probabilities, shape (..., C).

    Returns:
        Shape (...).

    Reference:
        Kahl et al., ValUES, section 4.3 (1 - MSR).

    >>> one_minus_max_probability([[0.5, 0.5], [1.0, 0.0]]).tolist()
    [0.5, 0.0]
    """
    return np.asarray(1 - as_distributions(probabilities, "probabilities").max(axis=-1))


def decomposition(predictive: FloatArray, expected: FloatArray, roles: Roles) -> EntropyDecomposition:
    """Put the parts together; a mutual information below zero is rounding."""
    return EntropyDecomposition(predictive, expected, np.maximum(predictive - expected, 0.0), roles)


def as_distributions(values: ArrayLike, name: str) -> FloatArray:
    """Return probabilities that sum to 1 over the last axis, with at least one axis before it."""
    array = as_probabilities(values, name, ndim=None)
    if array.ndim < 2 or not array.shape[-1] or not len(array):
        raise InputError(f"{name} must have rows of probabilities on the last axis, got shape {array.shape}")
    off = np.abs(array.sum(axis=-1) - 1) > SUM_TOLERANCE
    if off.any():
        where = tuple(np.argwhere(off)[0].tolist())
        raise InputError(f"{name} must sum to 1 over the last axis, got {array[where].sum()} at position {where}")
    return array
