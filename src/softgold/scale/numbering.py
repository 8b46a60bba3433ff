"""Numbers for the items of all parts, in the order of first appearance, with the ids on disk.

A slot is an item of a part, each part counted by itself. Where the rows of every item come one after the other, slots
are items. Otherwise ids are put into buckets by hash and compared with each other there, a bucket at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from softgold.scale.raw import RawPart, RawVotes

BYTES_PER_ID = 200  # while a bucket is compared


@dataclass(frozen=True, eq=False)
class ItemNumbers:
    """The number of each slot's item.

    Attributes:
        grouped: The rows of every item come one after the other, over all parts.
        slots: Item of each slot, shape (S,).
        first: Whether the slot is the first of its item, shape (S,).
    """

    grouped: bool
    slots: NDArray[np.int64]
    first: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """Number of items."""
        return int(np.count_nonzero(self.first))

    def of(self, part: RawPart) -> NDArray[np.int64]:
        """Return the items of a part's slots."""
        return self.slots[part.first_slot : part.first_slot + part.n_ids]

    def texts(self, raw: RawVotes) -> Iterator[pa.Array]:
        """Give the ids in the order of the numbers, some at a time."""
        for part in raw.parts:
            first = self.first[part.first_slot : part.first_slot + part.n_ids]
            texts = raw.texts(part)
            yield texts if first.all() else texts.filter(pa.array(first))


def number_items(raw: RawVotes, memory: int) -> ItemNumbers:
    """Number the items in the order of their first rows."""
    first = _first_where_grouped(raw)
    if first is not None:
        return ItemNumbers(True, np.cumsum(first) - 1, first)
    origin = _first_slots(raw, memory)
    first = origin == np.arange(len(origin))
    return ItemNumbers(False, (np.cumsum(first) - 1)[origin], first)


def _first_where_grouped(raw: RawVotes) -> NDArray[np.bool_] | None:
    """Return which slots are the first of their item if the rows of every item are together; None if not.

    An item may go on from one part to the next. Hashes that are equal by chance only cost time.
    """
    first, before, seen = np.ones(raw.n_slots, bool), None, []
    for part in raw.parts:
        if not part.grouped:
            return None
        texts = raw.texts(part)
        first[part.first_slot] = before is None or texts[0].as_py() != before
        before = texts[-1].as_py()
        seen.append(raw.hashes(part)[0 if first[part.first_slot] else 1 :])
    hashes = np.concatenate(seen)
    hashes.sort()
    return None if (hashes[1:] == hashes[:-1]).any() else first


def _first_slots(raw: RawVotes, memory: int) -> NDArray[np.int64]:
    """Return for each slot the first slot with the same id, shape (S,)."""
    buckets = 1 + raw.n_slots * BYTES_PER_ID // max(memory, 1)
    origin = np.empty(raw.n_slots, np.int64)
    _spill_ids(raw, buckets)
    for bucket in range(buckets):
        path = _bucket_path(raw, bucket)
        if not path.exists():
            continue
        with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
            table = reader.read_all()
        path.unlink()
        slots = table["slot"].to_numpy()
        codes = table["text"].combine_chunks().dictionary_encode().indices.to_numpy()
        _, first = np.unique(codes, return_index=True)
        origin[slots] = slots[first][codes]
    return origin


def _spill_ids(raw: RawVotes, buckets: int) -> None:
    """Write slots and ids to the bucket of the id's hash."""
    schema = pa.schema([("slot", pa.int64()), ("text", pa.large_string())])
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        for part in raw.parts:
            texts, of = raw.texts(part), raw.hashes(part) % np.uint64(buckets)
            for bucket in np.unique(of).tolist():
                at = np.flatnonzero(of == bucket)
                if bucket not in writers:
                    file = stack.enter_context(_bucket_path(raw, bucket).open("wb"))
                    writers[bucket] = stack.enter_context(pa.ipc.new_stream(file, schema))
                columns = [pa.array(at + part.first_slot), texts.take(pa.array(at))]
                writers[bucket].write_batch(pa.record_batch(columns, schema=schema))


def _bucket_path(raw: RawVotes, bucket: int) -> Path:
    return raw.folder / f"ids-{bucket}"
