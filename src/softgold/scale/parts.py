"""Votes on the workers of a cluster: parts as they come from the source, then blocks of whole items.

Every function here is pure and runs on a worker. A part holds rows of the source in their order; it is split by the
hash of the items' ids, and the pieces of all parts make blocks, in which every item has all its votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as arrow_parquet
from numpy.typing import NDArray

from softgold.errors import InputError, SoftgoldError
from softgold.readers.base import Source, display_name
from softgold.readers.cells import MISSING_VOTE, as_index, code_ids, code_values, code_votes
from softgold.readers.columns import ANNOTATOR, ITEM, VOTE, find_column, find_task
from softgold.readers.frames import ArrowSource, FrameSource
from softgold.readers.longform import SHOWN_CONFLICTS, first_conflict
from softgold.readers.parquet import check_codes, not_parquet
from softgold.readers.repeats import DuplicateRule, Repeats, find_repeats, resolve_repeats
from softgold.readers.sources import open_source
from softgold.tables.hashing import text_hashes
from softgold.tables.votes import VoteTable

Names = tuple[str | None, str | None, str | None]
IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class FilePart:
    """A file, or one row group of a Parquet file.

    Attributes:
        path: The file.
        group: Number of the row group; None for the whole file.
        first_row: Number of its first row in the file.
    """

    path: Path
    group: int | None = None
    first_row: int = 0

    def open(self) -> Source:
        """Return the rows as a table."""
        if self.group is None:
            return open_source(self.path)
        try:
            table = arrow_parquet.ParquetFile(self.path).read_row_group(self.group)
            check_codes(table)
        except (pa.ArrowException, OSError) as error:
            raise not_parquet(display_name(self.path), error) from None
        return _RowGroup(table, display_name(self.path), self.first_row)


@dataclass(frozen=True)
class _RowGroup(ArrowSource):
    first_row: int = 0

    def where(self, row: int) -> str:
        """Say which row of the file it is, counted from 1."""
        return f"row {self.first_row + row + 1}"


@dataclass(frozen=True, eq=False)
class Part:
    """Rows as they came, abstentions included, R of them.

    Attributes:
        items: Item of each row, shape (R,).
        item_texts: Ids of the items by code.
        annotators: Annotator of each row, shape (R,).
        annotator_texts: Ids of the annotators by code.
        values: 0, 1 or -1 for an abstention; codes of `value_texts` where a value is named as positive, shape (R,).
        value_texts: Different values, where one is named as positive.
        kinds: Kinds of the ids of items and annotators; see `readers.cells.CodedIds`.
        notes: What had to be decided.
    """

    items: IntArray
    item_texts: pa.Array
    annotators: IntArray
    annotator_texts: pa.Array
    values: NDArray[Any]
    value_texts: tuple[str, ...] = ()
    kinds: tuple[str | None, str | None] = (None, None)
    notes: tuple[str, ...] = ()


def code_part(origin: FilePart | pd.DataFrame, name: str, given: Names, positive: str | None) -> Part | SoftgoldError:
    """Read and check some rows; return the error that names file or partition, row, column and value.

    An error is returned because workers log with a traceback what is raised on them.

    Args:
        origin: Where the rows are, or the rows.
        name: What to call a frame in an error.
        given: Names of the columns item, annotator and vote, where the caller gave them.
        positive: The value that counts as a vote of 1.
    """
    try:
        return _coded(open_origin(origin, name), given, positive)
    except SoftgoldError as error:
        return error


def _coded(source: Source, given: Names, positive: str | None) -> Part:
    at = find_column(source, ITEM, given[0])
    if find_task(source, at) is not None:
        raise InputError(
            f"{source.name} has a column 'task': votes on several questions are not fitted on a cluster; give the rows "
            "of one question, without that column"
        )
    positions = at, find_column(source, ANNOTATOR, given[1]), find_column(source, VOTE, given[2])
    if isinstance(source, FrameSource) and len(source.frame) == 0:  # Dask makes empty partitions
        empty = np.zeros(0, np.int32)
        return Part(empty, pa.array([], pa.large_string()), empty, pa.array([], pa.large_string()), empty)
    cells = source.load(positions)
    items, annotators = (
        code_ids(source, where, column) for where, column in zip(positions[:2], cells[:2], strict=True)
    )
    notes = tuple(ids.warning for ids in (items, annotators) if ids.warning is not None)
    texts: list[str] = []
    if positive is None:
        values: NDArray[Any] = code_votes(source, positions[2], cells[2])
    else:
        values, texts = code_values(source, positions[2], cells[2])
    rows = (items.codes, items.texts, annotators.codes, annotators.texts, values)
    return Part(*rows, tuple(texts), (items.kind, annotators.kind), notes)


def open_origin(origin: FilePart | pd.DataFrame, name: str) -> Source:
    """Return the rows of a part as a table."""
    return origin.open() if isinstance(origin, FilePart) else replace(FrameSource.of(origin), name=name)


Header = tuple[int, list[str], tuple[str, ...], tuple[str | None, str | None], tuple[str, ...]]


def part_header(part: Part | SoftgoldError) -> Header | SoftgoldError:
    """Return what the client needs of a part: rows, annotators, values, kinds of ids, notes; or the error."""
    if isinstance(part, SoftgoldError):
        return part
    return len(part.items), part.annotator_texts.to_pylist(), part.value_texts, part.kinds, part.notes


@dataclass(frozen=True, eq=False)
class Piece:
    """The rows of a part on some of its items, with annotators as all parts number them.

    Attributes:
        items: Item of each row, shape (R,).
        texts: Ids of the items by code.
        annotators: Annotator of each row, shape (R,).
        votes: 0, 1 or -1 for an abstention, shape (R,).
        rows: Number of each row over all parts, shape (R,).
    """

    items: IntArray
    texts: pa.Array
    annotators: IntArray
    votes: NDArray[np.int8]
    rows: NDArray[np.int64]


def split_part(
    part: Part, numbers: IntArray, first_row: int, votes: NDArray[np.int8] | None, count: int
) -> list[Piece]:
    """Split a part by the hash of the items.

    Args:
        part: The part.
        numbers: Number of each of its annotators among those of all parts.
        first_row: Number of its first row over all parts.
        votes: Vote of each of its values, the last entry for a missing one; None where the values are votes.
        count: Number of pieces.
    """
    cast = part.values.astype(np.int8) if votes is None else votes[part.values]
    home = (text_hashes(part.item_texts) % np.uint64(count)).astype(np.intp)
    code = np.zeros(len(home), np.int32)
    of_rows = home[part.items]
    order = np.argsort(of_rows, kind="stable")
    ends = np.searchsorted(of_rows[order], np.arange(count + 1))
    pieces = []
    for number in range(count):
        mine = np.flatnonzero(home == number)
        code[mine] = np.arange(len(mine), dtype=np.int32)
        rows = order[ends[number] : ends[number + 1]]
        texts = part.item_texts.take(pa.array(mine))
        pieces.append(
            Piece(code[part.items[rows]], texts, numbers[part.annotators[rows]], cast[rows], first_row + rows)
        )
    return pieces


@dataclass(frozen=True, eq=False)
class Findings:
    """What was found while the votes of a block were cleaned.

    Attributes:
        abstentions: Number of empty votes.
        silent: First row and id of each item without a vote.
        equal: Pairs of item and annotator with the same vote again: how many, and first and second row of the first.
        conflicting: The same of pairs with different votes.
        examples: Of the first of these: rows, votes, item and annotator.
    """

    abstentions: int
    silent: tuple[tuple[int, str], ...]
    equal: tuple[int, tuple[int, int]]
    conflicting: tuple[int, tuple[int, int]]
    examples: tuple[tuple[tuple[int, int], tuple[int, int], str, int], ...]


@dataclass(frozen=True, eq=False)
class Block:
    """All votes on some items, by item; annotators are numbered over all blocks.

    Attributes:
        votes: The votes; an annotator of the whole study may have none of them.
        rows: Row of each vote in the source, shape (V,).
        first_rows: First row of each item in the source, shape (I,).
        findings: What was found while they were cleaned.
    """

    votes: VoteTable
    rows: NDArray[np.int64]
    first_rows: NDArray[np.int64]
    findings: Findings

    @property
    def starts(self) -> NDArray[np.int64]:
        """Position of each item's first vote, and the number of votes, shape (I + 1,)."""
        counts = np.bincount(self.votes.item_codes, minlength=self.votes.n_items)
        return np.concatenate([[0], np.cumsum(counts)])


