"""What a bootstrap returns: estimate, interval, replicates, and comparisons between models that share them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgold.errors import UsageError
from softgold.metrics.intervals import percentile_interval

FloatArray = NDArray[np.float64]

# Values closer than this are the same value computed in another order.
TIE_TOLERANCE = 1e-12


@dataclass(frozen=True)
class PairedComparison:
    """Comparison of two models on the same resamples.

    Attributes:
        difference: First minus second, on the data as they are.
        low, high: Percentile interval of the difference.
        p_better, p_tie: Share of the resamples in which the first is above the second, and in which they are equal.
        defined: Share of the resamples in which both are defined; the others are left out.

    Example:
        >>> from softgold.metrics import bootstrap
        >>> p, scores = [0.9, 0.2, 0.7, 0.1], [[0.9, 0.1], [0.3, 0.8], [0.6, 0.4], [0.2, 0.9]]
        >>> found = bootstrap("soft_auroc", p, scores, n_bootstrap=100).compare(0, 1)
        >>> round(found.difference, 3), found.p_better > 0.9
        (0.727, True)
    """

    difference: float
    low: float
    high: float
    p_better: float
    p_tie: float
    defined: float


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """A metric and its bootstrap distribution; arrays have the shape () for one model, (K,) for K models.

    Attributes:
        estimate: Value on the data as they are.
        low: Lower end of the percentile interval.
        high: Upper end of the percentile interval.
        replicates: Value on every resample, NaN where undefined; shape (B,) or (B, K). Row r is the same resample for
            all models.
        n_undefined: Number of undefined replicates, which the interval leaves out.
        level: Mass of the interval.
        probability: Probability of every resample if they were enumerated, shape (B,); None if they were drawn.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    replicates: FloatArray
    n_undefined: NDArray[np.int64]
    level: float
    probability: FloatArray | None

    @property
    def exact(self) -> bool:
        """Whether the distribution is enumerated, not sampled."""
        return self.probability is not None

    @property
    def weights(self) -> FloatArray:
        """Probability of each replicate, equal ones if they were drawn; shape (B,)."""
        if self.probability is not None:
            return self.probability
        return np.full(len(self.replicates), 1 / len(self.replicates))

    @property
    def defined(self) -> FloatArray:
        """Probability that the metric is defined on a resample."""
        return np.asarray(np.tensordot(self.weights, ~np.isnan(self.replicates), axes=1))

    @property
    def mean(self) -> FloatArray:
        """Mean over the resamples on which the metric is defined; NaN if there is none."""
        total = np.tensordot(self.weights, np.where(np.isnan(self.replicates), 0.0, self.replicates), axes=1)
        defined = self.defined
        return np.asarray(np.divide(total, defined, out=np.full(np.shape(total), np.nan), where=defined > 0))

    def compare(self, first: int, second: int) -> PairedComparison:
        """Compare two models, by their columns, on the resamples where both are defined.

        >>> rows = np.array([[0.9, 0.8], [0.8, 0.8], [0.7, np.nan]])
        >>> summarise(np.array([0.8, 0.7]), rows, None, level=0.95).compare(0, 1).p_better
        0.5
        """
        if self.replicates.ndim == 1:
            raise UsageError("to compare models, bootstrap them together: scores of shape (n, K)")
        # Two infinite losses have no difference: undefined, as if one of them were.
        with np.errstate(invalid="ignore"):
            differences = self.replicates[:, first] - self.replicates[:, second]
            difference = self.estimate[first] - self.estimate[second]
        mass = np.where(np.isnan(differences), 0.0, self.weights)
        tied = np.abs(differences) <= TIE_TOLERANCE
        total = mass.sum() or np.nan
        low, high = percentile_interval(differences, self.level, self.probability)
        return PairedComparison(
            difference=float(difference),
            low=low,
            high=high,
            p_better=float(mass[(differences > 0) & ~tied].sum() / total),
            p_tie=float(mass[tied].sum() / total),
            defined=float(mass.sum()),
        )


def summarise(
    estimate: FloatArray, replicates: FloatArray, probability: FloatArray | None, *, level: float
) -> BootstrapResult:
    """Take the interval of replicates of shape (B,) or (B, K) around an estimate of shape () or (K,)."""
    columns = replicates.reshape(len(replicates), -1).T
    ends = np.array([percentile_interval(column, level, probability) for column in columns]).reshape(*estimate.shape, 2)
    n_undefined = np.isnan(replicates).sum(axis=0, dtype=np.int64)
    return BootstrapResult(
        estimate, ends[..., 0], ends[..., 1], replicates, np.asarray(n_undefined), level, probability
    )
