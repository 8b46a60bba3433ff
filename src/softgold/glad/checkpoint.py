"""The state of an interrupted coordinate stage, from which a fit goes on to the same result."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from softgold.errors import StorageError
from softgold.glad.coordinate import CoordinateState
from softgold.glad.factors import Factor
from softgold.glad.fitting import FitSettings
from softgold.glad.storage import read_arrays, write_arrays
from softgold.output import atomic_file

__all__ = ["checkpoint_path", "load_checkpoint", "save_checkpoint"]

VERSION = 1


def checkpoint_path(run: Path) -> Path:
    """Return where the checkpoint of a run is kept: beside it, so that the run directory itself is whole or absent."""
    target = run.resolve()  # `.` has no name of its own
    return target.with_name(f"{target.name}.checkpoint.npz")


def save_checkpoint(path: Path, state: CoordinateState, settings: FitSettings, digest: str) -> None:
    """Write the state with what it belongs to, replacing an older one."""
    arrays = {f"ability_{field.name}": getattr(state.abilities, field.name) for field in fields(Factor)}
    arrays |= {
        "version": np.array(VERSION),
        "sweep": np.array(state.sweep),
        "scale": np.array(state.scale),
        "positive": state.positive,
        "elbo": np.array(state.elbo),
        "growth": np.array(state.growth),
        "change": np.array(state.change),
        "owner": _owner(settings, digest),
    }
    with atomic_file(path, force=True) as temporary:
        write_arrays(temporary, arrays)


def load_checkpoint(path: Path, settings: FitSettings, digest: str) -> CoordinateState:
    """Read the state.

    Raises:
        StorageError: The file is missing or damaged, or belongs to other votes or other settings.
    """
    arrays = read_arrays(path)
    try:
        if int(arrays["version"]) != VERSION:
            raise StorageError(f"{path} is of version {int(arrays['version'])}; this softgold reads version {VERSION}")
        if not np.array_equal(arrays["owner"], _owner(settings, digest)):
            raise StorageError(
                f"{path} belongs to other votes or other settings; fit without --resume, or as it was begun"
            )
        abilities = Factor(**{field.name: arrays[f"ability_{field.name}"] for field in fields(Factor)})
        return CoordinateState(
            int(arrays["sweep"]),
            abilities,
            float(arrays["scale"]),
            arrays["positive"],
            tuple(arrays["elbo"].tolist()),
            tuple(arrays["growth"].tolist()),
            float(arrays["change"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} is not a checkpoint that this version can read") from None


def _owner(settings: FitSettings, digest: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return what decides the sweeps, as bytes: the votes, and the settings but for the cap on steps."""
    deciding = {key: value for key, value in asdict(settings).items() if key != "max_steps"}
    text = json.dumps({"votes": digest, "settings": deciding}, sort_keys=True)
    return np.frombuffer(text.encode(), dtype=np.uint8)
