"""The state of an interrupted fit, from which it goes on to the same result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.errors import StorageError
from softgold.glad.coordinate import CoordinateState
from softgold.glad.factors import Factor
from softgold.glad.fitting import FitSettings, FitState
from softgold.glad.normals import Normals
from softgold.glad.storage import read_arrays, write_arrays
from softgold.glad.svi_state import NormalFit, ParameterState, SviState
from softgold.output import atomic_file

__all__ = ["checkpoint_path", "load_checkpoint", "save_checkpoint"]

Arrays = Mapping[str, NDArray[Any]]

VERSION = 2
PARAMETER = "parameter"


def checkpoint_path(run: Path) -> Path:
    """Return where the checkpoint of a run is kept: beside it, so that the run directory itself is whole or absent."""
    target = run.resolve()  # `.` has no name of its own
    return target.with_name(f"{target.name}.checkpoint.npz")


def save_checkpoint(path: Path, state: FitState, settings: FitSettings, digest: str) -> None:
    """Write the state with what it belongs to, replacing an older one."""
    arrays = _svi_arrays(state) if isinstance(state, SviState) else _coordinate_arrays(state)
    arrays |= {"version": np.array(VERSION), "owner": _owner(settings, digest)}
    with atomic_file(path, force=True) as temporary:
        write_arrays(temporary, arrays)


def load_checkpoint(path: Path, settings: FitSettings, digest: str) -> FitState:
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
        return _svi_state(arrays) if "random" in arrays else _coordinate_state(arrays)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} is not a checkpoint that this version can read") from None


def _coordinate_arrays(state: CoordinateState) -> dict[str, NDArray[Any]]:
    arrays = {f"ability_{field.name}": getattr(state.abilities, field.name) for field in fields(Factor)}
    return arrays | {
        "sweep": np.array(state.sweep),
        "scale": np.array(state.scale),
        "positive": state.positive,
        "elbo": np.array(state.elbo),
        "growth": np.array(state.growth),
        "change": np.array(state.change),
        "items": np.empty((2, 0)) if state.items is None else np.stack([state.items.mean, state.items.sd]),
    }


def _coordinate_state(arrays: Arrays) -> CoordinateState:
    mean, sd = arrays["items"]
    return CoordinateState(
        int(arrays["sweep"]),
        Factor(**{field.name: arrays[f"ability_{field.name}"] for field in fields(Factor)}),
        float(arrays["scale"]),
        arrays["positive"],
        tuple(arrays["elbo"].tolist()),
        tuple(arrays["growth"].tolist()),
        float(arrays["change"]),
        Normals(mean, sd) if len(mean) else None,
    )


def _svi_arrays(state: SviState) -> dict[str, NDArray[Any]]:
    arrays = {f"start_{name}": np.asarray(value) for name, value in vars(state.start).items()}
    for name, parameter in state.parameters.items():
        arrays |= {f"{PARAMETER}/{name}/{part}": array for part, array in vars(parameter).items()}
    return arrays | {"random": state.random, "elbo": np.array(state.elbo), "sweeps": np.array(state.sweeps)}


def _svi_state(arrays: Arrays) -> SviState:
    c_mean, c_sd, b_mean, b_sd = (arrays[f"start_{name}"] for name in ("c_mean", "c_sd", "b_mean", "b_sd"))
    names = {key.split("/")[1] for key in arrays if key.startswith(f"{PARAMETER}/")}
    parts = [field.name for field in fields(ParameterState)]
    return SviState(
        NormalFit(c_mean, c_sd, b_mean, b_sd, float(arrays["start_scale"])),
        {
            name: ParameterState(**{part: arrays[f"{PARAMETER}/{name}/{part}"] for part in parts})
            for name in sorted(names)
        },
        arrays["random"],
        tuple(arrays["elbo"].tolist()),
        int(arrays["sweeps"]),
    )


def _owner(settings: FitSettings, digest: str) -> NDArray[np.uint8]:
    """Return what decides the result, as bytes: the votes, and the settings but for the cap on steps."""
    deciding = {key: value for key, value in asdict(settings).items() if key != "max_steps"}
    text = json.dumps({"votes": digest, "settings": deciding}, sort_keys=True)
    return np.frombuffer(text.encode(), dtype=np.uint8)
