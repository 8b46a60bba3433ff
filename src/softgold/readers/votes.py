"""Reading votes, expert labels and ratings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from softgold.checks import check_ordered_pair
from softgold.errors import InputError, warn
from softgold.readers.base import Source, cell_error, shorten
from softgold.readers.cells import SPELLINGS, FloatArray, code_votes, parse_numbers
from softgold.readers.columns import ANNOTATOR, EXPERT, ITEM, RATING, VOTE, Role, find_column, find_optional
from softgold.readers.counts import refuse_counts
from softgold.readers.export_source import ExportSource, origin_of
from softgold.readers.longform import Entries, clean, read_long, read_wide, refuse_with_wide
from softgold.readers.repeats import DuplicateRule
from softgold.readers.sources import TableLike, open_source
from softgold.readers.tasks import select_task
from softgold.tables.experts import ExpertLabels
from softgold.tables.ratings import RatingTable
from softgold.tables.votes import VoteTable

CellReader = Callable[[Source, int, pa.ChunkedArray], Any]
# Names of the columns with items, annotators and values, where the caller gave them.
Names = tuple[str | None, str | None, str | None]


def read_votes(
    source: TableLike,
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
    wide: bool = False,
    duplicates: DuplicateRule = "error",
    format: str | None = None,
    question: str | None = None,
    positive: str | None = None,
    keep_names: bool = False,
    max_bytes: int | None = None,
) -> VoteTable:
    """Read binary votes.

    Args:
        source: Path of a table (CSV with comma, semicolon or tab, Parquet, JSON lines, Excel, SQLite, DuckDB; packed
            or not), of the export of an annotation platform, or of a folder or archive with one; `-` for standard
            input; or a data frame. A table is long, with one row per vote and the columns item, annotator and vote
            (or their common other names).
        item: Name of the item column, where it is not one of the common names; in an export, the field that names
            the items in place of the platform's own id.
        annotator: Name of the annotator column.
        vote: Name of the vote column: 0/1, true/false, yes/no, positive/negative, present/absent; empty for an
            abstention.
        wide: The table has one row per item and one column per rater; a blank cell is no vote.
        duplicates: What to do when an annotator voted differently on the same item: "error"; keep the "first" or
            the "last" vote; use their "mean"; or keep "all" as independent votes. Equal repeats are one vote,
            with a warning, except under "all".
        format: Name of the export's format (`softgold.readers.FORMAT_NAMES`) or "table", where the content does not
            tell.
        question: Which question of an export, or which task of a table with a column `task`; needed where there are
            several.
        positive: The value that counts as a vote of 1, all others being 0; needed for values that are not those
            above.
        keep_names: Leave e-mail addresses and names of annotators in an export as they are, in place of pseudonyms.
        max_bytes: Most bytes that packed input may unpack to; half of the machine's memory if None.

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
    opening = {"format": format, "question": question, "positive": positive, "item": item}
    table = open_source(source, **opening, keep_names=keep_names, max_bytes=max_bytes)
    names = _item_name(table, item), annotator, vote
    read = partial(code_votes, positive=_remaining(table, positive))
    entries = _wide(table, names, read) if wide else _long(table, names, read, VOTE, question)
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
    format: str | None = None,
    question: str | None = None,
    positive: str | None = None,
) -> ExpertLabels:
    """Read the labels of experts.

    Args:
        source: As in `read_votes`: long with one row per label and the columns item, annotator (or expert) and vote
            (or label); or only item and label, for a single expert, who is called "expert".
        item: Name of the item column, where it is not one of the common names.
        annotator: Name of the column with the experts.
        vote: Name of the column with the labels.
        duplicates, format, question, positive: As in `read_votes`.

    Example:
        >>> import pandas as pd
        >>> experts = read_experts(pd.DataFrame({"item": ["x", "y"], "label": [1, 0]}))
        >>> experts.expert_ids.tolist(), experts.labels.tolist()
        (['expert'], [1, 0])
    """
    table = open_source(source, format=format, question=question, positive=positive, item=item)
    refuse_counts(table, _item_name(table, item), vote)
    items = find_column(table, ITEM, _item_name(table, item))
    table = select_task(table, items, question)
    columns = items, find_optional(table, EXPERT, annotator), find_column(table, VOTE, vote)
    read = partial(code_votes, positive=_remaining(table, positive))
    entries = read_long(table, *columns, read, only_annotator="expert")
    cleaned = clean(entries, duplicates, "label")
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
    format: str | None = None,
    question: str | None = None,
) -> RatingTable:
    """Read ratings on a scale.

    Args:
        source: As in `read_votes`, with a column rating (or vote, label, value, score) in place of votes.
        scale: Lowest and highest rating that can be given; a rating outside is an error.
        item: Name of the item column, where it is not one of the common names.
        annotator: Name of the annotator column.
        rating: Name of the rating column.
        wide: The table has one row per item and one column per rater.
        duplicates, format, question: As in `read_votes`.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": ["x", "x"], "rater": ["ann", "bob"], "rating": [0, 2]})
        >>> read_ratings(frame, scale=(0, 2)).item_means.tolist()
        [1.0]
    """
    low, high = check_ordered_pair(scale, "scale")
    read = partial(_ratings_within, low=low, high=high)
    table = open_source(source, format=format, question=question, item=item)
    names = _item_name(table, item), annotator, rating
    entries = _wide(table, names, read) if wide else _long(table, names, read, RATING, question)
    cleaned = clean(entries, duplicates, "rating")
    for message in cleaned.warnings:
        warn(message)
    return _rating_table(cleaned, (low, high))


def _item_name(table: Source, item: str | None) -> str | None:
    """Return the given name of the item column; in an export it named a field, which has been used."""
    return None if isinstance(table, ExportSource) else item


def _remaining(table: Source, positive: str | None) -> str | None:
    """Return the positive value, unless it has been used to make votes of 0 and 1 from several choices."""
    return None if isinstance(table, ExportSource) and table.positive_used else positive


def _long(table: Source, names: Names, read: CellReader, role: Role, question: str | None) -> Entries:
    item, annotator, value = names
    items = find_column(table, ITEM, item)
    if annotator is None and value is None:
        _hint_at_wide(table, items, role)
    table = select_task(table, items, question)
    return read_long(table, items, find_column(table, ANNOTATOR, annotator), find_column(table, role, value), read)


def _hint_at_wide(table: Source, items: int, role: Role) -> None:
    """Raise with a hint where a table looks like one column per rater, which nobody said."""
    others = [position for position in range(len(table.columns)) if position != items]
    if len(others) < 2 or find_optional(table, ANNOTATOR) is not None or find_optional(table, role) is not None:
        return
    looked_at = others[:8]
    cells = [set(map(str, column.unique().to_pylist())) for column in table.load(looked_at)]
    if all(text.strip().lower() in {*SPELLINGS, "none"} for column in cells for text in column):
        raise InputError(
            f"{table.name} has no annotator and no {role[0]} column, and its other columns hold votes: if it has one "
            "column per rater, give --wide (wide=True)"
        )


def _wide(table: Source, names: Names, read: CellReader) -> Entries:
    item, annotator, value = names
    refuse_with_wide(annotator=annotator, vote=value)
    return read_wide(table, find_column(table, ITEM, item), read)


def _ratings_within(table: Source, column: int, cells: pa.ChunkedArray, *, low: float, high: float) -> FloatArray:
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
        origin=origin_of(entries.source),
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
