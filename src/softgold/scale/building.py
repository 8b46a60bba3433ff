"""From rows as they came to a store: votes grouped by item, abstentions left out, repeats resolved.

Rows whose items come one after the other are copied part by part. Other rows go to disk once more, into buckets of
consecutive items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from softgold.checks import check_choice
from softgold.errors import InputError
from softgold.readers.longform import (
    SHOWN_CONFLICTS,
    conflict_error,
    conflict_sentence,
    first_conflict,
    repeat_notes,
    silent_warning,
)
from softgold.readers.repeats import DUPLICATE_RULES, DuplicateRule, Repeats, find_repeats, resolve_repeats
from softgold.scale.disk import Spill
from softgold.scale.numbering import ItemNumbers, number_items
from softgold.scale.raw import RawVotes
from softgold.scale.store import FloatArray, VoteStore, write_ids, write_part
from softgold.tables.parts import StorePart

ROW = np.dtype([("item", np.int64), ("annotator", np.int32), ("vote", np.int8), ("row", np.int64)])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Votes that were cast, each with its item, annotator and row, shape (n,) each."""

    item: NDArray[np.int64]
    annotator: NDArray[np.int32]
    vote: NDArray[np.int8]
    row: NDArray[np.int64]

    def take(self, places: Any) -> _Rows:
        return _Rows(*(array[places] for array in vars(self).values()))

    @staticmethod
    def join(pieces: list[_Rows]) -> _Rows:
        return _Rows(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in ROW.names or ()))


