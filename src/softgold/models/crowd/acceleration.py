"""Anderson acceleration of a fixed-point iteration.

Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["History"]

FloatArray = NDArray[np.float64]

LENGTH = 6
RIDGE = 1e-10
LARGEST_GROWTH = 10.0


@dataclass(frozen=True, eq=False)
class History:
    """The last points of the iteration, each of shape (n,), and how far a plain step led from each."""

    points: tuple[FloatArray, ...] = ()
    moves: tuple[FloatArray, ...] = ()

    def __len__(self) -> int:
        return len(self.points)

    def then(self, point: FloatArray, target: FloatArray) -> History:
        """Return the history with one more step from `point` to `target`, the oldest one dropped."""
        return History((*self.points, point)[-LENGTH:], (*self.moves, target - point)[-LENGTH:])

    @property
    def last_target(self) -> FloatArray:
        """Where the last plain step led."""
        return self.points[-1] + self.moves[-1]

    def has_worsened(self, weight: FloatArray) -> bool:
        """Whether the last move is much longer than the one before: the jump between them led astray."""
        if len(self) < 2:
            return False
        before, last = (float(np.linalg.norm(move * weight)) for move in self.moves[-2:])
        return not last <= LARGEST_GROWTH * before

    def jump(self, weight: FloatArray) -> FloatArray:
        """Return the combination of the last targets whose moves, so combined and times `weight`, are shortest."""
        target = self.last_target
        if len(self) < 2:
            return target
        steps = [(later - earlier) * weight for earlier, later in zip(self.moves, self.moves[1:], strict=False)]
        gram = np.array([[one @ other for other in steps] for one in steps])
        gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) + 1e-300
        shares = np.linalg.solve(gram, [step @ (self.moves[-1] * weight) for step in steps])
        for place, share in enumerate(shares):
            target -= share * (self.points[place + 1] - self.points[place])
            target -= share * (self.moves[place + 1] - self.moves[place])
        return target
