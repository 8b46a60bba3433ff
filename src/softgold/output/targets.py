"""Checks of an output before long work begins, and the system's errors as sentences."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from softgold.errors import OutputError, SoftgoldError
from softgold.output.journal import settle
from softgold.output.system import RUN_MARKER
from softgold.output.temporaries import public_path

PathLike = str | os.PathLike[str]
# What tells a file from the one that took its place: see `stamps`.
Stamps = Mapping[str, tuple[int, ...] | None]


def stamps(folder: PathLike, names: Iterable[str] = (RUN_MARKER,)) -> Stamps:
    """Return what tells files of a folder from those that another process may put in their place.

    Files that stay when others are added or replaced keep theirs. One that does not exist has None.
    """
    return {name: _stamp(Path(folder) / name) for name in names}


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def refuse_replaced(folder: Path, began: Stamps) -> None:
    """Stop work that began with other files than the folder has by now.

    Raises:
        OutputError: A file was replaced.
    """
    for name, stamp in began.items():
        if _stamp(folder / name) != stamp:
            what = public_path(folder) if name == RUN_MARKER else public_path(folder / name)
            raise OutputError(f"{what} was replaced by another process meanwhile; run the command again")


def check_target(path: PathLike, *, force: bool = False, directory: bool = False, marker: str = RUN_MARKER) -> Path:
    """Return the real path of an output, or say now, before long work, why it could not be written there.

    An update of the target that was killed halfway is completed first.

    Args:
        path: Where the file or directory is to be.
        force: Accept a target that exists.
        directory: The target is a directory.
        marker: An existing directory is replaced only if it is empty or has a file of this name in it, so that a
            mistyped `-o` cannot remove a folder that softgold did not make.
    """
    target = Path(os.path.realpath(path))
    parent = target.parent
    with as_output_error(target):
        if not parent.is_dir():
            raise OutputError(f"cannot write {path}: the folder {parent} does not exist")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise OutputError(f"cannot write {path}: the folder {parent} is not writable")
        if target.is_symlink():
            raise OutputError(f"cannot write {path}: it is a link that leads back to itself")
        settle(parent)
        if target.exists():
            _check_existing(target, force, directory, marker)
    return target


def _check_existing(target: Path, force: bool, directory: bool, marker: str) -> None:
    shown = public_path(target)
    if directory and not target.is_dir():
        raise OutputError(f"cannot write {shown}: it is a file, and a folder is to be written")
    if not directory and not target.is_file():
        kind = "a folder" if target.is_dir() else "not a regular file"
        raise OutputError(f"cannot write {shown}: it is {kind}, and a file is to be written")
    if not force:
        raise OutputError(f"{shown} exists already; give --force (force=True) to replace it")
    if directory and any(target.iterdir()) and not (target / marker).is_file():
        raise OutputError(
            f"{shown} will not be replaced: it is not empty and has no {marker}, so softgold did not make it"
        )


@contextmanager
def as_output_error(target: Path, inside: Path | None = None) -> Iterator[None]:
    """Turn the system's error into a sentence; with `inside`, only errors of writing there, not any OSError."""
    shown = public_path(target)
    try:
        yield
    except SoftgoldError:
        raise
    except OSError as error:
        if inside is not None and not _concerns(error, inside):
            raise
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OutputError(f"cannot write {shown}: {reason}") from error


def _concerns(error: OSError, path: Path) -> bool:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return True
    return error.filename is not None and str(path) in str(error.filename)
