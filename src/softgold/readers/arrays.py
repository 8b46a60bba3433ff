"""Reading NumPy files, with a sentence for what is wrong with one."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.errors import InputError

__all__ = ["read_array", "read_arrays"]

Array = NDArray[Any]


def read_array(path: str | os.PathLike[str]) -> Array:
    """Return the array of an `.npy` file, or the only one of an `.npz` file. Nothing is unpickled.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", [1, 2])
    ...     read_array(f"{folder}/x.npy").tolist()
    [1, 2]
    """
    arrays = read_arrays(path)
    if len(arrays) != 1:
        raise InputError(f"{path} must hold one array, and it holds {', '.join(arrays) or 'none'}")
    return next(iter(arrays.values()))


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return the arrays of an `.npz` file by name; an `.npy` file has one, which has the name of the file."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {Path(path).stem: loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n", maxsplit=1)[0]
        raise InputError(f"cannot read {path} as a NumPy file (.npy or .npz): {reason}") from None
