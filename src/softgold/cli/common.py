"""Options and printing that the commands share. Importing this module imports neither NumPy nor pandas.

Human text goes to standard error, data to standard output.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softgold.cli.streams import StandardOutputError, discard
from softgold.cli.text import LONGEST_LINE, one_line, printable

if TYPE_CHECKING:
    import pandas as pd

DuplicateChoice = Literal["error", "first", "last", "mean", "all"]

Votes = Annotated[
    str,
    typer.Argument(metavar="VOTES", help="Vote table, or export of an annotation tool; - for stdin."),
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="Format of an export, where its content does not tell.")
]
Question = Annotated[
    str | None, typer.Option("--question", metavar="NAME", help="Question of an export, or task of a table, to take.")
]
Positive = Annotated[
    str | None, typer.Option("--positive", metavar="VALUE", help="Value that counts as a vote of 1, all others as 0.")
]
MaxBytes = Annotated[
    int | None, typer.Option("--max-bytes", min=1, metavar="N", help="Most bytes that input may unpack or decode to.")
]
TaskColumn = Annotated[
    str | None,
    typer.Option("--task-col", metavar="NAME", help="Column with the question of each vote; a column task is found."),
]
ItemsTable = Annotated[
    Path | None,
    typer.Option("--items", metavar="FILE", help="Table of items with the --task-col; else items.csv beside the data."),
]
Anonymous = Annotated[
    bool, typer.Option("--anonymous", help="Annotator ids do not identify people: each vote is by an unknown person.")
]
ItemColumn = Annotated[str | None, typer.Option("--item-col", metavar="NAME", help="Column with the items.")]
AnnotatorColumn = Annotated[
    str | None, typer.Option("--annotator-col", metavar="NAME", help="Column with the annotators.")
]
VoteColumn = Annotated[str | None, typer.Option("--vote-col", metavar="NAME", help="Column with the votes.")]
Wide = Annotated[bool, typer.Option("--wide", help="One row per item, one column per rater, blank for no vote.")]
Duplicates = Annotated[
    DuplicateChoice,
    typer.Option("--duplicates", help="What to do if an annotator gave an item different votes."),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group-col",
        metavar="NAME",
        help="Column with the group of each item, such as patient: bootstraps redraw whole groups. Looked for in the "
        "items, then in the other tables.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the random numbers.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="Where to write the result.")]
OptionalOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write the result; standard output if left out."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings, errors and data.")]
ExcelSafe = Annotated[
    bool,
    typer.Option(
        "--excel-safe", help="Put an apostrophe before texts that a spreadsheet would run as formulas (= + - @)."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON on standard output.")]


def say(text: str, *, quiet: bool = False) -> None:
    """Print a message on standard error, with control characters escaped and long lines shortened."""
    if not quiet:
        lines = (one_line(line) if len(line) > LONGEST_LINE else line for line in printable(text).split("\n"))
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()


def print_data(text: str) -> None:
    """Print text on standard output as UTF-8: unchanged, but with control characters escaped on a terminal.

    Raises:
        StandardOutputError: Standard output is closed or full.
    """
    rest = memoryview((printable(text) if sys.stdout.isatty() else text).encode("utf-8", "backslashreplace"))
    try:
        sys.stdout.flush()
        while rest:
            # With PYTHONUNBUFFERED a stream may write a part only, and returns its size.
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(sys.stdout)
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        raise StandardOutputError(f"cannot write to standard output: {reason}") from error


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output; see `softgold.output.to_jsonable`."""
    from softgold.output import json_text

    print_data(json_text(value))


def print_table(frame: pd.DataFrame) -> None:
    """Print a table as CSV on standard output."""
    from softgold.output import table_text

    print_data(table_text(frame))


@contextmanager
def progress(description: str, total: int | None, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Give a function that advances a bar by some steps; the bar is drawn on a terminal only, and not when quiet.

    Args:
        description: What is going on, before the bar.
        total: Number of steps, or None when it is not known.
        quiet: Draw nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)


def write_or_print(frame: pd.DataFrame, output: Path | None, *, force: bool) -> None:
    """Write a table to a file, or print it when no file is named."""
    if output is None:
        print_table(frame)
        return
    from softgold.output import write_table

    write_table(frame, output, force=force)
