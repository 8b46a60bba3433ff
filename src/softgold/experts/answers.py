"""Reading what experts answered: yes, no, unsure or nothing, from one table or from one table per expert."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from softgold.errors import InputError, warn
from softgold.experts.panel import ExpertPanel
from softgold.experts.sheets import ANSWER
from softgold.output import undo_excel_safe
from softgold.readers.base import Source, cell_error, shorten
from softgold.readers.cells import MISSING_VOTE, SPELLINGS, code_ids
from softgold.readers.columns import EXPERT, ITEM, VOTE, find_column, find_optional
from softgold.readers.sources import TableLike, open_source
from softgold.tables.text import as_text

UNSURE = 2
UNSURE_SPELLINGS = ("unsure", "not sure", "uncertain", "unclear", "unknown", "don't know", "dont know", "maybe", "?")
ANSWERS = {**SPELLINGS, **dict.fromkeys(UNSURE_SPELLINGS, UNSURE)}
ONLY_EXPERT = "expert"


def read_answers(
    source: TableLike | Sequence[TableLike],
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
) -> ExpertPanel:
    """Read the answers of experts, as the sheets of `sample-experts` come back.

    Args:
        source: A table with the columns item, expert (or annotator) and answer (or label, vote); or with item and
            answer only, for a single expert. Or several such tables, one per expert, who is then named after the file.
            Paths (CSV with commas, semicolons or tabs, Excel workbooks, Parquet), `-` or data frames.
        item: Name of the item column, where it is not one of the common names.
        annotator: Name of the column with the experts.
        vote: Name of the column with the answers: yes / no (or 1 / 0, true / false, positive / negative), unsure, or
            empty. Unsure and empty count as no label.

    Raises:
        InputError: The table cannot be understood, or an expert gave an item two different answers.

    Example:
        >>> panel = read_answers(pd.DataFrame({"item": ["x", "y", "z"], "answer": ["yes", "no", "unsure"]}))
        >>> panel.answers.tolist(), panel.unsure.sum(axis=1).tolist()
        ([[1, 0, -1]], [1])
    """
    sources: list[TableLike] = [*source] if isinstance(source, list | tuple) else [source]
    if not sources:
        raise InputError("no table with the answers of experts was given")
    parts = [_read_one(one, item, annotator, vote) for one in sources]
    if len(parts) > 1:
        parts = [_named_after_file(part, sources[place], place) for place, part in enumerate(parts)]
    return _panel(pd.concat(parts, ignore_index=True))


def as_panel(experts: object) -> ExpertPanel:
    """Return what a caller gave as a panel: a panel, `ExpertLabels`, or tables that `read_answers` reads."""
    from softgold.tables.experts import ExpertLabels

    if isinstance(experts, ExpertPanel):
        return experts
    if isinstance(experts, ExpertLabels):
        return ExpertPanel.from_labels(experts)
    return read_answers(experts)


def _read_one(source: TableLike, item: str | None, annotator: str | None, vote: str | None) -> pd.DataFrame:
    table = open_source(source, format="table")
    is_sheet = {"item", ANSWER} <= {name.strip().casefold() for name in table.columns}
    # The context of a sheet may have columns that elsewhere are names of items, experts or votes.
    items = find_column(table, ("item",) if is_sheet else ITEM, item)
    answers = find_column(table, (ANSWER,) if is_sheet else VOTE, vote)
    who = find_optional(table, ("expert", "annotator") if is_sheet else EXPERT, annotator)
    columns = _without_blank_end(table.load([items, answers] if who is None else [items, answers, who]))
    said = _code_answers(table, answers, columns[1])
    ids = code_ids(table, items, columns[0])
    names = np.full(len(said), ONLY_EXPERT, dtype=object)
    if who is not None:
        experts = code_ids(table, who, columns[2])
        names = experts.index().to_numpy(dtype=object)[experts.codes]
    items_said = [undo_excel_safe(str(text)) for text in ids.index()] if is_sheet else ids.index()
    frame = {"item": np.asarray(items_said, dtype=object)[ids.codes], "expert": names, "answer": said}
    rows = [f"{table.name}, row {row + 1}" for row in range(len(said))]
    return pd.DataFrame(frame).assign(where=rows, is_named=who is not None)


def _without_blank_end(columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Leave out the rows without text at the end, which spreadsheets append."""
    blank = np.ones(len(columns[0]), dtype=np.bool_)
    for column in columns:
        texts = as_text(column.to_pandas()).str.strip()
        blank &= (texts.isna() | texts.isin(["", "None", "nan"])).to_numpy(dtype=np.bool_)
    kept = len(blank) - int(np.argmin(blank[::-1])) if not blank.all() else 0
    return [column.slice(0, kept) for column in columns]


def _code_answers(table: Source, column: int, cells: pa.ChunkedArray) -> NDArray[np.int8]:
    texts = cells.cast(pa.string()).to_pylist() if not pa.types.is_floating(cells.type) else _number_texts(cells)
    said = [MISSING_VOTE if text is None else ANSWERS.get(text.strip().casefold(), -2) for text in texts]
    if -2 in said:
        row = said.index(-2)
        message = f"an answer must be yes or no (1 or 0), unsure, or empty; got {shorten(texts[row])}"
        raise cell_error(table, row, column, message)
    return np.array(said, dtype=np.int8)


def _number_texts(cells: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None or np.isnan(value) else str(value) for value in cells.to_pylist()]


def _named_after_file(part: pd.DataFrame, source: TableLike, place: int) -> pd.DataFrame:
    if part["is_named"].any():
        return part
    name = Path(source).name.split(".")[0] if isinstance(source, str | Path) else f"expert {place + 1}"
    return part.assign(expert=name)


def _panel(answers: pd.DataFrame) -> ExpertPanel:
    given = answers[answers["answer"] != MISSING_VOTE]
    pair = ["item", "expert"]
    n_different = given.groupby(pair)["answer"].transform("nunique")
    if (n_different > 1).any():
        first = given[n_different > 1].iloc[0]
        rows = given[(given[pair] == first[pair]).all(axis=1)]["where"].tolist()
        raise InputError(
            f"expert {shorten(first['expert'])} gave item {shorten(first['item'])} different answers "
            f"({'; '.join(rows[:3])}); keep one of them"
        )
    repeated = int(given.duplicated(pair).sum())
    if repeated:
        warn(f"{repeated} answers of experts are duplicated; one of each is kept")
    kept = given.drop_duplicates(pair)
    item_ids, expert_ids = pd.unique(answers["item"]), pd.unique(answers["expert"])
    table = np.full((len(expert_ids), len(item_ids)), MISSING_VOTE, dtype=np.int8)
    experts, items = pd.Index(expert_ids, dtype="str"), pd.Index(item_ids, dtype="str")
    table[experts.get_indexer(pd.Index(kept["expert"])), items.get_indexer(pd.Index(kept["item"]))] = kept["answer"]
    unsure = table == UNSURE
    table[unsure] = MISSING_VOTE
    return ExpertPanel(experts, items, table, unsure)
