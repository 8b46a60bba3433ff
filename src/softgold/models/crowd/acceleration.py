"""Anderson acceleration of a fixed-point iteration.

Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softgold.models.base import FloatArray

LENGTH = 6
RIDGE = 1e-10
LARGEST_GROWTH = 10.0


@dataclass(frozen=True, eq=False)
class History:
    """The last points of the iteration and how far a plain step led from each, both of shape (h, n)."""

    points: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    moves: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    def then(self, point: FloatArray, target: FloatArray) -> History:
        """Return the history with one more step from `point` to `target`, the oldest one dropped."""
        points, moves = np.vstack([*self.points, point]), np.vstack([*self.moves, target - point])
        return History(points[-LENGTH:], moves[-LENGTH:])

    @property
    def last_target(self) -> FloatArray:
        """Where the last plain step led."""
        target: FloatArray = self.points[-1] + self.moves[-1]
        return target

    def has_worsened(self, weight: FloatArray) -> bool:
        """Whether the last move is much longer than the one before, which there must be: the jump between was wrong."""
        before, last = np.linalg.norm(self.moves[-2:] * weight, axis=1)
        return not last <= LARGEST_GROWTH * before

    def jump(self, weight: FloatArray) -> FloatArray:
        """Return the combination of the last targets whose moves, so combined and times `weight`, are shortest.

        One target alone is returned as it is.
        """
        changes = np.diff(self.moves, axis=0)
        steps = changes * weight
        gram = steps @ steps.T
        gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) + 1e-300
        shares = np.linalg.solve(gram, steps @ (self.moves[-1] * weight))
        return self.last_target - shares @ (np.diff(self.points, axis=0) + changes)
