"""Pyro keeps parameters, handlers, random numbers and switches in global state; `pyro_scope` contains all of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyro
import torch

_ONE_AT_A_TIME = threading.Lock()
VOTES_PER_THREAD = 500_000  # below this, threads cost more in waiting for each other than they save


@contextmanager
def pyro_scope(seed: int, n_votes: int) -> Iterator[None]:
    """Run Pyro code on `n_votes` votes with its own parameters and random numbers, and leave all else as it was.

    Fits in several threads take turns, because Pyro's handler stack is shared by all of them. Handlers that the caller
    has open do not see the fit, and gradients are computed though the caller may have switched them off.
    """
    devices = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    with _ONE_AT_A_TIME, pyro.get_param_store().scope(), torch.random.fork_rng(devices=devices):
        threads = torch.get_num_threads()
        torch.set_num_threads(min(threads, 1 + n_votes // VOTES_PER_THREAD))
        torch.manual_seed(seed % 2**64)
        try:
            with pyro.validation_enabled(False), torch.inference_mode(False), torch.enable_grad(), pyro.poutine.block():
                yield
        finally:
            torch.set_num_threads(threads)
