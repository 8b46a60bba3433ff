"""Delimited text (comma, semicolon, tab or bar): every cell is text, exactly as written."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.csv as arrow_csv

from softgold.errors import InputError
from softgold.readers.base import shorten
from softgold.readers.contents import Member
from softgold.readers.rows import find_separator

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Longer than any real row: a longer one contains others, after a quote that was never closed.
BLOCK_BYTES = 1 << 24
LONGEST_HEADER = 1 << 20
TEXT = pa.large_string()  # encoded by `cells`: Arrow would encode block by block, and then all blocks once more
FOREIGN = {
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


@dataclass(frozen=True)
class TextSource:
    """Delimited text in memory, with a header.

    Attributes:
        name: What to call it in an error.
        data: The bytes, UTF-8 with or without a byte-order mark.
        separator: What lies between two cells.
        columns: Names in the header.
    """

    name: str
    data: bytes = field(repr=False)
    separator: str
    columns: tuple[str, ...] = field(init=False)

    @classmethod
    def of(cls, member: Member) -> TextSource:
        """Read a file; its first line tells how cells are separated."""
        data = member.read()
        start = data[:LONGEST_HEADER].removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
        return cls(member.display, data, find_separator(re.split(rb"[\r\n]", start, maxsplit=1)[0].decode("latin-1")))

    def __post_init__(self) -> None:
        self._check_bytes()
        object.__setattr__(self, "columns", self._header())

    def _check_bytes(self) -> None:
        for magic, kind in FOREIGN.items():
            if self.data.startswith(magic):
                raise InputError(f"{self.name} is not delimited text: it looks like {kind}")
        if b"\0" in self.data:
            place = self.data.index(0)
            raise InputError(f"{self.name} is not delimited text: byte {place} is NUL; save UTF-16 text as UTF-8")
        body = self.data.removeprefix(BYTE_ORDER_MARK)
        if not body or body.isspace():  # strip() would copy the whole file
            raise InputError(f"{self.name} is empty; it needs a header and at least one row")

    def _header(self) -> tuple[str, ...]:
        if len(self.data) > BLOCK_BYTES and not re.search(rb"[\r\n]", self.data[:BLOCK_BYTES].lstrip(b"\r\n")):
            raise self.endless_row()
        try:
            return tuple(next(self._records())[0])
        except (UnicodeDecodeError, StopIteration):  # nothing but the start of a byte-order mark has no row
            raise self._encoding_error() from None
        except csv.Error as error:
            raise InputError(f"{self.name}: the header cannot be read: {error}") from None

    def _records(self) -> Iterator[tuple[list[str], int]]:
        """Give the rows that are not blank, header first, each with the number of its first line."""
        text = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=self.separator)
        lines_before = 0
        for cells in reader:
            if cells:
                yield cells, lines_before + 1
            lines_before = reader.line_num

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """Return the columns at these positions as text."""
        wanted = [str(position) for position in positions]
        try:
            table = self._parse(wanted)
        except pa.ArrowInvalid as error:
            raise self._parse_error(str(error)) from None
        if table.num_rows == 0:
            raise InputError(f"{self.name} has a header and no rows")
        return [table.column(name) for name in wanted]

    def _parse(self, wanted: Sequence[str], refused: list[arrow_csv.InvalidRow] | None = None) -> pa.Table:
        """Parse the wanted columns; with a list for refused rows, row by row, so that these have their numbers."""

        def refuse(row: arrow_csv.InvalidRow) -> str:
            (refused if refused is not None else []).append(row)
            return "error"

        data = self.data.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
        if not data.endswith(b"\n"):  # Arrow takes a header without a line end for a row that does not end
            data += b"\n"
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                block_size=BLOCK_BYTES,
                use_threads=refused is None,
                # Columns go by position, because names in a header may be empty or equal.
                column_names=[str(position) for position in range(len(self.columns))],
                skip_rows_after_names=1,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=b'"' in self.data,
                invalid_row_handler=None if refused is None else refuse,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, TEXT), include_columns=wanted, strings_can_be_null=False
            ),
        )

    def _parse_error(self, message: str) -> InputError:
        if "straddl" in message:
            return self.endless_row()
        if "UTF8" in message or not _is_utf8(self.data):
            return self._encoding_error()
        refused: list[arrow_csv.InvalidRow] = []
        with suppress(pa.ArrowInvalid):
            self._parse(["0"], refused)
        if not refused:
            return InputError(f"{self.name} cannot be read as delimited text: {shorten(message, 200)}")
        row = refused[0]
        # Arrow counts the rows that are not blank from 1, and the header is the first of them.
        return InputError(
            f"{self.name}, {self.where(row.number - 2)}: the row has {row.actual_columns} cells and the header "
            f"{row.expected_columns}: {shorten(row.text)}"
        )

    def endless_row(self) -> InputError:
        """Build the error for a row that is longer than any real one."""
        return InputError(f"{self.name} has a row of more than {BLOCK_BYTES:,} bytes; is a quote left open?")

    def _encoding_error(self) -> InputError:
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            value = self.data[error.start]
            return InputError(f"{self.name}, line {line}: byte 0x{value:02X} is not UTF-8 text; save the file as UTF-8")
        return InputError(f"{self.name} is not UTF-8 text; save the file as UTF-8")

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1 after the header, and which line of the file."""
        try:
            line = next(islice(self._records(), row + 1, None))[1]
        except (StopIteration, csv.Error, UnicodeDecodeError):
            return f"row {row + 1}"
        return f"row {row + 1} (line {line})"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
