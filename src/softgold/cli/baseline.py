"""`softgold baseline`: majority vote, vote share, mean rating."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import (
    AnnotatorColumn,
    DuplicateChoice,
    Duplicates,
    Force,
    Format,
    ItemColumn,
    OptionalOutput,
    Positive,
    Question,
    Quiet,
    VoteColumn,
    Votes,
    Wide,
    say,
    write_or_print,
)
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.tables.soft_labels import SoftLabels

__all__ = ["register"]

Method = Literal["majority", "mean"]
Tie = Literal["positive", "negative"]
Pair = tuple[float, float]


@dataclass(frozen=True)
class Columns:
    """Options for reading the table."""

    item: str | None
    annotator: str | None
    value: str | None
    wide: bool
    duplicates: DuplicateChoice
    format: str | None
    question: str | None
    positive: str | None


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
    columns = Columns(item_col, annotator_col, vote_col, wide, duplicates, format, question, positive)
    if scale is not None:
        labels = _rating_labels(votes, columns, scale, cut)
    else:
        labels = _vote_labels(votes, columns, method, tie, smoothing, quiet=quiet)
    write_or_print(labels.to_frame(), output, force=force)
    say(f"{labels.method}: {len(labels):,} items, {labels.n_votes.sum():,} votes", quiet=quiet)
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
    source: str, columns: Columns, method: Method, tie: Tie | None, smoothing: Pair | None, *, quiet: bool
) -> SoftLabels:
    from softgold.models.baselines import Majority, Mean
    from softgold.readers import read_votes

    aggregator = Majority(tie=tie) if method == "majority" else Mean(smoothing=smoothing)
    votes = read_votes(
        source,
        item=columns.item,
        annotator=columns.annotator,
        vote=columns.value,
        wide=columns.wide,
        duplicates=columns.duplicates,
        format=columns.format,
        question=columns.question,
        positive=columns.positive,
    )
    say(votes.origin, quiet=quiet or not votes.origin)
    return aggregator.aggregate(votes)


def _rating_labels(source: str, columns: Columns, scale: Pair, cut: float | None) -> SoftLabels:
    from softgold.models.baselines import RatingMean
    from softgold.readers import read_ratings

    ratings = read_ratings(
        source,
        scale=scale,
        item=columns.item,
        annotator=columns.annotator,
        rating=columns.value,
        wide=columns.wide,
        duplicates=columns.duplicates,
        format=columns.format,
        question=columns.question,
    )
    return RatingMean(cut=cut).aggregate(ratings)
