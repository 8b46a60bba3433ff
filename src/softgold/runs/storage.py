"""Runs on disk: arrays in one .npz, everything else as JSON or tables. Nothing is pickled, nothing is executed."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import SoftgoldError, StorageError
from softgold.models.base import ComponentReport, Diagnostics, Fit, Model, Notice, Posterior, find_model
from softgold.output import PathLike, atomic_directory, write_json, write_table
from softgold.tables.votes import VoteTable

__all__ = ["load_run", "load_votes", "read_arrays", "save_run", "votes_digest", "write_arrays"]

FORMAT = "softgold run"
VERSION = 2
PACKAGES = ("softgold", "numpy", "scipy", "pandas", "torch", "pyro-ppl")


def save_run(
    fit: Fit,
    votes: VoteTable,
    path: PathLike,
    *,
    samples: int | None = None,
    source: str | None = None,
    force: bool = False,
) -> None:
    """Write a run directory: soft_labels.csv, annotators.csv, posterior.npz, votes.parquet and run.json.

    Args:
        fit: What `softgold.fit` returned.
        votes: The votes it was fitted to.
        path: Directory to write; it is there whole or not at all.
        samples: Write p as the share of this many posterior draws, with the fit's seed, instead of exactly.
        source: Where the votes came from, for the record.
        force: Replace an existing run.
    """
    posterior = fit.posterior
    labels = posterior.soft_labels()
    if samples is not None:
        labels = posterior.sample_soft_labels(samples, seed=getattr(fit.settings, "seed", 0))
    with atomic_directory(path, force=force) as folder:
        write_table(labels.to_frame(), folder / "soft_labels.csv")
        write_table(posterior.annotators(), folder / "annotators.csv")
        write_table(_vote_frame(votes), folder / "votes.parquet")
        write_arrays(folder / "posterior.npz", _posterior_arrays(posterior))
        write_json(_run_record(fit, votes, samples, source), folder / "run.json")


def load_run(path: PathLike) -> Fit:
    """Read the run directory that `save_run` wrote.

    Raises:
        StorageError: The run is missing, damaged, of an unknown version, or not one of ours.
    """
    folder = Path(path)
    record = _read_record(folder / "run.json")
    arrays = read_arrays(folder / "posterior.npz")
    try:
        model = find_model(record["model"])
        settings = model.checked_settings(**record["settings"])
        posterior = _posterior(model, settings, arrays)
        return Fit(model.name, settings, posterior, _diagnostics(record["diagnostics"]))
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, SoftgoldError) as error:
        raise StorageError(f"{folder} is not a run that this version can read: {_cause(error)}") from None


def load_votes(path: PathLike) -> VoteTable:
    """Read the votes that a run was fitted to.

    Raises:
        StorageError: The run has none, or they are damaged.
    """
    file = Path(path) / "votes.parquet"
    if not file.is_file():
        raise StorageError(f"{file} is not there; fit the votes again with this version to have them in the run")
    try:
        frame = pd.read_parquet(file)
        items, item_ids = pd.factorize(frame["item"])
        annotators, annotator_ids = pd.factorize(frame["annotator"])
        weights = frame["weight"].to_numpy() if "weight" in frame else None
        votes = frame["vote"].to_numpy()
        if not np.isin(votes, (0, 1)).all():
            raise ValueError("a vote is neither 0 nor 1")
        return VoteTable.from_codes(items, annotators, votes, item_ids, annotator_ids, weights=weights)
    except Exception as error:  # as in `read_arrays`
        raise StorageError(f"{file} is damaged or not ours: {_cause(error)}") from None


def votes_digest(votes: VoteTable) -> str:
    """Return a SHA-256 of the votes, ids and order included."""
    digest = hashlib.sha256()
    for ids in (votes.item_ids, votes.annotator_ids):
        data, ends = _packed_ids(ids)
        digest.update(ends.tobytes())
        digest.update(data.tobytes())
    for array in (votes.item_codes, votes.annotator_codes, votes.votes, votes.weights):
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays of numbers to an .npz file; the same arrays give the same bytes."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read every array of an .npz file, never unpickling.

    Raises:
        StorageError: The file is missing, damaged or not one of numbers.
    """
    if not path.is_file():
        raise StorageError(f"{path} is not there; is {path.parent} a run of 'softgold fit'?")
    if not zipfile.is_zipfile(path):
        raise StorageError(f"{path} is damaged or not ours: it is not an .npz archive")
    try:
        _check_archive(path)
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # a damaged archive raises whatever its first bad byte leads to
        raise StorageError(f"{path} is damaged or not ours: {_cause(error)}") from None


