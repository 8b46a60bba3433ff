"""Rating table: ratings of items on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.tables.coded import CodedTable, FloatArray


@dataclass(frozen=True, eq=False)
class RatingTable(CodedTable):
    """Ratings on a scale in long form: R ratings by A annotators on I items.

    Attributes:
        item_codes: Item of each rating, shape (R,).
        annotator_codes: Annotator of each rating, shape (R,).
        ratings: Ratings on the original scale, shape (R,).
        item_ids: Ids as text, in order of first appearance, length I.
        annotator_ids: Ids as text, length A.
        scale: Lowest and highest possible rating.
        weights: Weight of each rating, or None if all are 1; k averaged repeats have weight 1/k each.
        n_abstentions: Number of empty ratings in the source.
        abstained_items: Ids seen with empty ratings only; not items of this table.
        notes: What the reader decided, one sentence each.

    Example:
        >>> from softgold.readers import read_ratings
        >>> rows = pd.DataFrame({"item": ["x", "x", "y"], "annotator": ["ann", "bob", "ann"], "rating": [0, 2, 1]})
        >>> table = read_ratings(rows, scale=(0, 2))
        >>> table.ratings.tolist(), table.item_ids.tolist()
        ([0.0, 2.0, 1.0], ['x', 'y'])
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

    @cached_property
    def item_means(self) -> FloatArray:
        """Mean rating of each item on the original scale, shape (I,)."""
        return self.item_sums(self.ratings) / self.item_counts
