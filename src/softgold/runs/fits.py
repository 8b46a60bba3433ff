"""A fit on disk: soft_labels.csv, annotators.csv, posterior.npz, votes.parquet and run.json."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgold.errors import SoftgoldError, StorageError
from softgold.models.base import Fit, Posterior, find_model
from softgold.output import PathLike, Stamps, atomic_directory, update_directory, write_json, write_table
from softgold.runs.files import cause, file_digest, pack_ids, read_arrays, unpack_ids, write_arrays
from softgold.runs.records import RECORD, Round, RunRecord, VoteRecord, make_record
from softgold.tables.ids import find_ids
from softgold.tables.soft_labels import DifficultySummary, SoftLabels
from softgold.tables.study import are_strangers
from softgold.tables.votes import VoteTable

SOFT_LABELS, ANNOTATORS = "soft_labels.csv", "annotators.csv"
SOFT_LABELS_PARQUET = "soft_labels.parquet"
POSTERIOR, VOTES = "posterior.npz", "votes.parquet"


def save_fit(
    fit: Fit,
    path: PathLike,
    *,
    samples: int | None = None,
    source: str | None = None,
    force: bool = False,
    history: tuple[Round, ...] = (),
    began: Stamps | None = None,
) -> None:
    """Write a run directory, atomically.

    Args:
        fit: What `softgold.fit` returned.
        path: Directory to write.
        samples: Write p as the share of this many posterior draws, with the fit's seed, instead of exactly.
        source: File that the votes came from, for the record.
        force: Replace an existing run.
        history: Rounds of votes. A run that is replaced by its next round keeps its other files, such as a calibration.
        began: The `stamps` of the run that the next round was made from.
    """
    posterior, votes = fit.posterior, fit.votes
    labels = posterior.soft_labels()
    if samples is not None:
        labels = posterior.sample_soft_labels(samples, seed=getattr(fit.settings, "seed", 0))
    arrays = dict(posterior.to_arrays())
    for name in ("item_ids", "annotator_ids"):
        arrays[f"{name}_utf8"], arrays[f"{name}_ends"] = pack_ids(getattr(posterior, name))
    frame = votes.to_frame()
    # A fit of votes on disk, whose next round this is, has its soft labels in Parquet: there they are looked for.
    parquet = (SOFT_LABELS_PARQUET,) if history and (Path(path) / SOFT_LABELS_PARQUET).is_file() else ()
    names = (SOFT_LABELS, *parquet, ANNOTATORS, VOTES, POSTERIOR)
    with _replacement(path, names, force, history, began) as folder:
        for name in (SOFT_LABELS, *parquet):
            write_table(labels.to_frame(), folder / name)
        write_table(_annotator_table(posterior), folder / ANNOTATORS)
        write_table(frame if votes.weights is None else frame.assign(weight=votes.weights), folder / VOTES)
        write_arrays(folder / POSTERIOR, arrays)
        files = {name: file_digest(folder / name) for name in names}
        write_json(replace(_record(fit, samples, source, files), history=history), folder / RECORD)


def _replacement(
    path: PathLike, names: tuple[str, ...], force: bool, history: tuple[Round, ...], began: Stamps | None
) -> AbstractContextManager[Path]:
    """Give a folder for a whole new run, or for the files of the next round of one."""
    if history and Path(path).is_dir():
        return update_directory(path, (*names, RECORD), force=force, began=began)
    return atomic_directory(path, force=force, marker=RECORD)


def _annotator_table(posterior: Posterior) -> pd.DataFrame:
    """Return one row per annotator, or one row for all if they are strangers, of whom each gave one vote."""
    table = posterior.annotators()
    if not are_strangers(posterior.annotator_ids):
        return table
    means = table.drop(columns="annotator").mean().to_frame().T
    return means.assign(n_votes=table["n_votes"].sum()).assign(annotator="strangers")[table.columns]


def _record(fit: Fit, samples: int | None, source: str | None, files: Mapping[str, str]) -> RunRecord:
    votes = fit.votes
    return make_record(fit.model, fit.settings, fit.diagnostics, _vote_record(votes, source), samples, files)


def _vote_record(votes: VoteTable, source: str | None) -> VoteRecord:
    return VoteRecord(
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


def read_fit(folder: Path, record: RunRecord, stored: StoredPosterior) -> Fit:
    """Read the fit that `save_fit` wrote, with its votes.

    Raises:
        StorageError: A file is missing, damaged, or does not fit the others.
    """
    votes = read_stored_votes(folder, record, stored.posterior)
    return Fit(record.model, stored.settings, votes, stored.posterior, record.diagnostics)


@dataclass(frozen=True, eq=False)
class StoredPosterior:
    """The posterior of a run.

    Attributes:
        posterior: The posterior.
        settings: The settings of its model.
        streamed: Whether its votes were fitted on disk, where they are kept item by item.
    """

    posterior: Posterior
    settings: Any
    streamed: bool


def read_posterior(
    folder: Path, record: RunRecord, soft_labels: Callable[[], SoftLabels], *, brief: bool = False
) -> StoredPosterior:
    """Read the posterior that `save_fit` or `save_streamed` wrote.

    Args:
        folder: The run directory.
        record: Its record.
        soft_labels: Gives the soft labels of the run, which hold the items of a fit of votes on disk.
        brief: Whether these are brief; the posterior then has 0 for the difficulties and expected votes of its items.

    Raises:
        StorageError: A file is missing, damaged, or does not fit the others.
    """
    arrays = read_arrays(folder / POSTERIOR)
    # A fit of votes on disk keeps its items in the table of soft labels.
    streamed = not any(name.startswith("item_") for name in arrays)
    try:
        model = find_model(record.model)
        settings = model.checked_settings(**record.settings)
        annotators = unpack_ids(arrays, "annotator_ids")
        if streamed:
            labels = soft_labels()
            items, arrays = labels.item_ids, arrays | item_arrays(labels, brief=brief)
        else:
            items = unpack_ids(arrays, "item_ids")
        posterior = model.posterior(arrays, items, annotators, settings)
        return StoredPosterior(posterior, settings, streamed)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, SoftgoldError) as error:
        raise StorageError(f"{folder} is not a run that this version can read: {cause(error)}") from None


def item_arrays(labels: SoftLabels, *, brief: bool = False) -> dict[str, Any]:
    """Return what a posterior says of its items, as its arrays, from the table of soft labels; 0 for what is unread."""
    nothing = np.broadcast_to(0.0, len(labels))
    b = DifficultySummary(nothing, nothing, nothing, nothing) if brief else labels.difficulty
    if b is None:
        raise ValueError("the soft labels have no b_mean")
    found = {**vars(b), "positive": labels.p, "expected_vote": nothing if brief else labels.expected_vote}
    counts = {"item_counts": labels.n_votes, "item_positives": labels.n_positive}
    return {f"item_{name}": array for name, array in found.items()} | counts


def soft_labels_path(folder: Path) -> Path:
    """Return where the soft labels of a run are: in Parquet where the votes were fitted on disk, else in CSV."""
    parquet = folder / SOFT_LABELS_PARQUET
    return parquet if parquet.is_file() else folder / SOFT_LABELS


def read_stored_votes(folder: Path, record: RunRecord, posterior: Posterior | None = None) -> VoteTable:
    """Read the votes that a run was fitted to, abstentions counted.

    Args:
        folder: The run directory.
        record: Its record.
        posterior: What was fitted to them, for the order of items and annotators; that of first appearance if None.

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
        items, item_ids = _coded(frame["item"], None if posterior is None else posterior.item_ids)
        annotators, annotator_ids = _coded(frame["annotator"], None if posterior is None else posterior.annotator_ids)
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


def _coded(column: pd.Series[Any], order: pd.Index[str] | None) -> tuple[Any, Any]:
    """Return codes and ids of a column; an abstention may have come first, which the order knows and votes do not."""
    codes, ids = pd.factorize(column)
    return (codes, ids) if order is None else (find_ids(order, ids.astype("str"))[codes], order)


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
