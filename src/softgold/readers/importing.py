"""Reading an export, or a plain table in the same way: every question, every value, as written."""

from __future__ import annotations

from softgold.errors import InputError
from softgold.readers.base import Source
from softgold.readers.cells import python_cells
from softgold.readers.columns import ANNOTATOR, ITEM, VOTE, find_column, find_task
from softgold.readers.exports.base import ReadOptions
from softgold.readers.exports.builder import ExportBuilder
from softgold.readers.exports.export import Export
from softgold.readers.sources import TableLike, open_export


def read_export(
    source: TableLike,
    *,
    format: str | None = None,
    question: str | None = None,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
    keep_names: bool = False,
    max_bytes: int | None = None,
) -> Export:
    """Read all answers of a platform's export, or of a plain table of votes.

    Args:
        source: A path of a file, folder or archive, `-`, or a data frame.
        format: Name of the format (`FORMAT_NAMES`) or "table", where the content does not tell.
        question: The one question to read; all if None.
        item: Field that names the items, in place of the platform's own id; in a plain table, the item column.
        annotator: In a plain table, the column with the annotators.
        vote: In a plain table, the column with the votes.
        keep_names: Leave e-mail addresses and names of annotators as they are, in place of pseudonyms.
        max_bytes: Most bytes that packed input may unpack to; half of the machine's memory if None.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"task": ["x", "x"], "worker": ["ann@example.org", "2"], "label": ["cat", "dog"]})
        >>> export = read_export(frame)
        >>> print(export.summary())
        table: 1 item, 2 annotators, 1 question (label), 2 votes
        >>> export.annotators
        ['annotator_438c4c7a', '2']
    """
    options = ReadOptions(item, question, keep_names)
    opened = open_export(source, format=format, options=options, max_bytes=max_bytes)
    return opened if isinstance(opened, Export) else _from_table(opened, options, annotator, vote)


def _from_table(table: Source, options: ReadOptions, annotator: str | None, vote: str | None) -> Export:
    items = find_column(table, ITEM, options.item)
    annotators, votes = find_column(table, ANNOTATOR, annotator), find_column(table, VOTE, vote)
    tasks = find_task(table, items)
    if tasks is None and options.question is not None:
        raise InputError(f"{table.name} has no column 'task' in which to look for question {options.question!r}")
    positions = [items, annotators, votes, *([] if tasks is None else [tasks])]
    loaded = zip(positions, table.load(positions), strict=True)
    columns = [python_cells(table, position, cells) for position, cells in loaded]
    questions = columns[3] if tasks is not None else [table.columns[votes]] * len(columns[0])
    builder = ExportBuilder("table", table.name, options)
    for item, who, said, question in zip(*columns[:3], questions, strict=True):
        builder.answer(item, who, str(question), [said])
    return builder.finish()
