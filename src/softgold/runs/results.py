"""Results that later steps add to a run directory: typed values in one JSON record each, large tables beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd

from softgold import __version__
from softgold.errors import SoftgoldError, StorageError
from softgold.output import Stamps, to_jsonable, update_directory, write_json, write_rows, write_table
from softgold.output.tables import ROWS_AT_ONCE
from softgold.runs.files import cause, file_digest, read_json
from softgold.runs.fits import SOFT_LABELS, SOFT_LABELS_PARQUET
from softgold.runs.typed import decode
from softgold.tables.text import EVERY_DIGIT

VERSION = 1
LABELS = "labels.csv"
REPORT = "report.html"
TEXT_COLUMNS = ("item", "expert", "task")


@dataclass(frozen=True)
class ResultKind:
    """How a kind of result is kept.

    Attributes:
        name: Name of the result, and of the property of a run that gives it.
        type: Its frozen dataclass, as "module:attribute": a result is imported when it is used.
        command: The command that makes it.
        tables: Fields that are kept as tables of their own, with the file of each. A field that is not a frame has
            `to_frame()` and `parts()`, and its type `from_frame(frame)` and `from_parts(parts)`: it may have more rows
            than are turned into a frame at a time.
        exports: Tables for people, which are not read back, with the method that gives each.
        made_from: Files of the run that the result depends on, where they exist.
    """

    name: str
    type: str
    command: str
    tables: Mapping[str, str] = field(default_factory=dict)
    exports: Mapping[str, str] = field(default_factory=dict)
    made_from: tuple[str, ...] = (SOFT_LABELS, SOFT_LABELS_PARQUET)

    @property
    def record(self) -> str:
        """Name of the JSON file."""
        return f"{self.name}.json"

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all its files."""
        return (self.record, *self.tables.values(), *self.exports.values())

    def load_type(self) -> Any:
        """Import and return the dataclass."""
        module, _, attribute = self.type.partition(":")
        return getattr(import_module(module), attribute)


RESULTS = {
    kind.name: kind
    for kind in (
        ResultKind(
            "calibration",
            "softgold.experts.result:Calibration",
            "softgold calibrate",
            tables={"labels": LABELS, "experts": "experts_summary.csv"},
        ),
        ResultKind(
            "evaluation",
            "softgold.evaluation.result:Evaluation",
            "softgold evaluate",
            exports={"to_frame": "metrics.csv"},
            made_from=(SOFT_LABELS, SOFT_LABELS_PARQUET, LABELS),
        ),
        ResultKind(
            "class_evaluation",
            "softgold.evaluation.result:ClassEvaluation",
            "softgold evaluate",
            exports={"to_frame": "metrics.csv"},
        ),
    )
}


def report_path(folder: Path) -> Path:
    """Return where the page on a run is."""
    return folder / REPORT


def kind_of(result: Any) -> ResultKind:
    """Return how a result is kept."""
    name = f"{type(result).__module__}:{type(result).__qualname__}"
    found = [kind for kind in RESULTS.values() if kind.type == name]
    if not found:
        raise TypeError(f"a run directory keeps no {name}")
    return found[0]


def write_result(
    result: Any, folder: Path, *, inputs: Iterable[Path] = (), force: bool = False, began: Stamps | None = None
) -> tuple[Path, ...]:
    """Write a result into a folder, all of its files or none.

    Args:
        result: A value of a type in `RESULTS`.
        folder: A run directory, or any folder.
        inputs: Files given by the user that the result depends on; their digests are recorded.
        force: Replace an older result.
        began: The `stamps` of the run that the result was made from; that of the run as it is now if left out.

    Returns:
        The paths that were written.
    """
    kind = kind_of(result)
    with update_directory(folder, kind.files, force=force, began=began) as temporary:
        write_files(result, folder, temporary, inputs)
    return tuple(folder / name for name in kind.files)


def write_files(result: Any, folder: Path, temporary: Path, inputs: Iterable[Path]) -> None:
    """Write the files of a result that belongs to `folder` into `temporary`."""
    kind = kind_of(result)
    for name, file in kind.tables.items():
        value = getattr(result, name)
        parts = [value] if isinstance(value, pd.DataFrame) else (part.to_frame() for part in value.parts())
        write_rows(parts, temporary / file)
    for method, file in kind.exports.items():
        write_table(getattr(result, method)(), temporary / file)
    record = {
        "format": f"softgold {kind.name}",
        "version": VERSION,
        "softgold": __version__,
        "made_from": _digests(folder, kind.made_from),
        "files": _digests(temporary, kind.files),
        "inputs": {path.name: file_digest(path) for path in inputs if path.is_file()},
        **plain_result(result),
    }
    write_json(record, temporary / kind.record)


