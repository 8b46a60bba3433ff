"""Another process replaces a run while a command reads it: the command sees the old run or the new one, never both."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from robustness.conftest import Server
from robustness.study import CASES, SEED, snapshot
from softgold.output.system import exchange
from softgold.runs import is_study, open_run, open_study

# What makes the other run; then commands that read a run, and those that add to it.
RUN = ("fit votes.csv -o new --engine coordinate", "calibrate new --experts experts.csv --seed 8 --n-bootstrap 20")
FITTED = ("fit other_votes.csv -o new --engine coordinate",)
STUDY = (
    "fit tasks.csv -o new --engine coordinate",
    "calibrate new --experts task_experts.csv --seed 8 --n-bootstrap 20",
)
READING = {
    "report": (RUN, "run", "report run -o out.html"),
    "report on tasks": (STUDY, "study", "report study -o out.html"),
    "predict": (RUN, "run", "predict run votes.csv -o out.csv"),
    "predict tasks": (STUDY, "study", "predict study tasks.csv -o out.csv"),
    "next": (FITTED, "fitted", "next fitted --budget 9 -o out.csv"),
    "sample-experts": (RUN, "run", "sample-experts run -o out.csv --budget 6"),
    "sample-experts of tasks": (STUDY, "study", "sample-experts study -o out.csv --budget 6"),
    "evaluate": (RUN, "run", "evaluate run --scores scores.csv -o out --n-vote-bootstrap 0 --n-bootstrap 20"),
}
ADDING = {
    "calibrate": (RUN, "run", "calibrate run --experts experts.csv --force --n-bootstrap 20"),
    "calibrate tasks": (STUDY, "study", "calibrate study --experts task_experts.csv --force --n-bootstrap 20"),
    "evaluate": (RUN, "run", "evaluate run --scores scores.csv --force --n-vote-bootstrap 0 --n-bootstrap 20"),
    "update": (FITTED, "fitted", "update fitted more_votes.csv"),
}

pytestmark = pytest.mark.slow


Bases = Callable[[tuple[str, ...]], Path]


@pytest.fixture(scope="module")
def swapped(server: Server, template: Path, tmp_path_factory: pytest.TempPathFactory) -> Bases:
    """Give a folder that has the other run, named `new`; not to be changed."""

    @cache
    def prepare(lines: tuple[str, ...]) -> Path:
        folder = Path(shutil.copytree(template, tmp_path_factory.mktemp("swapped") / "study"))
        for line in lines:
            done = server.run(*line.split(), folder=folder)
            assert done.code == 0, done.err
        return folder

    return prepare


def result(server: Server, base: Path, line: str, name: str, **options: object) -> tuple[int, dict[str, bytes], int]:
    """Run a command in a copy; return exit code, what it wrote and the number of files that it read of the run."""
    folder = Path(shutil.copytree(base, base.with_name("case")))
    done = server.run(*line.split(), folder=folder, swap=[name, "new"], **options)
    assert done.code in (0, 2), done.err
    assert "Traceback" not in done.err
    written = {path: text for path, text in snapshot(folder).items() if path.startswith("out")}
    shutil.rmtree(folder)
    return done.code, written, done.events or 0


def events(count: int) -> list[int]:
    """Return some of the moments at which a file is read."""
    chosen = np.random.default_rng(SEED).permutation(np.arange(1, count))
    return sorted(chosen[: max(2, CASES // 4)].tolist())


@pytest.mark.parametrize("name", READING)
def test_a_reader_sees_the_old_run_or_the_new_one(
    server: Server, swapped: Bases, tmp_path: Path, record_property: Callable[[str, object], None], name: str
) -> None:
    lines, run, line = READING[name]
    base = Path(shutil.copytree(swapped(lines), tmp_path / "base"))
    _, old, count = result(server, base, line, run)
    assert exchange(base / run, base / "new")
    _, new, _ = result(server, base, line, run)
    assert exchange(base / run, base / "new")
    assert old != new
    moments = events(count)
    record_property("cases", len(moments))
    for event in moments:
        code, found, _ = result(server, base, line, run, event=event)
        assert code == 0, f"event {event}"
        assert found in (old, new), f"event {event} of {count}"


@pytest.mark.parametrize("name", ADDING)
def test_a_result_is_added_to_the_run_that_it_was_made_from(
    server: Server, swapped: Bases, tmp_path: Path, record_property: Callable[[str, object], None], name: str
) -> None:
    lines, run, line = ADDING[name]
    base = Path(shutil.copytree(swapped(lines), tmp_path / "base"))
    before = snapshot(base)
    _, _, count = result(server, base, line, run)
    moments = events(count)
    record_property("cases", len(moments))
    for event in moments:
        folder = Path(shutil.copytree(base, base.with_name("case")))
        done = server.run(*line.split(), folder=folder, swap=[run, "new"], event=event)
        assert done.code in (0, 2), done.err
        assert "Traceback" not in done.err
        for place in (run, "new"):
            problems = (open_study if is_study(folder / place) else open_run)(folder / place).problems()
            assert not problems, f"event {event} of {count}: {place}: {problems}"
        if done.code == 2:
            found = {f"{run}/{p[4:]}" if p.startswith("new/") else p: t for p, t in snapshot(folder).items()}
            assert "replaced" in done.err, done.err
            assert set(found) <= {f"{run}/{p[4:]}" if p.startswith("new/") else p for p in before}
        shutil.rmtree(folder)
