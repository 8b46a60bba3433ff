"""The rating table: who rated which item how high on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["RatingTable"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RatingTable:
    """Ratings on a scale in sparse form, R ratings of A annotators on I items.

    Attributes:
        item_codes: Item of each rating, shape (R,).
        annotator_codes: Annotator of each rating, shape (R,).
        ratings: Ratings on the original scale, shape (R,).
        item_ids: Ids as text, in the order of first appearance, length I.
        annotator_ids: Ids as text, length A.
        scale: Lowest and highest rating that can be given.
        weights: Weight of each rating, or None when all weigh 1; k repeats that are averaged weigh 1/k each.
        n_abstentions: Number of empty ratings in the source.
        abstained_items: Ids of items without a rating; they are not items of this table.
        notes: What the reader had to decide, one sentence each.
    """

    item_codes: NDArray[np.int32]
    annotator_codes: NDArray[np.int32]
    ratings: FloatArray
    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    scale: tuple[float, float]
    weights: FloatArray | None = None
    n_abstentions: int = 0
    abstained_items: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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
        """Ratings per item, shape (I,); repeats that are averaged count once."""
        counts = np.bincount(self.item_codes, weights=self.weights, minlength=self.n_items)
        return np.rint(counts).astype(np.int64)

    @cached_property
    def item_means(self) -> FloatArray:
        """Mean rating of each item on the original scale, shape (I,)."""
        return self.item_sums(self.ratings) / self.item_counts

    def item_sums(self, values: FloatArray) -> FloatArray:
        """Sum over each item of one value a rating, times the weights; (R,) to (I,)."""
        mass = values if self.weights is None else values * self.weights
        return np.bincount(self.item_codes, weights=mass, minlength=self.n_items).astype(np.float64)
