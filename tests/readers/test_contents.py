"""Packed files, archives, folders and limits."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sqlite3
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest

from softgold.errors import InputError
from softgold.readers import read_experts, read_export, read_scores, read_votes

CSV = b"item,annotator,vote\nb,z,1\na,y,0\nb,y,1\n"
FRAME = [["b", "z", 1], ["a", "y", 0], ["b", "y", 1]]


def zipped(*names: str, data: bytes = CSV) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(CSV)
        archive.addfile(entry, io.BytesIO(CSV))
    return buffer.getvalue()


def zstandard(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


PACKED: dict[str, bytes] = {
    "gzip": gzip.compress(CSV, mtime=0),
    "bzip2": bz2.compress(CSV),
    "xz": lzma.compress(CSV),
    "zip": zipped("votes.csv"),
    "zip with what a Mac adds": zipped("votes.csv", "__MACOSX/._votes.csv", ".DS_Store"),
    "tar.gz": tarred("folder/votes.csv"),
}


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("name", ["votes.csv", "votes", "votes.bin"])
def test_packed_tables_whatever_their_name(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKED[kind])
    assert read_votes(path).to_frame().values.tolist() == FRAME


def test_zstandard(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(CSV)
    assert read_votes(path).to_frame().values.tolist() == FRAME


@pytest.mark.parametrize("kind", PACKED)
def test_packed_standard_input(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(PACKED[kind]))))
    assert read_votes("-").to_frame().values.tolist() == FRAME


def test_an_archive_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "study.zip"
    path.write_bytes(zipped("votes.csv", "more.csv"))
    with pytest.raises(InputError, match=r"holds 2 files \('more.csv', 'votes.csv'"):
        read_votes(path)
    assert read_votes(f"{path}::votes.csv").n_votes == 3
    with pytest.raises(InputError, match=r"has no 'other.csv' in it; it has 'more.csv', 'votes.csv'"):
        read_votes(f"{path}::other.csv")


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda data: zipped("v.csv", data=data)])
def test_bombs_end_at_the_limit(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes(pack(CSV + b"b,x,1\n" * 1_000_000))
    with pytest.raises(InputError, match=r"unpacks to more than 100,000 bytes; .* --max-bytes \(max_bytes=\)"):
        read_votes(path, max_bytes=100_000)


@pytest.mark.parametrize("kind", PACKED)
def test_damaged_archives(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "votes"
    for end in range(0, len(PACKED[kind]), 5):
        path.write_bytes(PACKED[kind][:end])
        with pytest.raises(InputError) as caught:
            read_votes(path)
        assert "\n" not in str(caught.value)


def test_an_encrypted_zip(tmp_path: Path) -> None:
    data = bytearray(zipped("votes.csv"))
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + at] |= 1
    path = tmp_path / "votes.zip"
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="is an encrypted archive; unpack it first"):
        read_votes(path)


def test_file_names_that_are_not_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    Path(os.fsdecode(path)).write_bytes(b"item,annotator,vote\nx,a,perhaps\n")
    with pytest.raises(InputError) as caught:
        read_votes(os.fsdecode(path))
    assert r"caf\xe9.csv, row 1 (line 2)" in str(caught.value).encode("utf-8").decode()
    with pytest.raises(InputError, match=r"cannot read .*\\\\xe8"):
        read_votes(os.fsdecode(os.fsencode(tmp_path) + b"/\xe8.csv"))


@pytest.mark.parametrize(
    "data", [b'[{"item": "\\ud800", "annotator": "a", "vote": 1}]', b'[{"item": "\xe9", "annotator": "a", "vote": 1}]']
)
def test_text_that_is_half_a_character(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "votes.json"
    path.write_bytes(data)
    for read in (read_votes, read_export):
        with pytest.raises(InputError, match=r"not (valid )?UTF-8"):
            read(path)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "9" * 5000])
@pytest.mark.parametrize("column", ["item", "vote"])
def test_numbers_without_end(tmp_path: Path, number: str, column: str) -> None:
    path = tmp_path / "votes.json"
    cells = {"item": "1", "annotator": '"a"', "vote": "1"} | {column: number}
    path.write_text("[{" + ", ".join(f'"{name}": {cell}' for name, cell in cells.items()) + "}]")
    with pytest.raises(InputError, match=r"too many digits|larger than 64 bits"):
        read_votes(path)
    table = tmp_path / "scores.csv"
    table.write_text(f"item,net\nx,{number}\n")
    with pytest.raises(InputError, match="a score must be a finite number"):
        read_scores(table)
    frame = pd.DataFrame({"item": pd.Series([10**5000, 1], dtype=object), "annotator": "a", "vote": 1})
    with pytest.raises(InputError, match="too many digits"):
        read_votes(frame)


def test_scores_that_float64_does_not_hold(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match="row 2, column 'net': a score must be a number that float64 holds exactly, got '9007199254740993'",
    ):
        read_scores(pd.DataFrame({"item": ["x", "y"], "net": [1, 2**53 + 1]}))


JSON_TABLES = {
    "lines": '{"task": "b", "worker": "z", "label": "yes"}\n{"task": "a", "worker": "y", "label": "no"}\n\n'
    '{"worker": "y", "task": "b", "label": true, "more": {"x": 1}}\n',
    "array": '[{"item": "b", "user": "z", "vote": 1}, {"item": "a", "user": "y", "vote": 0},\n'
    '{"item": "b", "user": "y", "vote": 1}]',
}


@pytest.mark.parametrize("kind", JSON_TABLES)
@pytest.mark.parametrize("name", ["votes.jsonl", "votes.csv"])
def test_json_as_a_table(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(JSON_TABLES[kind])
    assert read_votes(path).to_frame().values.tolist() == FRAME


def test_json_tables_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    path.write_text('{"item": "b", "worker": "z", "label": 1}\n{"item": ["b"], "worker": "y", "label": 1}\n')
    with pytest.raises(InputError, match="column 'item', row 2: a cell must be text or a number"):
        read_votes(path)
    path.write_text('{"item": "b", "worker": "z", "label": 1}\n{"item": \n')
    with pytest.raises(InputError, match=r"votes.jsonl, line [23]: not valid JSON"):
        read_votes(path)
    path.write_text("[" * 100_000)
    with pytest.raises(InputError):
        read_votes(path)


def test_json_values_longer_than_a_piece_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "votes.json"
    records = [{"item": f"i{number}", "worker": "a", "label": 1, "text": "ä" * 700_000} for number in range(5)]
    path.write_text(pd.Series(records).to_json(orient="values", force_ascii=False), encoding="utf-8")
    assert read_votes(path).item_ids.tolist() == [f"i{number}" for number in range(5)]


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "the votes" (item INTEGER, worker TEXT, label INTEGER)')
        connection.executemany('INSERT INTO "the votes" VALUES (?, ?, ?)', [(7, "z", 1), (8, "y", 0)])
    connection.close()
    votes = read_votes(path)
    assert votes.to_frame().values.tolist() == [[7, "z", 1], [8, "y", 0]]
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (item INTEGER)")
    connection.close()
    with pytest.raises(InputError, match=r"has 2 tables; choose one as .*study.db::TABLE: 'the votes', 'other'"):
        read_votes(path)
    assert read_votes(f"{path}::the votes").n_votes == 2
    with pytest.raises(InputError, match="has no table 'none'"):
        read_votes(f"{path}::none")
    with pytest.raises(InputError, match=r"study.db::other has no rows|has no annotator column"):
        read_votes(f"{path}::other")
    path.write_bytes(path.read_bytes()[:5000].replace(b"the votes", b"\xff" * 9))
    with pytest.raises(InputError):
        read_votes(path)


def test_duckdb(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "study.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE votes AS SELECT * FROM (VALUES (7, 'z', true), (8, 'y', false)) t(item, worker, label)"
        )
    assert read_votes(path).to_frame().values.tolist() == [[7, "z", 1], [8, "y", 0]]
    assert read_votes(f"{path}::votes").n_votes == 2
    with pytest.raises(InputError, match="has no table 'none'; its tables: 'votes'"):
        read_votes(f"{path}::none")


def test_excel(tmp_path: Path) -> None:
    path = tmp_path / "votes.xlsx"
    frame = pd.DataFrame({"item": [7, 8, 8], "worker": ["z", "y", "z"], "label": ["Yes", "no", None]})
    frame.to_excel(path, index=False)
    votes = read_votes(path)
    assert votes.to_frame().values.tolist() == [[7, "z", 1], [8, "y", 0]]
    assert votes.n_abstentions == 1
    with pd.ExcelWriter(path) as writer:
        frame.to_excel(writer, sheet_name="votes", index=False)
        pd.DataFrame({"item": [7], "label": [1]}).to_excel(writer, sheet_name="experts", index=False)
    with pytest.raises(InputError, match=r"has 2 sheets with cells; choose one as .*::SHEET: 'votes', 'experts'"):
        read_votes(path)
    assert read_experts(f"{path}::experts").labels.tolist() == [1]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"cannot be read as an Excel file|not a whole zip archive"):
        read_votes(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    with pytest.raises(InputError, match=r"is an old Excel file \(.xls\); save it as .xlsx or CSV"):
        read_votes(path)
