"""Files and folders that are replaced as a whole: see the package for how."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from softgold.errors import OutputError
from softgold.output.journal import replace_together, sweep
from softgold.output.rebuild import can_rebuild, exchange_rebuilt
from softgold.output.system import RUN_MARKER, exchange, locked, rename_new, sync_directory, sync_file, sync_tree
from softgold.output.targets import (
    PathLike,
    Stamps,
    as_output_error,
    check_target,
    refuse_replaced,
    stamps,
)
from softgold.output.temporaries import is_own, temporary_sibling

_written = 0


def count_written() -> int:
    """Return how many targets this process has replaced so far, not counting those inside its own temporaries."""
    return _written


def _count(target: Path) -> None:
    global _written  # noqa: PLW0603 - a counter of the process
    _written += not is_own(target)


@contextmanager
def atomic_file(path: PathLike, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary sibling to write to, and rename it to `path` when the block ends well.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with atomic_file(f"{folder}/greeting.txt") as temporary:
        ...     _ = temporary.write_text("hello")
        >>> os.listdir(folder)
        ['greeting.txt']
    """
    target = check_target(path, force=force)
    _sweep_around(target.parent)
    with temporary_sibling(target) as temporary:
        with as_output_error(target), _steady(target.parent):
            temporary.touch(exist_ok=False)
        with as_output_error(target, inside=temporary):
            yield temporary
            _finish_file(temporary, target)
        with as_output_error(target), _steady(target.parent):
            check_target(target, force=force)
            _put_file(temporary, target, force)
        _count(target)


def _finish_file(temporary: Path, target: Path) -> None:
    if target.exists():
        shutil.copymode(target, temporary)
    sync_file(temporary)


def _put_file(temporary: Path, target: Path, force: bool) -> None:
    if force:
        temporary.replace(target)
    else:
        try:
            rename_new(temporary, target)
        except FileExistsError:  # another process was faster
            check_target(target)
            raise
    sync_directory(target.parent)


@contextmanager
def atomic_files(paths: Sequence[PathLike], *, force: bool = False) -> Iterator[list[Path]]:
    """Give one temporary path per file, and replace all targets together when the block has written them.

    The files may be in different folders. After a kill, all of them are old or all of them new as soon as softgold next
    writes to one of the folders.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with atomic_files([f"{folder}/sheet.csv", f"{folder}/key.csv"]) as (sheet, key):
        ...     _ = sheet.write_text("item,label"), key.write_text("item,bin")
        >>> sorted(os.listdir(folder))
        ['key.csv', 'sheet.csv']
    """
    targets = [check_target(path, force=force) for path in paths]
    if len(set(targets)) < len(targets):
        raise OutputError(f"two results cannot be written to one file: {_repeated(targets)}")
    for folder in {target.parent for target in targets}:
        _sweep_around(folder)
    with ExitStack() as removal:
        temporaries = [removal.enter_context(temporary_sibling(target)) for target in targets]
        with ExitStack() as explained:
            for temporary, target in zip(temporaries, targets, strict=True):
                explained.enter_context(as_output_error(target, inside=temporary))
            yield temporaries
            for temporary, target in zip(temporaries, targets, strict=True):
                _finish_file(temporary, target)
        with as_output_error(targets[0]):
            renames = list(zip(temporaries, targets, strict=True))
            replace_together(renames, check=lambda: [check_target(target, force=force) for target in targets])
        _count(targets[0])


def _repeated(targets: Sequence[Path]) -> Path:
    return next(target for at, target in enumerate(targets) if target in targets[:at])


@contextmanager
def atomic_directory(path: PathLike, *, force: bool = False, marker: str = RUN_MARKER) -> Iterator[Path]:
    """Give a temporary sibling directory to fill, and let it take the name `path` when the block ends well.

    Args:
        path: Where the directory is to be.
        force: Replace an existing directory, which must be empty or hold the marker.
        marker: Name of a file that the block writes, by which a later call recognises the directory as one of ours.
    """
    target = check_target(path, force=force, directory=True, marker=marker)
    _sweep_around(target.parent)
    with temporary_sibling(target) as temporary:
        with as_output_error(target):
            temporary.mkdir()
        with as_output_error(target, inside=temporary):
            yield temporary
            if not (temporary / marker).is_file():
                raise RuntimeError(f"the block that fills {target} did not write {marker}")
            sync_tree(temporary)
        with as_output_error(target):
            _put_directory(temporary, target, force, marker)
        _count(target)


