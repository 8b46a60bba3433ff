"""Reading a soft-label table, written by softgold or by anyone else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softgold.errors import warn
from softgold.readers.base import Source, cell_error, shorten
from softgold.readers.cells import parse_numbers, read_unique_ids
from softgold.readers.columns import ITEM, find_column, find_optional
from softgold.readers.sources import TableLike, open_source
from softgold.tables.soft_labels import DifficultySummary, SoftLabels

FloatArray = NDArray[np.float64]


def read_soft_labels(
    source: TableLike, *, item: str | None = None, p: str | None = None, brief: bool = False
) -> SoftLabels:
    """Read a table of soft labels; only the columns `item` and `p` are needed.

    Of the other columns of `soft_labels.csv`, `expected_vote`, `b_mean` to `b_hi`, `n_votes`, `n_positive` and
    `label` are read where they are; what is not there is NaN, and the number of votes 0.

    Args:
        source: A path, `-` or a data frame.
        item: Name of the item column, where it is not one of the common names.
        p: Name of the column with the soft labels, where it is not `p`.
        brief: Read no more than p, the votes and a label: what calibration and evaluation need.

    Example:
        >>> import pandas as pd
        >>> labels = read_soft_labels(pd.DataFrame({"item": ["x", "y"], "p": [0.9, 0.5]}))
        >>> labels.p.tolist(), labels.uncertainty.round(3).tolist()
        ([0.9, 0.5], [0.1, 0.5])
    """
    table = open_source(source)
    at = find_column(table, ITEM, item)
    ids, warning = read_unique_ids(table, at, table.load([at])[0])
    if warning is not None:
        warn(warning)
    n_items = len(ids)
    soft = _required_probabilities(table, find_column(table, ("p",), p))
    counts = _optional(table, "n_votes", n_items)
    return SoftLabels(
        item_ids=ids,
        p=soft,
        expected_vote=_nothing(n_items) if brief else _optional(table, "expected_vote", n_items),
        n_votes=np.rint(np.nan_to_num(counts)).astype(np.int64),
        n_positive=np.nan_to_num(_optional(table, "n_positive", n_items)),
        method="file",
        difficulty=None if brief else _difficulty(table, n_items),
        label=_labels(table),
    )


def _nothing(length: int) -> FloatArray:
    return np.broadcast_to(np.nan, length)  # takes no memory


def _required_probabilities(table: Source, column: int) -> FloatArray:
    cells = table.load([column])[0]
    values = parse_numbers(table, column, cells, "a soft label")
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        row = int(bad.argmax())
        raise cell_error(table, row, column, f"a soft label must lie in [0, 1], got {shorten(cells[row])}")
    return values


def _optional(table: Source, name: str, length: int) -> FloatArray:
    column = find_optional(table, (name,))
    if column is None:
        return _nothing(length)
    return parse_numbers(table, column, table.load([column])[0], name)


def _difficulty(table: Source, length: int) -> DifficultySummary | None:
    parts = [_optional(table, name, length) for name in ("b_mean", "b_sd", "b_lo", "b_hi")]
    return None if all(np.isnan(part).all() for part in parts) else DifficultySummary(*parts)


def _labels(table: Source) -> NDArray[np.int8] | None:
    column = find_optional(table, ("label",))
    if column is None:
        return None
    values = parse_numbers(table, column, table.load([column])[0], "a label")
    bad = (values != 0) & (values != 1)
    if bad.any():
        raise cell_error(table, int(bad.argmax()), column, "a hard label must be 0 or 1")
    return values.astype(np.int8)
