"""Reading NumPy files, with errors that say what is wrong."""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgold.errors import InputError
from softgold.readers.base import display_name, printable
from softgold.readers.limits import default_max_bytes, too_large

Array = NDArray[Any]
ZIP = b"PK"
# What NumPy and zipfile raise on a damaged, encrypted or foreign file.
DAMAGED = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, SyntaxError, OverflowError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, RecursionError),
)


def read_array(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Array:
    """Return the array of an `.npy` file, or the only one of an `.npz` file. Nothing is unpickled.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", [1, 2])
    ...     read_array(f"{folder}/x.npy").tolist()
    [1, 2]
    """
    arrays = read_arrays(path, max_bytes=max_bytes)
    if len(arrays) != 1:
        raise InputError(f"{display_name(path)} must hold one array, and it holds {', '.join(arrays) or 'none'}")
    return next(iter(arrays.values()))


def read_arrays(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> dict[str, Array]:
    """Return the arrays of an `.npz` file by name; an `.npy` file has one, which has the name of the file.

    Args:
        path: The file.
        max_bytes: Most bytes that an `.npz` file may unpack to; half of the machine's memory if None.
    """
    limit = default_max_bytes() if max_bytes is None else max_bytes
    try:
        _refuse_false_size(Path(path), limit)
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {Path(path).stem: loaded}
        with loaded:
            return {name: np.asarray(loaded[name]) for name in loaded.files}
    except InputError:
        raise
    except DAMAGED as error:
        reason = getattr(error, "strerror", None) or printable(error) or type(error).__name__
        raise InputError(f"cannot read {display_name(path)} as a NumPy file (.npy or .npz): {reason}") from None


def _refuse_false_size(path: Path, limit: int) -> None:
    """Raise where a file would unpack to more than the limit, or says that it holds more than it does."""
    with path.open("rb") as file:
        if file.read(2) != ZIP:
            file.seek(0)
            size = _bytes_promised(file)
            if size > path.stat().st_size:
                raise ValueError(f"its header promises {size:,} bytes, and the file has {path.stat().st_size:,}")
            return
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > limit:
            raise too_large(display_name(path), limit)
        for entry in archive.infolist():
            with archive.open(entry) as member:
                size = _bytes_promised(member)
            if size > entry.file_size:
                raise ValueError(f"the header of {entry.filename} promises {size:,} bytes of {entry.file_size:,}")


def _bytes_promised(file: Any) -> int:
    """Return how many bytes the header of an array says that there are; 0 if it is not an array."""
    if file.read(6) != b"\x93NUMPY":
        return 0
    major, minor = file.read(2)
    header = np.lib.format.read_array_header_1_0 if (major, minor) == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    size = dtype.itemsize
    for length in shape:
        size *= int(length)
    return int(size)