def _check_archive(path: Path) -> None:
    """Compare every member with its checksum: NumPy reads as far as an array's header says, which may be damaged."""
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"the checksum of {damaged} is wrong")


def _cause(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)


def _vote_frame(votes: VoteTable) -> pd.DataFrame:
    frame = votes.to_frame()
    return frame if votes.weights is None else frame.assign(weight=votes.weights)


def _packed_ids(ids: pd.Index[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return ids as one run of UTF-8 bytes and the position after each; a single long id then costs its length once."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in ids]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum([len(text) for text in encoded], dtype=np.int64)


def _unpacked_ids(arrays: Mapping[str, NDArray[Any]], name: str) -> pd.Index[str]:
    data, ends = arrays[f"{name}_utf8"].tobytes(), arrays[f"{name}_ends"]
    if len(ends) == 0 or ends[-1] != len(data) or (np.diff(ends, prepend=0) < 0).any():
        raise ValueError(f"{name} does not fit together")
    starts = np.concatenate([[0], ends[:-1]])
    texts = [data[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=True)]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{name} has the same id twice")
    return pd.Index(texts, dtype="str")


def _posterior_arrays(posterior: Posterior) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for name in ("item_ids", "annotator_ids"):
        arrays[f"{name}_utf8"], arrays[f"{name}_ends"] = _packed_ids(getattr(posterior, name))
    return arrays | posterior.to_arrays()


def _posterior(model: Model, settings: Any, arrays: Mapping[str, NDArray[Any]]) -> Posterior:
    items, annotators = _unpacked_ids(arrays, "item_ids"), _unpacked_ids(arrays, "annotator_ids")
    return model.posterior(arrays, items, annotators, settings)


def _run_record(fit: Fit, votes: VoteTable, samples: int | None, source: str | None) -> dict[str, Any]:
    diagnostics = {key: value for key, value in asdict(fit.diagnostics).items() if key != "seconds"}
    return {
        "format": FORMAT,
        "version": VERSION,
        "input": {
            "source": source,
            "digest": votes_digest(votes),
            "items": votes.n_items,
            "annotators": votes.n_annotators,
            "votes": votes.n_votes,
            "abstentions": votes.n_abstentions,
        },
        "model": fit.model,
        "settings": asdict(fit.settings),
        "samples": samples,
        "diagnostics": diagnostics,
        "versions": {name: _version_of(name) for name in PACKAGES},
        "timings": {"fit_seconds": fit.diagnostics.seconds},
    }


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _read_record(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise StorageError(f"{path} is not there; is {path.parent} a run of 'softgold fit'?")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: {_cause(error)}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise StorageError(f"{path} is not the record of a fitted run (no format {FORMAT!r} in it)")
    if record.get("version") != VERSION:
        raise StorageError(
            f"{path} was written by another version of softgold (format {record.get('version')!r}, this one reads "
            f"{VERSION}); fit the votes again"
        )
    return record


def _diagnostics(record: Mapping[str, Any]) -> Diagnostics:
    return Diagnostics(
        **{
            **record,
            "seconds": float("nan"),
            "elbo": tuple(float(value) for value in record["elbo"]),
            "components": tuple(ComponentReport(**part) for part in record["components"]),
            "notices": tuple(Notice(**notice) for notice in record["notices"]),
        }
    )
