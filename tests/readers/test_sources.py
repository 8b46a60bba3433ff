"""Every kind of source gives the same table."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from softgold.errors import InputError, UsageError
from softgold.output import write_table
from softgold.readers import read_votes

FRAME = pd.DataFrame({"item": ["b", "a", "b"], "annotator": ["z", "y", "y"], "vote": [1, 0, 1]})


def assert_is_the_frame(source: object) -> None:
    votes = read_votes(source)
    assert votes.item_ids.tolist() == ["b", "a"]
    assert votes.annotator_ids.tolist() == ["z", "y"]
    assert votes.item_codes.tolist() == [0, 1, 0]
    assert votes.annotator_codes.tolist() == [0, 1, 1]
    assert votes.votes.tolist() == [1, 0, 1]
    assert (votes.item_codes.dtype, votes.votes.dtype) == (np.int32, np.int8)
    assert votes.item_ids.dtype == pd.Index(["b"], dtype="str").dtype


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".CSV"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"votes.of.2024{suffix}"
    write_table(FRAME, path)
    assert_is_the_frame(path)
    assert_is_the_frame(str(path))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"votes{suffix}"
    write_table(FRAME, path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    assert_is_the_frame("-")


def test_standard_input_is_named_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(InputError, match="standard input is empty"):
        read_votes("-")


def test_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("item,annotator,vote\nb,z,1\na,y,0\nb,y,1\n"))
    writer.start()
    assert_is_the_frame(pipe)
    writer.join()


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.astype("object"),
        FRAME.astype({"item": "category", "annotator": "category", "vote": "category"}),
        FRAME.astype({"item": "string", "vote": "Int64"}),
        FRAME.astype({"vote": bool}),
        FRAME.astype({"vote": float}),
        FRAME.astype({"vote": "uint8"}),
        FRAME.assign(vote=[True, "no", 1]),
        FRAME.assign(vote=["Yes", "0", "positive"]),
        FRAME.set_index(["item", "annotator"]),
        FRAME.set_index(pd.Index([5, 5, 5])),
        FRAME.rename(columns={"item": "Task", "annotator": "worker", "vote": "label"}),
        FRAME.astype(pd.ArrowDtype(pa.large_string())),
    ],
    ids=lambda frame: str(list(frame.dtypes))[:60],
)
def test_frames(frame: pd.DataFrame) -> None:
    assert_is_the_frame(frame)


def test_a_frame_is_not_changed_and_not_shared() -> None:
    frame = FRAME.copy()
    votes = read_votes(frame)
    frame.loc[0, "vote"] = 0
    assert votes.votes.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        votes.votes[0] = 0


@pytest.mark.parametrize(
    ("ids", "texts"),
    [
        ([7, -1, 7], ["7", "-1"]),
        (np.array([2**63 + 1, 0, 0], dtype=np.uint64), ["9223372036854775809", "0"]),
        ([1.0, 0.5, 1e20], ["1.0", "0.5", "1e+20"]),
        ([1, "1.0", "1"], ["1", "1.0"]),
        (pd.Categorical(["b", "a", "b"], categories=["unused", "a", "b"]), ["b", "a"]),
        ([True, False, True], ["true", "false"]),
        ([Decimal("1.10"), Decimal("1.1"), Decimal("2.00")], ["1.10", "2.00"]),
    ],
)
def test_ids_of_frames_become_text(ids: object, texts: list[str]) -> None:
    votes = read_votes(pd.DataFrame({"item": ids, "annotator": ["x", "y", "z"], "vote": 1}))
    assert votes.item_ids.tolist() == texts


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_ids_of_frames(missing: object) -> None:
    frame = pd.DataFrame({"item": ["x", missing], "annotator": "a", "vote": 1})
    with pytest.raises(InputError, match=r"^the data frame, row 2, column 'item': the id is missing$"):
        read_votes(frame)
    numbers = pd.DataFrame({"item": [1.0, np.nan], "annotator": "a", "vote": 1})
    with pytest.raises(InputError, match="row 2, column 'item': the id is missing"):
        read_votes(numbers)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, ""])
def test_missing_votes_of_frames_are_abstentions(missing: object) -> None:
    frame = pd.DataFrame({"item": ["x", "x"], "annotator": ["a", "b"], "vote": pd.Series([1, missing], dtype=object)})
    assert read_votes(frame).n_abstentions == 1


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ([["a"], ["b"]], "cells must be text or numbers"),
        ([b"a", 1], "row 1, column 'item': \"b'a'\" is no text or number"),
        ([{"a": 1}, 2], "is no text or number"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "cells must be text or numbers, not timestamp"),
        (["\ud800", "b"], "no valid Unicode"),
        (["\ud800", 1], "no valid Unicode"),
    ],
)
def test_cells_of_other_kinds(item: object, said: str) -> None:
    frame = pd.DataFrame({"item": pd.Series(item, dtype=None if isinstance(item, pd.Index) else object)})
    with pytest.raises(InputError, match=said):
        read_votes(frame.assign(annotator="a", vote=1))


@pytest.mark.parametrize("vote", [2, 0.5, -1, np.inf, "maybe", 10**30])
def test_unknown_votes_of_frames(vote: object) -> None:
    frame = pd.DataFrame({"item": ["x", "y"], "annotator": "a", "vote": [1, vote]})
    with pytest.raises(InputError, match=r"^the data frame, row 2, column 'vote': a vote must be"):
        read_votes(frame)


def test_frames_without_rows_or_columns() -> None:
    with pytest.raises(InputError, match="the data frame has no rows"):
        read_votes(FRAME.iloc[:0])
    with pytest.raises(InputError, match="has no item column"):
        read_votes(pd.DataFrame())


@pytest.mark.parametrize("source", [None, 3, [FRAME], FRAME.to_dict()])
def test_no_table_at_all(source: object) -> None:
    with pytest.raises(UsageError, match="a table must be a path, '-' or a data frame"):
        read_votes(source)


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"row_group_size": 2}, {"compression": "gzip"}])
def test_parquet_in_its_varieties(tmp_path: Path, options: dict[str, object]) -> None:
    table = pa.table(
        {
            "unused": pa.array([[1], [2], [3]]),
            "item": pa.array(["b", "a", "b"]),
            "annotator": pa.array([b"z", b"y", b"y"], pa.binary()),
            "vote": pa.array([1, 0, 1], pa.int8()),
        }
    )
    pq.write_table(table, tmp_path / "votes.parquet", **options)
    assert_is_the_frame(tmp_path / "votes.parquet")


def test_parquet_errors_name_the_row(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    write_table(FRAME.assign(vote=[1, 0, 3]), path)
    with pytest.raises(InputError, match=r"votes.parquet, row 3, column 'vote': .* got '3'"):
        read_votes(path)
    write_table(FRAME.assign(item=["b", None, "b"]), path, force=True)
    with pytest.raises(InputError, match=r"votes.parquet, row 2, column 'item': the id is missing"):
        read_votes(path)
    write_table(FRAME.iloc[:0], path, force=True)
    with pytest.raises(InputError, match=r"votes.parquet has no rows"):
        read_votes(path)


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "item=9"
    folder.mkdir()
    write_table(FRAME, folder / "votes.parquet")
    assert_is_the_frame(folder / "votes.parquet")


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    write_table(FRAME, path)
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_votes(path)


@pytest.mark.slow
def test_reading_imports_no_torch() -> None:
    script = (
        "import sys, softgold; softgold.read_votes; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_parquet_with_text_that_is_no_utf8(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1, 2, 3], dtype=np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xffb")])
    path = tmp_path / "votes.parquet"
    pq.write_table(pa.table({"item": broken, "annotator": ["x", "y", "z"], "vote": [1, 0, 1]}), path)
    with pytest.raises(InputError, match=r"votes.parquet, column 'item': cells must be text or numbers"):
        read_votes(path)
