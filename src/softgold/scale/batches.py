"""Votes on some items, read from disk: mini-batches for stochastic optimisation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from softgold.scale.chunkfile import ChunkFile
from softgold.tables.parts import PartVotes


class FileVotes:
    """Votes in the order of the kinds of items, of which each item is its own kind."""

    def __init__(self, file: ChunkFile, pairs: int, weights: int | None) -> None:
        self.n_votes, self._starts = int(file.starts[-1]), file.starts
        self._n_annotators = len(file.kinds.annotator_weight)
        self._pairs, self._weights = pairs, weights

    @classmethod
    @contextmanager
    def of(cls, file: ChunkFile) -> Iterator[FileVotes]:
        """Give the votes of a file, which is open meanwhile."""
        with file.pairs.open("rb") as pairs:
            if file.weights is None:
                yield cls(file, pairs.fileno(), None)
                return
            with file.weights.open("rb") as weights:
                yield cls(file, pairs.fileno(), weights.fileno())

    def select(self, items: NDArray[np.int64]) -> PartVotes:
        """Return the votes on some items, which ascend; those of an item by annotator, as in memory."""
        first, last = self._starts[items], self._starts[items + 1]
        starts = np.concatenate([[0], np.cumsum(last - first)])
        pairs = np.frombuffer(self._read(self._pairs, first, last, 4), np.uint32).astype(np.int64)
        votes, annotators = np.divmod(pairs, self._n_annotators)
        item = np.repeat(np.arange(len(items)), last - first)
        order = np.lexsort((votes, annotators, item))
        weights = None
        if self._weights is not None:
            weights = np.frombuffer(self._read(self._weights, first, last, 8), np.float64)[order]
        return PartVotes(starts, annotators[order].astype(np.int32), votes[order].astype(np.int8), weights)

    @staticmethod
    def _read(file: int, first: NDArray[np.int64], last: NDArray[np.int64], size: int) -> bytes:
        """Return the bytes of some stretches of a file, those next to each other in one go."""
        breaks = np.flatnonzero(first[1:] != last[:-1]) + 1
        begins, ends = first[np.concatenate([[0], breaks])], last[np.concatenate([breaks - 1, [len(last) - 1]])]
        pieces = zip((size * begins).tolist(), (size * (ends - begins)).tolist(), strict=True)
        return b"".join(os.pread(file, length, begin) for begin, length in pieces)
