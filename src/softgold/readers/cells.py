"""From cells to numbers: ids to codes, votes to 0 and 1, ratings and scores to floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import Source, cell_error, shorten
from softgold.tables.ids import first_repeat

FloatArray = NDArray[np.float64]

TEXT = pa.large_string()  # the type that pandas holds text in
MISSING_VOTE = -1
UNKNOWN_VOTE = -2
# A longer one is a quote left open, or a document pasted into a cell.
LONGEST_ID = 10_000
IDS_AT_ONCE = 100_000
MISSING_ID, BLANK_ID = "the id is missing", "the id is blank"
HUGE_ID = f"the id has more than {LONGEST_ID} characters; is a quote left open?"
ABSENT = frozenset({"", "na", "<na>", "nan", "null"})
SPELLINGS = {
    **dict.fromkeys(("1", "1.0", "1,0", "true", "t", "yes", "y", "positive", "present", "accept"), 1),
    **dict.fromkeys(("0", "0.0", "0,0", "false", "f", "no", "n", "negative", "absent", "reject"), 0),
    **dict.fromkeys(ABSENT, MISSING_VOTE),
}


@dataclass(frozen=True, eq=False)
class CodedIds:
    """A column of ids: the code of each row, shape (n,), and the text of each code in order of first appearance.

    `kind` is "int64" or "uint64" where the column held whole numbers, which go back into frames as such; `warning`
    says where they were written as floats.
    """

    codes: NDArray[np.int32]
    texts: pa.Array
    kind: str | None = None
    warning: str | None = None

    def index(self) -> pd.Index[str]:
        """Return the texts as an index."""
        return as_index(self.texts, self.kind)


def as_index(texts: pa.Array, kind: str | None = None) -> pd.Index[str]:
    """Return Arrow text as an index, without a Python object for each entry; see `softgold.tables.ids`."""
    index: pd.Index[str] = pd.Index(texts.to_pandas(), dtype="str", name=kind)
    return index


@dataclass(frozen=True, eq=False)
class _Dictionary:
    """A column as codes into distinct values; -1 is a missing value.

    `by_appearance` says that each value is used and that they are in the order of first appearance.
    """

    codes: NDArray[np.int32]
    values: pa.Array
    by_appearance: bool = False


def code_ids(source: Source, column: int, cells: pa.ChunkedArray) -> CodedIds:
    """Return codes and texts of a column of ids; an id that is missing, blank or huge is an error."""
    whole = _whole_numbers(cells)
    encoded = _encode_text(source, column, cells if whole is None else whole)
    absent = encoded.codes < 0
    if absent.any():
        raise cell_error(source, int(np.argmax(absent)), column, MISSING_ID)
    blank = pc.equal(pc.utf8_trim_whitespace(encoded.values), "").to_numpy(zero_copy_only=False)
    _refuse_ids(source, column, encoded, blank, BLANK_ID)
    huge = pc.greater(pc.utf8_length(encoded.values), LONGEST_ID).to_numpy(zero_copy_only=False)
    _refuse_ids(source, column, encoded, huge, HUGE_ID)
    coded = CodedIds(encoded.codes, encoded.values) if encoded.by_appearance else _by_appearance(encoded)
    kind, warning = _kind(source, column, cells, whole)
    return replace(coded, kind=kind, warning=warning)


def read_unique_ids(source: Source, column: int, cells: pa.ChunkedArray) -> tuple[pd.Index[str], str | None]:
    """Return a column of ids of which each is there once, and a warning as in `CodedIds`; others are an error.

    No table of the ids is built, so that millions of them take little more than their text.
    """
    whole = _whole_numbers(cells)
    texts = _column_text(source, column, cells if whole is None else whole)
    first = 0
    for chunk in texts.chunks:
        for start in range(0, len(chunk), IDS_AT_ONCE):
            some = chunk.slice(start, IDS_AT_ONCE)
            _refuse_rows(source, column, some.is_null(), first + start, MISSING_ID)
            _refuse_rows(source, column, pc.equal(pc.utf8_trim_whitespace(some), ""), first + start, BLANK_ID)
            _refuse_rows(source, column, pc.greater(pc.utf8_length(some), LONGEST_ID), first + start, HUGE_ID)
        first += len(chunk)
    row = first_repeat(texts)
    if row is not None:
        raise cell_error(source, row, column, f"the item {shorten(texts[row])} is duplicated")
    kind, warning = _kind(source, column, cells, whole)
    return as_index(texts, kind), warning


def _column_text(source: Source, column: int, cells: pa.ChunkedArray) -> pa.ChunkedArray:
    coded = pa.types.is_dictionary(cells.type)
    try:
        parts = (chunk.dictionary_decode() if coded else chunk for chunk in cells.chunks)
        return pa.chunked_array([_as_text(part) for part in parts], TEXT)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _not_text(source, column, cells) from None


def _refuse_rows(source: Source, column: int, bad: pa.Array, first: int, message: str) -> None:
    if pc.any(bad).as_py():
        raise cell_error(source, first + int(np.argmax(bad.to_numpy(zero_copy_only=False))), column, message)


def _kind(
    source: Source, column: int, cells: pa.ChunkedArray, whole: pa.ChunkedArray | None
) -> tuple[str | None, str | None]:
    """Return the kind of a column of ids, and the warning; see `CodedIds`."""
    if whole is None:
        return _whole_kind(cells.type), None
    name = shorten(source.columns[column])
    warning = f"{source.name}, column {name}: the ids are floats, and are read as the whole numbers that they are"
    return "int64", warning


def _whole_kind(kind: pa.DataType) -> str | None:
    if not pa.types.is_integer(kind):
        return None
    return "uint64" if kind == pa.uint64() else "int64"


def _whole_numbers(cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return floats that are all whole numbers as such, or None: pandas makes floats of integers beside a gap."""
    if not pa.types.is_floating(cells.type) or cells.null_count:
        return None
    try:
        return cells.cast(pa.int64())  # fails on a fraction, and on what float64 does not hold exactly
    except pa.ArrowInvalid:
        return None


