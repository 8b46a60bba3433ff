"""Intervals: of a proportion in closed form, of replicates by their percentiles."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from softgold.checks import check_in_range
from softgold.errors import InputError

FloatArray = NDArray[np.float64]


class Interval(NamedTuple):
    """Both ends of an interval.

    Example:
        >>> low, high = wilson_interval(8, 10)
        >>> round(low, 3), round(high, 3)
        (0.49, 0.943)
    """

    low: float
    high: float


def wilson_interval(k: float, n: float, *, level: float = 0.95) -> Interval:
    """Wilson score interval of the proportion k / n.

    With z the normal quantile of (1 + level) / 2, the ends are
    (k + z^2/2 -+ z sqrt(k (n - k) / n + z^2/4)) / (n + z^2); k = 0 gives exactly 0 below, k = n exactly 1 above.

    Args:
        k: Successes, 0 <= k <= n; an expected count need not be whole.
        n: Trials; n = 0 leaves both ends undefined (NaN).
        level: Confidence, inside (0, 1).

    Reference:
        E. B. Wilson, JASA 22 (1927); the P@k intervals of CleanPatrick's Table 10 are of this kind.

    >>> low, high = wilson_interval(26, 150)
    >>> round(low, 8), round(high, 8)
    (0.12112063, 0.24185993)
    """
    z = float(ndtri((1 + check_in_range(level, 0, 1, "level", ends="open")) / 2))
    if not (math.isfinite(n) and 0 <= k <= n):
        raise InputError(f"k successes of n trials need 0 <= k <= n, got k={k!r}, n={n!r}")
    if n == 0:
        return Interval(math.nan, math.nan)
    centre = k + z**2 / 2
    reach = z * math.sqrt(k * (n - k) / n + z**2 / 4)
    low = 0.0 if k == 0 else (centre - reach) / (n + z**2)
    high = 1.0 if k == n else (centre + reach) / (n + z**2)
    return Interval(low, high)


def percentile_interval(replicates: FloatArray, level: float, probability: FloatArray | None = None) -> Interval:
    """Percentile interval of one column of replicates, NaN dropped; NaN when nothing is left.

    Equally likely replicates are interpolated linearly; an enumerated distribution (`probability`, summing to 1) is
    inverted: the smallest value with at least that much mass at or below it.

    >>> percentile_interval(np.arange(101.0), 0.5)
    Interval(low=25.0, high=75.0)
    """
    defined = ~np.isnan(replicates)
    if not defined.any():
        return Interval(math.nan, math.nan)
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    if probability is None:
        low, high = _linear_quantiles(np.sort(replicates[defined]), ends)
    else:
        low, high = np.quantile(replicates[defined], ends, method="inverted_cdf", weights=probability[defined])
    return Interval(float(low), float(high))


def _linear_quantiles(ordered: FloatArray, levels: FloatArray) -> FloatArray:
    """NumPy's linear quantiles, but defined for infinite values (a logarithmic loss may be infinite)."""
    place = levels * (len(ordered) - 1)
    below, above = ordered[np.floor(place).astype(np.intp)], ordered[np.ceil(place).astype(np.intp)]
    gap = np.subtract(above, below, out=np.zeros(len(levels)), where=below < above)
    return below + np.multiply(gap, place % 1, out=np.zeros(len(levels)), where=gap > 0)
