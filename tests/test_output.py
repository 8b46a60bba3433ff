"""Output is there whole or not at all."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softgold import output
from softgold.errors import OutputError
from softgold.output import (
    atomic_directory,
    atomic_file,
    check_target,
    json_text,
    update_directory,
    write_json,
    write_table,
)
from softgold.readers import read_votes


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(folder: Path, text: str) -> None:
    (folder / "run.json").write_text(text)


def test_a_file_appears_when_the_block_ends_well(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
        assert not (tmp_path / "a.txt").exists()
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "new"


def test_an_existing_file_needs_force_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o640)
    with pytest.raises(OutputError, match="--force"), atomic_file(target):
        pass
    with atomic_file(target, force=True) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with pytest.raises(OutputError, match="exists already"), atomic_file(target) as temporary:
        temporary.write_text("ours")
        target.write_text("theirs")
    assert target.read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_interrupted_block_leaves_nothing_and_the_old_file(tmp_path: Path, stop: type[BaseException]) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(stop), atomic_file(target, force=True) as temporary:
        temporary.write_text("half")
        raise stop
    assert names(tmp_path) == ["a.txt"]
    assert target.read_text() == "old"


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic_file(tmp_path / "link.txt", force=True) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    # A limit on the size of files fails just where a full disk does: in the middle of a write.
    script = """
import resource, signal, sys
import pandas as pd
from softgold.output import write_table
from softgold.errors import OutputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_table(pd.DataFrame({"item": range(10_000)}), sys.argv[1], force=True)
except OutputError as error:
    print(error)
"""
    target = tmp_path / "table.csv"
    target.write_text("old")
    done = subprocess.run([sys.executable, "-c", script, str(target)], capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write {target}: File too large\n"
    assert names(tmp_path) == ["table.csv"]
    assert target.read_text() == "old"


def test_a_disk_that_fills_at_the_sync_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output.os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_json({"a": 1}, tmp_path / "a.json")
    with pytest.raises(OutputError, match="No space left"), atomic_directory(tmp_path / "run") as folder:
        fill(folder, "new")
    assert names(tmp_path) == []


def test_an_error_of_another_file_is_not_ours_to_explain(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "a.txt"):
        (tmp_path / "missing-input.csv").read_text()
    assert names(tmp_path) == []


def test_targets_that_cannot_be_written_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        check_target(tmp_path / "no" / "a.csv")
    with pytest.raises(OutputError, match="it is a folder"):
        check_target(tmp_path, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="it is a file"):
        check_target(tmp_path / "file", force=True, directory=True)
    with pytest.raises(OutputError, match="not a regular file"):
        check_target(os.devnull, force=True)
    monkeypatch.setattr(output.os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="not writable"):
        check_target(tmp_path / "a.csv")


def test_a_directory_appears_whole(tmp_path: Path) -> None:
    with atomic_directory(tmp_path / "run") as folder:
        fill(folder, "new")
        assert not (tmp_path / "run").exists()
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["run.json"]


def test_a_directory_is_replaced_with_force_only(tmp_path: Path) -> None:
    with atomic_directory(tmp_path / "run") as folder:
        fill(folder, "old")
        (folder / "stale.csv").write_text("")
    with pytest.raises(OutputError, match="--force"), atomic_directory(tmp_path / "run"):
        pass
    with atomic_directory(tmp_path / "run", force=True) as folder:
        fill(folder, "new")
    assert names(tmp_path / "run") == ["run.json"]
    assert names(tmp_path) == ["run"]


def test_a_directory_that_softgold_did_not_make_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("")
    with (
        pytest.raises(OutputError, match="did not make it"),
        atomic_directory(tmp_path / "photos", force=True),
    ):
        pass
    assert names(tmp_path / "photos") == ["cat.jpg"]
    (tmp_path / "empty").mkdir()
    with atomic_directory(tmp_path / "empty", force=True) as folder:
        fill(folder, "new")
    assert names(tmp_path / "empty") == ["run.json"]


def test_a_directory_without_its_marker_is_a_fault_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"run\.json"), atomic_directory(tmp_path / "run"):
        pass
    assert names(tmp_path) == []


def test_a_failed_swap_puts_the_old_directory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "run"
    with atomic_directory(target) as folder:
        fill(folder, "old")
    rename = Path.rename

    def interrupted(self: Path, to: Path) -> Path:
        if to == target and (self / "run.json").read_text() == "new":
            raise KeyboardInterrupt
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_directory(target, force=True) as folder:
        fill(folder, "new")
    assert (target / "run.json").read_text() == "old"
    assert names(tmp_path) == ["run"]


def test_files_are_added_to_a_directory_and_the_others_stay(tmp_path: Path) -> None:
    fill(tmp_path, "old")
    with update_directory(tmp_path, ["labels.csv", "calibration.json"]) as folder:
        (folder / "labels.csv").write_text("a")
        (folder / "calibration.json").write_text("b")
    assert names(tmp_path) == ["calibration.json", "labels.csv", "run.json"]
    with pytest.raises(OutputError, match="--force"), update_directory(tmp_path, ["labels.csv"]):
        pass
    with pytest.raises(ValueError, match="stop"), update_directory(tmp_path, ["labels.csv"], force=True) as folder:
        (folder / "labels.csv").write_text("half")
        raise ValueError("stop")
    assert (tmp_path / "labels.csv").read_text() == "a"
    assert names(tmp_path) == ["calibration.json", "labels.csv", "run.json"]
    with pytest.raises(OutputError, match="not a folder"), update_directory(tmp_path / "run.json", ["a"]):
        pass


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    script = """
import sys, time
from softgold.output import atomic_directory
with atomic_directory(sys.argv[1]) as folder:
    (folder / "half.csv").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "run")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(names(tmp_path)) == 1
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    assert names(tmp_path) == []


def test_tables_read_back_equal(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).random(200)
    frame = pd.DataFrame({"item": [f"i{n}" for n in range(200)], "p": numbers, "b_mean": np.nan})
    write_table(frame, tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_bytes()
    assert b"\r" not in text
    assert text.startswith(b"item,p,b_mean\ni0,")
    assert text.splitlines()[1].endswith(b",")
    again = pd.read_csv(tmp_path / "t.csv")
    assert (again["p"].to_numpy() == numbers).all()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet"])
def test_what_is_written_can_be_read(tmp_path: Path, suffix: str) -> None:
    ids = ["007", "=HYPERLINK(1)", 'a "quoted" one', "two\nlines", "a\rreturn", "comma, tab\t", "ünï", "NA"]
    frame = pd.DataFrame({"item": ids, "annotator": "ann", "vote": [0, 1] * 4})
    path = tmp_path / f"votes{suffix}"
    write_table(frame, path)
    assert read_votes(path).to_frame().equals(frame.astype({"vote": "int8"}))


def test_compressed_tables_have_the_same_bytes_each_time(tmp_path: Path) -> None:
    frame = pd.DataFrame({"item": ["x"]})
    write_table(frame, tmp_path / "a.csv.gz")
    time.sleep(1.1)  # gzip stores seconds
    write_table(frame, tmp_path / "b.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == b"item\nx\n"


def test_json_has_no_nan_and_keeps_text(tmp_path: Path) -> None:
    value = {"nan": np.nan, "inf": [np.inf, 1.5], "array": np.array([[1, 2]]), "flag": np.bool_(True), "text": "ünï"}
    write_json(value, tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"nan": None, "inf": [None, 1.5], "array": [[1, 2]], "flag": True, "text": "ünï"}
    assert "ünï" in text
    assert text == json_text(value)
    assert text.endswith("}\n")
