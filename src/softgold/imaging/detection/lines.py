"""From alpha to mean average precision by a straight line: the published one, or one fitted on the user's data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, check_same_length
from softgold.errors import InputError

FloatArray = NDArray[np.float64]

LEAST_POINTS = 10
LEAST_R2 = 0.5


@dataclass(frozen=True)
class Line:
    """mAP = slope * alpha + intercept.

    Attributes:
        slope: Rise in mAP for a rise of alpha by 1.
        intercept: mAP at alpha = 0.
        pearson: Correlation of the points; NaN if one of the two never varied.
        r2: Its square.
        n_points: Points that it was fitted on; None if that is not known.
    """

    slope: float
    intercept: float
    pearson: float
    r2: float
    n_points: int | None = None

    @property
    def is_determined(self) -> bool:
        """Whether the line rises and has at least `LEAST_POINTS` points and an R^2 of at least `LEAST_R2`."""
        return (self.n_points or 0) >= LEAST_POINTS and self.r2 >= LEAST_R2 and self.slope > 0

    @property
    def reaches_one(self) -> float:
        """Alpha above which the line gives more than 1, which no mAP can be; infinite if it never does."""
        return (1 - self.intercept) / self.slope if self.slope > 0 else float("inf")


PUBLISHED_LINE = Line(slope=0.836, intercept=0.197, pearson=0.92, r2=0.85)
"""Label Convergence, equation 1: fitted on subsets of LVIS, COCO and Open Images, each annotated twice."""


@dataclass(frozen=True, eq=False)
class InferredMap:
    """mAP that a line gives for alpha.

    Attributes:
        raw: The line's own value, of the shape of alpha; it can leave [0, 1].
        clipped: The same within [0, 1].
    """

    raw: FloatArray
    clipped: FloatArray


def alpha_to_map(alpha: ArrayLike, line: Line = PUBLISHED_LINE) -> InferredMap:
    """Infer the mean average precision from alpha (Label Convergence, equation 1).

    >>> inferred = alpha_to_map([0.7439, 1.0, -1.0])
    >>> inferred.raw.round(4).tolist(), inferred.clipped.round(4).tolist()
    ([0.8189, 1.033, -0.639], [0.8189, 1.0, 0.0])
    """
    raw = line.slope * np.asarray(alpha, dtype=np.float64) + line.intercept
    return InferredMap(raw, np.clip(raw, 0.0, 1.0))


def fit_line(alpha: ArrayLike, precision: ArrayLike) -> Line:
    """Fit mAP on alpha by ordinary least squares.

    Args:
        alpha: Alpha of each point, shape (n,), not all equal.
        precision: mAP of each point, shape (n,).

    Example:
        >>> line = fit_line([0.1, 0.3, 0.5, 0.55, 0.8], [0.27, 0.46, 0.6, 0.68, 0.85])
        >>> round(line.slope, 4), round(line.intercept, 4), round(line.r2, 4)
        (0.8286, 0.1991, 0.9935)
    """
    x, y = as_finite(alpha, "alpha"), as_finite(precision, "map")
    check_same_length(len(x), map=y)
    dx, dy = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    if len(x) < 2 or np.ptp(x) == 0:
        raise InputError("a line needs points with at least two different values of alpha")
    slope = float(dx @ dy / (dx @ dx))
    spread = float(np.sqrt((dx @ dx) * (dy @ dy)))
    pearson = float(dx @ dy) / spread if spread > 0 else float("nan")
    return Line(slope, float(y.mean() - slope * x.mean()), pearson, pearson**2, len(x))