def _refuse_ids(source: Source, column: int, ids: _Dictionary, bad: NDArray[np.bool_], message: str) -> None:
    # A value may be in the dictionary and in no row, as the unused categories of a frame are.
    rows = bad[ids.codes] if bad.any() else bad[:0]
    if rows.any():
        raise cell_error(source, int(np.argmax(rows)), column, message)


def _by_appearance(ids: _Dictionary) -> CodedIds:
    first_row = np.full(len(ids.values), -1, dtype=np.int64)
    # Of several assignments to one place the last one stays, which is the first row when rows go backwards.
    first_row[ids.codes[::-1]] = np.arange(len(ids.codes))[::-1]
    used = np.flatnonzero(first_row >= 0)
    order = used[np.argsort(first_row[used], kind="stable")]
    new_code = np.empty(len(ids.values), dtype=np.int32)
    new_code[order] = np.arange(len(order), dtype=np.int32)
    return CodedIds(new_code[ids.codes], ids.values.take(pa.array(order)))


def python_cells(source: Source, column: int, cells: pa.ChunkedArray) -> list[Any]:
    """Return the cells as Python values; bytes that a file calls text and that are not UTF-8 are an error."""
    try:
        values: list[Any] = cells.to_pylist()
    except UnicodeDecodeError:
        raise InputError(
            f"{source.name}, column {shorten(source.columns[column])}: has text that is not UTF-8"
        ) from None
    return values


def code_categories(
    source: Source, column: int, cells: pa.ChunkedArray, categories: dict[str, int]
) -> NDArray[np.int64]:
    """Return the code of each cell's text, -1 for an empty one; new texts are added to `categories`."""
    texts = ("" if cell is None else str(cell).strip() for cell in python_cells(source, column, cells))
    codes = (-1 if text.lower() in ABSENT else categories.setdefault(text, len(categories)) for text in texts)
    return np.fromiter(codes, dtype=np.int64, count=len(cells))


def code_votes(source: Source, column: int, cells: pa.ChunkedArray, positive: str | None = None) -> NDArray[np.int8]:
    """Return 0, 1, or `MISSING_VOTE` for each row; any other spelling is an error.

    With `positive` that value is 1 and every other one 0.
    """
    if positive is None and pa.types.is_integer(cells.type) and cells.null_count == 0:
        numbers: NDArray[np.int64] = cells.to_numpy()
        bad = (numbers != 0) & (numbers != 1)
        if bad.any():
            raise _vote_error(source, column, bad, numbers, np.unique(numbers).tolist())
        return numbers.astype(np.int8)
    encoded = _encode_text(source, column, cells)
    texts = encoded.values.to_pylist()
    if positive is None:
        coded = [_spelt(text) for text in texts]
    else:
        coded = votes_of_values(source.name, source.columns[column], texts, positive)
    votes = np.array([*coded, MISSING_VOTE], dtype=np.int8)[encoded.codes]  # code -1 takes the last entry
    if (votes == UNKNOWN_VOTE).any():
        raise _vote_error(source, column, votes == UNKNOWN_VOTE, np.array([*texts, ""])[encoded.codes], texts)
    return votes


def _spelt(text: str) -> int:
    return SPELLINGS.get(text.strip().lower(), UNKNOWN_VOTE)


def votes_of_values(source: str, column: str, texts: list[str], positive: str) -> list[int]:
    """Return the vote that each value is, one value against the rest; errors name the source and its column."""
    wanted = positive.strip()
    matches = [text.strip() == wanted for text in texts]
    if not any(matches):
        matches = [text.strip().casefold() == wanted.casefold() for text in texts]
    if not any(matches):
        raise InputError(
            f"{source}, column {shorten(column)}: no vote is {shorten(positive)}, as --positive (positive=) has it; "
            f"{_values_there(texts)}"
        )
    absent = [text.strip().lower() in ABSENT for text in texts]
    return [int(hit) if hit or not gap else MISSING_VOTE for hit, gap in zip(matches, absent, strict=True)]


