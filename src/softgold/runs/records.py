"""The record of a run, run.json: which votes, which model, how the fit went, and digests of the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from softgold.errors import StorageError
from softgold.models.base import Diagnostics
from softgold.runs.files import read_json
from softgold.runs.typed import decode

RECORD = "run.json"
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


def make_record(
    model: str,
    settings: Any,
    diagnostics: Diagnostics,
    votes: VoteRecord,
    samples: int | None,
    files: Mapping[str, str],
) -> RunRecord:
    """Return the contents of run.json; two runs with one seed are equal but for what is in `timings`."""
    return RunRecord(
        FORMAT,
        VERSION,
        votes,
        model,
        asdict(settings),
        samples,
        replace(diagnostics, seconds=float("nan")),
        files,
        versions={name: _version_of(name) for name in PACKAGES},
        timings={"fit_seconds": diagnostics.seconds},
    )


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
