"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

from softgold.cli import main

SCRIPTS = Path(__file__).parents[1] / "scripts"

pytest_plugins = ("fixtures.crowds", "fixtures.parts")

# One profile for every property test. No deadlines: a loaded machine is slow, not wrong. Where CI is set, the same
# examples run each time; elsewhere each run tries new ones.
hypothesis.settings.register_profile("softgold", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("softgold")

# A shell that starts the tests in the background ignores SIGINT, and so would the commands that the tests interrupt.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the search for garbage from modules and collected tests, which stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let Python end as it does elsewhere."""
    gc.unfreeze()


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
def load_script() -> Callable[[str], ModuleType]:
    """Import a file of scripts/: `load_script("make_samples")`."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where a dataclass looks for the names in its annotations
        spec.loader.exec_module(module)
        return module

    return load


def folder_in(variable: str) -> Path:
    """Return the folder that an environment variable names; skip the test if it is not set."""
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} is not set: its data are not here")
    return Path(folder)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the public vote tables."""
    return folder_in("SOFTGOLD_DATA")


@pytest.fixture(scope="session")
def real_exports() -> Path:
    """Folder with exports of annotation tools."""
    return folder_in("SOFTGOLD_EXPORTS")
