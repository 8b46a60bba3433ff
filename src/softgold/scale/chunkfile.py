"""Chunks on disk: those that memory would build, written once and read in every sweep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.models.crowd.chunks import CHUNK_VOTES, VoteChunk, build_chunk
from softgold.models.crowd.drivers import ChunkDriver
from softgold.models.crowd.threads import in_order, worker_pool
from softgold.scale.canonical import Kinds, Orientation
from softgold.scale.disk import Spill, read_array
from softgold.scale.store import FloatArray, VoteStore
from softgold.tables.parts import chunk_cuts


@dataclass(frozen=True, eq=False)
class ChunkFile:
    """Votes in the order of the kinds of items, and in chunks, with what is needed to find them.

    Attributes:
        chunks: File with the place of each vote among the columns, then the columns, for each chunk; 32-bit numbers.
        pairs: File with vote * A + annotator of each vote, ascending within an item; 32-bit numbers.
        weights: File with the weight of each vote, or None where all are 1.
        kinds: Kinds of items and annotators.
        starts: Where the votes of each kind of item start, and their number, shape (n + 1,).
        cuts: First item of each chunk, and the number of items.
        offsets: Where each chunk starts in its file, in numbers, shape (chunks + 1,).
    """

    chunks: Path
    pairs: Path
    weights: Path | None
    kinds: Kinds
    starts: NDArray[np.int64]
    cuts: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def driver(self) -> ChunkDriver:
        """Return the driver that reads a chunk whenever it is needed."""
        numbers = range(len(self.cuts) - 1)
        return ChunkDriver(numbers, self.kinds.n_items, self.kinds.annotator_weight, self.load)

    def load(self, number: int) -> VoteChunk:
        """Return a chunk."""
        first, last = int(self.cuts[number]), int(self.cuts[number + 1])
        begin, end = int(self.starts[first]), int(self.starts[last])
        offset, after = self.offsets[number : number + 2].tolist()
        data = read_array(self.chunks, np.uint32, offset, after - offset)
        weights = None if self.weights is None else read_array(self.weights, np.float64, begin, end - begin)
        many = self.kinds.item_weight
        of = np.ones(last - first) if many is None else many[first:last]
        starts, columns = self.starts[first : last + 1] - begin, data[end - begin :].astype(np.int64)
        return build_chunk(first, starts, columns, data[: end - begin], weights, of, self.kinds.annotator_weight)


def write_chunks(
    store: VoteStore,
    kinds: Kinds,
    name: str,
    *,
    part_votes: int,
    size: int = CHUNK_VOTES,
    opposite: Orientation = False,
) -> ChunkFile:
    """Put the votes in the order of the kinds, and write them in chunks.

    Args:
        store: The votes.
        kinds: Kinds of items and annotators.
        name: Name of the file to write in the store's folder.
        part_votes: About how many votes to hold at a time.
        size: Votes per chunk.
        opposite: Whether to take the opposite of each vote.
    """
    votes = _Pairs(store.folder / f"{name}.pairs", store.folder / f"{name}.weights")
    counts, width = np.zeros(kinds.n_items, np.int64), 2 * len(kinds.annotator_weight)
    for rows in _in_kind_order(store, kinds, part_votes, opposite):
        key = rows["item"].astype(np.int64) * width + rows["pair"]
        found, amounts = _taken_together(key, rows["weight"] if store.weighted else None)
        item, pairs = np.divmod(found, width)
        here = np.bincount(item - item[0])
        counts[item[0] : item[0] + len(here)] = here
        votes.add(pairs, amounts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    cuts = chunk_cuts(starts, size)
    path = store.folder / f"{name}.chunks"
    offsets = _write_columns(path, votes.path, starts[cuts])
    return ChunkFile(path, votes.path, votes.weights if votes.weighted else None, kinds, starts, cuts, offsets)


def _write_columns(path: Path, pairs: Path, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Write places and columns of each chunk, votes from one bound to the next; return where each chunk starts."""

    def coded(span: tuple[int, int]) -> NDArray[np.uint32]:
        columns, places = np.unique(read_array(pairs, np.uint32, span[0], span[1] - span[0]), return_inverse=True)
        return np.concatenate([places.astype(np.uint32), columns])

    sizes = [0]
    with path.open("wb") as file, worker_pool() as pool:
        for data in in_order(coded, pairwise(bounds.tolist()), pool):
            file.write(data.data)
            sizes.append(len(data))
    return np.cumsum(sizes)


class _Pairs:
    """Votes in their final order, appended to a file, with a file of weights as soon as one is not 1."""

    def __init__(self, path: Path, weights: Path) -> None:
        self.path, self.weights, self.weighted, self._count = path, weights, False, 0
        path.touch()

    def add(self, pairs: NDArray[np.int64], weights: FloatArray | None) -> None:
        """Append votes; without weights each of them weighs 1."""
        with self.path.open("ab") as file:
            file.write(pairs.astype(np.uint32).data)
        if weights is not None and not self.weighted:
            self.weighted = True
            self._append(np.ones(self._count))
        if self.weighted:
            self._append(np.ones(len(pairs)) if weights is None else weights)
        self._count += len(pairs)

    def _append(self, weights: FloatArray) -> None:
        with self.weights.open("ab") as file:
            file.write(weights.data)


def _taken_together(key: NDArray[np.int64], weights: FloatArray | None) -> tuple[NDArray[np.int64], FloatArray | None]:
    """Return the different keys, ascending, and the weight of each; None where all are 1."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    new = np.concatenate([[True], key[1:] != key[:-1]])
    if weights is None and new.all():
        return key, None
    place = np.cumsum(new) - 1
    amounts = np.bincount(place, None if weights is None else weights[order]).astype(np.float64)
    return key[new], amounts


def _in_kind_order(store: VoteStore, kinds: Kinds, part_votes: int, opposite: Orientation) -> Iterator[NDArray[Any]]:
    """Give the votes of the items that stand for their kind: whole kinds, in their order."""
    shown = kinds.shown()
    counts = np.zeros(kinds.n_items, np.int64)
    counts[kinds.item[shown]] = store.item_counts[shown]
    bucket_of = ((np.cumsum(counts) - counts) // part_votes).astype(np.int32)
    fields: list[tuple[str, Any]] = [("item", kinds.item.dtype), ("pair", np.uint32)]
    kind = np.dtype([*fields, ("weight", np.float64)] if store.weighted else fields)
    spill = Spill(store.folder, "kinds", kind)
    for part, votes in store.each():
        here = slice(part.first_item, part.first_item + part.n_items)
        item = np.repeat(kinds.item[here], votes.counts)
        value = 1 - votes.votes if opposite else votes.votes
        pair = kinds.annotator[votes.annotators] + value.astype(np.int64) * len(kinds.annotator_weight)
        columns: dict[str, NDArray[Any]] = {"item": item, "pair": pair}
        if votes.weights is not None:
            columns["weight"] = votes.weights
        keep = shown[here]
        if not keep.all():
            rows = np.repeat(keep, votes.counts)
            columns = {name: column[rows] for name, column in columns.items()}
        if len(columns["item"]):
            spill.add(bucket_of[columns["item"]], columns)
    for bucket in range(int(bucket_of[-1]) + 1):
        rows = spill.take(bucket)
        if len(rows):
            yield rows