def build_store(
    raw: RawVotes, folder: Path, *, part_votes: int, memory: int, duplicates: DuplicateRule = "error"
) -> VoteStore:
    """Group the rows by item and clean them; the rows are removed as they are used.

    Args:
        raw: The rows.
        folder: Where to write.
        part_votes: About how many votes a part has.
        memory: Bytes to hold at a time.
        duplicates: See `read_votes`.

    Raises:
        InputError: As `read_votes` does.
    """
    check_choice(duplicates, DUPLICATE_RULES, "duplicates")
    numbers = number_items(raw, memory // 4)
    counts, answers = _count(raw, numbers)
    if not counts.any():
        raise InputError(f"{raw.name} has no votes: every vote is empty")
    used, used_annotators = counts > 0, answers > 0
    new_item = np.cumsum(used) - 1
    new_annotator = (np.cumsum(used_annotators) - 1).astype(np.int32)
    pieces = _grouped(raw, numbers) if numbers.grouped else _shuffled(raw, numbers, counts, folder, part_votes)
    builder = _Builder(raw, folder, duplicates, part_votes)
    for rows in pieces:
        builder.add(replace(rows, item=new_item[rows.item], annotator=new_annotator[rows.annotator]))
    parts = builder.finish()
    write_ids(folder, parts, _used_texts(numbers.texts(raw), used))
    silent = tuple(text for texts in _used_texts(numbers.texts(raw), ~used) for text in texts.to_pylist())
    texts = raw.annotator_texts.filter(pa.array(used_annotators))
    absent = tuple(raw.annotator_texts.filter(pa.array(~used_annotators)).to_pylist())
    notes, warnings = builder.notes()
    left_out = (silent_warning(silent, "vote"),) if silent else ()
    for part in raw.parts:
        raw.remove(part)
    return VoteStore(
        folder,
        parts,
        texts,
        raw.kinds,
        builder.weighted,
        np.concatenate(builder.item_counts),
        np.rint(builder.answers[: len(texts)]).astype(np.int64),
        builder.positives,
        sum(part.rows for part in raw.parts) - int(counts.sum()),
        silent,
        absent,
        (*raw.notes, *notes, *left_out),
        (*raw.notes, *warnings, *left_out),
    )


def _count(raw: RawVotes, numbers: ItemNumbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the votes of each item and of each annotator, abstentions left out."""
    items, people = np.zeros(numbers.count, np.int64), np.zeros(len(raw.annotator_texts), np.int64)
    for part in raw.parts:
        slots, annotators, votes = raw.load(part)
        cast = votes >= 0
        np.add.at(items, numbers.of(part), np.bincount(slots[cast], minlength=part.n_ids))
        people += np.bincount(annotators[cast], minlength=len(people))
    return items, people


def _cast(raw: RawVotes, numbers: ItemNumbers) -> Iterator[_Rows]:
    """Give the votes that were cast, part by part."""
    first = 0
    for part in raw.parts:
        slots, annotators, votes = raw.load(part)
        rows = _Rows(numbers.of(part)[slots], annotators, votes, first + np.arange(part.rows))
        first += part.rows
        yield rows if (votes >= 0).all() else rows.take(votes >= 0)


def _grouped(raw: RawVotes, numbers: ItemNumbers) -> Iterator[_Rows]:
    """Give whole items: the last item of a part may go on in the next."""
    held: list[_Rows] = []
    for rows in _cast(raw, numbers):
        if not len(rows.item):
            continue
        last = int(np.searchsorted(rows.item, rows.item[-1]))
        if last:
            yield _Rows.join([*held, rows.take(slice(0, last))])
            held = []
        held.append(rows.take(slice(last, None)))
    if held:
        yield _Rows.join(held)


def _shuffled(
    raw: RawVotes, numbers: ItemNumbers, counts: NDArray[np.int64], folder: Path, part_votes: int
) -> Iterator[_Rows]:
    """Give whole items: rows go to the bucket of their item, and each bucket is sorted."""
    bucket_of = ((np.cumsum(counts) - counts) // part_votes).astype(np.int32)
    spill = Spill(folder, "rows", ROW)
    for rows in _cast(raw, numbers):
        spill.add(bucket_of[rows.item], vars(rows))
    for bucket in range(int(bucket_of[-1]) + 1):
        found = spill.take(bucket)
        order = np.argsort(found["item"], kind="stable")
        if len(order):
            yield _Rows(*(found[name][order] for name in ROW.names or ()))


def _used_texts(texts: Iterator[pa.Array], used: NDArray[np.bool_]) -> Iterator[pa.Array]:
    first = 0
    for some in texts:
        keep = used[first : first + len(some)]
        first += len(some)
        yield some if keep.all() else some.filter(pa.array(keep))


@dataclass
class _Repeated:
    """Repeats so far: pairs with equal and with different votes, and the earliest of them."""

    counts: list[int] = field(default_factory=lambda: [0, 0])
    first: list[tuple[int, int] | None] = field(default_factory=lambda: [None, None])
    conflicts: list[tuple[int, int]] = field(default_factory=list)


class _Builder:
    """Cleans whole items and writes them in parts."""

    def __init__(self, raw: RawVotes, folder: Path, rule: DuplicateRule, part_votes: int) -> None:
        self._raw, self._folder, self._rule, self._size = raw, folder, rule, part_votes
        self._repeated, self._parts = _Repeated(), list[StorePart]()
        self._held: list[tuple[_Rows, FloatArray | None]] = []
        self.item_counts: list[NDArray[np.int32]] = []
        self.answers = np.zeros(len(raw.annotator_texts))
        self.positives, self.weighted = 0, False

    def add(self, rows: _Rows) -> None:
        """Take the votes of some whole items, the next ones."""
        repeats = find_repeats(rows.item, rows.annotator, rows.vote)  # type: ignore[arg-type]
        weights = None
        if repeats is not None:
            self._note(rows, repeats)
            resolution = resolve_repeats(repeats, len(rows.vote), self._rule)
            rows, weights = rows.take(resolution.keep), resolution.weights
        self._held.append((rows, weights))
        if sum(len(held.vote) for held, _ in self._held) >= self._size:
            self._write()

    def _note(self, rows: _Rows, repeats: Repeats) -> None:
        seen = self._repeated
        for side, which in enumerate((~repeats.conflicting, repeats.conflicting)):
            seen.counts[side] += int(which.sum())
            if which.any():
                starts = repeats.starts[which]
                best = starts[np.argmin(rows.row[repeats.rows[starts]])]
                earliest = int(rows.row[repeats.rows[best]]), int(rows.row[repeats.rows[best + 1]])
                seen.first[side] = min(earliest, seen.first[side] or earliest)
        if self._rule == "error":
            groups = np.flatnonzero(repeats.conflicting)[:SHOWN_CONFLICTS].tolist()
            pairs = [first_conflict(repeats, group, rows.vote) for group in groups]
            found = [(int(rows.row[one]), int(rows.row[other])) for one, other in pairs]
            seen.conflicts = sorted([*seen.conflicts, *found])[:SHOWN_CONFLICTS]

    def _write(self) -> None:
        held = [(rows, np.ones(len(rows.vote)) if weights is None else weights) for rows, weights in self._held]
        rows = _Rows.join([rows for rows, _ in held])
        weights = np.concatenate([weights for _, weights in held])
        weighted = any(weights is not None for _, weights in self._held)
        self._held = []
        first = int(rows.item[0])
        counts = np.bincount(rows.item - first)
        part = StorePart(len(self._parts), first, len(counts), len(rows.vote))
        write_part(self._folder, part.number, rows.annotator, rows.vote, weights if weighted else None)
        self._parts.append(part)
        self.item_counts.append(counts.astype(np.int32))
        self.answers += np.bincount(rows.annotator, weights=weights, minlength=len(self.answers))
        self.positives, self.weighted = self.positives + int(rows.vote.sum()), self.weighted or weighted

    def finish(self) -> tuple[StorePart, ...]:
        """Write what is left, and return the parts; conflicts that nobody said how to resolve raise."""
        if self._repeated.conflicts:
            examples = [_conflict(self._raw, rows) for rows in self._repeated.conflicts]
            raise conflict_error(self._raw.name, examples, self._repeated.counts[1], "vote")
        if self._held:
            self._write()
        return tuple(self._parts)

    def notes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what was done with repeats, and what of it nobody asked for."""
        seen = self._repeated
        equal, different = (
            (count, "" if first is None else self._raw.where(first[1]))
            for count, first in zip(seen.counts, seen.first, strict=True)
        )
        return repeat_notes(equal, different, self._rule, "vote")


def _conflict(raw: RawVotes, rows: tuple[int, int]) -> str:
    cells = [raw.row(row) for row in rows]
    item, annotator, _ = cells[0]
    return conflict_sentence(
        item, annotator, [(cell[2], raw.where(row)) for cell, row in zip(cells, rows, strict=True)]
    )
