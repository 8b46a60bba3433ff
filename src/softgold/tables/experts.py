"""Expert labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.tables.votes import VoteTable

IntArray = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ExpertLabels:
    """Binary labels of E experts; not every expert labels every item.

    Attributes:
        table: The labels as votes; the experts are its annotators.

    Example:
        >>> from softgold.readers import read_experts
        >>> rows = pd.DataFrame({"item": ["x", "y", "x"], "expert": ["ann", "ann", "bob"], "label": [1, 0, 1]})
        >>> experts = read_experts(rows)
        >>> len(experts), experts.expert_ids.tolist()
        (3, ['ann', 'bob'])
    """

    table: VoteTable

    def __len__(self) -> int:
        return self.table.n_votes

    @property
    def item_ids(self) -> pd.Index[str]:
        """Ids of the labelled items, in the order of first appearance."""
        return self.table.item_ids

    @property
    def expert_ids(self) -> pd.Index[str]:
        """Ids of the experts, length E."""
        return self.table.annotator_ids

    @property
    def item_codes(self) -> IntArray:
        """Item of each label, shape (L,)."""
        return self.table.item_codes

    @property
    def expert_codes(self) -> IntArray:
        """Expert of each label, shape (L,)."""
        return self.table.annotator_codes

    @property
    def labels(self) -> NDArray[np.int8]:
        """0 or 1, shape (L,)."""
        return self.table.votes
