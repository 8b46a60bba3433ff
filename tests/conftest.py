"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from softgold.cli import main

pytest_plugins = ("fixtures.crowds",)

# One profile for every property test. No deadlines: a loaded machine is slow, not wrong. Where CI is set, the same
# examples run each time; elsewhere each run tries new ones.
hypothesis.settings.register_profile("softgold", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("softgold")

# A shell that starts the tests in the background ignores SIGINT, and so would the commands that the tests interrupt.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Answer:
    """What a command said: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run the command line in this process: `cli("describe", path, "--json")`."""

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the public vote tables, named by the environment variable SOFTGOLD_DATA."""
    folder = os.environ.get("SOFTGOLD_DATA")
    if not folder:
        pytest.skip("SOFTGOLD_DATA is not set: the real tables are not here")
    return Path(folder)


@pytest.fixture(scope="session")
def real_exports() -> Path:
    """Folder with exports of annotation tools, named by the environment variable SOFTGOLD_EXPORTS."""
    folder = os.environ.get("SOFTGOLD_EXPORTS")
    if not folder:
        pytest.skip("SOFTGOLD_EXPORTS is not set: the real exports are not here")
    return Path(folder)
