"""From a source to blocks of votes on the workers of a cluster, read and cleaned as `read_votes` does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import InputError, SoftgoldError
from softgold.readers.base import Source, display_name
from softgold.readers.cells import MISSING_VOTE, as_index, votes_of_values
from softgold.readers.longform import SHOWN_CONFLICTS, conflict_error, conflict_sentence, repeat_notes, silent_warning
from softgold.readers.repeats import DuplicateRule
from softgold.scale.block_study import BlockStudy, block_stats
from softgold.scale.cluster import Cluster, Future
from softgold.scale.parts import (
    Block,
    FilePart,
    Findings,
    Names,
    build_block,
    code_part,
    open_origin,
    part_header,
    recoded,
    split_part,
)

BLOCK_VOTES = 2**21


@dataclass(frozen=True)
class Origin:
    """A part of the source: what is read, and what it is called."""

    rows: FilePart | Future
    name: str


@dataclass(frozen=True)
class Reading:
    """How votes are read; see `read_votes`."""

    name: str
    columns: Names = (None, None, None)
    positive: str | None = None
    duplicates: DuplicateRule = "error"


def load_blocks(cluster: Cluster, origins: Sequence[Origin], reading: Reading) -> BlockStudy:
    """Read all parts on the workers, number the annotators, and have every item's votes brought together."""
    parts = [cluster.call(code_part, origin.rows, origin.name, reading.columns, reading.positive) for origin in origins]
    headers = cluster.results([cluster.call(part_header, part) for part in parts])
    for origin, header in zip(origins, headers, strict=True):
        if isinstance(header, SoftgoldError):
            raise _as_given(header, origin)
    sizes = [header[0] for header in headers]
    if not sum(sizes):
        raise InputError(f"{reading.name} has no rows")
    numbers: dict[str, int] = {}
    codes = [np.array([numbers.setdefault(text, len(numbers)) for text in header[1]], np.int32) for header in headers]
    lookups = _lookups(reading, origins, headers)
    count = -(-max(cluster.n_threads, -(-sum(sizes) // BLOCK_VOTES)) // cluster.n_threads) * cluster.n_threads
    starts = np.cumsum([0, *sizes])
    pieces = [
        cluster.call(split_part, part, code, int(first), lookup, count)
        for part, code, first, lookup in zip(parts, codes, starts, lookups, strict=False)
    ]
    kinds = [_common([header[3][side] for header in headers if header[0]]) for side in (0, 1)]
    blocks = [
        cluster.call(
            build_block,
            [cluster.call(_entry, piece, number) for piece in pieces],
            len(numbers),
            reading.duplicates,
            kinds[0],
        )
        for number in range(count)
    ]
    where = _Places(cluster, origins, starts)
    notes = tuple(dict.fromkeys(note for header in headers for note in header[4]))
    return _cleaned(cluster, blocks, list(numbers), kinds[1], reading, where, notes)


def _as_given(error: SoftgoldError, origin: Origin) -> SoftgoldError:
    """Return the error with the file named as the caller named it, not as the workers find it."""
    if not isinstance(origin.rows, FilePart):
        return error
    return type(error)(str(error).replace(display_name(origin.rows.path), origin.name))


def _entry(values: Sequence[Any], number: int) -> Any:
    return values[number]


def _common(kinds: Sequence[str | None]) -> str | None:
    return kinds[0] if len(set(kinds)) == 1 else None


def _lookups(reading: Reading, origins: Sequence[Origin], headers: Sequence[Any]) -> Sequence[NDArray[np.int8] | None]:
    """Return the vote of each value of each part, where one value is named as positive."""
    if reading.positive is None:
        return [None] * len(headers)
    texts = list(dict.fromkeys(text for header in headers for text in header[2]))
    coded = votes_of_values(reading.name, reading.columns[2] or "vote", texts, reading.positive)
    votes = dict(zip(texts, coded, strict=True))
    return [np.array([*(votes[text] for text in header[2]), MISSING_VOTE], np.int8) for header in headers]


@dataclass(frozen=True)
class _Places:
    """Says where a row is, counted over all parts."""

    cluster: Cluster
    origins: Sequence[Origin]
    starts: NDArray[np.int64]

    def __call__(self, row: int) -> str:
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        origin = self.origins[number]
        call = self.cluster.call(_place, origin.rows, origin.name, int(row - self.starts[number]))
        place = str(self.cluster.results([call])[0])
        return place if len({origin.name for origin in self.origins}) == 1 else f"{origin.name}, {place}"


def _place(rows: FilePart | pd.DataFrame, name: str, row: int) -> str:
    source: Source = open_origin(rows, name)
    return source.where(row)


def _cleaned(
    cluster: Cluster,
    blocks: Sequence[Future],
    names: Sequence[str],
    kind: str | None,
    reading: Reading,
    where: Callable[[int], str],
    notes: tuple[str, ...],
) -> BlockStudy:
    """Raise or note what the blocks found, and leave out annotators without a vote."""
    found = cluster.results([cluster.call(_findings, block) for block in blocks])
    cast = sum(used for _, used in found)
    findings = [one for one, _ in found]
    if not cast.any():
        raise InputError(f"{reading.name} has no votes: every vote is empty")
    _refuse_conflicts(findings, names, reading, where)
    equal, conflicting = (
        _first_of([getattr(one, side) for one in findings], where) for side in ("equal", "conflicting")
    )
    about_repeats, repeat_warnings = repeat_notes(equal, conflicting, reading.duplicates, "vote")
    silent = [text for _, text in sorted(pair for one in findings for pair in one.silent)]
    about_silent = (silent_warning(silent, "vote"),) if silent else ()
    used = cast > 0
    if not used.all():
        code = cluster.keep((np.cumsum(used) - 1).astype(np.int32))
        blocks = [cluster.call(recoded, block, code, int(used.sum())) for block in blocks]
    return BlockStudy(
        cluster,
        tuple(blocks),
        as_index(_texts([name for name, there in zip(names, used, strict=True) if there]), kind),
        tuple(cluster.results([cluster.call(block_stats, block) for block in blocks])),
        sum(one.abstentions for one in findings),
        tuple(silent),
        tuple(name for name, there in zip(names, used, strict=True) if not there),
        (*notes, *about_repeats, *about_silent),
        (*notes, *repeat_warnings, *about_silent),
    )


def _texts(names: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.array(names, pa.large_string())


def _findings(block: Block) -> tuple[Findings, NDArray[np.int64]]:
    return block.findings, np.bincount(block.votes.annotator_codes, minlength=block.votes.n_annotators)


def _first_of(sides: Sequence[tuple[int, tuple[int, int]]], where: Callable[[int], str]) -> tuple[int, str]:
    """Return how many repeats there are in all blocks, and where the first of them is."""
    there = [side for side in sides if side[0]]
    if not there:
        return 0, ""
    return sum(count for count, _ in there), where(min(rows for _, rows in there)[1])


def _refuse_conflicts(
    findings: Sequence[Findings], names: Sequence[str], reading: Reading, where: Callable[[int], str]
) -> None:
    count = sum(one.conflicting[0] for one in findings)
    if not count or reading.duplicates != "error":
        return
    first = sorted(example for one in findings for example in one.examples)[:SHOWN_CONFLICTS]
    sentences = [
        conflict_sentence(item, names[who], [(vote, where(row)) for vote, row in zip(votes, rows, strict=True)])
        for rows, votes, item, who in first
    ]
    raise conflict_error(reading.name, sentences, count, "vote")
