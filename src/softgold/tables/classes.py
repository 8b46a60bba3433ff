"""Soft labels of more than two classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import entr

from softgold.errors import InputError
from softgold.tables.soft_labels import SoftLabels

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """A probability for each class of each item; the rows sum to 1.

    Attributes:
        item_ids: Ids of the items, length I.
        classes: Names of the classes, length C.
        p: Probability of each class, shape (I, C).
        n_votes: Votes per item, shape (I,).
    """

    item_ids: pd.Index[str]
    classes: tuple[str, ...]
    p: FloatArray
    n_votes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.item_ids)

    @property
    def label(self) -> NDArray[np.str_]:
        """The most probable class of each item; of equally probable ones, the first."""
        names: NDArray[np.str_] = np.asarray(self.classes, dtype=np.str_)[self.p.argmax(axis=1)]
        return names

    @property
    def entropy(self) -> FloatArray:
        """Entropy in nats, shape (I,)."""
        return np.asarray(entr(self.p).sum(axis=1), dtype=np.float64)

    @property
    def uncertainty(self) -> FloatArray:
        """1 - max p: the chance that `label` is wrong, shape (I,)."""
        return np.asarray(1 - self.p.max(axis=1), dtype=np.float64)

    def to_frame(self) -> pd.DataFrame:
        """Return `item`, one column `p_<class>` per class, `label, uncertainty, entropy, n_votes`."""
        columns = {f"p_{name}": self.p[:, at] for at, name in enumerate(self.classes)}
        return pd.DataFrame(
            {
                "item": self.item_ids,
                **columns,
                "label": self.label,
                "uncertainty": self.uncertainty,
                "entropy": self.entropy,
                "n_votes": self.n_votes,
            }
        )


def combine_classes(by_class: Mapping[str, SoftLabels]) -> ClassLabels:
    """Make one table of soft labels from those of each class against the rest: p_c divided by their sum.

    Args:
        by_class: Soft labels of "is it this class?" for each class, of the same items in the same order.

    Example:
        >>> from softgold.models.baselines import Mean
        >>> from softgold.tables.votes import VoteTable
        >>> votes = {name: VoteTable.from_codes([0, 0], [0, 1], [v, w], ["x"], ["ann", "bob"])
        ...          for name, v, w in (("cat", 1, 1), ("dog", 0, 1), ("cow", 0, 0))}
        >>> combine_classes({name: Mean().aggregate(table) for name, table in votes.items()}).p.round(3).tolist()
        [[0.667, 0.333, 0.0]]
    """
    first = next(iter(by_class.values()))
    if any(not labels.item_ids.equals(first.item_ids) for labels in by_class.values()):
        raise InputError("the classes have different items; every class needs a soft label for every item")
    p = np.stack([labels.p for labels in by_class.values()], axis=1)
    total = p.sum(axis=1, keepdims=True)
    # If every class has probability 0, nothing is known.
    shares = np.divide(p, total, out=np.full_like(p, 1 / p.shape[1]), where=total > 0)
    return ClassLabels(first.item_ids, tuple(by_class), shares, first.n_votes)
