"""`softgold baseline`: majority vote, vote share, mean rating."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    Duplicates,
    Force,
    Format,
    ItemColumn,
    ItemsTable,
    OptionalOutput,
    Positive,
    Question,
    Quiet,
    TaskColumn,
    VoteColumn,
    Votes,
    Wide,
    say,
    write_or_print,
)
from softgold.cli.reading import ReadingOptions, study_frame
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.tables.soft_labels import SoftLabels

__all__ = ["register"]

Method = Literal["majority", "mean"]
Tie = Literal["positive", "negative"]
Pair = tuple[float, float]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("baseline")(baseline)


def baseline(
    votes: Votes,
    output: OptionalOutput = None,
    method: Annotated[Method, typer.Option("--method", help="Majority vote, or share of positive votes.")] = "mean",
    tie: Annotated[
        Tie | None, typer.Option("--tie", help="With majority: add hard labels; ties get this label.")
    ] = None,
    smoothing: Annotated[
        Pair | None, typer.Option("--smoothing", metavar="A B", help="With mean: a Beta(A, B) prior.")
    ] = None,
    scale: Annotated[
        Pair | None,
        typer.Option("--scale", metavar="LOW HIGH", help="With mean: the table has ratings from LOW to HIGH."),
    ] = None,
    cut: Annotated[
        float | None,
        typer.Option("--cut", help="With --scale: add hard labels, 1 above this mean rating."),
    ] = None,
    item_col: ItemColumn = None,
    annotator_col: AnnotatorColumn = None,
    vote_col: VoteColumn = None,
    task_col: TaskColumn = None,
    items: ItemsTable = None,
    wide: Wide = False,
    duplicates: Duplicates = "error",
    format: Format = None,
    question: Question = None,
    positive: Positive = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Compute soft labels by vote share or majority.

    Writes the columns of soft_labels.csv; b_mean, b_sd, b_lo and b_hi are empty.
    """
    from softgold.output import check_target

    _check_options(method, tie, smoothing, scale, cut)
    if output is not None:
        check_target(output, force=force)
    reading = ReadingOptions(
        item=item_col,
        annotator=annotator_col,
        vote=vote_col,
        task=task_col,
        items=items,
        wide=wide,
        duplicates=duplicates,
        format=format,
        question=question,
        positive=positive,
    )
    if scale is not None:
        kind, labels = "single", {"": _rating_labels(votes, reading, scale, cut)}
    else:
        kind, labels = _vote_labels(votes, reading, method, tie, smoothing, quiet=quiet)
    write_or_print(study_frame(labels, kind), output, force=force)
    for name, table in labels.items():
        told = f"{table.method}: {len(table):,} items, {table.n_votes.sum():,} votes"
        say(f"{name}: {told}" if name else told, quiet=quiet)
    if output is not None:
        say(f"written: {output}", quiet=quiet)


def _check_options(
    method: Method, tie: Tie | None, smoothing: Pair | None, scale: Pair | None, cut: float | None
) -> None:
    if method != "majority" and tie is not None:
        raise UsageError("--tie goes with --method majority")
    if method != "mean" and (smoothing is not None or scale is not None):
        raise UsageError("--smoothing and --scale go with --method mean")
    if scale is not None and smoothing is not None:
        raise UsageError("--smoothing works with votes, not with ratings (--scale)")
    if cut is not None and scale is None:
        raise UsageError("--cut goes with --scale LOW HIGH")


def _vote_labels(
    source: str, reading: ReadingOptions, method: Method, tie: Tie | None, smoothing: Pair | None, *, quiet: bool
) -> tuple[str, dict[str, SoftLabels]]:
    """Return the kind of study and the soft labels of each question or class."""
    from softgold.models.baselines import Majority, Mean

    aggregator = Majority(tie=tie) if method == "majority" else Mean(smoothing=smoothing)
    study = reading.read(source, quiet=quiet)
    return study.kind, {name: aggregator.aggregate(votes) for name, votes in study.votes.items()}


def _rating_labels(source: str, reading: ReadingOptions, scale: Pair, cut: float | None) -> SoftLabels:
    from softgold.models.baselines import RatingMean
    from softgold.readers import read_ratings

    ratings = read_ratings(
        source,
        scale=scale,
        item=reading.item,
        annotator=reading.annotator,
        rating=reading.vote,
        wide=reading.wide,
        duplicates=reading.duplicates,
        format=reading.format,
        question=reading.question,
    )
    return RatingMean(cut=cut).aggregate(ratings)
