"""Writing that is there whole or not at all: a temporary sibling, fsync, rename.

Whatever interrupts the writing (an error, Ctrl-C, a full disk), no half-written file stays and an existing target
is as it was. Nothing that exists is replaced unless `force` is given.
"""

from __future__ import annotations

import csv
import errno
import gzip
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from softgold.errors import OutputError, SoftgoldError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "atomic_directory",
    "atomic_file",
    "check_target",
    "json_text",
    "table_text",
    "to_jsonable",
    "update_directory",
    "write_json",
    "write_table",
]

PathLike = str | os.PathLike[str]
RUN_MARKER = "run.json"


def check_target(path: PathLike, *, force: bool = False, directory: bool = False, marker: str = RUN_MARKER) -> Path:
    """Return the real path of an output, or say now, before long work, why it could not be written there.

    Args:
        path: Where the file or directory is to be.
        force: Accept a target that exists.
        directory: The target is a directory.
        marker: An existing directory is replaced only if it is empty or has a file of this name in it, so that a
            mistyped `-o` cannot remove a folder that softgold did not make.
    """
    target = Path(os.path.realpath(path))
    parent = target.parent
    with _as_output_error(target):
        if not parent.is_dir():
            raise OutputError(f"cannot write {path}: the folder {parent} does not exist")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise OutputError(f"cannot write {path}: the folder {parent} is not writable")
        if target.exists():
            _check_existing(target, force, directory, marker)
    return target


