"""Atomic writes: the target holds the old content or the new one."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgold.errors import OutputError
from softgold.output import (
    atomic_directory,
    atomic_file,
    atomic_files,
    check_target,
    excel_safe,
    json_text,
    new_folder,
    reading,
    system,
    tables,
    update_directory,
    write_json,
    write_table,
)
from softgold.readers import read_votes
from softgold.tables.text import EVERY_DIGIT


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

    monkeypatch.setattr(os, "fsync", full)
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
    monkeypatch.setattr(os, "access", lambda *_: False)
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


def test_a_directory_keeps_its_mode(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with atomic_directory(tmp_path / "run", force=True) as folder:
            fill(folder, text)
        (tmp_path / "run").chmod(0o750)
    with update_directory(tmp_path / "run", ["a.csv"]) as folder:
        (folder / "a.csv").write_text("a")
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o750


def test_an_interrupted_swap_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "run"
    with atomic_directory(target) as folder:
        fill(folder, "old")
    monkeypatch.setattr(system, "_system_call", lambda: None)  # a system that cannot exchange two names
    replace = Path.replace

    def interrupted(self: Path, to: Path) -> Path:
        if to == target:
            monkeypatch.setattr(Path, "replace", replace)
            raise KeyboardInterrupt
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_directory(target, force=True) as folder:
        fill(folder, "new")
    assert (target / "run.json").read_text() == "new"
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


def stray(folder: Path, owner: str, name: str = "run") -> Path:
    """Run a process that is killed while it writes, or that stays at work, and return its temporary."""
    script = f"""
import os, sys, time
from softgold.output import atomic_directory
with atomic_directory(sys.argv[1]) as folder:
    (folder / "half.csv").write_text("half")
    print(folder, flush=True)
    if "{owner}" == "dead":
        os.kill(os.getpid(), 9)
    sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    path = Path(process.stdout.readline().decode().strip())
    if owner == "dead":
        process.wait()
    PROCESSES.append(process)
    return path


PROCESSES: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def _end_processes() -> Iterator[None]:
    yield
    while PROCESSES:
        process = PROCESSES.pop()
        process.kill()
        process.communicate()


def test_the_next_writer_removes_what_dead_processes_left_and_nothing_else(tmp_path: Path) -> None:
    dead, living = stray(tmp_path, "dead"), stray(tmp_path, "living", "other")
    (tmp_path / ".softgold-notes").write_text("mine")
    elsewhere = dead.with_name(dead.name.replace(dead.name[10:18], "00000000"))
    elsewhere.mkdir()  # as another host would name it
    write_json(1, tmp_path / "a.json")
    assert not dead.exists()
    assert living.is_dir()
    assert elsewhere.is_dir()
    assert (tmp_path / ".softgold-notes").exists()


