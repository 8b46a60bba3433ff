"""A journal of renames that belong together, which the next process completes if the one that wrote it was killed.

The journal of a folder is the file `.softgold-journal` in it or in a folder above it, or a link to the journal of
another folder when one update concerns several. It appears whole, by a rename, and from then on the update is decided:
whoever finds it carries out the renames that are left, while holding the locks of all folders concerned.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from softgold.errors import OutputError
from softgold.output.system import is_locked, locked, sync_directory, sync_file
from softgold.output.temporaries import (
    dead_temporaries,
    is_own,
    is_temporary,
    leave_for_journal,
    remove,
    temporary_sibling,
)

JOURNAL = ".softgold-journal"
FORMAT = "softgold journal 1"
DEPTH = 3  # from a file of one question of a study to the study
MOST_BYTES = 2 * 10**7  # a study with tens of thousands of questions

Rename = tuple[Path, Path]


def replace_together(renames: Sequence[Rename], *, check: Callable[[], object]) -> None:
    """Rename each temporary to its target, all or none of them even if the process is killed.

    Args:
        renames: Pairs (temporary, target). A temporary is a sibling of its target, or has the target's place in a
            temporary folder that is beside the target or further up.
        check: Called when the folders are locked; what it raises stops the update before anything has changed.
    """
    folders = sorted({target.parent for _, target in renames})
    with ExitStack() as locks:
        for folder in _concerned(renames, folders):
            locks.enter_context(locked(folder))
        for folder in folders:
            _complete(folder)
        check()
        try:
            _announce(renames, folders)
            if _read(folders[0] / JOURNAL) is None:
                raise RuntimeError(f"the journal of {folders[0]} cannot be read back")
            _complete(folders[0])
        except BaseException:  # Ctrl-C, or a request to end
            _end_interrupted(renames, folders)
            raise


def _end_interrupted(renames: Sequence[Rename], folders: Sequence[Path]) -> None:
    """Complete an update that is decided, because its journal is there, or remove the links of one that is not."""
    if _read(folders[0] / JOURNAL) is not None:
        for temporary, _ in renames:
            leave_for_journal(temporary)
    for folder in folders:
        _complete(folder)
    for temporary, _ in renames:
        _clear(temporary)


def settle(path: str | os.PathLike[str]) -> None:
    """Complete updates that a killed process left halfway; call it before reading a file or folder.

    Args:
        path: The file or folder. Its own updates are completed, and those of the folders that it is in.
    """
    place = Path(os.path.realpath(path))
    for folder in (place, *place.parents[:DEPTH]):
        if is_own(folder) or not _is_open(folder / JOURNAL):
            continue
        renames, folders = _read(Path(os.path.realpath(folder / JOURNAL))) or ([], [folder])
        concerned = _concerned(renames, folders)
        if any(is_locked(one) for one in concerned):  # whoever holds a lock has settled before
            continue
        with ExitStack() as locks:
            for one in concerned:
                locks.enter_context(locked(one))
            _complete(folder)


def _concerned(renames: Sequence[Rename], folders: Sequence[Path]) -> list[Path]:
    """Return the folders to lock, outer ones first: those with the targets, and those that are targets themselves."""
    return sorted({*folders, *(target for _, target in renames if target.is_dir())})


def _is_open(journal: Path) -> bool:
    """Say whether there is something to complete or to clear: a journal of ours, or a link to one that is gone."""
    return _read(Path(os.path.realpath(journal))) is not None or (journal.is_symlink() and not journal.exists())


@contextmanager
def reading(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Let a block read several files of a folder while no other process of softgold replaces any of them.

    Updates that were killed halfway are completed before. The block must not write to the folder.
    """
    place = Path(os.path.realpath(folder))
    if is_own(place) or is_locked(place):
        yield
        return
    settle(place)
    with locked(place, shared=True):
        yield


def sweep(folder: Path) -> None:
    """Complete interrupted updates of a folder and remove the temporaries of dead processes."""
    # In this order: a process that was dead when the temporaries were listed has written its journal before.
    found = dead_temporaries(folder)
    settle(folder)
    for path in found:
        remove(path)


