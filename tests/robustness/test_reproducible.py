"""The same seed gives the same files, byte for byte but for timings; so do one thread and two, and any hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from robustness.conftest import Server
from robustness.study import COMMANDS, SETUP, WRITING, snapshot

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", WRITING)
def test_the_same_command_writes_the_same_bytes(server: Server, copies: Callable[[], Path], name: str) -> None:
    found = []
    for _ in range(2):
        folder = copies()
        done = server.run(*COMMANDS[name].arguments.split(), folder=folder, preload=COMMANDS[name].preload)
        assert done.code == 0, done.err
        found.append(snapshot(folder))
    assert found[0] == found[1]


def test_threads_and_hash_seed_do_not_change_a_byte(copies: Callable[[], Path]) -> None:
    found = []
    script = "import shlex, sys; from softgold.cli import main; [main(shlex.split(line)) for line in sys.argv[1:]]"
    names = ("fit", "fit tasks", "next", "update votes")
    lines = [*(line for line in SETUP if "duplicates" not in line), *(COMMANDS[name].arguments for name in names)]
    for threads in ("1", "2"):
        folder = copies()
        environment = os.environ | dict.fromkeys(THREADS, threads) | {"PYTHONHASHSEED": threads}
        forced = [line if "--force" in line or "update" in line else f"{line} --force" for line in lines]
        subprocess.run([sys.executable, "-c", script, *forced], cwd=folder, env=environment, check=True, timeout=300)
        found.append(snapshot(folder))
    assert found[0] == found[1]