@pytest.mark.slow
def test_two_writers_of_one_directory_never_let_it_vanish(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from typing import Any
from softgold.output import atomic_directory, update_directory
for _ in range(100):
    with atomic_directory(sys.argv[1], force=True) as folder:
        for name in ("run.json", "a", "b"):
            (folder / name).write_text(sys.argv[2])
"""
    target = tmp_path / "run"
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(target), text], stderr=subprocess.PIPE)
        for text in ("one", "two")
    ]
    while not target.exists():
        time.sleep(0.01)
    seen = 0
    while any(writer.poll() is None for writer in writers):
        with reading(target):
            assert len({(target / name).read_text() for name in ("run.json", "a", "b")}) == 1
        assert (target / "run.json").exists()
        seen += 1
    assert [writer.communicate()[1] for writer in writers] == [b"", b""]
    assert seen > 10
    assert names(tmp_path) == ["run"]


@pytest.mark.slow
def test_updates_of_one_run_by_several_processes_are_all_kept(tmp_path: Path) -> None:
    script = """
import sys
from softgold.output import update_directory, write_json
name = sys.argv[2]
for n in range(40):
    if n % 2:
        write_json(n, f"{sys.argv[1]}/{name}-single.json", force=True)
        continue
    with update_directory(sys.argv[1], [f"{name}1", f"{name}2"], force=True) as folder:
        for k in "12":
            (folder / f"{name}{k}").write_text(str(n))
"""
    target = tmp_path / "run"
    with atomic_directory(target) as folder:
        fill(folder, "old")
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(target), name], stderr=subprocess.PIPE) for name in "abc"
    ]
    assert [writer.communicate()[1] for writer in writers] == [b"", b"", b""]
    assert all((target / f"{name}{k}").read_text() == "38" for name in "abc" for k in "12")
    assert all((target / f"{name}-single.json").read_text() == "39\n" for name in "abc")
    assert len(names(target)) == 10
    assert names(tmp_path) == ["run"]


def test_an_update_of_a_run_that_was_replaced_meanwhile_is_refused(tmp_path: Path) -> None:
    def replace(text: str) -> None:
        with atomic_directory(tmp_path / "run", force=True) as folder:
            fill(folder, text)

    replace("old")
    with (
        pytest.raises(OutputError, match="replaced by another process"),
        update_directory(tmp_path / "run", ["labels.csv"]) as folder,
    ):
        (folder / "labels.csv").write_text("of the old run")
        replace("new")
    assert names(tmp_path / "run") == ["run.json"]


def test_the_working_directory_is_updated_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "old")
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    with update_directory(".", ["labels.csv"]) as folder:
        (folder / "labels.csv").write_text("a")
    assert tmp_path.stat().st_ino == before
    assert names(Path()) == ["labels.csv", "run.json"]


def test_reading_waits_for_a_writer_and_writing_for_a_reader(tmp_path: Path) -> None:
    fill(tmp_path, "old")
    order = []

    def write() -> None:
        write_json("new", tmp_path / "a.json")
        with update_directory(tmp_path, ["b.json"]) as folder:
            (folder / "b.json").write_text("b")
        order.append("written")

    with reading(tmp_path):
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.1)
        order.append("read")
    writer.join()
    assert order == ["read", "written"]
    with (
        pytest.raises(RuntimeError, match="being read"),
        reading(tmp_path),
        update_directory(tmp_path, ["c"]) as folder,
    ):
        (folder / "c").write_text("")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "softgold journal 1", "renames": 7, "folders": []}'])
def test_a_journal_that_is_not_ours_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / ".softgold-journal").write_text(text)
    with atomic_files([tmp_path / "a", tmp_path / "b"]) as paths:
        for path in paths:
            path.write_text("new")
    assert names(tmp_path) == ["a", "b"]


def test_a_hostile_journal_renames_nothing_of_ours(tmp_path: Path) -> None:
    for folder in ("mine", "theirs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "secret").write_text(folder)
    renames = [["../mine/secret", "secret"], ["secret", "../mine/secret"], ["secret", "stolen"]]
    for pair in renames:
        record = {"format": "softgold journal 1", "renames": [pair], "folders": ["."]}
        (tmp_path / "theirs" / ".softgold-journal").write_text(json.dumps(record))
        write_json(1, tmp_path / "theirs" / "a.json", force=True)
    assert (tmp_path / "mine" / "secret").read_text() == "mine"
    assert (tmp_path / "theirs" / "secret").read_text() == "theirs"


def test_a_journal_that_would_block_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".softgold-journal")
    write_json(1, tmp_path / "a.json")
    assert (tmp_path / "a.json").exists()


def test_files_in_several_folders_are_replaced_together(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    targets = [tmp_path / "sheet.csv", tmp_path / "keys" / "key.csv"]
    with atomic_files(targets) as paths:
        for path in paths:
            write_table(pd.DataFrame({"item": [1]}), path)
        assert names(tmp_path / "keys") != ["key.csv"]
    assert [target.read_text() for target in targets] == ["item\n1\n"] * 2
    with pytest.raises(OutputError, match="--force"), atomic_files(targets):
        pass
    with pytest.raises(ValueError, match="stop"), atomic_files(targets, force=True) as paths:
        paths[0].write_text("half")
        raise ValueError("stop")
    assert [target.read_text() for target in targets] == ["item\n1\n"] * 2
    assert names(tmp_path) == ["keys", "sheet.csv"]


def test_a_full_disk_inside_a_directory_names_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "detail: errno 28 at /some/.softgold-temporary")

    monkeypatch.setattr(tables, "table_text", full)
    target = tmp_path / "run"
    with pytest.raises(OutputError) as caught, atomic_directory(target) as folder:
        write_table(pd.DataFrame({"item": [1]}), folder / "labels.csv")
    assert str(caught.value) == f"cannot write {target}/labels.csv: No space left on device"


def test_long_names_in_any_alphabet_can_be_written(tmp_path: Path) -> None:
    name = "é" * 120 + ".csv"
    write_table(pd.DataFrame({"item": [1]}), tmp_path / name)
    assert names(tmp_path) == [name]


def test_formulas_are_made_inert_for_spreadsheets_only() -> None:
    frame = pd.DataFrame({"item": ["=1+1", "@x", "+1", "-2", "\tx", "scan"], "p": [-1.0] * 6})
    safe = excel_safe(frame)
    assert safe["item"].tolist() == ["'=1+1", "'@x", "'+1", "'-2", "'\tx", "scan"]
    assert safe["p"].tolist() == [-1.0] * 6
    assert frame["item"].iloc[0] == "=1+1"


def test_text_that_is_not_unicode_is_a_sentence(tmp_path: Path) -> None:
    frame = pd.DataFrame({"item": pd.Series(["a", "b\ud800"], dtype="object")})
    for name in ("t.csv", "t.parquet", "t.tsv.gz"):
        with pytest.raises(OutputError, match="not valid Unicode"):
            write_table(frame, tmp_path / name)
    assert names(tmp_path) == []
    write_json({"source": "\udcff"}, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == {"source": "\udcff"}


def test_tables_read_back_equal(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).random(200)
    frame = pd.DataFrame({"item": [f"i{n}" for n in range(200)], "p": numbers, "b_mean": np.nan})
    write_table(frame, tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_bytes()
    assert b"\r" not in text
    assert text.startswith(b"item,p,b_mean\ni0,")
    assert text.splitlines()[1].endswith(b",")
    again = pd.read_csv(tmp_path / "t.csv", **EVERY_DIGIT)
    assert (again["p"].to_numpy() == numbers).all()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet"])
def test_what_is_written_can_be_read(tmp_path: Path, suffix: str) -> None:
    ids = ["007", "=HYPERLINK(1)", 'a "quoted" one', "two\nlines", "a\rreturn", "comma, tab\t", "ünï", "NA"]
    frame = pd.DataFrame({"item": ids, "annotator": "ann", "vote": [0, 1] * 4})
    path = tmp_path / f"votes{suffix}"
    write_table(frame, path)
    assert read_votes(path).to_frame().equals(frame.astype({"vote": "int8"}))


def test_compressed_tables_have_the_same_bytes_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"item": ["x"]})
    write_table(frame, tmp_path / "a.csv.gz")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 100)  # which gzip would store
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


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@pytest.mark.slow
@given(JSON_VALUES)
def test_json_is_that_of_pythons_own_writer(value: Any) -> None:
    expected = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    assert json_text(value) == expected.encode("utf-8", "backslashreplace").decode("utf-8")


def test_a_full_disk_leaves_no_folder_and_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "deep" / "results"
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError) as caught, new_folder(target), update_directory(target, ["a.json"]) as folder:
        write_json({}, folder / "a.json")
    assert str(caught.value) == f"cannot write {target}/a.json: No space left on device"
    assert list(tmp_path.iterdir()) == []
