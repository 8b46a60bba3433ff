"""Bounds on what is read, and reading that stops at them."""

from __future__ import annotations

import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from softgold.errors import InputError
from softgold.readers.base import printable

# What the unpackers of the standard library and of Arrow raise on damaged input.
CannotUnpack = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    pa.ArrowException,
)

CELL_BYTES = 8


def default_max_bytes() -> int:
    """Half of the machine's memory, or 4 GiB where that is not known: what one input may unpack to."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def too_large(name: str, limit: int, does: str = "unpacks to") -> InputError:
    """Build the error for input that unpacks to more than the limit, or gives more."""
    return InputError(
        f"{name} {does} more than {limit:,} bytes; if you trust it, allow more with --max-bytes (max_bytes=)"
    )


def limited_rows(rows: Iterable[tuple[Any, ...]], name: str, limit: int) -> Iterator[tuple[Any, ...]]:
    """Give the rows until their cells hold more than the limit: a small file may repeat one text a million times."""
    size = 0
    for row in rows:
        size += sum(len(cell) if isinstance(cell, str | bytes) else CELL_BYTES for cell in row)
        if size > limit:
            raise too_large(name, limit)
        yield row


class LimitedStream(io.RawIOBase):
    """A stream that says what is wrong with a damaged file, and ends with an error after `limit` bytes.

    Args:
        opened: Opens the stream to read from.
        name: What to call it in an error.
        limit: Most bytes to give out, or None for no limit.
    """

    def __init__(self, opened: Callable[[], BinaryIO | Any], name: str, limit: int | None) -> None:
        super().__init__()
        self._name = name
        self._limit = limit
        self._given = 0
        self._stream = self._guarded(opened)

    def _guarded(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except InputError:
            raise
        except CannotUnpack as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InputError(f"cannot read {self._name}: {printable(reason, 200)}") from None

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as there are bytes."""
        piece = self._guarded(lambda: self._stream.read(len(buffer)))
        self._given += len(piece)
        if self._limit is not None and self._given > self._limit:
            raise too_large(self._name, self._limit)
        buffer[: len(piece)] = piece
        return len(piece)

    def readall(self) -> bytes:
        """Return what is left, in one piece where nothing limits it."""
        if self._limit is not None:
            return super().readall()
        rest: bytes = self._guarded(self._stream.read)
        return rest

    def close(self) -> None:
        """Close the stream below."""
        if not self.closed and hasattr(self, "_stream"):
            self._guarded(self._stream.close)
        super().close()
