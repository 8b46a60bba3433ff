"""Inputs without end, numbers without measure, links in a circle, and two updates at once: a sentence each."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import softgold.readers
from robustness.conftest import Server
from softgold.errors import InputError, OutputError, StorageError
from softgold.output import check_target, update_directory, write_tables
from softgold.planning import rounds
from softgold.readers import read_votes
from softgold.readers.contents import open_content
from softgold.runs import open_run

LIMITS = {"seconds": 60, "memory": 2 * 2**30}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("describe /dev/zero --max-bytes 1000000", "gives more than 1,000,000 bytes"),
        ("duplicates status /dev/zero", "not a regular file"),
        ("next fitted --budget 3 --max-per-item 99999999999999999999", "at most 20"),
        ("calibrate run --experts experts.csv --force --n-bootstrap 99999999999999", "at most 1,000,000"),
        ("evaluate run --scores scores.csv --force --n-bootstrap 99999999999999", "at most 1,000,000"),
        ("fit votes.csv -o circle --model mean", "leads back to itself"),
        ("sample-experts run -o circle", "leads back to itself"),
        ("import export.json -o twice.csv --gold-out twice.csv", "cannot be written to one file"),
        ("next fitted --forecast -o twice.csv --ambiguous twice.csv", "cannot be written to one file"),
    ],
)
def test_a_sentence_and_nothing_written(server: Server, copies: Callable[[], Path], line: str, words: str) -> None:
    folder = copies()
    (folder / "circle").symlink_to("circle")
    before = sorted(folder.iterdir())
    done = server.run(*line.split(), folder=folder, **LIMITS)
    assert done.code == 2, done.err
    assert words in done.err
    assert sorted(folder.iterdir()) == before


def test_a_workbook_is_held_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "votes.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/worksheets/sheet1.xml", "A" * 2_000_000)
    assert open_content(path, 1_000_000).members[0].limit == 1_000_000
    with pytest.raises(InputError, match="unpacks to more than 1,000,000 bytes"):
        read_votes(path, max_bytes=1_000_000)


def test_a_circle_of_links_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OutputError, match="leads back to itself"):
        check_target(tmp_path / "one")


def test_one_file_for_two_tables_is_refused(tmp_path: Path) -> None:
    table = pd.DataFrame({"item": ["x"]})
    with pytest.raises(OutputError, match="one file"):
        write_tables([(tmp_path / "a.csv", table), (tmp_path / "a.csv", table)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_second_of_two_updates_is_refused(copies: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copies()
    table = read_votes(folder / "more_votes.csv")
    fit = rounds.fit

    def fit_while_another_updates(*arguments: object, **options: object) -> object:
        monkeypatch.setattr(rounds, "fit", fit)
        rounds.update_run(folder / "fitted", table)
        return fit(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(rounds, "fit", fit_while_another_updates)
    with pytest.raises(OutputError, match="replaced by another process"):
        rounds.update_run(folder / "fitted", table)
    assert len(open_run(folder / "fitted").record.history) == 2


@pytest.mark.slow
def test_parts_of_a_run_that_was_replaced_are_not_mixed(server: Server, copies: Callable[[], Path]) -> None:
    folder = copies()
    run = open_run(folder / "fitted")
    assert run.record.model == "two-class"
    assert server.run(*["fit", "votes.csv", "-o", "fitted", "--model", "mean", "--force"], folder=folder).code == 0
    with pytest.raises(StorageError, match="replaced by another fit"):
        _ = run.fit


def test_junk_in_place_of_a_journal_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / ".softgold-journal").write_text("junk")
    with update_directory(tmp_path, ["a.txt"]) as folder:
        (folder / "a.txt").write_text("a")
    assert (tmp_path / "a.txt").read_text() == "a"


def test_nothing_is_imported_before_ctrl_c_is_met() -> None:
    code = "import sys; before = set(sys.modules); import softgold.cli; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) <= {"__future__", "softgold", "softgold.cli"}


LOST_INTERRUPT = """
import os, signal, sys
class Drop:
    def __del__(self):  # an exception is lost here, as in a callback of an import
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(9): pass
class Finder:
    def find_spec(self, name, *_):
        name == "softgold.cli.app" and Drop()
sys.meta_path.insert(0, Finder())
from softgold.cli import main
sys.exit(main(["--version"]))
"""


def test_ctrl_c_while_modules_are_imported_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", LOST_INTERRUPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["none", "no bytes"])
def test_votes_of_a_run_that_are_empty_are_a_sentence(server: Server, copies: Callable[[], Path], rows: str) -> None:
    folder = copies()
    path = folder / "fitted" / "votes.parquet"
    if rows == "none":
        pd.read_parquet(path).head(0).to_parquet(path)
    else:
        path.write_bytes(b"")
    for line in ("report fitted", "next fitted --budget 3", "update fitted more_votes.csv", "predict fitted votes.csv"):
        done = server.run(*line.split(), folder=folder, **LIMITS)
        assert done.code in ((2,) if "predict" not in line else (0, 2)), (line, done.err)
        assert "Traceback" not in done.err


INTERRUPTED_IMPORT = """
import runpy, signal, sys
class Finder:
    def find_spec(self, name, *_):
        name == "softgold.cli" and signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
runpy.run_module("softgold", run_name="__main__")
"""


def test_ctrl_c_before_the_command_line_is_there_is_silent() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "error",
    [
        OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),  # of Arrow
        RuntimeError("can't start new thread"),
        ImportError("libarrow.so: failed to map segment from shared object"),
    ],
)
def test_too_little_memory_for_threads_and_libraries_is_a_sentence(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def hungry(*_: object, **__: object) -> None:
        raise error

    (tmp_path / "votes.csv").write_text("item,annotator,vote\nx,a,1\n")
    monkeypatch.setattr(softgold.readers, "read_study", hungry)
    answer = cli("describe", tmp_path / "votes.csv")
    assert answer.code == 2
    assert answer.err == f"error: there is not enough memory for this ({error})\n"


def test_text_that_cannot_be_encoded_is_a_sentence(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(*_: object, **__: object) -> None:
        "a\ud800b".encode()

    (tmp_path / "votes.csv").write_text("item,annotator,vote\nx,a,1\n")
    monkeypatch.setattr(softgold.readers, "read_study", encode)
    answer = cli("describe", tmp_path / "votes.csv")
    assert answer.code == 2
    assert "is not valid Unicode" in answer.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["votes.csv", "votes.parquet"])
def test_a_file_is_not_blamed_for_too_little_memory(server: Server, template: Path, name: str) -> None:
    for megabytes in (8, 12, 16):  # enough for Python, too little for the stacks of Arrow's threads
        done = server.run("describe", name, folder=template, memory=megabytes * 2**20, seconds=60)
        assert done.code == 2, (megabytes, done.err)
        assert "there is not enough memory" in done.err


@pytest.mark.slow
def test_the_next_round_replaces_soft_labels_in_parquet_too(copies: Callable[[], Path]) -> None:
    folder = copies()
    run = folder / "fitted"
    pd.read_csv(run / "soft_labels.csv", dtype={"item": "str"}).to_parquet(run / "soft_labels.parquet")
    rounds.update_run(run, read_votes(folder / "more_votes.csv"))
    assert len(open_run(run).soft_labels) == open_run(run).votes.n_items
