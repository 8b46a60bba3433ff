"""A signal before every file-system event of every writing function: the target is old or new, never mixed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
Content = dict[str, str]

pytestmark = pytest.mark.slow

FILE = """
from softgold.output import atomic_file
with atomic_file("out.txt", force=True) as file:
    file.write_text("new")
"""
DIRECTORY = """
from pathlib import Path
from softgold.output import atomic_directory, write_json
with atomic_directory("run", force=True) as folder:
    write_json("new", folder / "run.json")
    (folder / "other.txt").write_text("new")
"""
UPDATE = """
from softgold.output import update_directory, write_json
with update_directory("run", ["a.json", "b.json"], force=True) as folder:
    write_json("new", folder / "a.json")
    write_json("new", folder / "b.json")
"""
NESTED = """
from softgold.output import update_directory, write_json
with update_directory("run", ["a.json", "maps/c.json"], force=True) as folder:
    (folder / "maps").mkdir()
    write_json("new", folder / "a.json")
    write_json("new", folder / "maps/c.json")
"""
FILES = """
from softgold.output import atomic_files, write_json
with atomic_files(["sheet.json", "keys/key.json"], force=True) as (sheet, key):
    write_json("new", sheet)
    write_json("new", key)
"""
COMPLETE = """
from softgold.output import write_json
for name in ("next.json", "keys/next.json", "run/next.json"):
    write_json("next", name, force=True)
"""


def make_file(folder: Path) -> None:
    (folder / "out.txt").write_text("old")


def make_run(folder: Path) -> None:
    (folder / "run" / "maps").mkdir(parents=True)
    for name in ("run.json", "a.json", "b.json", "maps/c.json"):
        (folder / "run" / name).write_text('"old"\n')


def make_folder(folder: Path) -> None:
    make_run(folder)
    (folder / "run" / "run.json").unlink()


def make_pair(folder: Path) -> None:
    (folder / "keys").mkdir()
    (folder / "sheet.json").write_text('"old"\n')
    (folder / "keys" / "key.json").write_text('"old"\n')


def content(folder: Path) -> Content:
    """Return the text of every file that is not a temporary of softgold."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "/.softgold-" not in str(path))
    return {str(path.relative_to(folder)): path.read_text() for path in paths if not path.name.startswith("next")}


def listing(folder: Path) -> dict[str, str | None]:
    """Return everything in a folder, temporaries and folders included, with the text of files."""
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else None for path in folder.rglob("*")}


def strays(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".softgold-")]


CASES = {
    "file": (FILE, make_file, "at once"),
    "directory": (DIRECTORY, make_run, "at once"),
    "directory, no exchange": (DIRECTORY, make_run, "next"),
    "update of a run": (UPDATE, make_run, "at once"),
    "update of a run, no exchange": (UPDATE, make_run, "next"),
    "update of two folders of a run": (NESTED, make_run, "at once"),
    "update of two folders of a run, no exchange": (NESTED, make_run, "next"),
    "update of a folder": (UPDATE, make_folder, "next"),
    "files in two folders": (FILES, make_pair, "next"),
}


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[Callable[[Path], None]], Path]:
    count = 0

    def make(fill: Callable[[Path], None]) -> Path:
        nonlocal count
        count += 1
        folder = tmp_path / f"case{count}"
        folder.mkdir()
        fill(folder)
        return folder

    return make


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", SIGNALS)
def test_the_target_is_old_or_new(light_server, fresh, name: str, number: signal.Signals) -> None:  # type: ignore[no-untyped-def]
    code, make, when = CASES[name]
    options = {"without_exchange": "no exchange" in name}
    whole = fresh(make)
    old, before = content(whole), listing(whole)
    done = light_server.python(code, folder=whole, **options)
    assert done.code == 0, done.err
    new = content(whole)
    assert new != old
    assert strays(whole) == []
    after = listing(whole)
    for event in range(done.events):
        folder = fresh(make)
        ended = light_server.python(code, folder=folder, signal=number, event=event, **options)
        assert ended.code != 0
        if when == "at once" or number != signal.SIGKILL:
            assert content(folder) in (old, new), f"event {event}"
        if number != signal.SIGKILL:
            assert strays(folder) == [], f"event {event}"
        if listing(folder) in (before, after):  # to the next command nothing has happened, or all has
            continue
        for place in ("keys", "run"):
            (folder / place).mkdir(exist_ok=True)
        completed = light_server.python(COMPLETE, folder=folder, **options)
        assert completed.code == 0, completed.err
        assert content(folder) in (old, new), f"event {event}, after the next command"
        assert strays(folder) == [], f"event {event}"
