"""Cohen's kappa of two raters and of all pairs of raters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import ndtri

from softgold.agreement.labels import FloatArray, IntArray, NominalLabels, sum_by
from softgold.agreement.wording import landis_koch
from softgold.checks import check_in_range, check_positive_int
from softgold.errors import InputError

NO_PAIRS = pd.DataFrame(
    columns=["rater_a", "rater_b", "n_shared", "agreement", "kappa", "kappa_lo", "kappa_hi", "wording"]
)
"""The table of `cohen_kappas` without rows."""


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Return Cohen's kappa of two raters' labels of the same units, each of shape (n,).

    kappa = (P_o - P_e) / (1 - P_e): observed agreement, corrected for the agreement that the raters' category shares
    would give by chance (Cohen, 1960). It is 1 if both use one category throughout, and NaN without units.

    >>> round(cohen_kappa([1] * 33 + [0] * 367, [1] * 30 + [0] * 370), 4)  # CleanPatrick, Table 6
    0.9483
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"two raters need label vectors of equal length, got shapes {a.shape} and {b.shape}")
    if not len(a):
        return float("nan")
    table = cohen_kappas(NominalLabels.from_matrix([list(a), list(b)]))
    return float(table["kappa"].iloc[0])


def cohen_kappas(labels: NominalLabels, *, min_shared: int = 1, level: float = 0.95) -> pd.DataFrame:
    """Return Cohen's kappa of every pair of raters who share at least `min_shared` units.

    One sparse product gives all joint counts, in O(pairs of labels within units).

    Args:
        labels: The labels; a rater may label a unit once.
        min_shared: Smallest number of shared units.
        level: Level of the large-sample interval (Fleiss, Cohen and Everitt, 1969), clipped to [-1, 1]; too
            narrow for few shared units.

    Returns:
        `rater_a, rater_b, n_shared, agreement, kappa, kappa_lo, kappa_hi, wording`, in the order of the raters.

    Example:
        >>> labels = NominalLabels.from_matrix([[1, 0, 1, 1], [1, 0, 0, 1]], raters=["ann", "bob"])
        >>> cohen_kappas(labels)[["rater_a", "rater_b", "n_shared", "agreement", "kappa"]].values.tolist()
        [['ann', 'bob', 4, 0.75, 0.5]]
    """
    check_positive_int(min_shared, "min_shared")
    check_in_range(level, 0, 1, "level", ends="open")
    _refuse_repeats(labels)
    cells = _joint_cells(labels).with_shared(min_shared)
    kappa, standard_error = _kappa_and_error(cells)
    half_width = ndtri(0.5 + level / 2) * standard_error
    raters = labels.rater_ids
    return pd.DataFrame(
        {
            "rater_a": raters.take(cells.pair_first),
            "rater_b": raters.take(cells.pair_second),
            "n_shared": cells.pair_shared.astype(np.int64),
            "agreement": cells.sum_by_pair(cells.share * cells.equal),
            "kappa": kappa,
            "kappa_lo": np.maximum(kappa - half_width, -1.0),
            "kappa_hi": np.minimum(kappa + half_width, 1.0),
            "wording": [landis_koch(value) for value in kappa],
        }
    )


@dataclass(frozen=True, eq=False)
class _JointCells:
    """Counts of the non-zero cells: pair of raters, category by the first, category by the second."""

    pair: IntArray
    row: IntArray
    column: IntArray
    count: FloatArray
    pair_first: IntArray
    pair_second: IntArray
    n_categories: int

    def sum_by_pair(self, values: FloatArray) -> FloatArray:
        return sum_by(self.pair, values, len(self.pair_first))

    @property
    def pair_shared(self) -> FloatArray:
        """Units labelled by both raters of each pair."""
        return self.sum_by_pair(self.count)

    @property
    def share(self) -> FloatArray:
        """Share of each cell in its pair's units."""
        return self.count / self.pair_shared[self.pair]

    @property
    def equal(self) -> NDArray[np.bool_]:
        return np.equal(self.row, self.column)

    def with_shared(self, minimum: int) -> _JointCells:
        keep = self.pair_shared >= minimum
        cells = keep[self.pair]
        new_pair = np.cumsum(keep) - 1
        return _JointCells(
            new_pair[self.pair[cells]],
            self.row[cells],
            self.column[cells],
            self.count[cells],
            self.pair_first[keep],
            self.pair_second[keep],
            self.n_categories,
        )


def _joint_cells(labels: NominalLabels) -> _JointCells:
    n_categories, n_raters = len(labels.categories), len(labels.rater_ids)
    columns = labels.rater_codes.astype(np.int64) * n_categories + labels.category_codes
    ones = np.ones(len(labels))
    one_hot = sparse.csr_array((ones, (labels.unit_codes, columns)), shape=(labels.n_units, n_raters * n_categories))
    joint = sparse.coo_array(one_hot.T @ one_hot)
    first, row = np.divmod(joint.coords[0], n_categories)
    second, column = np.divmod(joint.coords[1], n_categories)
    upper = first < second
    keys = first[upper].astype(np.int64) * n_raters + second[upper]
    pairs, pair = np.unique(keys, return_inverse=True)
    pair_first, pair_second = np.divmod(pairs, n_raters)
    return _JointCells(pair, row[upper], column[upper], joint.data[upper], pair_first, pair_second, n_categories)


def _kappa_and_error(cells: _JointCells) -> tuple[FloatArray, FloatArray]:
    shape = (len(cells.pair_first), cells.n_categories)
    row_share = _marginal(cells, cells.row, shape)
    column_share = _marginal(cells, cells.column, shape)
    observed = cells.sum_by_pair(cells.share * cells.equal)
    expected = (row_share * column_share).sum(axis=1)
    beyond_chance = 1.0 - expected
    one_category = np.isclose(beyond_chance, 0.0, atol=1e-12)
    divisor = np.where(one_category, 1.0, beyond_chance)
    kappa = np.where(one_category, 1.0, (observed - expected) / divisor)
    variance = _large_sample_variance(cells, kappa, expected, row_share, column_share) / divisor**2
    error = np.where(one_category, 0.0, np.sqrt(np.maximum(variance, 0.0) / np.maximum(cells.pair_shared, 1.0)))
    return kappa, error


def _marginal(cells: _JointCells, category: IntArray, shape: tuple[int, int]) -> FloatArray:
    key = cells.pair * shape[1] + category
    return sum_by(key, cells.share, shape[0] * shape[1]).reshape(shape)


def _large_sample_variance(
    cells: _JointCells, kappa: FloatArray, expected: FloatArray, row_share: FloatArray, column_share: FloatArray
) -> FloatArray:
    miss = 1.0 - kappa[cells.pair]
    own = row_share[cells.pair, cells.row] + column_share[cells.pair, cells.row]
    crossed = column_share[cells.pair, cells.row] + row_share[cells.pair, cells.column]
    terms: Any = np.where(cells.equal, (1.0 - own * miss) ** 2, (miss * crossed) ** 2)
    return cells.sum_by_pair(cells.share * terms) - (kappa - expected * (1.0 - kappa)) ** 2


def _refuse_repeats(labels: NominalLabels) -> None:
    key = labels.unit_codes.astype(np.int64) * max(len(labels.rater_ids), 1) + labels.rater_codes
    order = np.sort(key)
    repeated = order[1:][order[1:] == order[:-1]]
    if len(repeated):
        rater = labels.rater_ids[int(repeated[0] % len(labels.rater_ids))]
        raise InputError(f"kappa needs one label per rater and unit; rater {rater!r} labelled a unit more than once")
