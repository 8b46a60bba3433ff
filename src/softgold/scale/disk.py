"""Arrays and texts in temporary files: raw numbers, which read back faster than any format with a header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array; a full disk raises as it does for any file, which `ndarray.tofile` does not do."""
    with path.open("wb") as file:
        file.write(np.ascontiguousarray(array).data)


def read_array(path: Path, kind: DTypeLike, first: int = 0, count: int = -1) -> NDArray[Any]:
    """Read an array, or `count` numbers of it from number `first` on."""
    return np.fromfile(path, dtype=kind, count=count, offset=first * np.dtype(kind).itemsize)


def write_texts(path: Path, texts: pa.Array) -> None:
    """Write texts in Arrow's own format."""
    schema = pa.schema([("text", pa.large_string())])
    with path.open("wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.record_batch([texts.cast(pa.large_string())], schema=schema))


def read_texts(path: Path) -> pa.Array:
    """Read what `write_texts` wrote."""
    with path.open("rb") as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(0).column(0)


class Spill:
    """Files of rows that are appended to, one per bucket, each row with a few numbers.

    Args:
        folder: Where the files are.
        name: What their names begin with.
        kind: A NumPy structured type: what a row holds.
    """

    def __init__(self, folder: Path, name: str, kind: np.dtype[Any]) -> None:
        self._folder, self._name, self._kind = folder, name, kind

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{self._name}-{bucket}"

    def add(self, bucket: NDArray[Any], columns: dict[str, NDArray[Any]]) -> None:
        """Append rows to their buckets, in the order in which they come."""
        ordered = len(bucket) < 2 or bool((np.diff(bucket) >= 0).all())
        order = None if ordered else np.argsort(bucket, kind="stable")
        rows = np.empty(len(bucket), self._kind)
        for name, column in columns.items():
            rows[name] = column if order is None else column[order]
        numbers, starts = np.unique(bucket if order is None else bucket[order], return_index=True)
        for number, first, last in zip(numbers, starts, [*starts[1:], len(rows)], strict=True):
            with self._path(int(number)).open("ab") as file:
                file.write(rows[first:last].data)

    def take(self, bucket: int) -> NDArray[Any]:
        """Return the rows of a bucket, and remove its file."""
        path = self._path(bucket)
        if not path.exists():
            return np.empty(0, self._kind)
        rows = np.fromfile(path, self._kind)
        path.unlink()
        return rows
