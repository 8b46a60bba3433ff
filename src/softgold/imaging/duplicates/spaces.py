"""Samples as embeddings or as distances, and the nearest samples of different clusters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, check_choice
from softgold.errors import InputError, UsageError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Vectors = NDArray[np.float32] | NDArray[np.float64]
Metric = Literal["cosine", "euclidean"]
Method = Literal["auto", "exact", "hnsw"]

EXACT_UP_TO = 20_000
_BLOCK_CELLS = 8_000_000
_FIRST_NEIGHBOURS = 10
_MOST_NEIGHBOURS = 640


class Space(Protocol):
    """Samples with a symmetric distance."""

    def __len__(self) -> int: ...

    @property
    def digest(self) -> str:
        """Fingerprint, by which a stored plan knows the space that it was made in."""
        ...

    def nearest(self, members: IntArray, cluster: IntArray) -> IntArray:
        """For each member, the nearest member of another cluster, shape (m,): a position in `members`, or -1.

        Equally near ones go to the lower sample, so that pairs are ordered by (distance, lower, higher sample).

        Args:
            members: Samples that take part, ascending, shape (m,).
            cluster: The cluster of each, shape (m,).
        """
        ...

    def distances(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance of each pair of samples, exactly the same in both directions, shape (e,)."""
        ...


