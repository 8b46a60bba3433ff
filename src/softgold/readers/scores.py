"""Reading the scores of models, wide or long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_choice
from softgold.errors import InputError, warn
from softgold.readers.base import Source, cell_error, shorten
from softgold.readers.cells import CodedIds, code_ids, parse_numbers, read_unique_ids
from softgold.readers.columns import ITEM, MODEL, SCORE, find_column, find_optional
from softgold.readers.longform import check_names
from softgold.readers.sources import TableLike, open_source
from softgold.tables.scores import Scores


def read_scores(
    source: TableLike,
    *,
    item: str | None = None,
    missing: Literal["error", "keep"] = "error",
    ignore: Sequence[str] = (),
) -> Scores:
    """Read the scores that models gave to items.

    Args:
        source: A path, `-` or a data frame. Wide: `item` and one column per model. Long: `item, model, score`, which
            is recognised by the two columns `model` and `score`.
        item: Name of the item column, where it is not one of the common names.
        missing: Whether an empty or absent score is an "error", or is to "keep" as NaN.
        ignore: Columns of a wide table that are no models, such as the patient of each image.

    Example:
        >>> frame = pd.DataFrame({"item": ["x", "y"], "net": [0.9, 0.2], "tree": [0.6, 0.7]})
        >>> scores = read_scores(frame)
        >>> scores.models, scores.values.shape
        (('net', 'tree'), (2, 2))
    """
    check_choice(missing, ("error", "keep"), "missing")
    table = open_source(source)
    items = find_column(table, ITEM, item)
    model, score = find_optional(table, MODEL), find_optional(table, SCORE)
    if model is None or score is None:
        scores, warning = _read_wide(table, items, ignore)
    else:
        scores, warning = _read_long(table, items, model, score)
    if warning is not None:
        warn(warning)
    if missing == "error":
        _refuse_gaps(table, scores)
    return scores


def _read_wide(table: Source, items: int, ignore: Sequence[str]) -> tuple[Scores, str | None]:
    positions = [at for at, name in enumerate(table.columns) if at != items and name not in ignore]
    models = tuple(table.columns[position] for position in positions)
    check_names(table, models, "model")
    columns = table.load([items, *positions])
    ids, warning = read_unique_ids(table, items, columns.pop(0))
    values = np.empty((len(ids), len(models)), order="F")  # one model after the other, as they are read and ranked
    for number, at in enumerate(positions):
        values[:, number] = parse_numbers(table, at, columns.pop(0), "a score")
    return Scores(ids, models, values), warning


def _read_long(table: Source, items: int, models: int, scores: int) -> tuple[Scores, str | None]:
    columns = table.load([items, models, scores])
    ids, names = code_ids(table, items, columns[0]), code_ids(table, models, columns[1])
    pairs = ids.codes.astype(np.int64) * len(names.texts) + names.codes
    _refuse_repeats(table, items, pairs, ids, "a score of the same model for item")
    values = np.full((len(ids.texts), len(names.texts)), np.nan)
    values[ids.codes, names.codes] = parse_numbers(table, scores, columns[2], "a score")
    return Scores(ids.index(), tuple(names.texts.to_pylist()), values), ids.warning


def _refuse_repeats(table: Source, column: int, keys: NDArray[np.int64], ids: CodedIds, what: str) -> None:
    repeated = pd.Series(keys).duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        raise cell_error(table, row, column, f"{what} {shorten(ids.texts[int(ids.codes[row])])} is duplicated")


def _refuse_gaps(table: Source, scores: Scores) -> None:
    gaps = np.isnan(scores.values)
    if gaps.any():
        row, column = np.argwhere(gaps)[0]
        raise InputError(
            f"{table.name}: item {shorten(scores.item_ids[row])} has no score of model "
            f"{shorten(scores.models[column])} (missing in all: {int(gaps.sum())}); "
            "complete the table, or leave out the items or models that are not scored"
        )