def code_values(source: Source, column: int, cells: pa.ChunkedArray) -> tuple[NDArray[np.int32], list[str]]:
    """Return the code of each cell, -1 for a missing one, and the text of each code."""
    encoded = _encode_text(source, column, cells)
    return encoded.codes, encoded.values.to_pylist()


def _vote_error(
    source: Source, column: int, bad: NDArray[np.bool_], values: NDArray[np.generic], there: Sequence[object]
) -> InputError:
    row = int(np.argmax(bad))
    return cell_error(
        source,
        row,
        column,
        "a vote must be 0 or 1, true or false, yes or no, positive or negative, present or absent, or empty; got "
        f"{shorten(values[row])}; if one value counts as 1 and the others as 0, name it with --positive (positive=): "
        f"{_values_there(there)}",
    )


def _values_there(values: Sequence[object], limit: int = 8) -> str:
    names = [shorten(value) for value in values if str(value).strip().lower() not in ABSENT]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"the values are {', '.join(names[:limit])}{more}"


def parse_numbers(source: Source, column: int, cells: pa.ChunkedArray, noun: str) -> FloatArray:
    """Return float64 with NaN for an empty cell; text that is no number, and infinities, are errors."""
    if _is_number(cells.type):
        numbers = _as_floats(source, column, cells, noun)
    else:
        encoded = _encode_text(source, column, cells)
        comma = getattr(source, "separator", ",") != ","  # only such a table can have a comma within a number
        parsed = np.array([_parse(text, comma) for text in encoded.values.to_pylist()] + [np.nan])
        numbers = parsed[encoded.codes]
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise cell_error(source, row, column, f"{noun} must be a finite number, got {shorten(cells[row])}")
    return numbers


def _as_floats(source: Source, column: int, cells: pa.ChunkedArray, noun: str) -> FloatArray:
    try:
        floats = cells.cast(pa.float64()) if not pa.types.is_float16(cells.type) else cells
    except pa.ArrowInvalid:
        values = cells.to_pylist()
        row = next(row for row, value in enumerate(values) if value is not None and int(float(value)) != value)
        raise cell_error(
            source, row, column, f"{noun} must be a number that float64 holds exactly, got {shorten(values[row])}"
        ) from None
    numbers: FloatArray = (floats.fill_null(np.nan) if floats.null_count else floats).to_numpy()
    return numbers.astype(np.float64, copy=False)


def _parse(text: str, comma: bool) -> float:
    stripped = text.strip()
    if comma and stripped.count(",") == 1 and "." not in stripped:
        stripped = stripped.replace(",", ".")
    if stripped.lower() in ABSENT:
        return np.nan
    try:
        # float() also accepts 1_000, which is no number in a table; inf marks what is refused.
        return float(stripped) if "_" not in stripped else np.inf
    except ValueError:
        return np.inf


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _encode_text(source: Source, column: int, cells: pa.ChunkedArray) -> _Dictionary:
    """Encode a column as codes into distinct texts, converting only the distinct values."""
    coded_before = pa.types.is_dictionary(cells.type)
    try:
        # Chunks that are encoded here share one dictionary.
        encoded = cells.unify_dictionaries() if coded_before else pc.dictionary_encode(cells)
        indices = pa.chunked_array([chunk.indices for chunk in encoded.chunks], encoded.type.index_type)
        codes = indices.cast(pa.int32()).fill_null(-1).to_numpy()
        texts = _as_text(encoded.chunk(0).dictionary)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _not_text(source, column, cells) from None
    if coded_before or texts.null_count:
        return _made_distinct(codes, texts)
    return _Dictionary(codes, texts, by_appearance=True)


def _not_text(source: Source, column: int, cells: pa.ChunkedArray) -> InputError:
    return InputError(
        f"{source.name}, column {source.columns[column]!r}: cells must be text or numbers, not {cells.type}"
    )


def _made_distinct(codes: NDArray[np.int32], texts: pa.Array) -> _Dictionary:
    """Give equal texts one code, and missing ones none: a dictionary made elsewhere may have either."""
    distinct = texts.dictionary_encode()
    if len(distinct.dictionary) == len(texts):
        return _Dictionary(codes, texts)
    to_distinct = np.append(distinct.indices.fill_null(-1).to_numpy(zero_copy_only=False), -1).astype(np.int32)
    return _Dictionary(to_distinct[codes], distinct.dictionary)


def _as_text(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = values.to_pylist()
        return pa.array([None if value is None or np.isnan(value) else str(value) for value in numbers], TEXT)
    if _is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return values.cast(TEXT)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        texts = values.cast(TEXT)
        texts.validate(full=True)  # a file may call bytes text that are no UTF-8
        return texts
    raise pa.ArrowNotImplementedError(str(kind))
