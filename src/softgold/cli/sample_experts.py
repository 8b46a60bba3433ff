"""`softgold sample-experts`: draw items for expert review."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import AsJson, ExcelSafe, Force, ItemColumn, Output, Quiet, Seed, print_json, say
from softgold.errors import InputError, UsageError

if TYPE_CHECKING:
    from softgold.tables.soft_labels import SoftLabels


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or a file with soft labels.")],
    output: Output,
    budget: Annotated[int, typer.Option(min=1, help="Number of items that each expert can label.")] = 400,
    scheme: Annotated[
        Literal["neyman", "paper"],
        typer.Option(help="Most items where labels change decisions, or 20 rank bins with equally many from each."),
    ] = "neyman",
    items: Annotated[
        Path | None,
        typer.Option("--items", metavar="FILE", help="Draw from these items only, such as those of next --ambiguous."),
    ] = None,
    context: Annotated[
        Path | None,
        typer.Option(
            "--context", metavar="FILE", help="Columns to show beside each item, such as a text, an image path, a link."
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="Where to write the key; beside the sheet by default."),
    ] = None,
    item_col: ItemColumn = None,
    for_excel: ExcelSafe = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw items for expert review.

    Writes a sheet (CSV, or Excel as .xlsx) with the items in random order, without soft labels, of which every expert
    fills a copy with yes, no or unsure (with several classes: the class or unsure); and a key for `softgold calibrate
    --key`, which the experts must not see.
    """
    from softgold.experts.expectation import expect
    from softgold.experts.sampling import sample_for_experts
    from softgold.experts.sheets import read_context, write_sheet
    from softgold.output import atomic_files, check_target, excel_safe, reading, write_table
    from softgold.readers import read_soft_labels
    from softgold.runs import is_study, soft_labels_path
    from softgold.runs.limits import check_memory

    key = key or output.with_name(f"{output.name.split('.')[0]}.key.csv")
    if os.path.realpath(key) == os.path.realpath(output):
        raise UsageError("--key and --output must be two files: the experts must not see the key")
    for target in (output, key):
        check_target(target, force=force)
    if run.is_dir() and is_study(run):
        if items is not None:
            raise UsageError("--items chooses items of one question: name the run of that question")
        flags = {"for_excel": for_excel, "force": force, "quiet": quiet}
        _sample_study(run, output, key, budget, scheme, seed=seed, context=context, **flags)
        return
    if run.is_dir():
        check_memory(run, "sample-experts")
    with reading(run) if run.is_dir() else nullcontext():
        soft_labels = read_soft_labels(soft_labels_path(run) if run.is_dir() else run, brief=True)
    if items is not None:
        soft_labels = _only(soft_labels, items, item_col)
    shown = None if context is None else read_context(context, item=item_col)
    sample = sample_for_experts(soft_labels, budget, scheme=scheme, seed=seed)
    sheet, expected = sample.sheet(shown), expect(sample)
    with atomic_files([key, output], force=force) as (key_file, sheet_file):
        write_table(sample.key(), key_file)
        write_sheet(excel_safe(sheet) if for_excel else sheet, sheet_file)
    say(f"{len(sample):,} of {len(soft_labels):,} items for the experts: {output}", quiet=quiet)
    say(f"the key, not for the experts: {key}", quiet=quiet)
    say(f"{expected.sentence()}", quiet=quiet)
    if as_json:
        strata = {"sampled": sample.sampled_per_bin, "items": sample.bins.n_items, "p_mean": sample.bins.p_mean}
        print_json({"sheet": output, "key": key, "n_items": len(sample), "strata": strata, "expected": expected})


def _only(soft_labels: SoftLabels, items: Path, item_col: str | None) -> SoftLabels:
    """Return the soft labels of the items that a table lists."""
    import numpy as np

    from softgold.readers.base import shorten
    from softgold.readers.cells import code_ids
    from softgold.readers.columns import ITEM, find_column
    from softgold.readers.sources import open_source
    from softgold.tables.ids import find_ids

    table = open_source(items)
    at = find_column(table, ITEM, item_col)
    listed = code_ids(table, at, table.load([at])[0]).index()
    place = find_ids(soft_labels.item_ids, listed)
    unknown = listed[place < 0]
    if len(unknown):
        raise InputError(f"{items}: {len(unknown)} items have no soft label, such as {shorten(unknown[0])}")
    chosen = np.zeros(len(soft_labels), dtype=np.bool_)
    chosen[place] = True
    return soft_labels.select(chosen)


def _sample_study(
    run: Path,
    output: Path,
    key: Path,
    budget: int,
    scheme: Literal["neyman", "paper"],
    *,
    seed: int,
    context: Path | None,
    for_excel: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Draw the same number of items of every question into one sheet with a column `task`, or items for their class."""
    import pandas as pd

    from softgold.cli.studies import sample_study
    from softgold.experts.sheets import CHOICES, make_sheet, read_context, write_sheet
    from softgold.output import atomic_files, excel_safe, reading, write_table
    from softgold.runs import open_study

    with reading(run):
        study = open_study(run)
        with_classes = study.kind == "classes"
        choices = (*study.tasks, "unsure") if with_classes else CHOICES
        drawn, key_table = sample_study(study, budget, scheme=scheme, seed=seed)
    sheet = make_sheet(pd.Index(drawn["item"]), None if context is None else read_context(context))
    if not with_classes:
        sheet.insert(0, "task", drawn["task"].to_numpy())
    with atomic_files([key, output], force=force) as (key_file, sheet_file):
        write_table(key_table, key_file)
        write_sheet(excel_safe(sheet) if for_excel else sheet, sheet_file, choices=choices)
    of = "" if with_classes else f" of {len(study.tasks)} questions"
    say(f"{len(sheet):,} items{of} for the experts: {output}", quiet=quiet)
    say(f"an answer is {', '.join(choices[:-1])} or {choices[-1]}", quiet=quiet)
    say(f"the key, not for the experts: {key}", quiet=quiet)