def build_block(pieces: Sequence[Piece], n_annotators: int, rule: DuplicateRule, kind: str | None) -> Block:
    """Put the pieces of all parts together: leave out abstentions, resolve repeats, sort by item."""
    together = pa.chunked_array([piece.texts for piece in pieces], pa.large_string()).combine_chunks()
    coded = together.dictionary_encode()
    offsets = np.cumsum([0, *(len(piece.texts) for piece in pieces)])
    numbers = coded.indices.to_numpy()
    items = np.concatenate([numbers[piece.items + first] for piece, first in zip(pieces, offsets, strict=False)])
    annotators, votes, rows = (
        np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("annotators", "votes", "rows")
    )
    n_items = len(coded.dictionary)
    first_rows = np.full(n_items, np.iinfo(np.int64).max)
    np.minimum.at(first_rows, items, rows)
    cast = votes != MISSING_VOTE
    items, annotators, votes, rows = items[cast], annotators[cast], votes[cast], rows[cast]
    heard = np.bincount(items, minlength=n_items) > 0
    texts = coded.dictionary
    repeats = find_repeats(items, annotators, votes) if len(items) else None
    findings = Findings(
        int((~cast).sum()),
        tuple((int(first_rows[item]), texts[int(item)].as_py()) for item in np.flatnonzero(~heard)),
        *_repeated(repeats, items, annotators, votes, rows, texts),
    )
    weights = None
    if repeats is not None:
        resolution = resolve_repeats(repeats, len(items), rule)
        keep, weights = resolution.keep, resolution.weights
        items, annotators, votes, rows = items[keep], annotators[keep], votes[keep], rows[keep]
    items = (np.cumsum(heard) - 1)[items]
    order = np.argsort(items, kind="stable")
    table = VoteTable(
        items[order].astype(np.int32),
        annotators[order].astype(np.int32),
        votes[order],
        as_index(texts.filter(pa.array(heard)), kind),
        _numbers(n_annotators),
        None if weights is None else weights[order],
    )
    return Block(table, rows[order], first_rows[heard], findings)


