"""The same seed gives the same files, byte for byte but for timings; so do one thread and two, and any hash seed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from robustness.conftest import Prepared, Server
from robustness.study import COMMANDS, SETUP, WRITING, snapshot

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# What makes the runs of the template.
STEPS = [line for line in SETUP if not line.startswith("duplicates")]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", WRITING)
def test_the_same_command_writes_the_same_bytes(
    server: Server, prepared: Callable[[str], Prepared], tmp_path: Path, name: str
) -> None:
    command, first = COMMANDS[name], prepared(name)
    folder = Path(shutil.copytree(first.base, tmp_path / "again"))
    done = server.run(*command.arguments.split(), folder=folder, preload=command.preload)
    assert done.code == 0, done.err
    assert snapshot(folder) == first.new


def test_threads_and_hash_seed_do_not_change_a_byte(server: Server, copies: Callable[[], Path]) -> None:
    lines = [COMMANDS[name].arguments for name in ("fit", "fit tasks", "next", "update votes")]
    one = copies()  # the server has one thread, and a hash seed of its own
    for line in lines:
        assert server.run(*line.split(), folder=one).code == 0
    two = copies()
    for name in (line.split()[3] for line in STEPS if line.startswith("fit")):
        shutil.rmtree(two / name)
    script = "import shlex, sys; from softgold.cli import main; [main(shlex.split(line)) for line in sys.argv[1:]]"
    environment = os.environ | dict.fromkeys(THREADS, "2") | {"PYTHONHASHSEED": "2"}
    subprocess.run([sys.executable, "-c", script, *STEPS, *lines], cwd=two, env=environment, check=True, timeout=300)
    assert snapshot(two) == snapshot(one)