@dataclass(frozen=True, eq=False)
class MatrixSpace:
    """Samples with given distances.

    Attributes:
        matrix: Symmetric, shape (n, n); the diagonal is not used.
    """

    matrix: FloatArray

    @classmethod
    def of(cls, distances: ArrayLike) -> MatrixSpace:
        """Check a matrix of distances.

        >>> len(MatrixSpace.of([[0, 1.5], [1.5, 0]]))
        2
        """
        matrix = as_finite(distances, "distances", ndim=2)
        if matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"distances must be a square matrix, got shape {matrix.shape}")
        if (matrix != matrix.T).any():
            i, j = np.argwhere(matrix != matrix.T)[0]
            raise InputError(f"distances must be symmetric, got {matrix[i, j]} and {matrix[j, i]} for {i} and {j}")
        return cls(matrix)

    @classmethod
    def from_function(cls, n_samples: int, distance: Callable[[int, int], float]) -> MatrixSpace:
        """Tabulate a distance function, called once for each pair i < j.

        >>> MatrixSpace.from_function(3, lambda i, j: abs(i - j)).matrix.tolist()
        [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
        """
        matrix = np.zeros((n_samples, n_samples))
        for i in range(n_samples):
            for j in range(i + 1, n_samples):
                matrix[i, j] = matrix[j, i] = distance(i, j)
        return cls.of(matrix)

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def digest(self) -> str:
        """Fingerprint of the distances."""
        return _digest(self.matrix, "distances")

    def nearest(self, members: IntArray, cluster: IntArray) -> IntArray:
        """For each member, the position of the nearest member of another cluster, or -1."""
        found = np.full(len(members), -1)
        for rows in _blocks(len(members), len(members)):
            part = self.matrix[np.ix_(members[rows], members)]
            part[cluster[rows][:, None] == cluster[None, :]] = np.inf
            best = part.argmin(axis=1)
            found[rows] = np.where(np.isfinite(part[np.arange(len(rows)), best]), best, -1)
        return found

    def distances(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance of each pair, shape (e,)."""
        return np.asarray(self.matrix[first, second])


@dataclass(frozen=True, eq=False)
class EmbeddingSpace:
    """Samples with embeddings, compared by cosine or Euclidean distance.

    Up to `EXACT_UP_TO` samples the nearest ones are found exactly, beyond that by a graph index (HNSW through faiss,
    extra `duplicates`), which can miss some.

    Attributes:
        vectors: float32 or float64, shape (n, d); of length 1 for the cosine.
        metric: `cosine` (1 - cosine) or `euclidean`.
        method: `exact`, `hnsw`, or `auto` by the number of samples that take part.
    """

    vectors: Vectors
    metric: Metric = "cosine"
    method: Method = "auto"

    @classmethod
    def of(cls, embeddings: ArrayLike, *, metric: Metric = "cosine", method: Method = "auto") -> EmbeddingSpace:
        """Check embeddings, one row per sample.

        >>> space = EmbeddingSpace.of([[1, 0], [2, 0], [0, 1]])
        >>> space.distances(np.array([0, 0]), np.array([1, 2])).round(6).tolist()
        [0.0, 1.0]
        """
        check_choice(metric, ("cosine", "euclidean"), "metric")
        check_choice(method, ("auto", "exact", "hnsw"), "method")
        vectors = np.asarray(embeddings)
        if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or vectors.shape[1] == 0:
            shape = f"{vectors.dtype} of shape {vectors.shape}"
            raise InputError(f"embeddings must be numbers of shape (samples, dimensions), got {shape}")
        bad = ~np.isfinite(vectors).all(axis=1)
        if bad.any():
            raise InputError(f"embeddings must be finite, and row {int(np.argmax(bad))} is not")
        floats = vectors if vectors.dtype == np.float32 else vectors.astype(np.float64)
        return cls(_unit(floats) if metric == "cosine" else floats, metric, method)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def digest(self) -> str:
        """Fingerprint of the embeddings and the metric."""
        return _digest(self.vectors, self.metric)

    def nearest(self, members: IntArray, cluster: IntArray) -> IntArray:
        """For each member, the position of the nearest member of another cluster, or -1."""
        if len(np.unique(cluster)) < 2:
            return np.full(len(members), -1)
        vectors = self.vectors[members]
        large = self.method == "auto" and len(members) > EXACT_UP_TO
        if self.method == "hnsw" or large:
            return self._nearest_by_graph(vectors, cluster)
        return self._nearest_exactly(vectors, cluster, np.arange(len(members)))

    def distances(self, first: IntArray, second: IntArray) -> FloatArray:
        """Distance of each pair, shape (e,)."""
        parts = [
            _squared(self.vectors, first[rows], second[rows]) for rows in _blocks(len(first), self.vectors.shape[1])
        ]
        squared = np.concatenate(parts) if parts else np.empty(0)
        return squared / 2 if self.metric == "cosine" else np.sqrt(squared)

    def _nearest_exactly(self, vectors: Vectors, cluster: IntArray, rows: IntArray) -> IntArray:
        """Products are fast but round; whatever is nearest within rounding is compared once more by differences."""
        norms = np.einsum("ij,ij->i", vectors, vectors)
        rounding = _rounding(vectors.dtype, vectors.shape[1])
        found = np.empty(len(rows), dtype=np.int64)
        for block in _blocks(len(rows), len(vectors)):
            own = rows[block]
            near = norms[own][:, None] + norms[None, :] - 2 * (vectors[own] @ vectors.T)
            near[cluster[own][:, None] == cluster[None, :]] = np.inf
            least = near.min(axis=1)
            slack = rounding * (norms[own] + norms.max())
            row, candidate = np.nonzero(near <= (least + slack)[:, None])
            squared = _squared(vectors, own[row], candidate)
            found[block] = _first_of_each(row, squared, candidate, len(block))
        return found

    def _nearest_by_graph(self, vectors: Vectors, cluster: IntArray) -> IntArray:
        """Ask the index for a few neighbours, for more where all are in the own cluster, and finally search fully."""
        index = build_index(vectors)
        found = np.full(len(vectors), -1)
        open_rows = np.arange(len(vectors))
        count = _FIRST_NEIGHBOURS
        while len(open_rows) and count <= min(_MOST_NEIGHBOURS, len(vectors)):
            found[open_rows] = _ask_index(index, vectors, cluster, open_rows, count)
            open_rows = np.flatnonzero(found < 0)
            count *= 4
        if len(open_rows):
            found[open_rows] = self._nearest_exactly(vectors, cluster, open_rows)
        return found


def build_index(vectors: Vectors) -> Any:
    """Build a graph index of the vectors (HNSW), or say what to install."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # faiss 1.9 uses an old name of NumPy
            import faiss
    except ImportError:
        raise UsageError(
            "many samples need faiss: pip install 'softgold[duplicates]', or ask for method 'exact'"
        ) from None
    index = faiss.IndexHNSWFlat(vectors.shape[1], 32)
    index.hnsw.efConstruction = 200
    index.hnsw.efSearch = 64
    index.add(np.ascontiguousarray(vectors, dtype=np.float32))
    return index


def _ask_index(index: Any, vectors: Vectors, cluster: IntArray, rows: IntArray, count: int) -> IntArray:
    index.hnsw.efSearch = max(64, count)
    near, neighbours = index.search(np.ascontiguousarray(vectors[rows], dtype=np.float32), count)
    near[(neighbours < 0) | (cluster[neighbours] == cluster[rows][:, None])] = np.inf
    least = near.min(axis=1)
    norms = np.einsum("ij,ij->i", vectors[rows], vectors[rows])
    slack = 2 * _rounding(np.float32, vectors.shape[1]) * norms
    row, place = np.nonzero(np.isfinite(near) & (near <= (least + slack)[:, None]))
    candidate = neighbours[row, place]
    squared = _squared(vectors, rows[row], candidate)
    return _first_of_each(row, squared, candidate, len(rows))


def _rounding(kind: Any, dimensions: int) -> float:
    """How far squared distances by products of numbers of this kind can be off, relative to the squared norms."""
    return float(8 * np.sqrt(dimensions) * np.finfo(kind).eps)


def _first_of_each(row: IntArray, squared: FloatArray, candidate: IntArray, n_rows: int) -> IntArray:
    """The nearest candidate of each row, the lowest of equals; -1 for a row without one."""
    order = np.lexsort((candidate, squared, row))
    first = order[np.diff(row[order], prepend=-1) != 0]
    best = np.full(n_rows, -1)
    best[row[first]] = candidate[first]
    return best


def _squared(vectors: Vectors, first: IntArray, second: IntArray) -> FloatArray:
    difference = vectors[first].astype(np.float64) - vectors[second]
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def _unit(vectors: Vectors) -> Vectors:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (length == 0).any():
        raise InputError(f"the cosine needs embeddings that are not zero, and row {int(np.argmin(length))} is")
    return np.asarray(vectors / length)


def _digest(array: NDArray[np.generic], name: str) -> str:
    return sha256(f"{name} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()).hexdigest()


def _blocks(rows: int, columns: int) -> list[IntArray]:
    step = max(1, _BLOCK_CELLS // max(columns, 1))
    return [np.arange(start, min(start + step, rows)) for start in range(0, rows, step)]