def _numbers(count: int) -> Any:
    """Return an index that stands for the ids of all annotators, which the client has."""
    return pd.RangeIndex(count)


def _repeated(
    repeats: Repeats | None, items: IntArray, annotators: IntArray, votes: NDArray[np.int8], rows: Any, texts: pa.Array
) -> tuple[Any, Any, Any]:
    """Return `equal`, `conflicting` and `examples` of `Findings`."""
    if repeats is None:
        return (0, (0, 0)), (0, (0, 0)), ()
    counted = []
    for which in (~repeats.conflicting, repeats.conflicting):
        first = repeats.starts[which][:1]
        at = rows[repeats.rows[first[0] : first[0] + 2]].tolist() if len(first) else (0, 0)
        counted.append((int(which.sum()), tuple(at)))
    examples = []
    for group in np.flatnonzero(repeats.conflicting)[:SHOWN_CONFLICTS]:
        pair = first_conflict(repeats, int(group), votes)
        where, said = tuple(int(rows[row]) for row in pair), tuple(int(votes[row]) for row in pair)
        examples.append((where, said, texts[int(items[pair[0]])].as_py(), int(annotators[pair[0]])))
    return counted[0], counted[1], tuple(examples)


def recoded(block: Block, numbers: IntArray, n_annotators: int) -> Block:
    """Return the block with annotators renumbered, those without a vote left out."""
    votes = replace(
        block.votes,
        annotator_codes=numbers[block.votes.annotator_codes],
        annotator_ids=_numbers(n_annotators),
    )
    return replace(block, votes=votes)
