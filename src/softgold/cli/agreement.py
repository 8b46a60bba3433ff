"""`softgold agreement`: Krippendorff's alpha and kappas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softgold.cli.common import AsJson, Force, Quiet, Seed, Votes, print_data, print_json, say
from softgold.cli.reading import ReadingOptions, with_reading_options
from softgold.cli.text import printable
from softgold.errors import InputError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from softgold.agreement import Agreement, NominalLabels

MOST_LISTED = 12


@with_reading_options
def command(
    votes: Votes,
    nominal: Annotated[bool, typer.Option("--nominal", help="Labels are categories, not yes/no votes.")] = False,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", metavar="FILE", help="Write the kappa of every pair of raters to FILE.")
    ] = None,
    min_shared: Annotated[int, typer.Option(help="Leave out pairs of raters with fewer items in common.")] = 1,
    n_bootstrap: Annotated[
        int, typer.Option("--n-bootstrap", help="Resamples of items for the interval of alpha.")
    ] = 2000,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    *,
    reading: ReadingOptions,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure agreement of raters: alpha and kappa.

    Prints Krippendorff's alpha, percent agreement, Fleiss' kappa, and Cohen's kappa of every pair, with intervals and
    with the words of Landis and Koch and of Krippendorff.
    """
    from softgold.agreement import agreement as measure
    from softgold.output import check_target, write_table

    if pairs is not None:
        check_target(pairs, force=force)
    tables = _read(votes, reading, nominal=nominal)
    if pairs is not None and len(tables) > 1:
        raise UsageError("--pairs is for one question; choose it with --question NAME")
    results = {}
    for name, labels in tables.items():
        if len(labels.rater_ids) < 2:
            where = f"{votes}, question {name!r}," if name else str(votes)
            raise InputError(f"{where} has labels from one rater only; agreement needs two")
        results[name] = measure(labels, n_bootstrap=n_bootstrap, level=level, min_shared=min_shared, seed=seed)
    if pairs is not None:
        write_table(next(iter(results.values())).kappas, pairs, force=force)
        say(f"written: {pairs}", quiet=quiet)
    if as_json:
        print_json(
            results[""].to_dict() if "" in results else {name: found.to_dict() for name, found in results.items()}
        )
        return
    for name, found in results.items():
        print_data(printable(f"{name}\n{_text(found)}\n" if name else _text(found)) + "\n")


def _read(source: Any, reading: ReadingOptions, *, nominal: bool) -> dict[str, NominalLabels]:
    """Return the labels of each question; a single one has no name."""
    from softgold.agreement import NominalLabels, read_nominal
    from softgold.readers import read_experts
    from softgold.readers.columns import ITEM, find_column
    from softgold.readers.counts import NOTE, counts_error
    from softgold.readers.export_source import ExportSource
    from softgold.readers.sources import open_source
    from softgold.readers.tasks import task_names

    if nominal and reading.duplicates not in ("error", "first", "last"):
        raise UsageError(f"--duplicates {reading.duplicates} does not work with --nominal; use first or last")
    arguments: dict[str, Any] = {**reading.columns, **reading.selection, "duplicates": reading.duplicates}
    if not reading.wide and reading.task_col is None and reading.question is None:
        options: dict[str, Any] = {**reading.selection, "item": reading.item_col, "max_bytes": reading.max_bytes}
        table = open_source(source, **options)
        names = () if isinstance(table, ExportSource) else task_names(table, find_column(table, ITEM, reading.item_col))
        if len(names) > 1:
            chosen = {name: {**arguments, "question": name} for name in names}
            if nominal:
                return {name: read_nominal(table, **of) for name, of in chosen.items()}
            return {name: NominalLabels.from_votes(read_experts(table, **of).table) for name, of in chosen.items()}
        source = table
    if nominal:
        return {"": read_nominal(source, wide=reading.wide, **arguments)}
    if reading.wide or reading.task_col is not None:
        study = reading.read_study(source)
        if any(NOTE in votes.notes for votes in study.votes.values()):
            raise counts_error(source)
        return {name: NominalLabels.from_votes(votes) for name, votes in study.votes.items()}
    # Read as experts, so that the annotator column may be called expert.
    experts = read_experts(source, **arguments)
    say(experts.table.origin, quiet=not experts.table.origin)
    return {"": NominalLabels.from_votes(experts.table)}


def _text(result: Agreement) -> str:
    interval = result.interval
    alpha = f"{result.alpha:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
    words = f"{result.landis_koch} (Landis and Koch), {result.reliability} (Krippendorff)"
    fleiss = "-  (items have different numbers of labels)" if result.fleiss is None else f"{result.fleiss:.3f}"
    counts = f"{result.n_labels:,} labels by {result.n_raters:,} raters on {result.n_units:,} items"
    lines = [
        f"{counts}, {result.n_pairable:,} with at least two labels",
        f"Krippendorff's alpha  {alpha}  {words}",
        f"percent agreement     {100 * result.percent:.1f} %",
        f"Fleiss' kappa         {fleiss}",
        *(f"Cohen's kappa         {line}" for line in _kappa_lines(result)),
    ]
    return "\n".join(lines)


def _kappa_lines(result: Agreement) -> list[str]:
    table = result.kappas
    if table.empty:
        return ["-  (no pair of raters)"]
    if len(table) > MOST_LISTED:
        low, middle, high = table["kappa"].quantile([0.25, 0.5, 0.75])
        spread = f"quartiles {low:.3f} and {high:.3f}; --pairs FILE writes them all"
        return [f"median {middle:.3f} over {len(table):,} pairs of raters, {spread}"]
    return [_kappa_line(row) for _, row in table.iterrows()]


def _kappa_line(row: pd.Series[Any]) -> str:
    value = f"{row['kappa']:.3f} [{row['kappa_lo']:.3f}, {row['kappa_hi']:.3f}]"
    return f"{value}  {row['wording']}: {row['rater_a']} and {row['rater_b']} on {row['n_shared']:,} items"
