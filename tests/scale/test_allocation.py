"""Workers keep the memory of large arrays while they work, and give it back as before afterwards."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from softgold.scale.allocation import kept_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with kept_memory():
    faults()
    with kept_memory():
        pass
    inside = faults()
print(inside, faults())
"""


@pytest.mark.slow
def test_pages_are_kept_within_and_given_back_after() -> None:
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}  # as Dask starts its workers
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    within, after = map(int, done.stdout.split())
    pages = 2**21 // os.sysconf("SC_PAGE_SIZE")
    assert within < pages  # of one array; 20 were made
    assert after >= 10 * pages
