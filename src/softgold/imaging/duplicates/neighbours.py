"""The closest pairs of all, for audits."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from softgold.imaging.duplicates.spaces import EXACT_UP_TO, EmbeddingSpace, MatrixSpace, build_index

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_BLOCK_CELLS = 8_000_000
_NEIGHBOURS = 32


def closest_pairs(
    space: EmbeddingSpace | MatrixSpace, count: int, *, exclude: Collection[tuple[int, int]] = ()
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the `count` nearest pairs that are not excluded: lower sample, higher sample, distance, nearest first.

    Exact up to the size at which `EmbeddingSpace` is; beyond that the nearest among the 32 nearest neighbours of each
    sample, by the index.

    Example:
        >>> space = EmbeddingSpace.of([[0.0], [1.0], [1.5], [9.0]], metric="euclidean")
        >>> closest_pairs(space, 2, exclude=[(1, 2)])[:2]
        (array([0, 0]), array([1, 2]))
    """
    wanted = count + len(exclude)
    n = len(space)
    if isinstance(space, MatrixSpace):
        first, second = np.triu_indices(n, 1)
    elif space.method == "exact" or (space.method == "auto" and n <= EXACT_UP_TO):
        first, second = _all_pairs(space, wanted)
    else:
        first, second = _graph_pairs(space)
    banned = np.fromiter((i * n + j for i, j in exclude), dtype=np.int64, count=len(exclude))
    kept = ~np.isin(first * n + second, banned)
    first, second = first[kept], second[kept]
    distance = space.distances(first, second)
    order = np.lexsort((second, first, distance))[:count]
    return first[order], second[order], distance[order]


def _all_pairs(space: EmbeddingSpace, wanted: int) -> tuple[IntArray, IntArray]:
    """Candidates for the nearest pairs, block by block; a bound from earlier blocks keeps their number small."""
    n = len(space)
    kept = np.empty(0, dtype=np.int64)
    near = np.empty(0)
    step = max(1, _BLOCK_CELLS // n)
    norms = np.einsum("ij,ij->i", space.vectors, space.vectors).astype(np.float64)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        squared = norms[rows][:, None] + norms - 2.0 * (space.vectors[rows] @ space.vectors.T)
        row, column = np.nonzero((np.arange(n) > rows[:, None]) & (squared <= _cut(near, wanted)))
        kept = np.concatenate([kept, rows[row] * n + column])
        near = np.concatenate([near, squared[row, column]])
        # A few more than wanted, because products round and the distances are taken once more.
        best = np.argsort(near, kind="stable")[: 2 * wanted + 100]
        kept, near = kept[best], near[best]
    return kept // n, kept % n


def _cut(near: FloatArray, wanted: int) -> float:
    return float(near[-1]) if len(near) >= 2 * wanted + 100 else np.inf


def _graph_pairs(space: EmbeddingSpace) -> tuple[IntArray, IntArray]:
    n = len(space)
    _, neighbours = build_index(space.vectors).search(space.vectors.astype(np.float32), min(_NEIGHBOURS + 1, n))
    row, place = np.nonzero(neighbours >= 0)
    pairs = np.sort(np.column_stack([row, neighbours[row, place]]), axis=1)
    codes = np.unique(pairs[pairs[:, 0] != pairs[:, 1]] @ np.array([n, 1]))
    return codes // n, codes % n