def _put_directory(temporary: Path, target: Path, force: bool, marker: str) -> None:
    def check() -> None:
        check_target(target, force=force, directory=True, marker=marker)

    check()
    if not target.exists():
        try:
            rename_new(temporary, target)
            sync_directory(target.parent)
            return
        except FileExistsError:  # another process was faster
            check()
    with _turn(target):
        check()
        shutil.copymode(target, temporary)
        exchanged = exchange(temporary, target)
    if not exchanged:
        replace_together([(temporary, target)], check=check)
    sync_directory(target.parent)


@contextmanager
def update_directory(
    path: PathLike, names: Sequence[str], *, force: bool = False, began: Stamps | None = None
) -> Iterator[Path]:
    """Give a temporary directory in which to write the files `names`, then put them into the directory `path` together.

    The other files of `path` stay as they are. A run directory holds the old files or the new ones at every moment; in
    any other folder, an update that was killed halfway is completed by the next command that writes there.

    Args:
        path: The directory.
        names: Paths of the files, relative to it.
        force: Replace files that exist.
        began: The `stamps` of the run that the files were made from; that of the run as it is now if left out.

    Raises:
        OutputError: A file exists and `force` is not given, or another process replaced the whole run meanwhile.
    """
    folder = Path(os.path.realpath(path))
    if not folder.is_dir():
        raise OutputError(f"cannot add to {path}: it is not a folder")
    for name in names:
        check_target(folder / name, force=force)
    _sweep_around(folder)
    began = began or stamps(folder)
    rebuild = not is_own(folder) and can_rebuild(folder)
    with temporary_sibling(folder if rebuild else folder / "update", stands_for=folder) as temporary:
        with as_output_error(folder):
            temporary.mkdir()
        with as_output_error(folder, inside=temporary):
            yield temporary
            for name in names:
                _finish_file(temporary / name, folder / name)
        with as_output_error(folder):
            if not (rebuild and _exchange_whole(temporary, folder, names, force, began)):
                _replace_each(temporary, folder, names, force, began)
        _count(folder)


@contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make a folder for what a block writes, if there is none; if the block fails, remove it again."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    with as_output_error(path):
        path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # somebody else has written there
            for place in missing:
                place.rmdir()
        raise


def _exchange_whole(temporary: Path, folder: Path, names: Sequence[str], force: bool, began: Stamps) -> bool:
    with _turn(folder):
        for name in names:
            check_target(folder / name, force=force)
        refuse_replaced(folder, began)
        return exchange_rebuilt(temporary, folder, names)


def _replace_each(temporary: Path, folder: Path, names: Sequence[str], force: bool, began: Stamps) -> None:
    def check() -> None:
        for name in names:
            check_target(folder / name, force=force)
        refuse_replaced(folder, began)

    if temporary.parent == folder:
        replace_together([(temporary / name, folder / name) for name in names], check=check)
        return
    # The folder cannot be exchanged after all. A mounted one needs copies: nothing can be renamed into it.
    with temporary_sibling(folder / "update", stands_for=folder) as inside:
        shutil.copytree(temporary, inside)
        sync_tree(inside)
        replace_together([(inside / name, folder / name) for name in names], check=check)


def _turn(folder: Path) -> ExitStack | nullcontext[None]:
    """Give the lock of a folder that is about to be exchanged; one of our own temporaries needs none."""
    if is_own(folder):
        return nullcontext()
    stack = ExitStack()
    stack.enter_context(locked(folder))
    return stack


def _steady(folder: Path) -> ExitStack | nullcontext[None]:
    """Give a lock under which a run directory is not exchanged; in other folders there is nothing to wait for."""
    if is_own(folder) or not (folder / RUN_MARKER).is_file():
        return nullcontext()
    stack = ExitStack()
    stack.enter_context(locked(folder, shared=True))
    return stack


def _sweep_around(folder: Path) -> None:
    """Remove what killed processes left in a folder, and beside it if it is a run."""
    if is_own(folder):
        return
    sweep(folder)
    if (folder / RUN_MARKER).is_file():
        sweep(folder.parent)
