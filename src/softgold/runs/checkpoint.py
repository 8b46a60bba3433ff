"""The state of an interrupted fit, from which it goes on to the same result."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.errors import StorageError
from softgold.models.base import FitState, Model
from softgold.output import atomic_file
from softgold.runs.files import read_arrays, write_arrays

__all__ = ["checkpoint_path", "load_checkpoint", "save_checkpoint"]

VERSION = 3


def checkpoint_path(run: Path) -> Path:
    """Return where the checkpoint of a run is kept: beside it, so that the run directory is complete or absent."""
    target = run.resolve()  # `.` has no name of its own
    return target.with_name(f"{target.name}.checkpoint.npz")


def save_checkpoint(path: Path, state: FitState, model: Model, settings: Any, digest: str) -> None:
    """Write the state with what it belongs to, replacing an older one."""
    owner = _owner(model, settings, digest)
    arrays = {**state.to_arrays(), "checkpoint_version": np.array(VERSION), "checkpoint_owner": owner}
    with atomic_file(path, force=True) as temporary:
        write_arrays(temporary, arrays)


def load_checkpoint(path: Path, model: Model, settings: Any, digest: str) -> FitState:
    """Read the state.

    Raises:
        StorageError: The file is missing or damaged, or belongs to other votes or other settings.
    """
    arrays = read_arrays(path)
    try:
        if int(arrays["checkpoint_version"]) != VERSION:
            raise StorageError(f"{path} was written by another version of softgold; fit without --resume")
        if not np.array_equal(arrays["checkpoint_owner"], _owner(model, settings, digest)):
            raise StorageError(
                f"{path} belongs to other votes or other settings; fit without --resume, or as it was begun"
            )
        return model.state(arrays)
    except (LookupError, TypeError, ValueError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} is not a checkpoint that this version can read") from None


def _owner(model: Model, settings: Any, digest: str) -> NDArray[np.uint8]:
    # The cap decides when a fit stops, not where it is: a resumed fit may have another.
    decisive = {name: value for name, value in asdict(settings).items() if name != "max_steps"}
    text = json.dumps({"model": model.name, "settings": decisive, "votes": digest}, sort_keys=True)
    return np.frombuffer(text.encode(), dtype=np.uint8)
