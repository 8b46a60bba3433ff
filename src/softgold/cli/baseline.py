"""`softgold baseline`: majority vote, vote share, mean rating."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import Force, OptionalOutput, Quiet, Votes, say, write_or_print
from softgold.cli.reading import ReadingOptions, study_frame, with_reading_options
from softgold.errors import UsageError

if TYPE_CHECKING:
    from softgold.tables.soft_labels import SoftLabels

Method = Literal["majority", "mean"]
Tie = Literal["positive", "negative"]
Pair = tuple[float, float]


@with_reading_options
def command(
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
    *,
    reading: ReadingOptions,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Compute soft labels by vote share or majority.

    Writes the columns of soft_labels.csv; b_mean, b_sd, b_lo and b_hi are empty.
    """
    from softgold.models.baselines import Majority, Mean
    from softgold.output import check_target

    _check_options(method, tie, smoothing, scale, cut)
    if output is not None:
        check_target(output, force=force)
    if scale is not None:
        kind, labels = "single", {"": _rating_labels(votes, reading, scale, cut)}
    else:
        aggregator = Majority(tie=tie) if method == "majority" else Mean(smoothing=smoothing)
        study = reading.read_study(votes, quiet=quiet)
        kind, labels = study.kind, {name: aggregator.aggregate(table) for name, table in study.votes.items()}
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
        raise UsageError("--tie needs --method majority")
    if method != "mean" and (smoothing is not None or scale is not None):
        raise UsageError("--smoothing and --scale need --method mean")
    if scale is not None and smoothing is not None:
        raise UsageError("--smoothing works with votes, not with ratings (--scale)")
    if cut is not None and scale is None:
        raise UsageError("--cut needs --scale LOW HIGH")


def _rating_labels(source: str, reading: ReadingOptions, scale: Pair, cut: float | None) -> SoftLabels:
    from softgold.models.baselines import RatingMean
    from softgold.readers import read_ratings

    ratings = read_ratings(
        source,
        scale=scale,
        item=reading.item_col,
        annotator=reading.annotator_col,
        rating=reading.vote_col,
        wide=reading.wide,
        duplicates=reading.duplicates,
        format=reading.format,
        question=reading.question,
    )
    return RatingMean(cut=cut).aggregate(ratings)
