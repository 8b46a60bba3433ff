"""Which votes stay on disk while they are fitted, how much memory they get, and where temporary files go."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from softgold.errors import UsageError
from softgold.output import check_target
from softgold.output.journal import sweep
from softgold.output.targets import as_output_error
from softgold.output.temporaries import temporary_sibling
from softgold.readers.limits import default_max_bytes
from softgold.readers.repeats import DuplicateRule
from softgold.scale.building import build_store
from softgold.scale.files import VoteFiles, estimate_votes, find_files
from softgold.scale.raw import OnRows, code_files
from softgold.scale.store import VoteStore

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
LEAST_MEMORY = 2 * 10**8
BYTES_PER_VOTE = 220  # of a fit in memory, reading included (scripts/bench/scale.py)
WORK_PER_VOTE = 1000  # bytes of memory to give each vote of a part, of which several are worked on
PART_VOTES = (2**14, 2**21)


@dataclass(frozen=True)
class StreamPlan:
    """A fit of votes that stay on disk.

    Attributes:
        files: The files.
        memory: Bytes to use, about.
        votes: Estimated number of votes.
        asked: Whether the caller asked for it, by `--memory` or by naming several files.
    """

    files: VoteFiles
    memory: int
    votes: int
    asked: bool

    @property
    def part_votes(self) -> int:
        """Votes of a part: few enough that several fit into memory."""
        least, most = PART_VOTES
        return min(max(self.memory // WORK_PER_VOTE, least), most)

    @property
    def sentence(self) -> str:
        """What is said before the fit."""
        count = len(self.files.paths)
        where = "1 file" if count == 1 else f"{count:,} files"
        return (
            f"votes stay on disk: about {self.votes:,} in {where}, fitted in about {self.memory / 1e9:.1f} GB of memory"
        )


def choose_plan(
    source: str, memory: str | None = None, columns: tuple[str | None, str | None, str | None] = (None, None, None)
) -> StreamPlan | None:
    """Return how to fit votes on disk, or None where they are to be read into memory.

    Votes stay on disk where `memory` is given, where the source is a pattern or a folder of Parquet files, and where
    a fit in memory would take more than half of it.

    Raises:
        InputError: A pattern matches nothing.
        UsageError: `memory` is no size, or the source cannot be read from disk.
    """
    size = None if memory is None else parse_size(memory)
    paths = () if source == "-" else find_files(source)
    if not paths:
        if size is not None:
            raise UsageError(
                f"--memory needs a file, a folder of tables or a pattern such as 'votes/*.parquet', got {source!r}"
            )
        return None
    several = not Path(source).exists() or (len(paths) > 1 and all(p.suffix in {".parquet", ".pq"} for p in paths))
    asked = size is not None or several
    if not asked and (Path(source).is_dir() or estimate_votes(paths) * BYTES_PER_VOTE <= default_max_bytes()):
        return None
    return StreamPlan(VoteFiles(source, paths, columns), size or default_max_bytes(), estimate_votes(paths), asked)


def parse_size(text: str) -> int:
    """Return a number of bytes.

    >>> parse_size("2GB"), parse_size("1.5 GiB")
    (2000000000, 1610612736)
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?I?)B?\s*", text.upper())
    if match is None or match[2] not in UNITS:
        raise UsageError(f"--memory must be a size such as 2GB or 500MB, got {text!r}")
    size = int(float(match[1]) * UNITS[match[2]])
    if size < LEAST_MEMORY:
        raise UsageError(f"--memory must be at least {LEAST_MEMORY // 10**6}MB, got {text!r}")
    return size


@contextmanager
def workspace(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary folder beside a target; it is removed in the end, or by the next process if this one dies."""
    place = Path(os.path.realpath(target))
    beside = place.with_name(f"{place.name}.votes")
    check_target(beside)
    sweep(place.parent)
    with temporary_sibling(beside) as folder, as_output_error(place, inside=folder):
        folder.mkdir()
        yield folder


def build_votes(
    plan: StreamPlan,
    folder: Path,
    *,
    positive: str | None = None,
    duplicates: DuplicateRule = "error",
    on_rows: OnRows = lambda rows: None,
) -> VoteStore:
    """Read the files of a plan, once, and write their votes, coded and cleaned, to a folder.

    Raises:
        InputError: As `read_votes` does.
    """
    raw = code_files(plan.files, folder, rows=plan.part_votes, positive=positive, on_rows=on_rows)
    return build_store(raw, folder, part_votes=plan.part_votes, memory=plan.memory, duplicates=duplicates)
