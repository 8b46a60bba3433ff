"""Counts of votes in place of annotators: `item, n_positive, n_votes`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from softgold.readers.base import Source, cell_error
from softgold.readers.cells import code_ids, parse_numbers
from softgold.readers.columns import ANNOTATOR, ITEM, find_column, find_optional
from softgold.tables.study import stranger_names
from softgold.tables.votes import VoteTable

__all__ = ["has_counts", "read_counts"]

POSITIVE = ("n_positive", "n_yes", "positives")
TOTAL = ("n_votes", "n_total", "total")


def has_counts(table: Source) -> bool:
    """Return whether a table has counts of votes and no annotators."""
    return (
        find_optional(table, POSITIVE) is not None
        and find_optional(table, TOTAL) is not None
        and find_optional(table, ANNOTATOR) is None
    )


def read_counts(table: Source, *, item: str | None = None) -> VoteTable:
    """Return the votes behind counts, each by a stranger: nobody is known to have given two of them.

    Args:
        table: One row per item, with n_positive and n_votes.
        item: Name of the item column, where it is not a common one.
    """
    positions = [find_column(table, ITEM, item), find_column(table, POSITIVE), find_column(table, TOTAL)]
    cells = table.load(positions)
    ids = code_ids(table, positions[0], cells[0])
    repeated = pd.Series(ids.codes).duplicated().to_numpy()
    if repeated.any():
        raise cell_error(table, int(repeated.argmax()), positions[0], "the item is duplicated; give its counts once")
    positive = _whole(table, positions[1], cells[1])
    total = _whole(table, positions[2], cells[2])
    if (positive > total).any():
        row = int((positive > total).argmax())
        raise cell_error(table, row, positions[1], f"{positive[row]} positive votes of {total[row]}")
    if total.sum() == 0:
        raise cell_error(table, 0, positions[2], "no item has a vote")
    kept = total > 0
    names = ids.index()
    items = np.repeat(np.arange(int(kept.sum())), total[kept])
    first = np.cumsum(total[kept]) - total[kept]
    votes = (np.arange(len(items)) - np.repeat(first, total[kept]) < np.repeat(positive[kept], total[kept])).astype(
        np.int8
    )
    strangers = stranger_names(len(items))
    silent = tuple(names[ids.codes[~kept]])
    note = "the table has counts and no annotators: every vote is taken as that of a stranger"
    return VoteTable.from_codes(
        items, np.arange(len(items)), votes, names[ids.codes[kept]], strangers, abstained_items=silent, notes=(note,)
    )


def _whole(table: Source, column: int, cells: pa.ChunkedArray) -> NDArray[np.int64]:
    numbers = parse_numbers(table, column, cells, "a count")
    bad = ~((numbers >= 0) & (numbers == np.rint(numbers)) & (numbers < 1e6))
    if bad.any():
        raise cell_error(table, int(bad.argmax()), column, "a count must be a whole number from 0 to 999,999")
    return numbers.astype(np.int64)
