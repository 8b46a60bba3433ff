"""Uncertainty of an item's votes: do the annotators disagree, or are there too few votes?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, expit

from softgold.checks import as_finite, as_weights, check_same_length
from softgold.errors import InputError
from softgold.uncertainty.entropy import EntropyDecomposition, as_distributions, decomposition

__all__ = ["item_uncertainty", "item_uncertainty_on_grid"]

FloatArray = NDArray[np.float64]

# A Normal is integrated over so many standard deviations to either side, with so many nodes in each.
NORMAL_REACH = 8
NODES_PER_SD = (10, 100)
NODES_AT_ONCE = 1 << 20
# Distance between the nodes of the pool's curve, on a scale that is linear near b = 0 and logarithmic far from it: the
# error of a straight line between them is below one in a million.
CURVE_STEP = 0.002


@dataclass(frozen=True, eq=False)
class _PoolVote:
    """Chance of a positive vote from someone of the pool as a function of b: the mean of sigmoid(c_a b).

    The mean over annotators is taken once, on nodes, and interpolated: it does not depend on the item. Since
    sigmoid(-x) = 1 - sigmoid(x), positive b are enough.

    Attributes:
        scale: Length of b within which no sigmoid of the pool bends much.
        nodes: Values of arcsinh(b / scale), ascending from 0, shape (N,).
        chance: Chance of a positive vote at each node, shape (N,).
    """

    scale: float
    nodes: FloatArray
    chance: FloatArray

    @classmethod
    def of(cls, abilities: ArrayLike, annotator_weight: ArrayLike | None, reach: float) -> _PoolVote:
        """Tabulate the curve for |b| up to `reach`."""
        c = as_finite(abilities, "abilities")
        if not len(c):
            raise InputError("abilities must have at least one annotator")
        weights = as_weights(annotator_weight, len(c), "annotator_weight")
        share = np.full(len(c), 1 / len(c)) if weights is None else weights / weights.sum()
        scale = 0.5 / max(float(np.abs(c).max()), 1e-300)
        nodes = np.arange(0.0, np.arcsinh(reach / scale) + 2 * CURVE_STEP, CURVE_STEP)
        blocks = np.array_split(scale * np.sinh(nodes), 1 + len(nodes) * len(c) // NODES_AT_ONCE)
        return cls(scale, nodes, np.concatenate([expit(np.outer(b, c)) @ share for b in blocks]))

    def __call__(self, b: FloatArray) -> FloatArray:
        chance = np.interp(np.arcsinh(np.abs(b) / self.scale), self.nodes, self.chance)
        return np.where(b < 0, 1 - chance, chance)


def item_uncertainty(
    b_mean: ArrayLike, b_sd: ArrayLike, abilities: ArrayLike, *, annotator_weight: ArrayLike | None = None
) -> EntropyDecomposition:
    """Split the uncertainty of the next vote on each item, for Normal posteriors of the items' signed difficulty b.

    A vote of annotator a on item i is positive with probability sigmoid(c_a b_i). The vote of someone from the pool has
    the entropy `predictive_entropy`. Its `aleatoric` part would stay if b_i were known: the annotators disagree.
    Its `epistemic` part would go with more votes on the item: there are too few of them.

    Args:
        b_mean: Posterior mean of each item's b, shape (I,).
        b_sd: Posterior standard deviation of each item's b, shape (I,).
        abilities: Abilities c of the pool, as means or as posterior draws, shape (A,).
        annotator_weight: How much each of them counts in the pool, shape (A,).

    Returns:
        The three entropies, each of shape (I,).

    Reference:
        Kahl et al., ValUES, equation 1, for the vote model of CleanPatrick, section 3.3.

    >>> parts = item_uncertainty([0.0, 0.0, 6.0], [0.01, 2.0, 0.5], [2.0, 1.5, 1.0])
    >>> parts.aleatoric.round(2).tolist(), parts.epistemic.round(2).tolist()
    ([0.69, 0.38, 0.01], [0.0, 0.31, 0.0])
    """
    mean, sd = as_finite(b_mean, "b_mean"), as_finite(b_sd, "b_sd")
    check_same_length(len(mean), b_sd=sd)
    if (sd < 0).any():
        raise InputError(f"b_sd must not be negative, got {sd.min()} at position {int(sd.argmin())}")
    reach = float((np.abs(mean) + NORMAL_REACH * sd).max(initial=0.0))
    vote = _PoolVote.of(abilities, annotator_weight, reach)
    nodes, weights = _normal_rule(float(sd.max(initial=0.0)) / vote.scale)
    predictive, expected = np.empty(len(mean)), np.empty(len(mean))
    step = max(1, NODES_AT_ONCE // len(nodes))
    for start in range(0, len(mean), step):
        rows = slice(start, start + step)
        q = vote(mean[rows, None] + sd[rows, None] * nodes)
        predictive[rows], expected[rows] = _binary_entropy(q @ weights), _binary_entropy(q) @ weights
    return decomposition(predictive, expected, "bayesian")


def item_uncertainty_on_grid(
    grid: ArrayLike, posterior: ArrayLike, abilities: ArrayLike, *, annotator_weight: ArrayLike | None = None
) -> EntropyDecomposition:
    """Split the uncertainty of the next vote on each item as `item_uncertainty`, for posteriors on a grid of b.

    Args:
        grid: Values of b, shape (G,).
        posterior: Probability of each value for each item, shape (I, G), rows summing to 1.
        abilities: Abilities c of the pool, as means or as posterior draws, shape (A,).
        annotator_weight: How much each of them counts in the pool, shape (A,).

    Returns:
        The three entropies, each of shape (I,).

    >>> parts = item_uncertainty_on_grid([-3, 0, 3], [[0, 1, 0], [0.5, 0, 0.5]], [2.0, 1.0])
    >>> parts.aleatoric.round(2).tolist(), parts.epistemic.round(2).tolist()
    ([0.69, 0.12], [0.0, 0.58])
    """
    values, rows = as_finite(grid, "grid"), as_distributions(posterior, "posterior")
    if rows.shape[1:] != values.shape:
        raise InputError(f"posterior must have one column for each of {len(values)} grid values, got {rows.shape}")
    vote = _PoolVote.of(abilities, annotator_weight, reach=float(np.abs(values).max(initial=0.0)))
    q = vote(values)
    return decomposition(_binary_entropy(rows @ q), rows @ _binary_entropy(q), "bayesian")


def _normal_rule(widest: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the trapezoidal rule for a standard Normal, whose error falls faster than any power.

    A posterior that is wide against the bend of the sigmoids (`widest`, in units of the pool's scale) needs more nodes.
    """
    per_sd = int(np.clip(np.ceil(widest), *NODES_PER_SD))
    nodes = np.linspace(-NORMAL_REACH, NORMAL_REACH, 2 * NORMAL_REACH * per_sd + 1)
    density = np.exp(-(nodes**2) / 2)
    return nodes, density / density.sum()


def _binary_entropy(q: FloatArray) -> FloatArray:
    return np.asarray(entr(q) + entr(1 - q))
