"""Reading votes, expert labels and ratings."""

from __future__ import annotations

import pyarrow as pa

from softgold.checks import check_ordered_pair
from softgold.errors import warn
from softgold.readers.base import Source, cell_error, shorten
from softgold.readers.cells import FloatArray, code_votes, parse_numbers
from softgold.readers.columns import ANNOTATOR, EXPERT, ITEM, RATING, VOTE, find_column, find_optional
from softgold.readers.longform import Entries, clean, read_long, read_wide, refuse_with_wide
from softgold.readers.repeats import DuplicateRule
from softgold.readers.sources import TableLike, open_source
from softgold.tables.experts import ExpertLabels
from softgold.tables.ratings import RatingTable
from softgold.tables.votes import VoteTable

__all__ = ["read_experts", "read_ratings", "read_votes"]


def read_votes(
    source: TableLike,
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
    wide: bool = False,
    duplicates: DuplicateRule = "error",
) -> VoteTable:
    """Read binary votes.

    Args:
        source: Path of a CSV, TSV (either with .gz) or Parquet file, `-` for standard input, or a data frame; long,
            with one row a vote and the columns item, annotator and vote (or their common other names).
        item: Name of the item column, where it is not one of the common names.
        annotator: Name of the annotator column.
        vote: Name of the vote column: 0/1, true/false, yes/no, positive/negative; empty for an abstention.
        wide: The table has one row an item and one column a rater; a blank cell is no vote.
        duplicates: What to do when an annotator voted differently on the same item: "error"; keep the "first" or
            the "last" vote; use their "mean"; or keep "all" as independent votes. Equal repeats are one vote,
            with a warning, except under "all".

    Returns:
        The votes, with items and annotators in the order of first appearance.

    Raises:
        InputError: The table breaks the contract; the message names file, row, column and value.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"task": ["x", "x", "y"], "worker": ["ann", "bob", "ann"], "label": ["yes", "No", ""]})
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     votes = read_votes(frame)
        >>> votes.n_votes, votes.n_abstentions, votes.abstained_items
        (2, 1, ('y',))
    """
    table = open_source(source)
    entries = _wide_votes(table, item, annotator, vote) if wide else _long_votes(table, item, annotator, vote)
    cleaned = clean(entries, duplicates, "vote")
    for message in cleaned.warnings:
        warn(message)
    return _vote_table(cleaned)


def read_experts(
    source: TableLike,
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
    duplicates: DuplicateRule = "error",
) -> ExpertLabels:
    """Read the labels of experts.

    Args:
        source: As in `read_votes`: long with one row a label and the columns item, annotator (or expert) and vote
            (or label); or only item and label, for a single expert, who is called "expert".
        item: Name of the item column, where it is not one of the common names.
        annotator: Name of the column with the experts.
        vote: Name of the column with the labels.
        duplicates: As in `read_votes`.

    Example:
        >>> import pandas as pd
        >>> experts = read_experts(pd.DataFrame({"item": ["x", "y"], "label": [1, 0]}))
        >>> experts.expert_ids.tolist(), experts.labels.tolist()
        (['expert'], [1, 0])
    """
    table = open_source(source)
    who = find_optional(table, EXPERT, annotator)
    columns = find_column(table, ITEM, item), who, find_column(table, VOTE, vote)
    cleaned = clean(read_long(table, *columns, code_votes, only_annotator="expert"), duplicates, "label")
    for message in cleaned.warnings:
        warn(message)
    return ExpertLabels(_vote_table(cleaned))


def read_ratings(
    source: TableLike,
    *,
    scale: tuple[float, float],
    item: str | None = None,
    annotator: str | None = None,
    rating: str | None = None,
    wide: bool = False,
    duplicates: DuplicateRule = "error",
) -> RatingTable:
    """Read ratings on a scale.

    Args:
        source: As in `read_votes`, with a column rating (or vote, label, value, score) in place of votes.
        scale: Lowest and highest rating that can be given; a rating outside is an error.
        item: Name of the item column, where it is not one of the common names.
        annotator: Name of the annotator column.
        rating: Name of the rating column.
        wide: The table has one row an item and one column a rater.
        duplicates: As in `read_votes`.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": ["x", "x"], "rater": ["ann", "bob"], "rating": [0, 2]})
        >>> read_ratings(frame, scale=(0, 2)).item_means.tolist()
        [1.0]
    """
    low, high = check_ordered_pair(scale, "scale")

    def parse(table: Source, column: int, cells: pa.ChunkedArray) -> FloatArray:
        return _ratings_within(table, column, cells, low, high)

    table = open_source(source)
    if wide:
        refuse_with_wide(annotator=annotator, rating=rating)
        entries = read_wide(table, find_column(table, ITEM, item), parse)
    else:
        columns = find_column(table, ITEM, item), find_column(table, ANNOTATOR, annotator)
        entries = read_long(table, *columns, find_column(table, RATING, rating), parse)
    cleaned = clean(entries, duplicates, "rating")
    for message in cleaned.warnings:
        warn(message)
    return _rating_table(cleaned, (low, high))


def _long_votes(table: Source, item: str | None, annotator: str | None, vote: str | None) -> Entries:
    columns = find_column(table, ITEM, item), find_column(table, ANNOTATOR, annotator), find_column(table, VOTE, vote)
    return read_long(table, *columns, code_votes)


def _wide_votes(table: Source, item: str | None, annotator: str | None, vote: str | None) -> Entries:
    refuse_with_wide(annotator=annotator, vote=vote)
    return read_wide(table, find_column(table, ITEM, item), code_votes)


def _ratings_within(table: Source, column: int, cells: pa.ChunkedArray, low: float, high: float) -> FloatArray:
    ratings = parse_numbers(table, column, cells, "a rating")
    outside = (ratings < low) | (ratings > high)
    if outside.any():
        row = int(outside.argmax())
        message = f"a rating must lie on the scale from {low:g} to {high:g}, got {shorten(cells[row])}"
        raise cell_error(table, row, column, message)
    return ratings


def _vote_table(entries: Entries) -> VoteTable:
    return VoteTable.from_codes(
        entries.item_codes,
        entries.annotator_codes,
        entries.values,
        entries.item_ids,
        entries.annotator_ids,
        weights=entries.weights,
        n_abstentions=entries.n_abstentions,
        abstained_items=entries.silent_items,
        abstained_annotators=entries.silent_annotators,
        notes=entries.notes,
    )


def _rating_table(entries: Entries, scale: tuple[float, float]) -> RatingTable:
    return RatingTable(
        entries.item_codes,
        entries.annotator_codes,
        entries.values,
        entries.item_ids,
        entries.annotator_ids,
        scale,
        weights=entries.weights,
        n_abstentions=entries.n_abstentions,
        abstained_items=entries.silent_items,
        notes=entries.notes,
    )
