"""The server that runs commands in forks, as a fixture."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import softgold
from robustness import study

SERVER = Path(__file__).parent / "server.py"


@dataclass(frozen=True)
class Outcome:
    """How a process ended: exit code (minus the signal that killed it), events, output, and whether its time was up."""

    code: int
    events: int | None
    out: str
    err: str
    timed_out: bool
    peak: int
    session: int


class Server:
    """Runs command lines in forks of one process that has imported softgold; see server.py for the options."""

    def __init__(self, *settings: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(Path(softgold.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # no threads before a fork
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._readline()

    def run(self, *arguments: object, folder: Path, **options: Any) -> Outcome:
        return self._ask({"arguments": [str(argument) for argument in arguments], "folder": str(folder), **options})

    def python(self, code: str, *, folder: Path, **options: Any) -> Outcome:
        return self._ask({"code": code, "folder": str(folder), **options})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.communicate(timeout=30)

    def _ask(self, request: dict[str, Any]) -> Outcome:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Outcome(**json.loads(self._readline()))

    def _readline(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server has ended"
        return line


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many cases each campaign ran, and how many of its tests failed."""
    tallies: dict[str, list[int]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            campaign = Path(report.nodeid.split("::")[0]).stem
            cases = dict(report.user_properties).get("cases")
            if cases is not None:
                tally = tallies.setdefault(campaign, [0, 0])
                tally[0] += int(cases)
                tally[1] += outcome == "failed"
    for campaign, (cases, failures) in sorted(tallies.items()):
        terminalreporter.write_line(f"{campaign}: {cases:,} cases, {failures} failed tests")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Run commands in forks of one process: `server.run("describe", path, folder=tmp_path)`."""
    started = Server()
    yield started
    started.close()


@pytest.fixture(scope="session")
def light_server() -> Iterator[Server]:
    """Run Python in forks of a process that has imported next to nothing."""
    started = Server("light")
    yield started
    started.close()


@pytest.fixture(scope="session")
def template(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all inputs, and with a run that has been fitted, calibrated, evaluated and reported."""
    folder = tmp_path_factory.mktemp("template")
    study.write_inputs(folder)
    for line in study.SETUP:
        done = server.run(*line.split(), folder=folder)
        assert done.code == 0, (line, done.err)
    study.write_pair_votes(folder)
    for line in ("duplicates update plan.json pair_votes.csv",):
        done = server.run(*line.split(), folder=folder)
        assert done.code == 0, (line, done.err)
    return folder


@dataclass(frozen=True)
class Prepared:
    """A folder in which a command can run, over a target that exists, and what comes of it.

    Attributes:
        base: The folder, for many tests: run commands in copies of it only.
        old: Its files, by name.
        new: The same after the command.
        events: Number of changes of the file system that the command makes.
    """

    base: Path
    old: dict[str, bytes]
    new: dict[str, bytes]
    events: int


@pytest.fixture(scope="session")
def bases(server: Server, template: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the folder in which a command finds the older content of its target; not to be changed."""

    @cache
    def base(name: str) -> Path:
        lines = study.COMMANDS[name].before
        if not lines:
            return template
        folder = Path(shutil.copytree(template, tmp_path_factory.mktemp("base") / "study"))
        for line in lines:
            done = server.run(*line.split(), folder=folder)
            assert done.code == 0, (line, done.err)
        return folder

    return base


@pytest.fixture(scope="session")
def prepared(
    server: Server, bases: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Prepared]:
    """Run a command once, and give what was there before and after."""

    @cache
    def prepare(name: str) -> Prepared:
        command, base = study.COMMANDS[name], bases(name)
        old = study.snapshot(base)
        whole = study.linked(base, tmp_path_factory.mktemp("whole") / "study")
        done = server.run(*command.arguments.split(), folder=whole, preload=command.preload)
        assert done.code == 0, done.err
        assert done.events is not None
        found = Prepared(base, old, study.snapshot(whole), done.events)
        shutil.rmtree(whole)
        return found

    return prepare


@pytest.fixture
def copies(template: Path, tmp_path: Path) -> Callable[[], Path]:
    """Give fresh copies of the template."""
    numbers = count()

    def copy() -> Path:
        return Path(shutil.copytree(template, tmp_path / f"copy{next(numbers)}"))

    return copy
