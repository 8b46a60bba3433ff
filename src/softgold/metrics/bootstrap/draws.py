"""Resamples that a plan drew: how often each item is in them, and its labels there.

Arrays have one row per item and one column per resample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Counts = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class FixedLabels:
    """Labels that are the same in every resample, shape (n,)."""

    values: FloatArray

    def take(self, items: NDArray[np.integer]) -> FloatArray:
        """Return the labels of some items, shape (len(items), 1)."""
        return np.asarray(self.values[items][:, None])

    def columns(self, start: int, stop: int) -> FixedLabels:
        """Return the labels of some resamples."""
        return self


@dataclass(frozen=True, eq=False)
class DrawnLabels:
    """Labels that differ between resamples: `positive` (n, C) out of `out_of` (n,) votes, or of (1,) for all items."""

    positive: Counts
    out_of: NDArray[np.number]

    def take(self, items: NDArray[np.integer]) -> FloatArray:
        """Return the labels of some items, shape (len(items), C)."""
        labels = self.positive.take(items, axis=0).astype(np.float64)
        if len(self.out_of) > 1:
            labels /= self.out_of[items][:, None]
        elif self.out_of[0] != 1:
            labels /= self.out_of[0]
        return labels

    def columns(self, start: int, stop: int) -> DrawnLabels:
        """Return the labels of some resamples."""
        return DrawnLabels(self.positive[:, start:stop], self.out_of)


@dataclass(frozen=True, eq=False)
class Draw:
    """Resamples of n items.

    Attributes:
        weight: How often each item is in each resample, shape (n, C), or (n, 1) where all resamples share it.
        labels: Labels of one kind or several, such as soft and hard ones, on the same resamples.
        n_resamples: Their number C.
    """

    weight: NDArray[np.number]
    labels: tuple[FixedLabels | DrawnLabels, ...]
    n_resamples: int

    @classmethod
    def from_rows(cls, weight: NDArray[np.number], labels: NDArray[np.bool_]) -> Draw:
        """Build from one row per resample: weights and hard labels, shape (C, n), or (1, n) where all share them."""
        count = max(len(weight), len(labels))
        positive = np.broadcast_to(labels, (count, labels.shape[1])).T.astype(np.uint8)
        drawn = DrawnLabels(np.ascontiguousarray(positive), np.ones(1))
        return cls(np.ascontiguousarray(weight.T), (drawn,), count)

    def columns(self, start: int, stop: int) -> Draw:
        """Return the resamples from `start` to before `stop`."""
        stop = min(stop, self.n_resamples)
        weight = self.weight if self.weight.shape[1] == 1 else self.weight[:, start:stop]
        return Draw(weight, tuple(labels.columns(start, stop) for labels in self.labels), stop - start)

    def rows(self, which: int) -> tuple[FloatArray, FloatArray]:
        """Return the labels of one kind and the weights with one row per resample, both of shape (C, n)."""
        n_items = len(self.weight)
        labels = self.labels[which].take(np.arange(n_items))
        shape = (self.n_resamples, n_items)
        return np.broadcast_to(labels.T, shape), np.broadcast_to(self.weight.T, shape).astype(np.float64)
