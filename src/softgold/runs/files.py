"""Single files of a run directory: arrays, JSON records and digests. Nothing is pickled, nothing is executed."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import StorageError


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, made_by: str) -> dict[str, Any]:
    """Return the object in a JSON file.

    Args:
        path: The file.
        made_by: The command that writes it, for the message when the file is missing.

    Raises:
        StorageError: The file is missing, damaged or not an object.
    """
    if not path.is_file():
        raise StorageError(f"there is no {path}; '{made_by}' writes it")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: {cause(error)}") from None
    if not isinstance(value, dict):
        raise StorageError(f"{path} is not a record of softgold: it holds no JSON object")
    return value


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays of numbers to an .npz file; the same arrays give the same bytes."""
    # NumPy 2.0 would take an argument allow_pickle for one more array.
    if any(array.dtype.hasobject for array in arrays.values()):
        raise TypeError(f"{path.name} holds numbers only; nothing is pickled")
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # the stubs have an allow_pickle


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read every array of an .npz file, never unpickling.

    Raises:
        StorageError: The file is missing, damaged or holds something else.
    """
    if not path.is_file():
        raise StorageError(f"there is no {path}; 'softgold fit' writes it")
    if not zipfile.is_zipfile(path):
        raise StorageError(f"{path} is damaged or not ours: it is not an .npz archive")
    try:
        _check_archive(path)
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # a damaged archive raises whatever its first bad byte leads to
        raise StorageError(f"{path} is damaged or not ours: {cause(error)}") from None


def _check_archive(path: Path) -> None:
    """Compare every member with its checksum: NumPy reads as far as an array's header says, which may be damaged."""
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"the checksum of {damaged} is wrong")


def cause(error: Exception) -> str:
    """Return what an exception says, in words."""
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)


def pack_ids(ids: pd.Index[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return ids as UTF-8 bytes in a row and the position after each: one long id costs its length only once."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in ids]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum([len(text) for text in encoded], dtype=np.int64)


def unpack_ids(arrays: Mapping[str, NDArray[Any]], name: str) -> pd.Index[str]:
    """Return the ids that `pack_ids` packed into `<name>_utf8` and `<name>_ends`."""
    data, ends = arrays[f"{name}_utf8"].tobytes(), arrays[f"{name}_ends"]
    if len(ends) == 0 or ends[-1] != len(data) or (np.diff(ends, prepend=0) < 0).any():
        raise ValueError(f"{name} does not fit together")
    starts = np.concatenate([[0], ends[:-1]])
    texts = [data[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=True)]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{name} has a duplicated id")
    return pd.Index(texts, dtype="str")