def _announce(renames: Sequence[Rename], folders: Sequence[Path]) -> None:
    """Write the journal to the first folder; links to it, which mean nothing before it is there, to the others."""
    home = folders[0]
    for folder in folders[1:]:
        if home in folder.parents[:DEPTH]:
            continue
        with temporary_sibling(folder / JOURNAL) as link:
            link.symlink_to(os.path.relpath(home / JOURNAL, folder))
            link.replace(folder / JOURNAL)
        sync_directory(folder)
    listed = [[os.path.relpath(path, home) for path in pair] for pair in renames]
    text = json.dumps({"format": FORMAT, "renames": listed, "folders": [os.path.relpath(f, home) for f in folders]})
    with temporary_sibling(home / JOURNAL) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
        sync_file(temporary)
        temporary.replace(home / JOURNAL)
    sync_directory(home)


def _complete(folder: Path) -> None:
    """Carry out what is left of the journal of a folder, whose lock is held, and remove it."""
    journal = Path(os.path.realpath(folder / JOURNAL))
    read = _read(journal)
    if read is None:
        if (folder / JOURNAL).is_symlink():
            (folder / JOURNAL).unlink(missing_ok=True)  # the update was killed before it was decided
        return
    renames, folders = read
    try:
        for temporary, target in renames:
            _carry_out(temporary, target)
        for place in folders:
            sync_directory(place)
    except OSError as error:
        raise OutputError(
            f"an update of {folder} was interrupted and cannot be completed: {os.strerror(error.errno or 0)}"
        ) from error
    journal.unlink(missing_ok=True)
    for place in folders:
        if (place / JOURNAL).is_symlink():
            (place / JOURNAL).unlink(missing_ok=True)
    for temporary, _ in renames:
        _clear(temporary)


def _carry_out(temporary: Path, target: Path) -> None:
    """Rename, if that has not been done; a folder that is in the way is put aside first."""
    if not os.path.lexists(temporary):
        return
    if target.is_dir() and not target.is_symlink():
        with suppress(FileNotFoundError):  # another process may complete the same journal where there are no locks
            target.rename(temporary.with_name(f"{temporary.name}-{secrets.token_hex(2)}-old"))
    with suppress(FileNotFoundError):
        temporary.replace(target)


def _clear(temporary: Path) -> None:
    """Remove what the renames leave: the old folder, and the folder that held the temporaries."""
    root = _temporary_root(temporary)
    if root != temporary:
        remove(root)
    elif temporary.parent.is_dir():
        for old in temporary.parent.glob(f"{temporary.name}-*-old"):
            remove(old)


def _read(journal: Path) -> tuple[list[Rename], list[Path]] | None:
    """Return the renames and folders of a journal; None if there is none, or if it is not one of ours.

    Only temporaries of a folder are ever renamed, and only to names in or below that folder, so that a journal in a
    folder from elsewhere can do no harm.
    """
    try:
        if not journal.is_file() or journal.stat().st_size > MOST_BYTES:
            return None
        record = json.loads(journal.read_text(encoding="utf-8", errors="surrogateescape"))
        renames = [_rename(journal.parent, pair) for pair in record["renames"]]
        folders = [Path(os.path.normpath(journal.parent / name)) for name in record["folders"]]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return (renames, folders) if record.get("format") == FORMAT else None


def _rename(home: Path, pair: Any) -> Rename:
    temporary, target = (Path(os.path.normpath(home / str(name))) for name in pair)
    root = _temporary_root(temporary)
    belongs = root.parent == target.parent if root == temporary else root.parent / temporary.relative_to(root) == target
    if not belongs:
        raise ValueError(f"{temporary} is not a temporary of {target}")
    return temporary, target


def _temporary_root(path: Path) -> Path:
    """Return the temporary that a path is, or the temporary folder that it is in.

    Raises:
        ValueError: There is none.
    """
    for place in (path, *path.parents):
        if is_temporary(place.name):
            return place
    raise ValueError(f"{path} is not in a temporary")
