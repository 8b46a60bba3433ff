"""Reader for nominal labels of any number of categories."""

from __future__ import annotations

from functools import partial
from typing import Literal

import pandas as pd

from softgold.agreement.labels import NominalLabels
from softgold.checks import check_choice
from softgold.errors import warn
from softgold.readers.cells import code_categories
from softgold.readers.columns import EXPERT, ITEM, VOTE, find_column
from softgold.readers.counts import refuse_counts
from softgold.readers.export_source import ExportSource
from softgold.readers.longform import clean, read_long, read_wide, refuse_with_wide
from softgold.readers.sources import TableLike, open_source
from softgold.readers.tasks import select_task


def read_nominal(
    source: TableLike,
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
    wide: bool = False,
    duplicates: Literal["error", "first", "last"] = "error",
    format: str | None = None,
    question: str | None = None,
    positive: str | None = None,
) -> NominalLabels:
    """Read labels of any categories; each distinct text is a category.

    Args:
        source: As in `softgold.read_votes`: long `item, annotator, vote`, or wide.
        item: Name of the item column, if it is not a common one.
        annotator: Name of the annotator column.
        vote: Name of the category column; an empty cell is no label.
        wide: The table has one row per item and one column per rater.
        duplicates: What to do if a rater gave an item different labels.
        format, question: As in `softgold.read_votes`.
        positive: For a question with several choices per answer: the choice to take as a label of 1.

    Example:
        >>> frame = pd.DataFrame({"image": ["x", "x"], "rater": ["ann", "bob"], "label": ["cat", "dog"]})
        >>> read_nominal(frame).categories.tolist()
        ['cat', 'dog']
    """
    check_choice(duplicates, ("error", "first", "last"), "duplicates")
    table = open_source(source, format=format, question=question, positive=positive, item=item)
    item = None if isinstance(table, ExportSource) else item
    categories: dict[str, int] = {}
    code = partial(code_categories, categories=categories)
    if wide:
        refuse_with_wide(annotator=annotator, vote=vote)
        entries = read_wide(table, find_column(table, ITEM, item), code)
    else:
        refuse_counts(table, item, vote)
        items = find_column(table, ITEM, item)
        table = select_task(table, items, question)
        columns = items, find_column(table, EXPERT, annotator)
        entries = read_long(table, *columns, find_column(table, VOTE, vote), code)
    cleaned = clean(entries, duplicates, "label")
    for message in cleaned.warnings:
        warn(message)
    return NominalLabels(
        cleaned.item_codes,
        cleaned.annotator_codes,
        cleaned.values,
        len(cleaned.item_ids),
        cleaned.annotator_ids,
        pd.Index(list(categories)),
    )