def result_tables(kind: ResultKind, result: Any) -> dict[str, pd.DataFrame]:
    """Return the tables of a result by the names of their files."""
    kept = {file: getattr(result, name) for name, file in kind.tables.items()}
    exported = {file: getattr(result, method)() for method, file in kind.exports.items()}
    return {
        file: value if isinstance(value, pd.DataFrame) else value.to_frame()
        for file, value in (kept | exported).items()
    }


def check_kinds(results: Iterable[Any]) -> ResultKind:
    """Return the kind of results that are all of one kind."""
    kinds = {kind_of(result).name for result in results}
    if len(kinds) != 1:
        raise TypeError(f"results of one kind are added together, got {sorted(kinds)}")
    return RESULTS[kinds.pop()]


def _digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in names if (folder / name).is_file()}


def changed_files(folder: Path, recorded: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return the files that differ from their recorded digests, or are there only now or only then."""
    names = list(names)
    current = _digests(folder, names)
    return [name for name in names if recorded.get(name) != current.get(name)]


def plain_result(result: Any) -> dict[str, Any]:
    """Return a result without its large tables as JSON's own types, as its record and `--json` show it."""
    tables = kind_of(result).tables
    return {
        entry.name: to_jsonable(getattr(result, entry.name)) for entry in fields(result) if entry.name not in tables
    }


def read_result(folder: Path, kind: ResultKind, *, rows: int | None = None) -> Any:
    """Read what `write_result` wrote.

    Args:
        folder: Where it is.
        kind: Its kind.
        rows: Most rows to read of tables with one row per item.

    Raises:
        StorageError: A file is missing, damaged, or of another version.
    """
    record = _read_record(folder, kind)
    result = kind.load_type()
    hints = get_type_hints(result)
    values: dict[str, Any] = {}
    try:
        for entry in fields(result):
            if entry.name in kind.tables:
                if hints[entry.name] is pd.DataFrame:  # only its digest tells whether it is whole
                    _refuse_changes(folder, kind, kind.tables[entry.name], record)
                values[entry.name] = read_result_table(folder, kind, entry.name, rows=rows)
            elif entry.name in record:
                values[entry.name] = decode(hints[entry.name], record[entry.name], entry.name)
        return result(**values)
    except (ValueError, TypeError, LookupError, OverflowError, SoftgoldError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"{folder / kind.record} is not what this version of softgold writes ({cause(error)}); "
            f"run '{kind.command}' again"
        ) from None


def _refuse_changes(folder: Path, kind: ResultKind, name: str, record: Mapping[str, Any]) -> None:
    files = decode(Mapping[str, str], record.get("files"), "files")
    if (folder / name).is_file() and changed_files(folder, files, [name]):
        raise StorageError(
            f"{folder / name} was changed after '{kind.command}' wrote it; run '{kind.command}' again, with --force"
        )


def changes(folder: Path, kind: ResultKind) -> tuple[list[str], list[str]]:
    """Return the files of a result that were changed since, and those it was made from that are others now."""
    record = _read_record(folder, kind)
    try:
        files, made_from = (decode(Mapping[str, str], record.get(name), name) for name in ("files", "made_from"))
    except ValueError as error:
        raise StorageError(f"{folder / kind.record} is damaged: {error}") from None
    own = (*kind.tables.values(), *kind.exports.values())
    return changed_files(folder, files, own), changed_files(folder, made_from, kind.made_from)


def _read_record(folder: Path, kind: ResultKind) -> dict[str, Any]:
    path = folder / kind.record
    record = read_json(path, kind.command)
    if record.get("format") != f"softgold {kind.name}" or record.get("version") != VERSION:
        raise StorageError(f"{path} was not written by this version of softgold; run '{kind.command}' again")
    return record


def read_result_table(
    folder: Path, kind: ResultKind, name: str, *, columns: Sequence[str] | None = None, rows: int | None = None
) -> Any:
    """Read the field `name` of a result, which is kept as a table of its own.

    Args:
        folder: Where it is.
        kind: The kind of the result.
        name: The field.
        columns: The columns to read, where fewer than all will do.
        rows: Most rows to read of a table with one row per item.

    Raises:
        StorageError: The table is missing or damaged.
    """
    path, hint = folder / kind.tables[name], get_type_hints(kind.load_type())[name]
    if not path.is_file():
        raise StorageError(f"there is no {path}; '{kind.command}' writes it")
    try:
        # Ids may be called NA or look like numbers; only numbers can be missing.
        texts = dict.fromkeys(TEXT_COLUMNS, "str")
        options = {"dtype": texts, "na_values": [""], "keep_default_na": False, "usecols": columns, **EVERY_DIGIT}
        if hint is pd.DataFrame:
            return pd.read_csv(path, **options)
        with pd.read_csv(path, **options, nrows=rows, chunksize=ROWS_AT_ONCE) as frames:
            return hint.from_parts(map(hint.from_frame, frames))
    except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise StorageError(f"{path} is damaged: {cause(error)}") from None
