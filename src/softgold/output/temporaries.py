"""Temporary siblings of targets: their names, whose they are, and removal of those that dead processes left."""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATTERN = re.compile(r"\.softgold-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]{6}-", re.ASCII)
# The longest name that file systems take has 255 bytes.
KEPT_BYTES = 100

# The temporaries of this process, and what each of them is to become.
_targets: dict[Path, Path] = {}
# Those that a journal still needs, because renaming them failed.
_needed: set[Path] = set()


@contextmanager
def temporary_sibling(target: Path, *, stands_for: Path | None = None) -> Iterator[Path]:
    """Give an unused name beside `target`, and remove what is there in the end; errors name what it stands for.

    The name carries the host, the process id and the start time of the process, by which `dead_temporaries` knows
    whether its owner is alive. It ends with the target's name: NumPy, pandas and gzip choose
    the format by its suffix.
    """
    tail = os.fsencode(target.name)[-KEPT_BYTES:].decode("utf-8", "ignore")
    pid = os.getpid()
    temporary = target.with_name(f".softgold-{_host()}-{pid}-{_start_time(pid) or 0}-{secrets.token_hex(3)}-{tail}")
    _targets[temporary] = stands_for or target
    try:
        yield temporary
    finally:
        del _targets[temporary]
        if temporary not in _needed:
            try:
                remove(temporary)
            except BaseException:  # Ctrl-C, or a request to end: what is left goes first
                remove(temporary)
                raise


def is_temporary(name: str) -> bool:
    """Say whether a file name is one that `temporary_sibling` gives."""
    return PATTERN.match(name) is not None


def leave_for_journal(path: Path) -> None:
    """Do not remove a temporary, or the one that a file is in, because the next process needs it to go on."""
    _needed.update(place for place in (path, *path.parents) if place in _targets)


def is_own(path: Path) -> bool:
    """Say whether a path is a temporary of this process, or inside one: nobody else looks there."""
    return any(place in _targets for place in (path, *path.parents))


def public_path(path: Path) -> Path:
    """Return the path under which a person will find a file: a temporary's target in place of the temporary."""
    for place in (path, *path.parents):
        if place in _targets:
            return public_path(_targets[place] / path.relative_to(place))
    return path


def dead_temporaries(folder: Path) -> list[Path]:
    """Return the temporaries in a folder whose process has ended, of this host only: of others nobody can tell."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, PATTERN.match(entry.name)) for entry in entries]
    except OSError:
        return []
    host = _host()
    return [
        Path(path)
        for path, match in found
        if match is not None and match["host"] == host and not _alive(int(match["pid"]), match["start"])
    ]


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and can be removed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _host() -> str:
    """Return a short name of this machine and, in a container, of its process ids."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{zlib.crc32(f'{platform.node()} {namespace}'.encode()):08x}"


def _alive(pid: int, start: str) -> bool:
    if not Path("/proc/self/stat").exists():
        return _answers(pid)
    return _start_time(pid) == start


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start_time(pid: int) -> str | None:
    """Return when a process started, in ticks since the boot; None if it has ended or the system does not say."""
    try:
        # The command name, in parentheses, may have spaces and parentheses in it.
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else fields[18].decode()
