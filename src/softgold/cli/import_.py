"""`softgold import`: the export of an annotation tool to a table of votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    AsJson,
    Force,
    Format,
    ItemColumn,
    MaxBytes,
    OptionalOutput,
    Question,
    Quiet,
    VoteColumn,
    print_json,
    print_table,
    say,
)
from softgold.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from softgold.readers import Export


def command(
    export: Annotated[str, typer.Argument(metavar="EXPORT", help="File, folder or archive of an export; - for stdin.")],
    output: OptionalOutput = None,
    format: Format = None,
    question: Question = None,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    gold_out: Annotated[
        Path | None,
        typer.Option("--gold-out", metavar="FILE", help="Write gold labels here, as a table of experts."),
    ] = None,
    keep_names: Annotated[
        bool, typer.Option("--keep-names", help="Leave e-mail addresses and names of annotators as they are.")
    ] = False,
    names_out: Annotated[
        Path | None, typer.Option("--names-out", metavar="FILE", help="Write which pseudonym stands for whom here.")
    ] = None,
    max_bytes: MaxBytes = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read votes from the export of an annotation tool.

    The format is recognised from the content. Several questions become a column `task`; values stay as written, and
    commands that need votes of 0 and 1 take --positive VALUE. Names of annotators become pseudonyms.
    """
    from softgold.output import check_target
    from softgold.readers import read_export

    if as_json and output is None:
        raise UsageError("--json prints what was found on standard output, so the votes need a file: give -o FILE")
    if keep_names and names_out is not None:
        raise UsageError("--names-out has nothing to write with --keep-names")
    for target in (output, gold_out, names_out):
        if target is not None:
            check_target(target, force=force)
    read = read_export(
        export,
        format=format,
        question=question,
        item=item_col,
        annotator=annotator_col,
        vote=vote_col,
        keep_names=keep_names,
        max_bytes=max_bytes,
    )
    _write(read, output, gold_out, names_out, force=force)
    if as_json:
        print_json(_answer(read))
    for line in (read.summary(), *read.notes, *_pseudonym_note(read)):
        say(line, quiet=quiet)
    for target in (output if read.n_answers else None, gold_out, names_out):
        if target is not None:
            say(f"written: {target}", quiet=quiet)


def _write(read: Export, output: Path | None, gold_out: Path | None, names_out: Path | None, *, force: bool) -> None:
    """Write what was asked for; an export of gold labels alone gives no votes."""
    from softgold.output import write_tables
    from softgold.readers.export_source import no_votes

    if gold_out is not None and not read.gold:
        raise UsageError(f"{read.name} has no gold labels, so --gold-out has nothing to write: {read.summary()}")
    if not read.n_answers and gold_out is None:
        raise no_votes(read)
    tables: list[tuple[Path, pd.DataFrame]] = []
    if output is not None and read.n_answers:
        tables.append((output, read.frame()))
    if gold_out is not None:
        tables.append((gold_out, read.gold_frame()))
    if names_out is not None:
        tables.append((names_out, read.names_frame()))
    write_tables(tables, force=force)
    if output is None and read.n_answers:
        print_table(read.frame())


def _answer(read: Export) -> dict[str, Any]:
    return {
        "format": read.title,
        "items": len(read.items),
        "annotators": len(read.annotators),
        "votes": read.n_answers,
        "questions": {question: read.value_counts(question) for question in read.questions},
        "several_values": sorted(read.multiple),
        "gold": len(read.gold),
        "not_votes": dict(read.counts),
        "notes": read.notes,
    }


def _pseudonym_note(read: Export) -> list[str]:
    if not read.pseudonyms:
        return []
    return [f"pseudonyms stand for {len(read.pseudonyms):,} names of annotators; --keep-names keeps them"]
