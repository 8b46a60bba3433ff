"""The values of a report, read from the files of a run: what is not there is None, and its section does not appear."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.errors import InputError, StorageError
from softgold.readers import read_soft_labels
from softgold.runs.storage import load_run, load_votes
from softgold.tables.soft_labels import SoftLabels, binary_entropy

__all__ = ["AnnotatorSummary", "FitSummary", "ItemSplit", "RunSummary", "file_names", "read_json", "summarise"]

FloatArray = NDArray[np.float64]

RATES = tuple(f"{rate}{end}" for rate in ("sensitivity", "specificity") for end in ("", "_lo", "_hi"))
ABILITY = ("ability_mean", "ability_sd", "ability_lo", "ability_hi")
ANNOTATOR_COLUMNS = (*ABILITY, *RATES, "p_adversarial", "n_votes", "agreement")
CALIBRATION_KEYS = ("threshold", "bins", "intervals", "sensitivity", "before", "after", "agreement", "experts", "rule")
EVALUATION_KEYS = ("models", "soft", "hard", "settings", "tasks", "average", "notes")
ADVERSARIAL = 0.95


@dataclass(frozen=True, eq=False)
class AnnotatorSummary:
    """The annotators: `table` is that of annotators.csv, `adversaries` the rows with P(adversarial) above 0.95."""

    table: pd.DataFrame

    @property
    def adversaries(self) -> pd.DataFrame:
        """Those who probably vote against the truth, the surest first."""
        found = self.table[self.table["p_adversarial"] > ADVERSARIAL]
        return found.sort_values("ability_mean")


@dataclass(frozen=True)
class FitSummary:
    """How the fit went, from run.json."""

    model: str
    engine: str | None
    elbo: tuple[float, ...]
    converged: bool
    reason: str
    components: int
    learned: Mapping[str, float]
    warnings: tuple[str, ...]
    seconds: float | None
    seed: int | None


@dataclass(frozen=True, eq=False)
class ItemSplit:
    """Entropy of the next vote on each item, in nats: what disagreement leaves, and what more votes would remove."""

    disagreement: FloatArray
    too_few_votes: FloatArray


@dataclass(frozen=True, eq=False)
class RunSummary:
    """What a report shows.

    Attributes:
        name: Name of the run directory.
        soft: The soft labels.
        votes: Names and texts of the description of the votes; empty when the run has no votes.
        vote_warnings: What the votes themselves should be warned of.
        annotators: The annotators.
        fit: How the fit went.
        split: Why items are uncertain.
        calibration: `calibration.json`.
        evaluation: `evaluation.json`.
        record: `run.json`.
        files: Names of the files in the run directory, pages left out.
        cautions: What does not fit together in the run directory.
    """

    name: str
    soft: SoftLabels
    votes: tuple[tuple[str, str], ...]
    vote_warnings: tuple[str, ...]
    annotators: AnnotatorSummary | None
    fit: FitSummary | None
    split: ItemSplit | None
    calibration: Mapping[str, Any] | None
    evaluation: Mapping[str, Any] | None
    record: Mapping[str, Any]
    files: frozenset[str]
    cautions: tuple[str, ...]


def summarise(path: str | Path) -> RunSummary:
    """Read a run directory.

    Args:
        path: A directory with `soft_labels.csv` in it; every other file of a run adds a section.

    Raises:
        InputError: It is no run directory.
        StorageError: A file of it is damaged.
    """
    folder = Path(path)
    table = folder / "soft_labels.csv"
    if not table.is_file():
        raise InputError(f"{folder} is not a run directory: it has no soft_labels.csv; 'softgold fit' makes one")
    soft = read_soft_labels(table)
    record = read_json(folder / "run.json", ()) or {}
    is_fitted = record.get("format") == "softgold run" and (folder / "posterior.npz").is_file()
    votes = load_votes(folder).describe() if (folder / "votes.parquet").is_file() else None
    calibration = read_json(folder / "calibration.json", CALIBRATION_KEYS)
    return RunSummary(
        name=folder.resolve().name,
        soft=soft,
        votes=() if votes is None else tuple(votes.rows()),
        vote_warnings=() if votes is None else votes.warnings,
        annotators=_read_annotators(folder / "annotators.csv"),
        fit=_fit(record, folder) if is_fitted else None,
        split=_split(folder, len(soft)) if is_fitted else None,
        calibration=calibration,
        evaluation=read_json(folder / "evaluation.json", EVALUATION_KEYS),
        record=record,
        files=file_names(folder),
        cautions=_cautions(soft, calibration),
    )


def file_names(folder: Path) -> frozenset[str]:
    """Return the names of the files in a folder, pages left out."""
    return frozenset(entry.name for entry in folder.iterdir() if entry.is_file() and entry.suffix != ".html")


def read_json(path: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what a JSON file says, which must have the keys; None if it is not there."""
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None
    absent = [key for key in keys if not isinstance(value, dict) or key not in value]
    if absent or not isinstance(value, dict):
        raise StorageError(f"{path} is not what this version of softgold writes: {', '.join(absent)} is missing in it")
    return value


def _read_annotators(path: Path) -> AnnotatorSummary | None:
    if not path.is_file():
        return None
    try:
        # An annotator may be called NA; only the numbers can be missing.
        empty = {name: [""] for name in ANNOTATOR_COLUMNS}
        table = pd.read_csv(path, dtype={"annotator": "str"}, keep_default_na=False, na_values=empty)
        if "ability_mean" not in table:  # a baseline, which says nothing of its annotators
            return None
        return AnnotatorSummary(table.astype(dict.fromkeys(ANNOTATOR_COLUMNS, np.float64)))
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None


def _fit(record: Mapping[str, Any], folder: Path) -> FitSummary:
    try:
        diagnostics = record["diagnostics"]
        return FitSummary(
            model=str(record["model"]),
            engine=record["settings"].get("engine"),
            elbo=tuple(float(value) for value in diagnostics["elbo"] if value is not None),
            converged=bool(diagnostics["converged"]),
            reason=str(diagnostics["reason"]),
            components=len(diagnostics["components"]),
            learned={str(name): float(value) for name, value in (diagnostics["learned"] or {}).items()},
            warnings=tuple(str(notice["text"]) for notice in diagnostics["notices"]),
            seconds=record.get("timings", {}).get("fit_seconds"),
            seed=record.get("settings", {}).get("seed"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"{folder / 'run.json'} is damaged: {error!r}") from None


def _split(folder: Path, n_items: int) -> ItemSplit | None:
    posterior = load_run(folder).posterior
    disagreement = posterior.vote_entropy()
    if disagreement is None or len(disagreement) != n_items:
        return None
    expected = binary_entropy(posterior.soft_labels().expected_vote)
    return ItemSplit(disagreement, np.maximum(expected - disagreement, 0.0))


def _cautions(soft: SoftLabels, calibration: Mapping[str, Any] | None) -> tuple[str, ...]:
    if calibration is None or calibration.get("n_items") in (None, len(soft)):
        return ()
    made_for = f"calibration.json was made for {calibration['n_items']:,} items"
    return (f"{made_for} and soft_labels.csv has {len(soft):,}: calibrate again",)
