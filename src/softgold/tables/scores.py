"""Model scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import UsageError


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Scores of M models on I items; a higher score means more likely positive.

    Attributes:
        item_ids: Ids as text, in order of first appearance, length I.
        models: Names of the models, length M.
        values: Float64 scores, shape (I, M); NaN for a missing score, where these are allowed.

    Example:
        >>> scores = Scores(pd.Index(["x", "y"], dtype="str"), ("net",), np.array([[0.9], [0.2]]))
        >>> scores.of("net").tolist()
        [0.9, 0.2]
    """

    item_ids: pd.Index[str]
    models: tuple[str, ...]
    values: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Scores: {len(self.models):,} models on {len(self):,} items"

    def __len__(self) -> int:
        return len(self.item_ids)

    def of(self, model: str) -> NDArray[np.float64]:
        """Return the scores of one model, shape (I,)."""
        if model not in self.models:
            raise UsageError(f"the scores have no model {model!r}; they have {', '.join(self.models)}")
        return self.values[:, self.models.index(model)]

    def to_frame(self) -> pd.DataFrame:
        """Return the wide table: `item` and one column per model."""
        frame = pd.DataFrame(self.values, columns=list(self.models))
        frame.insert(0, "item", self.item_ids, allow_duplicates=True)
        return frame