def _check_existing(target: Path, force: bool, directory: bool, marker: str) -> None:
    if directory and not target.is_dir():
        raise OutputError(f"cannot write {target}: it is a file, and a folder is to be written")
    if not directory and not target.is_file():
        kind = "a folder" if target.is_dir() else "not a regular file"
        raise OutputError(f"cannot write {target}: it is {kind}, and a file is to be written")
    if not force:
        raise OutputError(f"{target} exists already; give --force (force=True) to replace it")
    if directory and any(target.iterdir()) and not (target / marker).is_file():
        raise OutputError(
            f"{target} will not be replaced: it is not empty and has no {marker}, so softgold did not make it"
        )


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
    temporary = _sibling(target)
    try:
        with _as_output_error(target):
            temporary.touch(exist_ok=False)
        with _as_output_error(target, inside=temporary):
            yield temporary
            if target.exists():
                shutil.copymode(target, temporary)
            _sync_file(temporary)
        check_target(target, force=force)
        with _as_output_error(target):
            temporary.replace(target)
            _sync_directory(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: PathLike, *, force: bool = False, marker: str = RUN_MARKER) -> Iterator[Path]:
    """Give a temporary sibling directory to fill, and rename it to `path` when the block ends well.

    An existing directory is first renamed aside, and back again should anything fail; it is removed last.

    Args:
        path: Where the directory is to be.
        force: Replace an existing directory, which must be empty or hold the marker.
        marker: Name of a file that the block writes, by which a later call knows the directory for one of ours.
    """
    target = check_target(path, force=force, directory=True, marker=marker)
    temporary = _sibling(target)
    try:
        with _as_output_error(target):
            temporary.mkdir()
        with _as_output_error(target, inside=temporary):
            yield temporary
            if not (temporary / marker).is_file():
                raise RuntimeError(f"the block that fills {target} did not write {marker}")
            _sync_tree(temporary)
        check_target(target, force=force, directory=True, marker=marker)
        with _as_output_error(target):
            _swap_in(temporary, target)
            _sync_directory(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _swap_in(new: Path, target: Path) -> None:
    if not target.exists():
        new.rename(target)
        return
    aside = _sibling(target)
    try:
        target.rename(aside)
        new.rename(target)
    except BaseException:
        if aside.exists() and not target.exists():
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def update_directory(path: PathLike, names: Sequence[str], *, force: bool = False) -> Iterator[Path]:
    """Give a temporary directory in which to write the files `names`, then move each into the directory `path`.

    The other files of `path` stay. Each file appears whole or not at all.
    """
    folder = Path(os.path.realpath(path))
    if not folder.is_dir():
        raise OutputError(f"cannot add to {path}: it is not a folder")
    targets = {name: check_target(folder / name, force=force) for name in names}
    temporary = _sibling(folder / "update")
    try:
        with _as_output_error(folder):
            temporary.mkdir()
        with _as_output_error(folder, inside=temporary):
            yield temporary
            _sync_tree(temporary)
        with _as_output_error(folder):
            for name, target in targets.items():
                (temporary / name).replace(target)
            _sync_directory(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_table(frame: pd.DataFrame, path: PathLike, *, force: bool = False) -> None:
    """Write a table whole or not at all; the suffix chooses CSV, TSV, either with `.gz`, or Parquet.

    Text files are UTF-8 with `\\n` line ends; numbers are written so that they read back equal; a missing value is
    an empty cell.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    with atomic_file(path, force=force) as temporary:
        if suffixes[-1:] in ([".parquet"], [".pq"]):
            frame.to_parquet(temporary, index=False)
            return
        data = table_text(frame, separator="\t" if ".tsv" in suffixes[-2:] else ",").encode()
        # Without a time stamp the same table gives the same bytes.
        temporary.write_bytes(gzip.compress(data, mtime=0) if suffixes[-1:] == [".gz"] else data)


def table_text(frame: pd.DataFrame, *, separator: str = ",") -> str:
    """Return the table as the text that `write_table` writes.

    >>> import pandas as pd
    >>> table_text(pd.DataFrame({"item": ["007"], "p": [0.1], "b_mean": [float("nan")]}))
    'item,p,b_mean\\n007,0.1,\\n'
    """
    # The csv module of Python 3.11 leaves a lone carriage return unquoted, and readers then see a line end.
    texts = frame.select_dtypes(include=["str", "object"])
    returns = any(texts[name].astype("str").str.contains("\r", regex=False).any() for name in texts)
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return frame.to_csv(index=False, sep=separator, lineterminator="\n", quoting=quoting)


def write_json(value: Any, path: PathLike, *, force: bool = False) -> None:
    """Write a value as JSON, whole or not at all."""
    text = json_text(value)
    with atomic_file(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def json_text(value: Any) -> str:
    """Return `value` as indented JSON with a line end; see `to_jsonable` for what may be in it."""
    return json.dumps(to_jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_jsonable(value: Any) -> Any:
    """Return `value` in JSON's own types.

    Dataclasses and mappings become objects, arrays lists, data frames objects of columns, numbers not finite null.

    >>> to_jsonable({"p": np.array([0.5, np.nan]), "seed": np.int64(7), "run": Path("x")})
    {'p': [0.5, None], 'seed': 7, 'run': 'x'}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.ndarray | np.generic):
        return to_jsonable(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # a data frame, without importing pandas
        value = value.to_dict(orient="list")
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(entry) for key, entry in value.items()}
    return [to_jsonable(entry) for entry in value]


def _sibling(target: Path) -> Path:
    # The end of the name is kept: NumPy, pandas and gzip read meaning from suffixes.
    return target.with_name(f".{secrets.token_hex(4)}-{target.name[-100:]}")


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _sync_file(path)
    _sync_directory(folder)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_directory(folder: Path) -> None:
    # Not every file system can sync a directory; the files themselves are safe by then.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _as_output_error(target: Path, inside: Path | None = None) -> Iterator[None]:
    """Turn the system's error into a sentence; with `inside`, only errors of writing there, not any OSError."""
    try:
        yield
    except SoftgoldError:
        raise
    except OSError as error:
        if inside is not None and not _concerns(error, inside):
            raise
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from error


def _concerns(error: OSError, path: Path) -> bool:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return True
    return error.filename is not None and str(path) in str(error.filename)
