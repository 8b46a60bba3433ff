"""Ranges of rows, one for each row, spelled out as pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def expand_ranges(rows: IntArray, start: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return every pair (row, member) for members `start[row]` to `start[row] + count[row] - 1`.

    >>> expand_ranges(np.array([0, 2]), np.array([5, 0, 8]), np.array([2, 9, 1]))
    (array([0, 0, 2]), array([5, 6, 8]))
    """
    lengths = count[rows]
    owner = np.repeat(rows, lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, start[owner] + within


def split_by_size(count: IntArray, most: int) -> list[IntArray]:
    """Return the rows 0, 1, ... in parts whose counts add up to about `most`, at least one row each.

    >>> [part.tolist() for part in split_by_size(np.array([2, 2, 2, 9]), 4)]
    [[0], [1, 2], [3]]
    """
    if not len(count):
        return []
    cuts = np.flatnonzero(np.diff(np.cumsum(count) // most)) + 1
    return np.split(np.arange(len(count)), cuts)
