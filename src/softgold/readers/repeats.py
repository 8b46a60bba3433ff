"""Repeated votes of an annotator on an item: finding and resolving them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

DuplicateRule = Literal["error", "first", "last", "mean", "all"]
DUPLICATE_RULES: tuple[DuplicateRule, ...] = ("error", "first", "last", "mean", "all")


@dataclass(frozen=True, eq=False)
class Repeats:
    """Rows that share item and annotator with another row, R rows in G groups.

    Attributes:
        rows: Positions of the rows, group by group, ascending within a group, shape (R,).
        starts: Where each group begins in `rows`, shape (G,).
        sizes: Rows in each group, at least 2, shape (G,).
        conflicting: Whether the values of the group differ, shape (G,).
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    conflicting: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Resolution:
    """Which rows stay, shape (n,), and the weight of each of them, or None when all weigh 1."""

    keep: NDArray[np.bool_]
    weights: NDArray[np.float64] | None


def find_repeats(
    item_codes: NDArray[np.int32], annotator_codes: NDArray[np.int32], values: NDArray[np.generic]
) -> Repeats | None:
    """Return the rows whose (item, annotator) occurs more than once, or None when there are none."""
    keys = _pair_keys(item_codes, annotator_codes)
    keys.sort()
    twice = keys[1:][keys[1:] == keys[:-1]]
    if len(twice) == 0:
        return None
    keys = _pair_keys(item_codes, annotator_codes)
    rows = np.flatnonzero(np.isin(keys, twice))
    rows = rows[np.argsort(keys[rows], kind="stable")]
    _, starts, sizes = np.unique(keys[rows], return_index=True, return_counts=True)
    low = np.minimum.reduceat(values[rows], starts)
    high = np.maximum.reduceat(values[rows], starts)
    # Groups go in the order of their first row, as in the file.
    order = np.argsort(rows[starts], kind="stable")
    return _reordered(rows, starts, sizes, low != high, order)


def _pair_keys(item_codes: NDArray[np.int32], annotator_codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """One number for each (item, annotator)."""
    return item_codes.astype(np.int64) * (int(annotator_codes.max(initial=0)) + 1) + annotator_codes


def _reordered(
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    conflicting: NDArray[np.bool_],
    order: NDArray[np.int64],
) -> Repeats:
    new_sizes = sizes[order]
    new_starts = np.concatenate([[0], np.cumsum(new_sizes)[:-1]])
    within = np.arange(len(rows)) - np.repeat(new_starts, new_sizes)
    return Repeats(rows[np.repeat(starts[order], new_sizes) + within], new_starts, new_sizes, conflicting[order])


def resolve_repeats(repeats: Repeats, n_rows: int, rule: DuplicateRule) -> Resolution:
    """Apply a rule; with `error` the caller has refused conflicts already, and one of each group stays."""
    keep = np.ones(n_rows, dtype=np.bool_)
    if rule == "all":
        return Resolution(keep, None)
    ends = repeats.starts + repeats.sizes - 1
    stays = np.zeros(len(repeats.rows), dtype=np.bool_)
    stays[ends if rule == "last" else repeats.starts] = True
    weights = None
    if rule == "mean" and repeats.conflicting.any():
        averaged = np.repeat(repeats.conflicting, repeats.sizes)
        stays |= averaged
        weights = np.ones(n_rows)
        weights[repeats.rows[averaged]] = 1 / np.repeat(repeats.sizes, repeats.sizes)[averaged]
    keep[repeats.rows] = stays
    return Resolution(keep, weights[keep] if weights is not None else None)
