"""Vote tables in several files, or in one that is larger than memory, read some rows at a time."""

from __future__ import annotations

import csv
import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from softgold.errors import InputError
from softgold.readers.base import Source, display_name, shorten
from softgold.readers.columns import ANNOTATOR, ITEM, VOTE, find_column, find_task, listed
from softgold.readers.contents import Member, open_content
from softgold.readers.parquet import ParquetSource, check_codes, coded_texts, not_parquet, open_parquet
from softgold.readers.text import BLOCK_BYTES, BYTE_ORDER_MARK, TextSource

TABLE_SUFFIXES = (".parquet", ".pq", ".csv", ".tsv", ".txt")
PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
PARQUET = b"PAR1"
ROW_BYTES = 24  # of a row of text, for the size of a block
PACKED = 5  # times that packed text grows when it is unpacked, for an estimate
NO_LIMIT = 2**62


def find_files(source: str) -> tuple[Path, ...]:
    """Return the files of a path, a folder or a pattern, sorted by name; empty for what is none of these.

    Raises:
        InputError: A pattern matches nothing, or a folder has something else than tables in it.
    """
    path = Path(source)
    if path.is_file():
        return (path,)
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
        return tuple(found) if found and all(_is_table(file) for file in found) else ()
    if not glob.has_magic(source):
        return ()
    matches = sorted(file for name in glob.iglob(source, recursive=True) if (file := Path(name)).is_file())  # noqa: PTH207
    if not matches:
        raise InputError(f"no file matches {shorten(source, 300)}")
    return tuple(matches)


def _is_table(path: Path) -> bool:
    name = path.name.lower()
    for suffix in PACKED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.endswith(TABLE_SUFFIXES)


def estimate_votes(paths: Sequence[Path]) -> int:
    """Return about how many rows files have: what Parquet says of itself, and a guess from the size of text."""
    return sum(_estimate(path) for path in paths)


