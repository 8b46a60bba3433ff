"""A folder rebuilt beside itself: the new files, hard links to those that stay, and one exchange."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from softgold.output.system import RUN_MARKER, exchange, sync_directory
from softgold.output.temporaries import dead_temporaries

# Links cost a system call each. A folder with more files than any run is someone else's, and is updated in place.
MOST_FILES = 1000


def can_rebuild(folder: Path) -> bool:
    """Say whether a folder is a run that may be exchanged: ours, in a writable folder, not the working directory."""
    try:
        return (
            (folder / RUN_MARKER).is_file()
            and folder.stat().st_uid == os.geteuid()
            and os.access(folder.parent, os.W_OK | os.X_OK)
            and not Path.cwd().is_relative_to(folder)
            and sum(len(files) for _, _, files in os.walk(folder)) <= MOST_FILES
        )
    except (OSError, AttributeError):  # AttributeError: not a POSIX system
        return False


def exchange_rebuilt(new: Path, folder: Path, names: Sequence[str]) -> bool:
    """Link what stays of `folder` into `new`, which has the files `names`, and let the two trade places.

    The lock of the folder is held. Return False, with `new` as it was, if links or exchange are not supported.
    """
    try:
        _link_others(folder, new, set(names))
        shutil.copystat(folder, new)
        os.chown(new, -1, folder.stat().st_gid)
        os.utime(new)
        sync_directory(new)
        done = exchange(new, folder)
    except OSError:
        done = False
    if not done:
        _unlink_others(new, set(names))
    sync_directory(folder.parent)
    return done


def _link_others(source: Path, target: Path, left_out: set[str]) -> None:
    """Link the files of a folder into another, those of dead processes left out.

    Args:
        source: The folder.
        target: The other; it may have subfolders with some of the files in `left_out` already.
        left_out: Paths of files that are not linked, relative to the folder.
    """
    dead = {path.name for path in dead_temporaries(source)}
    for entry in os.scandir(source):
        if entry.name in left_out or entry.name in dead:
            continue
        if entry.is_dir(follow_symlinks=False):
            (target / entry.name).mkdir(exist_ok=True)
            inside = {name.partition("/")[2] for name in left_out if name.startswith(f"{entry.name}/")}
            _link_others(Path(entry.path), target / entry.name, inside)
            shutil.copystat(entry.path, target / entry.name)
        else:
            os.link(entry.path, target / entry.name, follow_symlinks=False)


def _unlink_others(folder: Path, kept: set[str]) -> None:
    for entry in os.scandir(folder):
        inside = {name.partition("/")[2] for name in kept if name.startswith(f"{entry.name}/")}
        if entry.name in kept:
            continue
        if entry.is_dir(follow_symlinks=False) and inside:
            _unlink_others(Path(entry.path), inside)
        elif entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()
