"""Small files that decode to much: each is refused before it takes the memory."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as arrow_parquet
import pytest

from softgold.errors import InputError
from softgold.readers import read_votes
from softgold.readers.text import BLOCK_BYTES
from softgold.scale.files import VoteFiles

MOST = 2_000_000
ROWS = 200_000


def repeated(text: str, rows: int = ROWS) -> pa.Table:
    """Return votes whose ids are one text throughout."""
    ids = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    people = pa.array([str(row) for row in range(rows)])
    return pa.table({"item": ids, "annotator": people, "vote": pa.array(np.ones(rows, np.int8))})


def test_rows_of_parquet_count_decoded(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    arrow_parquet.write_table(repeated("x"), path)
    with pytest.raises(InputError, match=r"votes\.parquet decodes to more than 2,000,000 bytes; .*--max-bytes"):
        read_votes(path, max_bytes=MOST)
    assert read_votes(path, max_bytes=20 * MOST).n_votes == ROWS


def test_a_text_of_parquet_that_is_repeated_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    arrow_parquet.write_table(repeated("x" * 9000, 20_000), path, store_schema=False)
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    assert read_votes(path).n_votes == 20_000
    assert pool.max_memory() - before < 100_000_000  # 180 MB if each row had its own


def test_values_of_parquet_that_repeat_prefixes_are_counted_while_they_are_decoded(tmp_path: Path) -> None:
    items = ["x" * 9000 + str(row) for row in range(3000)]
    table = pa.table({"item": items, "annotator": ["a"] * 3000, "vote": [1] * 3000})
    path = tmp_path / "votes.parquet"
    arrow_parquet.write_table(table, path, use_dictionary=False, column_encoding={"item": "DELTA_BYTE_ARRAY"})
    with pytest.raises(InputError, match="decodes to more than 2,000,000 bytes"):
        read_votes(path, max_bytes=MOST)
    assert read_votes(path).n_items == 3000
    assert sum(len(batch.columns[0]) for batch in VoteFiles("votes", (path,)).batches(1000)) == 3000


def test_cells_that_sqlite_makes_up_are_counted(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "votes.db")) as base:
        base.execute("CREATE TABLE votes (item, annotator, vote, more AS (hex(zeroblob(10000))))")
        base.executemany("INSERT INTO votes VALUES (?, 'a', 1)", [(row,) for row in range(500)])
        base.commit()
    with pytest.raises(InputError, match=r"votes\.db unpacks to more than 2,000,000 bytes"):
        read_votes(tmp_path / "votes.db", max_bytes=MOST)
    with pytest.raises(InputError, match="too big"):
        read_votes(tmp_path / "votes.db", max_bytes=1000)
    assert read_votes(tmp_path / "votes.db").n_votes == 500


def test_rows_of_duckdb_are_counted(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "votes.duckdb")) as base:
        base.execute(f"CREATE TABLE votes AS SELECT range AS item, 'a' AS annotator, 1 AS vote FROM range({ROWS})")
    with pytest.raises(InputError, match=r"votes\.duckdb unpacks to more than 2,000,000 bytes"):
        read_votes(tmp_path / "votes.duckdb", max_bytes=MOST)
    assert read_votes(tmp_path / "votes.duckdb").n_votes == ROWS


def test_a_shared_text_of_a_workbook_counts_wherever_it_is(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("item", "annotator", "vote"), *((n, "x" * 30_000, 1) for n in range(100))]:
        book.active.append(row)
    book.save(tmp_path / "votes.xlsx")
    with pytest.raises(InputError, match=r"votes\.xlsx unpacks to more than 2,000,000 bytes"):
        read_votes(tmp_path / "votes.xlsx", max_bytes=MOST)


@pytest.mark.parametrize("outer", ["tar", "zip"])
def test_an_archive_in_an_archive_is_refused(tmp_path: Path, outer: str) -> None:
    inner, path = io.BytesIO(), tmp_path / f"votes.{outer}"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("votes.csv", "item,annotator,vote\nx,a,1\n")
    if outer == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner.zip", inner.getvalue())
    else:
        with tarfile.open(path, "w") as archive:
            entry = tarfile.TarInfo("inner.zip")
            entry.size = len(inner.getvalue())
            archive.addfile(entry, io.BytesIO(inner.getvalue()))
    with pytest.raises(InputError, match=r"inner\.zip is an archive and not a table; unpack it first"):
        read_votes(path)


HEADER = b"item,annotator,vote\n"


@pytest.mark.parametrize(
    ("start", "streamed"),
    [(b"", "the header cannot be read"), (HEADER + b"x,a,1\n", "16,777,216"), (HEADER + b'"x,a,1\n', "16,777,216")],
)
def test_a_line_without_end_is_refused(tmp_path: Path, start: bytes, streamed: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes(start + b"x" * (2 * BLOCK_BYTES + 10))
    with pytest.raises(InputError, match="has a row of more than 16,777,216 bytes; is a quote left open"):
        read_votes(path)
    with pytest.raises(InputError, match=streamed):
        list(VoteFiles("votes.csv", (path,)).batches(100_000))


@pytest.mark.slow
def test_a_quote_left_open_before_many_lines_is_found_soon(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes(HEADER + b'"x,a,1\n' + b"x,a,1\n" * (BLOCK_BYTES // 3))
    with pytest.raises(InputError, match="is a quote left open"):
        list(VoteFiles("votes.csv", (path,)).batches(1_000_000))