def _estimate(path: Path) -> int:
    try:
        with path.open("rb") as file:
            if file.read(4) == PARQUET:
                return int(arrow_parquet.ParquetFile(path).metadata.num_rows)
        size = path.stat().st_size
    except (OSError, pa.ArrowException):
        return 0  # whoever reads the file will say what is wrong with it
    return size * (PACKED if path.suffix.lower() in PACKED_SUFFIXES else 1) // ROW_BYTES


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows of one file: the columns item, annotator and vote, and where the rows are.

    Attributes:
        source: What names file, row and column in an error; rows counted within the batch.
        positions: Positions of the three columns.
        columns: Their cells.
    """

    source: Source
    positions: tuple[int, int, int]
    columns: tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray] = field(repr=False)


@dataclass(frozen=True)
class RowsOfFile:
    """Rows of a file, from `first` on."""

    name: str
    columns: tuple[str, ...]
    first: int

    def load(self, positions: Sequence[int]) -> list[pa.ChunkedArray]:
        """The cells came with the rows."""
        raise NotImplementedError

    def where(self, row: int) -> str:
        """Say which row it is, counted from 1."""
        return f"row {self.first + row + 1}"


@dataclass(frozen=True)
class TextBlock(TextSource):
    """Some lines of a text file, after its header.

    Attributes:
        rows_before: Rows of the file before the block.
        lines_before: Lines of the file before the block, without the header that the block begins with.
    """

    rows_before: int = 0
    lines_before: int = 0

    def where(self, row: int) -> str:
        """Say which row of the file it is, counted from 1 after the header, and which line."""
        try:
            line = next(islice(self._records(), row + 1, None))[1]
        except (StopIteration, csv.Error, UnicodeDecodeError):
            return f"row {self.rows_before + row + 1}"
        return f"row {self.rows_before + row + 1} (line {self.lines_before + line})"


@dataclass(frozen=True)
class VoteFiles:
    """Files that hold one long table together.

    Attributes:
        name: What to call the whole.
        paths: The files, in the order of their rows.
        given: Names of the columns item, annotator and vote, where the caller gave them.
    """

    name: str
    paths: tuple[Path, ...]
    given: tuple[str | None, str | None, str | None] = (None, None, None)

    def batches(self, rows: int) -> Iterator[Batch]:
        """Give the rows of all files in order, up to `rows` at a time.

        Raises:
            InputError: A file cannot be read, or has other columns than the first.
        """
        expected: tuple[str, ...] | None = None
        for path in self.paths:
            content = open_content(path, NO_LIMIT)
            if content.several:
                raise InputError(f"{content.name} is an archive; unpack it to fit votes that are larger than memory")
            member = content.members[0]
            names = None
            for batch in self._of_member(member, rows):
                if names is None:
                    names = tuple(batch.source.columns[at] for at in batch.positions)
                    expected = expected or names
                    self._check_columns(batch.source, names, expected)
                yield batch

    def _of_member(self, member: Member, rows: int) -> Iterator[Batch]:
        if member.head.startswith(PARQUET) or member.name.lower().endswith((".parquet", ".pq")):
            return self._parquet(member, rows)
        return self._text(member, rows)

    def _positions(self, source: Source) -> tuple[int, int, int]:
        item = find_column(source, ITEM, self.given[0])
        if find_task(source, item) is not None:
            raise InputError(
                f"{source.name} has a column 'task': votes on several questions are fitted in memory only; give the "
                "rows of one question, without that column"
            )
        return item, find_column(source, ANNOTATOR, self.given[1]), find_column(source, VOTE, self.given[2])

    def _check_columns(self, source: Source, names: tuple[str, ...], expected: tuple[str, ...]) -> None:
        if names != expected:
            raise InputError(
                f"{source.name} has the columns {listed(names)} where {display_name(self.paths[0])} has "
                f"{listed(expected)}; all files of a table need the same columns"
            )

    def _parquet(self, member: Member, rows: int) -> Iterator[Batch]:
        whole = ParquetSource.of(member)
        try:
            positions = self._positions(whole)
        except InputError:
            if member.path == self.paths[0]:
                raise
            raise self._other_columns(member, whole.columns) from None
        names = [whole.columns[at] for at in positions]
        first = 0
        try:
            texts = coded_texts(whole.origin, names[:2])
            with open_parquet(whole.origin, texts) as file:
                for found in file.iter_batches(batch_size=rows, columns=names):
                    check_codes(found)
                    source = RowsOfFile(whole.name, whole.columns, first)
                    cells = [pa.chunked_array([found.column(name)]) for name in names]
                    yield Batch(source, positions, (cells[0], cells[1], cells[2]))
                    first += found.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise not_parquet(whole.name, error) from None

    def _other_columns(self, member: Member, columns: tuple[str, ...]) -> InputError:
        return InputError(
            f"{member.display} has the columns {listed(columns)}, and not those of {display_name(self.paths[0])}; "
            "all files of a table need the same columns"
        )

    def _text(self, member: Member, rows: int) -> Iterator[Batch]:
        for block in _text_blocks(member, rows * ROW_BYTES):
            try:
                positions = self._positions(block)
            except InputError:
                if member.path == self.paths[0] or block.rows_before:
                    raise
                raise self._other_columns(member, block.columns) from None
            cells = block.load(positions)
            yield Batch(block, positions, (cells[0], cells[1], cells[2]))


def _text_blocks(member: Member, size: int) -> Iterator[TextBlock]:
    """Give a text file in blocks of whole rows, each with the header in front."""
    with member.open() as stream:
        data = stream.read(size).removeprefix(BYTE_ORDER_MARK)
        first = TextSource.of(Member(member.name, member.display, lambda: _opened(data)))
        start = data.lstrip(b"\r\n")
        header = start[: _line_end(start)]
        rows = 0
        lines = data[: len(data) - len(start)].count(b"\n")
        data = start[len(header) :]
        while True:
            more = stream.read(size)
            cut = len(data) if not more else _last_row_end(data)
            if not cut and len(data) > BLOCK_BYTES:
                raise first.endless_row()
            if cut and data[:cut].strip():
                block = TextBlock(member.display, header + data[:cut], first.separator, rows, lines)
                yield block
                rows += _count_rows(data[:cut])
            lines += data.count(b"\n", 0, cut)
            data = data[cut:] + more
            if not more and not data:
                return


def _opened(data: bytes) -> object:
    import io

    return io.BytesIO(data)


def _line_end(data: bytes) -> int:
    """Return where the first line that no quote runs over ends, its end included."""
    at, quotes = 0, 0
    while (found := data.find(b"\n", at)) >= 0:
        quotes += data.count(b'"', at, found)
        if quotes % 2 == 0:
            return found + 1
        at = found + 1
    return len(data)


def _last_row_end(data: bytes) -> int:
    """Return where the last row ends that is whole; 0 where there is none."""
    end, quotes = len(data), data.count(b'"')
    while (found := data.rfind(b"\n", 0, end)) >= 0:
        quotes -= data.count(b'"', found, end)
        if quotes % 2 == 0:
            return found + 1
        end = found
    return 0


def _count_rows(data: bytes) -> int:
    """Return the number of rows that are not blank."""
    if b'"' not in data and b"\n\n" not in data and b"\r\n\r\n" not in data:
        return data.strip(b"\r\n").count(b"\n") + 1
    text = data.decode("utf-8", "replace").splitlines(keepends=True)
    return sum(1 for cells in csv.reader(text) if cells)
