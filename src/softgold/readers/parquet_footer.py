"""The footer of a Parquet file: what its column chunks decode to, before any of them is read.

Arrow's own objects for column chunks end the process where the footer is damaged, so the few numbers that are needed
are read here. The footer is a struct of Thrift's compact protocol, whose fields are known by number:
https://github.com/apache/parquet-format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

TAIL = 8  # the length of the footer, and "PAR1"
ROW_GROUPS, COLUMNS, COLUMN = 4, 1, 3
ENCODINGS, PATH, VALUES, BYTES = 2, 3, 5, 6


@dataclass(frozen=True)
class ColumnChunk:
    """A column of a row group.

    Attributes:
        place: Number of the column.
        path: Its name, with the names of what it is part of before it.
        encodings: Numbers of the encodings of its pages.
        n_values: Number of values.
        n_bytes: Size when decompressed.
    """

    place: int
    path: str
    encodings: frozenset[int]
    n_values: int
    n_bytes: int


def column_chunks(origin: Path | pa.Buffer) -> Iterator[ColumnChunk]:
    """Give every column chunk of a file that Arrow could open; `pa.ArrowInvalid` says that its footer is damaged."""
    try:
        footer = Compact(_footer(origin)).struct()
        for group in footer.get(ROW_GROUPS, ()):
            for place, chunk in enumerate(group[COLUMNS]):
                column = chunk[COLUMN]
                path = b".".join(column[PATH]).decode()
                yield ColumnChunk(place, path, frozenset(column[ENCODINGS]), int(column[VALUES]), int(column[BYTES]))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise pa.ArrowInvalid("its footer is damaged") from error


def _footer(origin: Path | pa.Buffer) -> bytes:
    with pa.OSFile(str(origin)) if isinstance(origin, Path) else pa.BufferReader(origin) as file:
        end = file.size() - TAIL
        file.seek(end)
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(end - length, 0))
        found: bytes = file.read(length)
        return found


class Compact:
    """Values of Thrift's compact protocol, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._readers: dict[int, Callable[[], Any]] = {
            **dict.fromkeys((1, 2, 3), self._byte),  # true, false and a byte, as elements of a list
            **dict.fromkeys((4, 5, 6), self._signed),
            7: lambda: self._bytes(8),
            8: lambda: self._bytes(self._unsigned()),
            **dict.fromkeys((9, 10), self._list),
            11: self._map,
            12: self.struct,
        }

    def struct(self) -> dict[int, Any]:
        """Return the fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = divmod(head, 16)
            number = number + step if step else self._signed()
            fields[number] = kind == 1 if kind in {1, 2} else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        return self._readers[kind]()

    def _list(self) -> list[Any]:
        size, kind = divmod(self._byte(), 16)
        return [self._value(kind) for _ in range(self._unsigned() if size == 15 else size)]

    def _map(self) -> list[Any]:
        size = self._unsigned()
        kinds = divmod(self._byte(), 16) if size else (0, 0)
        return [self._value(kind) for _ in range(size) for kind in kinds]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        self._at += size
        if len(found) < size:
            raise ValueError("the footer ends amid a value")
        return found

    def _unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise ValueError("a number has more than 64 bits")

    def _signed(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)
