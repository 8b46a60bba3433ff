"""A fit on disk: soft_labels.csv, annotators.csv, posterior.npz, votes.parquet and run.json."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgold.errors import SoftgoldError, StorageError
from softgold.models.base import Diagnostics, Fit, Posterior, find_model
from softgold.output import PathLike, atomic_directory, write_json, write_table
from softgold.runs.files import cause, file_digest, pack_ids, read_arrays, read_json, unpack_ids, write_arrays
from softgold.runs.typed import decode
from softgold.tables.study import are_strangers
from softgold.tables.votes import VoteTable

__all__ = [
    "ANNOTATORS",
    "POSTERIOR",
    "RECORD",
    "SOFT_LABELS",
    "VOTES",
    "Round",
    "RunRecord",
    "read_annotators",
    "read_fit",
    "read_record",
    "read_stored_votes",
    "save_fit",
    "votes_digest",
]

SOFT_LABELS, ANNOTATORS = "soft_labels.csv", "annotators.csv"
POSTERIOR, VOTES, RECORD = "posterior.npz", "votes.parquet", "run.json"
FORMAT, VERSION = "softgold run", 3
PACKAGES = ("softgold", "numpy", "scipy", "pandas", "torch", "pyro-ppl")


@dataclass(frozen=True)
class VoteRecord:
    """The votes of a run: source, digest, counts, and what their table cannot hold.

    Attributes:
        source: File that they were read from; None for votes from memory.
        digest: See `votes_digest`.
        items: Number of items.
        annotators: Number of annotators.
        votes: Number of votes.
        abstentions: Number of empty votes.
        abstained_items: Items with abstentions only.
        abstained_annotators: Annotators who only abstained.
        notes: What the reader decided, one sentence each.
    """

    source: str | None
    digest: str
    items: int
    annotators: int
    votes: int
    abstentions: int
    abstained_items: tuple[str, ...]
    abstained_annotators: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Round:
    """One round of a campaign: the first fit, or an update with further votes.

    Attributes:
        new_votes: Votes that the round added.
        votes: Votes after it.
        items: Items after it.
        annotators: Annotators after it.
        expected_error: Expected share of wrong labels after it, the mean of min(p, 1 - p).
        cost: What its votes cost; None where it was not said.
        source: File that the votes came from.
    """

    new_votes: int
    votes: int
    items: int
    annotators: int
    expected_error: float
    cost: float | None = None
    source: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """The contents of run.json.

    Attributes:
        format: "softgold run".
        version: Version of the layout.
        input: The votes.
        model: Name of the model.
        settings: Its settings.
        samples: Posterior draws behind p; None for the exact p.
        diagnostics: How the fit went; `seconds` is kept in `timings`.
        files: Digest of each file of the fit.
        versions: Versions of the packages in use; None for one that was not installed.
        timings: Seconds that the fit took.
        history: Rounds of votes; empty before the first update.
    """

    format: str
    version: int
    input: VoteRecord
    model: str
    settings: Mapping[str, Any]
    samples: int | None
    diagnostics: Diagnostics
    files: Mapping[str, str]
    versions: Mapping[str, str | None]
    timings: Mapping[str, float]
    history: tuple[Round, ...] = ()


def save_fit(
    fit: Fit,
    path: PathLike,
    *,
    samples: int | None = None,
    source: str | None = None,
    force: bool = False,
    history: tuple[Round, ...] = (),
) -> None:
    """Write a run directory, atomically.

    Args:
        fit: What `softgold.fit` returned.
        path: Directory to write.
        samples: Write p as the share of this many posterior draws, with the fit's seed, instead of exactly.
        source: File that the votes came from, for the record.
        force: Replace an existing run.
        history: Rounds of votes. A run that is replaced by its next round keeps its other files, such as a calibration.
    """
    posterior, votes = fit.posterior, fit.votes
    labels = posterior.soft_labels()
    if samples is not None:
        labels = posterior.sample_soft_labels(samples, seed=getattr(fit.settings, "seed", 0))
    arrays = dict(posterior.to_arrays())
    for name in ("item_ids", "annotator_ids"):
        arrays[f"{name}_utf8"], arrays[f"{name}_ends"] = pack_ids(getattr(posterior, name))
    frame = votes.to_frame()
    with atomic_directory(path, force=force, marker=RECORD) as folder:
        if history:
            _copy_others(Path(path), folder)
        write_table(labels.to_frame(), folder / SOFT_LABELS)
        write_table(_annotator_table(posterior), folder / ANNOTATORS)
        write_table(frame if votes.weights is None else frame.assign(weight=votes.weights), folder / VOTES)
        write_arrays(folder / POSTERIOR, arrays)
        files = {name: file_digest(folder / name) for name in (SOFT_LABELS, ANNOTATORS, VOTES, POSTERIOR)}
        write_json(replace(_record(fit, samples, source, files), history=history), folder / RECORD)


def _copy_others(before: Path, folder: Path) -> None:
    """Copy the files of a run that a fit does not write."""
    written = {SOFT_LABELS, ANNOTATORS, POSTERIOR, VOTES, RECORD}
    for path in before.iterdir() if before.is_dir() else ():
        if path.is_file() and path.name not in written:
            shutil.copy2(path, folder / path.name)


def _annotator_table(posterior: Posterior) -> pd.DataFrame:
    """Return one row per annotator, or one row for all if they are strangers, of whom each gave one vote."""
    table = posterior.annotators()
    if not are_strangers(posterior.annotator_ids):
        return table
    means = table.drop(columns="annotator").mean().to_frame().T
    return means.assign(n_votes=table["n_votes"].sum()).assign(annotator="strangers")[table.columns]


def _record(fit: Fit, samples: int | None, source: str | None, files: Mapping[str, str]) -> RunRecord:
    votes = fit.votes
    given = VoteRecord(
        source,
        votes_digest(votes),
        votes.n_items,
        votes.n_annotators,
        votes.n_votes,
        votes.n_abstentions,
        votes.abstained_items,
        votes.abstained_annotators,
        votes.notes,
    )
    # Two runs with one seed are equal but for what is in `timings`.
    diagnostics = replace(fit.diagnostics, seconds=float("nan"))
    settings, versions = asdict(fit.settings), {name: _version_of(name) for name in PACKAGES}
    timings = {"fit_seconds": fit.diagnostics.seconds}
    return RunRecord(FORMAT, VERSION, given, fit.model, settings, samples, diagnostics, files, versions, timings)


def votes_digest(votes: VoteTable) -> str:
    """Return a SHA-256 of the votes, ids and order included."""
    digest = hashlib.sha256()
    for ids in (votes.item_ids, votes.annotator_ids):
        data, ends = pack_ids(ids)
        digest.update(ends.tobytes())
        digest.update(data.tobytes())
    for array in (votes.item_codes, votes.annotator_codes, votes.votes, votes.weights):
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def read_record(folder: Path) -> RunRecord:
    """Read run.json.

    Raises:
        StorageError: It is missing, damaged, or of another version.
    """
    path = folder / RECORD
    value = read_json(path, "softgold fit")
    if value.get("format") != FORMAT:
        raise StorageError(f"{path} is not the record of a fit (it has no format {FORMAT!r})")
    if value.get("version") != VERSION:
        raise StorageError(
            f"{path} was written by another version of softgold (format {value.get('version')!r}, this one reads "
            f"{VERSION}); fit the votes again"
        )
    try:
        record: RunRecord = decode(RunRecord, value, RECORD)
    except (ValueError, OverflowError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None
    seconds = record.timings.get("fit_seconds", float("nan"))
    return replace(record, diagnostics=replace(record.diagnostics, seconds=seconds))


def read_fit(folder: Path, record: RunRecord) -> Fit:
    """Read the fit that `save_fit` wrote.

    Raises:
        StorageError: A file is missing, damaged, or does not fit the others.
    """
    arrays, votes = read_arrays(folder / POSTERIOR), read_stored_votes(folder, record)
    try:
        model = find_model(record.model)
        settings = model.checked_settings(**record.settings)
        items, annotators = unpack_ids(arrays, "item_ids"), unpack_ids(arrays, "annotator_ids")
        posterior = model.posterior(arrays, items, annotators, settings)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, SoftgoldError) as error:
        raise StorageError(f"{folder} is not a run that this version can read: {cause(error)}") from None
    return Fit(model.name, settings, votes, posterior, record.diagnostics)


def read_stored_votes(folder: Path, record: RunRecord) -> VoteTable:
    """Read the votes that a run was fitted to, abstentions counted.

    Raises:
        StorageError: They are missing or damaged.
    """
    path = folder / VOTES
    if not path.is_file():
        raise StorageError(f"there is no {path}; fit the votes again")
    try:
        with path.open("rb") as file:  # Arrow takes no path that is not UTF-8
            frame = pd.read_parquet(file)
        if not np.isin(frame["vote"].to_numpy(), (0, 1)).all():
            raise ValueError("a vote is neither 0 nor 1")
        items, item_ids = pd.factorize(frame["item"])
        annotators, annotator_ids = pd.factorize(frame["annotator"])
        return VoteTable.from_codes(
            items,
            annotators,
            frame["vote"].to_numpy(),
            item_ids,
            annotator_ids,
            weights=frame["weight"].to_numpy() if "weight" in frame else None,
            n_abstentions=record.input.abstentions,
            abstained_items=record.input.abstained_items,
            abstained_annotators=record.input.abstained_annotators,
            notes=record.input.notes,
        )
    except Exception as error:  # as in `read_arrays`
        raise StorageError(f"{path} is damaged or not ours: {cause(error)}") from None


def read_annotators(folder: Path) -> pd.DataFrame:
    """Read annotators.csv: `annotator` as text, everything else as numbers.

    Raises:
        StorageError: It is missing or damaged.
    """
    path = folder / ANNOTATORS
    if not path.is_file():
        raise StorageError(f"there is no {path}; 'softgold fit' writes it")
    try:
        # An annotator may be called NA; only numbers can be missing.
        table = pd.read_csv(path, dtype="str", keep_default_na=False)
        numbers = table.columns.drop("annotator")
        table[numbers] = table[numbers].replace("", "nan").astype(np.float64)
        _check_annotators(table)
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(f"{path} is damaged: {cause(error)}") from None
    return table


def _check_annotators(table: pd.DataFrame) -> None:
    def check(name: str, holds: Any, rule: str) -> None:
        if name in table and not holds.all():
            row = int(np.argmin(holds))
            raise ValueError(f"{name} must be {rule}, got {table[name].iloc[row]} (row {row + 2})")

    counts = table["n_votes"]
    check("n_votes", (counts >= 1) & (counts == np.rint(counts)) & (counts < 2**53), "a whole number above 0")
    for name in ("sensitivity", "specificity", "p_adversarial", "agreement"):
        if name in table:
            check(name, table[name].between(0, 1) | (table[name].isna() & (name == "agreement")), "between 0 and 1")
    for name in ("ability_mean", "ability_sd", "ability_lo", "ability_hi"):
        if name in table:
            check(name, np.isfinite(table[name]), "a finite number")
