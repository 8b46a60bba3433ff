"""System calls that Python does not offer: exchange of two names, rename without replacing, and locks on folders."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from softgold.errors import OutputError

HAS_LOCKS = find_spec("fcntl") is not None  # on POSIX systems
AT_FDCWD = -100
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
# What kernels, file systems and sandboxes without the call answer.
UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM, errno.ENOTTY}
# Writers hold locks for milliseconds, readers as long as they read. A process that was stopped while holding one must
# not hang all others for ever; and what took hours to compute waits longer before it is given up.
READER_SECONDS = 30.0
WRITER_SECONDS = 600.0
RUN_MARKER = "run.json"  # the file by which a run directory is known

_held = threading.local()


def exchange(first: Path, second: Path) -> bool:
    """Let two names that exist trade places in one step; return False where the system cannot."""
    return _renameat2(first, second, RENAME_EXCHANGE)


def rename_new(source: Path, target: Path) -> None:
    """Rename, but never onto something that exists.

    Raises:
        FileExistsError: There is a target already.
    """
    if _renameat2(source, target, RENAME_NOREPLACE):
        return
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.rename(target)


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    call = _system_call()
    if call is None:
        return False
    sys.audit("os.rename", os.fspath(source), os.fspath(target), -1, -1)  # as os.rename does
    number = call(os.fsencode(source), os.fsencode(target), flags)
    if number in UNSUPPORTED:
        return False
    if number:
        raise OSError(number, os.strerror(number), str(source), None, str(target))
    return True


@cache
def _system_call() -> Callable[[bytes, bytes, int], int] | None:
    """Return a function that renames with flags and returns the error number, or None outside of Linux."""
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

    def call(source: bytes, target: bytes, flags: int) -> int:
        return 0 if function(AT_FDCWD, source, AT_FDCWD, target, flags) == 0 else ctypes.get_errno()

    return call


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the advisory lock of a folder, so that writers of softgold take turns; without a lock where there is none.

    The lock belongs to the folder itself, not to its name. When the folder was exchanged while this call waited, it
    starts again with the folder that now has the name. Whoever locks the run of one question of a study also holds a
    shared lock of the study, which is exchanged as a whole.

    Raises:
        OutputError: Another process held the lock for too long.
    """
    held = _held_folders()
    if folder in held:
        if shared < held[folder]:
            raise RuntimeError(f"{folder} is being read in this thread and cannot be written meanwhile")
        yield
        return
    with ExitStack() as outer:
        study = folder.parent.parent
        if (study / RUN_MARKER).is_file() and study not in held:
            outer.enter_context(locked(study, shared=True))
        descriptor = _lock(folder, shared)
        held[folder] = shared
        try:
            yield
        finally:
            del held[folder]
            if descriptor is not None:
                _unlock(descriptor)


def is_locked(folder: Path) -> bool:
    """Say whether this thread holds the lock of a folder."""
    return folder in _held_folders()


def _held_folders() -> dict[Path, bool]:
    """Return the folders that this thread has locked, and whether the lock is a shared one."""
    folders: dict[Path, bool] = vars(_held).setdefault("folders", {})
    return folders


def _lock(folder: Path, shared: bool) -> int | None:
    patience = READER_SECONDS if shared else WRITER_SECONDS
    deadline = time.monotonic() + patience
    while HAS_LOCKS:
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except OSError:
            return None  # it is gone or not readable; what is done next will say so
        try:
            if not _lock_before(descriptor, shared, deadline):
                raise OutputError(
                    f"another process has been using {folder} for {patience:.0f} seconds; end it and run this again"
                )
            if _still_named(descriptor, folder):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    return None


def _lock_before(descriptor: int, shared: bool, deadline: float) -> bool:
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    pause = 0.001
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
        except OSError:
            return True  # a file system without locks
        else:
            return True


def _unlock(descriptor: int) -> None:
    import fcntl

    with suppress(OSError):  # said aloud: a process that was forked meanwhile has the descriptor too
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _still_named(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        return False


def sync_tree(folder: Path) -> None:
    """Bring every file of a folder, and the folder, to the disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            sync_file(path)
    sync_directory(folder)


def sync_file(path: Path) -> None:
    """Bring a file to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_directory(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
