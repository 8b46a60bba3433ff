"""Counts and weighted sums that vote and rating tables share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]


class CodedTable:
    """A long table of A annotators on I items, R rows with an item code, an annotator code and perhaps a weight."""

    item_codes: IntArray
    annotator_codes: IntArray
    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    weights: FloatArray | None

    @property
    def n_items(self) -> int:
        """Number of items I."""
        return len(self.item_ids)

    @property
    def n_annotators(self) -> int:
        """Number of annotators A."""
        return len(self.annotator_ids)

    @cached_property
    def item_counts(self) -> NDArray[np.int64]:
        """Rows per item, shape (I,); averaged repeats count once."""
        return self._count(self.item_codes, self.n_items)

    @cached_property
    def annotator_counts(self) -> NDArray[np.int64]:
        """Rows per annotator, shape (A,); averaged repeats count once."""
        return self._count(self.annotator_codes, self.n_annotators)

    def item_sums(self, values: NDArray[Any]) -> FloatArray:
        """Return the weighted sum per item of one value per row; shape (R,) to (I,)."""
        return self._sum(self.item_codes, values, self.n_items)

    def annotator_sums(self, values: NDArray[Any]) -> FloatArray:
        """Return the weighted sum per annotator of one value per row; shape (R,) to (A,)."""
        return self._sum(self.annotator_codes, values, self.n_annotators)

    def _count(self, codes: IntArray, length: int) -> NDArray[np.int64]:
        return np.rint(np.bincount(codes, weights=self.weights, minlength=length)).astype(np.int64)

    def _sum(self, codes: IntArray, values: NDArray[Any], length: int) -> FloatArray:
        mass = values if self.weights is None else values * self.weights
        return np.bincount(codes, weights=mass, minlength=length).astype(np.float64)
