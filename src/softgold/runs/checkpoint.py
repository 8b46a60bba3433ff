"""The state of an interrupted fit, from which it goes on to the same result."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.errors import OutputError, StorageError, warn
from softgold.models.base import FitState, Model
from softgold.output import atomic_file
from softgold.runs.files import read_arrays, write_arrays

VERSION = 4
SUFFIX = ".checkpoint.npz"
LONGEST_NAME = 255  # bytes


def checkpoint_path(run: Path) -> Path:
    """Return where the checkpoint of a run is kept: beside it, so that the run directory is complete or absent."""
    target = Path(os.path.realpath(run))  # `.` has no name of its own
    name = os.fsencode(target.name)
    if len(name) + len(SUFFIX) > LONGEST_NAME:  # no file system takes such a name
        start = name[: LONGEST_NAME - len(SUFFIX) - 9].decode("utf-8", "ignore")
        return target.with_name(f"{start}-{hashlib.sha256(name).hexdigest()[:8]}{SUFFIX}")
    return target.with_name(f"{target.name}{SUFFIX}")


def claim_checkpoint(path: Path, model: Model, settings: Any, digest: str, *, force: bool = False) -> None:
    """Make sure that a new fit may keep its state in `path`, before the fit begins.

    Raises:
        OutputError: Something else is there: a folder, a file that softgold did not write, or, without `force`, the
            state of another interrupted fit.
    """
    if not os.path.lexists(path):
        return
    owner = _owner_in(path)
    if owner is None:
        raise OutputError(f"{path}, where a fit keeps its checkpoint, is not a checkpoint of softgold; move it away")
    if owner == _owner(model, settings, digest).tobytes():
        return  # the same fit begins again
    if not force:
        raise OutputError(
            f"{path} is the checkpoint of another interrupted fit; go on with that one (--resume), give --force to "
            "discard it, or choose another output"
        )
    warn(f"{path}, the checkpoint of another interrupted fit, is discarded")


def discard_checkpoint(path: Path) -> None:
    """Remove the checkpoint of a fit that is finished, unless something else is there by now."""
    if _owner_in(path) is None:
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        warn(f"the run was written, but its checkpoint {path} cannot be removed: {error.strerror}")


def _owner_in(path: Path) -> bytes | None:
    """Return what the checkpoint in a file belongs to; None if there is no checkpoint of softgold."""
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as stored:
            version = int(stored["checkpoint_version"])
            return np.asarray(stored["checkpoint_owner"]).tobytes() if version <= VERSION else None
    except Exception:  # whatever the bytes of a foreign file lead to
        return None


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
