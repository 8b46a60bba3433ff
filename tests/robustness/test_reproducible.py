"""One thread and two give the same files, byte for byte but for timings; so does any hash seed.

That a second run gives them is checked by the campaign of signals.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from robustness.conftest import Server
from robustness.study import COMMANDS, SETUP, snapshot

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# What makes the runs of the template.
STEPS = [line for line in SETUP if not line.startswith("duplicates")]

pytestmark = pytest.mark.slow


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
