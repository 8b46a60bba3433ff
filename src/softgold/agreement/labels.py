"""Nominal labels in long form: any number of units, raters and categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from softgold.errors import InputError
from softgold.tables.votes import VoteTable

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]


def sum_by(codes: NDArray[np.integer[Any]], values: NDArray[Any], length: int) -> FloatArray:
    """Return the sum of `values` per code 0 .. length - 1.

    >>> sum_by(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 0.0, 5.0]
    """
    return np.bincount(codes, weights=values, minlength=length).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """Counts of labels per unit and category.

    Every coefficient over exchangeable raters (alpha, Fleiss, percent agreement) follows from these sums.

    Attributes:
        unit_codes: Unit of each label, shape (L,).
        category_codes: Category of each label, shape (L,).
        labels_per_unit: Labels of each unit, shape (units,).
        agreeing_pairs: Ordered pairs of equal labels within each unit, shape (units,).
        category_totals: Labels of each category in units with at least two labels, shape (categories,).
    """

    unit_codes: IntArray
    category_codes: IntArray
    labels_per_unit: NDArray[np.int64]
    agreeing_pairs: NDArray[np.int64]
    category_totals: NDArray[np.int64]

    @classmethod
    def from_codes(cls, unit: Any, category: Any, n_units: int, n_categories: int) -> UnitCounts:
        """Count labels by unit and category code; O(labels) unless there are far more categories than labels.

        >>> counts = UnitCounts.from_codes([0, 0, 1], [1, 1, 0], 2, 2)
        >>> counts.labels_per_unit.tolist(), counts.agreeing_pairs.tolist(), counts.category_totals.tolist()
        ([2, 1], [2, 0], [0, 2])
        """
        units, categories = np.asarray(unit), np.asarray(category)
        key = np.multiply(categories, n_units, dtype=np.int64)
        key += units
        # A dense table much larger than the labels costs more than sorting them.
        if n_units * n_categories <= 8 * len(key) + 1024:
            table = np.bincount(key, minlength=n_units * n_categories).reshape(n_categories, n_units)
            sizes, agreeing = table.sum(axis=0), (table * (table - 1)).sum(axis=0)
            totals = table @ (sizes >= 2)
        else:
            sizes = np.bincount(units, minlength=n_units)
            cells, count = np.unique(key, return_counts=True)
            agreeing = sum_by(cells % n_units, count * (count - 1), n_units).astype(np.int64)
            totals = np.bincount(categories[sizes[units] >= 2], minlength=n_categories)
        return cls(units, categories, sizes, agreeing, totals)

    @property
    def n_units(self) -> int:
        """Number of units, including those without labels."""
        return len(self.labels_per_unit)

    @property
    def n_categories(self) -> int:
        """Number of categories."""
        return len(self.category_totals)

    @cached_property
    def pairable(self) -> NDArray[np.bool_]:
        """Whether each unit has at least two labels, shape (units,); the others carry no agreement."""
        return np.greater_equal(self.labels_per_unit, 2)

    def matrix(self) -> sparse.csr_array:
        """Return the counts as a sparse matrix, units x categories."""
        ones = np.ones(len(self.unit_codes))
        shape = (self.n_units, self.n_categories)
        return sparse.csr_array((ones, (self.unit_codes, self.category_codes)), shape=shape)


@dataclass(frozen=True, eq=False)
class NominalLabels:
    """Labels in long form, one entry per label, without missing ones.

    Attributes:
        unit_codes: Unit of each label, shape (L,).
        rater_codes: Rater of each label, shape (L,).
        category_codes: Category of each label, shape (L,).
        n_units: Number of units.
        rater_ids: Names of the raters.
        categories: The categories as written.

    Example:
        >>> labels = NominalLabels.from_matrix([["a", "b", None], ["a", "a", "c"]])
        >>> len(labels), labels.n_units, labels.categories.tolist()
        (5, 3, ['a', 'b', 'c'])
    """

    unit_codes: IntArray
    rater_codes: IntArray
    category_codes: IntArray
    n_units: int
    rater_ids: pd.Index[Any]
    categories: pd.Index[Any]

    def __len__(self) -> int:
        return len(self.unit_codes)

    @classmethod
    def from_votes(cls, votes: VoteTable) -> NominalLabels:
        """Build from binary votes as labels 0 and 1; averaged repeats raise."""
        if votes.weights is not None:
            raise InputError(
                "agreement needs single votes, but repeated votes were averaged; "
                "read them with duplicates='first', 'last' or 'all'"
            )
        return cls(
            votes.item_codes,
            votes.annotator_codes,
            votes.votes,
            votes.n_items,
            votes.annotator_ids,
            pd.Index([0, 1]),
        )

    @classmethod
    def from_long(cls, units: Any, raters: Any, values: Any) -> NominalLabels:
        """Build from three columns of equal length; None or NaN is a missing label."""
        columns = [pd.Series(column).reset_index(drop=True) for column in (units, raters, values)]
        if len({len(column) for column in columns}) != 1:
            lengths = ", ".join(str(len(column)) for column in columns)
            raise InputError(f"units, raters and values must have equal lengths, got {lengths}")
        for name, column in zip(("unit", "rater"), columns[:2], strict=True):
            if column.isna().any():
                raise InputError(f"every label needs a {name}, missing at position {int(column.isna().argmax())}")
        unit_codes, unit_ids = pd.factorize(columns[0])
        rater_codes, rater_ids = pd.factorize(columns[1])
        category_codes, categories = pd.factorize(columns[2])
        given = category_codes >= 0
        return cls(
            unit_codes[given],
            rater_codes[given],
            category_codes[given],
            len(unit_ids),
            pd.Index(rater_ids),
            pd.Index(categories),
        )

    @classmethod
    def from_matrix(cls, rows: Sequence[Sequence[Any]], raters: Sequence[Any] | None = None) -> NominalLabels:
        """Build from one row per rater and one column per unit; None or NaN is a missing label."""
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise InputError(f"every rater needs one entry per unit, got rows of {sorted(widths)} entries")
        n_units = widths.pop() if widths else 0
        names = list(range(len(rows))) if raters is None else list(raters)
        units = np.tile(np.arange(n_units), len(rows))
        values = pd.Series([value for row in rows for value in row], dtype=object)
        return cls.from_long(units, np.repeat(np.asarray(names, dtype=object), n_units), values)

    @cached_property
    def counts(self) -> UnitCounts:
        """Labels per unit and category."""
        return UnitCounts.from_codes(self.unit_codes, self.category_codes, self.n_units, len(self.categories))
