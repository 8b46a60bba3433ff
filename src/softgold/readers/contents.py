"""Contents of a path or of standard input: one file or several, unpacked while they are read.

A file may be packed with gzip, bzip2, xz or Zstandard; a zip or tar archive counts as a folder. What a file is packed
with is seen from its first bytes, never from its name.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from softgold.errors import InputError
from softgold.readers.base import display_name, printable, shorten, web_address
from softgold.readers.limits import CannotUnpack, LimitedStream, default_max_bytes, too_large

Opener = Callable[[], BinaryIO | Any]

HEAD_BYTES = 1 << 16
MOST_FILES = 500_000
UNPACKERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": lambda stream: pa.CompressedInputStream(pa.PythonFile(stream), "zstd"),
}
ZIP = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"


@dataclass(frozen=True)
class Member:
    """One file: on disk, in a folder, in an archive, or in memory.

    Attributes:
        name: Name inside the folder or archive, or the name of the file.
        display: What to call it in an error.
        limit: Most bytes that it may give when it is unpacked or decoded; None for the default.
        path: Where it is on disk as it is, not packed; None otherwise.
    """

    name: str
    display: str
    opener: Opener = field(repr=False)
    limit: int | None = None
    path: Path | None = None

    def open(self) -> io.BufferedReader:
        """Open it for reading from the start."""
        return io.BufferedReader(self._stream(), buffer_size=1 << 18)

    def _stream(self) -> LimitedStream:
        # A file as it is on disk has nothing to unpack.
        return LimitedStream(self.opener, self.display, self.limit if self.path is None else None)

    def read(self) -> bytes:
        """Return all bytes."""
        try:
            with self.open() if self.path is None else self._stream() as stream:  # one on disk is read in one piece
                return stream.read()
        except MemoryError:
            raise InputError(f"{self.display} does not fit into the memory of this machine") from None

    @property
    def most_bytes(self) -> int:
        """Most bytes that it may give when it is unpacked or decoded."""
        return default_max_bytes() if self.limit is None else self.limit

    @cached_property
    def head(self) -> bytes:
        """The first bytes, by which formats are told apart."""
        with self.open() as stream:
            return stream.read(HEAD_BYTES)

    @property
    def stem(self) -> str:
        """The name without folders and without any suffix."""
        base = self.name.replace("\\", "/").rsplit("/", 1)[-1]
        return base.split(".", 1)[0] or base


@dataclass(frozen=True)
class Content:
    """The files of an input, sorted by name.

    Attributes:
        name: What to call the whole in an error.
        members: The files.
        several: It is a folder or an archive, even if only one file is in it.
    """

    name: str
    members: tuple[Member, ...]
    several: bool = False


def open_content(source: str | os.PathLike[str], max_bytes: int | None = None) -> Content:
    """Open a path, or `-` for standard input; folders and archives give their files.

    Args:
        source: The path.
        max_bytes: Most bytes that packed input may unpack to; half of the machine's memory if None.
    """
    limit = default_max_bytes() if max_bytes is None else max_bytes
    if source == "-":
        data = _read_stream(sys.stdin.buffer, "standard input", limit)
        return _unpacked(Member("-", "standard input", lambda: io.BytesIO(data), limit), limit)
    path = Path(source)
    name = display_name(path)
    if _is_folder(path):
        return _folder(path, name, limit)
    try:
        if not path.is_file():
            with path.open("rb") as stream:  # a pipe, such as the shell's <(...), is read once
                data = _read_stream(stream, name, limit)
            return _unpacked(Member(path.name, name, lambda: io.BytesIO(data), limit), limit)
        with path.open("rb"):
            pass
    except InputError:
        raise
    except (OSError, ValueError) as error:
        address = web_address(source)
        if address:
            raise InputError(f"{shorten(address, 300)} is an address, and input must be a file: download it") from None
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {shorten(name, 300)}: {reason}") from None
    return _unpacked(Member(path.name, name, lambda: path.open("rb"), limit, path), limit)


def _read_stream(stream: Any, name: str, limit: int) -> bytes:
    """Read a buffered stream to its end in pieces: Python looks for Ctrl-C between them, not within one long read."""
    data = bytearray()
    while piece := stream.read1(1 << 20):
        data += piece
        if len(data) > limit:  # a device may never end
            raise too_large(name, limit, "gives")
    return bytes(data)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _folder(path: Path, name: str, limit: int) -> Content:
    found = list(islice((file for file in path.rglob("*") if file.is_file()), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise InputError(f"{name} holds more than {MOST_FILES:,} files; give the folder of the export itself")
    files = [file for file in sorted(found) if _is_data(file.relative_to(path).as_posix())]
    members = tuple(
        Member(display_name(file.relative_to(path).as_posix()), display_name(file), _opener(file), limit, file)
        for file in files
    )
    if not members:
        raise InputError(f"cannot read {shorten(name, 300)}: Is a directory")
    return Content(name, members, several=True)


def _opener(path: Path) -> Opener:
    return lambda: path.open("rb")


def _is_data(name: str) -> bool:
    """Say whether a file is one that a person put there, not one of a file manager or a version control system."""
    return not any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


def _unpacked(member: Member, limit: int) -> Content:
    for magic, unpack in UNPACKERS.items():
        if member.head.startswith(magic):
            inner = Member(_without_suffix(member.name), member.display, _unpacking(member, unpack), limit)
            return _archive(inner, limit) or Content(inner.display, (inner,))
    return _archive(member, limit) or Content(member.display, (member,))


def _unpacking(member: Member, unpack: Callable[[Any], Any]) -> Opener:
    return lambda: unpack(member.open())


def _without_suffix(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and suffix.lower() in {"gz", "bz2", "xz", "zst", "zstd"} else name


def _archive(member: Member, limit: int) -> Content | None:
    """Return the files of a zip or tar archive, or None for anything else; a spreadsheet is a zip and one file."""
    if member.head.startswith((ZIP, EMPTY_ZIP)):
        return _zip(member, limit)
    if member.head[257:262] == b"ustar":
        return Content(member.display, tuple(_tar_members(member, limit)), several=True)
    return None


def _zip(member: Member, limit: int) -> Content | None:
    data = None if member.path is not None else member.read()

    def open_zip() -> zipfile.ZipFile:
        return zipfile.ZipFile(member.path if data is None else io.BytesIO(data))  # type: ignore[arg-type]

    try:
        with open_zip() as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir() and _is_data(entry.filename)]
    except CannotUnpack as error:
        raise InputError(f"{member.display} is not a whole zip archive: {printable(error)}") from None
    names = {entry.filename for entry in entries}
    if "[Content_Types].xml" in names:
        return Content(member.display, (member,))
    if not names:
        raise InputError(f"{member.display} is an archive without files")
    if any(entry.flag_bits & 1 for entry in entries):
        raise InputError(f"{member.display} is an encrypted archive; unpack it first")
    members = [_zip_member(member, open_zip, name, limit) for name in sorted(names)]
    return Content(member.display, tuple(members), several=True)


def _zip_member(member: Member, open_zip: Callable[[], zipfile.ZipFile], name: str, limit: int) -> Member:
    label = f"{member.display}::{printable(name)}"
    return Member(display_name(name), label, lambda: open_zip().open(name), limit)


def _tar_members(member: Member, limit: int) -> Iterator[Member]:
    left = limit
    try:
        with member.open() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                if not entry.isfile() or not _is_data(entry.name.removeprefix("./")):
                    continue
                left -= entry.size
                if left < 0:
                    raise too_large(member.display, limit)
                file = archive.extractfile(entry)
                data = file.read() if file is not None else b""
                yield Member(
                    printable(entry.name), f"{member.display}::{printable(entry.name)}", _in_memory(data), limit
                )
    except InputError:
        raise
    except (*CannotUnpack, tarfile.TarError) as error:
        raise InputError(f"{member.display} is not a whole tar archive: {printable(error)}") from None


def _in_memory(data: bytes) -> Opener:
    return lambda: io.BytesIO(data)
