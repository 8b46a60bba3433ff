"""Answers of experts in a study with several questions or classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from softgold.errors import InputError
from softgold.experts.alignment import SAME_P
from softgold.experts.answers import UNSURE_SPELLINGS, read_answers
from softgold.experts.panel import ExpertPanel
from softgold.experts.sampling import CLASSES, ExpertSample
from softgold.experts.sheets import ANSWER
from softgold.readers.base import shorten
from softgold.readers.cells import ABSENT
from softgold.readers.columns import ITEM, VOTE, find_column, find_task
from softgold.readers.sources import TableLike, open_source
from softgold.tables.classes import ClassLabels
from softgold.tables.text import as_text


def answers_by_task(
    sources: Sequence[TableLike],
    items: Mapping[str, pd.Index[str]],
    kind: Literal["tasks", "classes"],
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
) -> dict[str, ExpertPanel]:
    """Read the answers of experts, and say which belong to which question.

    Args:
        sources: Tables as in `read_answers`. With several questions they have a column `task`, or items that belong to
            one question only. With several classes an answer is the name of a class, or unsure.
        items: Ids of the items of each question (or class).
        kind: Whether these are questions or classes.
        item: Name of the item column.
        annotator: Name of the column with the experts.
        vote: Name of the column with the answers.

    Returns:
        A panel for every question that has an answer.

    Example:
        >>> sheet = pd.DataFrame({"item": ["x", "y"], "answer": ["cat", "dog"]})
        >>> ids = pd.Index(["x", "y"])
        >>> panels = answers_by_task([sheet], {"cat": ids, "dog": ids}, "classes")
        >>> {name: panel.answers.tolist() for name, panel in panels.items()}
        {'cat': [[1, 0]], 'dog': [[0, 1]]}
    """
    columns = {"item": item, "annotator": annotator, "vote": vote}
    if kind == "classes":
        given = [_text_frame(source) for source in sources]
        by_class = {name: [_of_class(frame, name, items, vote) for frame in given] for name in items}
        return {name: _read(frames, sources, columns) for name, frames in by_class.items()}
    parts = [split_by_task(source, item=item) for source in sources]
    if all("" in part for part in parts):
        return _by_item(read_answers(list(sources), **columns), items)
    if any("" in part for part in parts):
        raise InputError("some tables of experts have a column task and some have none; give all of them one")
    names = list(dict.fromkeys(name for part in parts for name in part))
    unknown = [name for name in names if name not in items]
    if unknown:
        known = ", ".join(shorten(name) for name in list(items)[:8])
        raise InputError(f"experts answered task {shorten(unknown[0])}, which the run does not have; it has {known}")
    return {name: _read([part.get(name) for part in parts], sources, columns) for name in names}


def split_by_task(source: TableLike, *, item: str | None = None) -> dict[str, pd.DataFrame]:
    """Return the rows of each task of a table, as text; all rows under "" if it has no column `task`."""
    table = open_source(source, format="table")
    at = find_task(table, find_column(table, ITEM, item))
    frame = _text_frame(source)
    if at is None:
        return {"": frame}
    name = frame.columns[at]
    return {str(task): rows.drop(columns=name) for task, rows in frame.groupby(name, sort=False)}


def check_class_key(sample: ExpertSample, labels: ClassLabels) -> None:
    """Raise if a key was not made by `sample_classes` from these soft labels."""
    if sample.bins.scheme != CLASSES:
        raise InputError("the key is not of a run with several classes; draw a sheet with sample-experts from this run")
    at = labels.item_ids.astype("str").get_indexer(sample.item_ids)
    if (at < 0).any():
        raise InputError(f"the key was not made from these soft labels: they lack {sample.item_ids[at < 0][0]!r}")
    differs = np.abs(labels.p.max(axis=1)[at] - sample.p) > SAME_P
    if differs.any():
        first = int(differs.argmax())
        raise InputError(
            f"the key was not made from these soft labels: the largest p of item {sample.item_ids[first]!r} is "
            f"{sample.p[first]:g} in the key and {labels.p[at[first]].max():g} in the run"
        )


def _text_frame(source: TableLike) -> pd.DataFrame:
    table = open_source(source, format="table")
    cells = table.load(range(len(table.columns)))
    texts = [as_text(column.to_pandas()).fillna("") for column in cells]
    return pd.DataFrame(dict(zip(table.columns, texts, strict=True)))


def _read(
    frames: Sequence[pd.DataFrame | None], sources: Sequence[TableLike], columns: Mapping[str, str | None]
) -> ExpertPanel:
    """Read one table per file; an expert without a name has that of the file."""
    given = [(frame, source) for frame, source in zip(frames, sources, strict=True) if frame is not None]
    if len(sources) == 1:
        return read_answers(given[0][0], **columns)
    named = []
    for place, (frame, source) in enumerate(given):
        who = Path(source).name.split(".")[0] if isinstance(source, str | Path) else f"expert {place + 1}"
        has_names = columns["annotator"] is not None or {"expert", "annotator"} & {
            str(name).casefold() for name in frame
        }
        named.append(frame if has_names else frame.assign(expert=who))
    return read_answers(pd.concat(named, ignore_index=True), **columns)


def _of_class(frame: pd.DataFrame, name: str, classes: Mapping[str, object], vote: str | None) -> pd.DataFrame:
    """Return the answers as yes or no to one class."""
    table = open_source(frame)
    is_sheet = ANSWER in {column.strip().casefold() for column in frame.columns}
    column = frame.columns[find_column(table, (ANSWER,) if is_sheet else VOTE, vote)]
    said = frame[column].str.strip()
    known = {str(entry).casefold() for entry in classes} | set(UNSURE_SPELLINGS) | set(ABSENT)
    bad = ~said.str.casefold().isin(known)
    if bad.any():
        row = int(bad.argmax())
        choices = ", ".join(shorten(entry) for entry in list(classes)[:12])
        raise InputError(
            f"row {row + 1} of the experts' table: an answer must be a class ({choices}), unsure or empty; got "
            f"{shorten(said.iloc[row])}"
        )
    answer = np.where(said.str.casefold() == name.casefold(), "yes", "no")
    kept = said.str.casefold().isin(set(UNSURE_SPELLINGS) | set(ABSENT))
    return frame.assign(**{column: np.where(kept, said, answer)})


def _by_item(panel: ExpertPanel, items: Mapping[str, pd.Index[str]]) -> dict[str, ExpertPanel]:
    """Give each answer to the one question that has its item."""
    ids = panel.item_ids.astype("str")
    here = {name: ids.isin(own.astype("str")) for name, own in items.items()}
    count = np.sum([np.asarray(mask) for mask in here.values()], axis=0)
    if (count > 1).any():
        first = ids[int((count > 1).argmax())]
        raise InputError(f"item {shorten(first)} belongs to several tasks; give the experts' table a column task")
    if (count == 0).any():
        first, number = ids[int((count == 0).argmax())], int((count == 0).sum())
        raise InputError(f"experts answered {number} items that no task of the run has, such as {shorten(first)}")
    everybody = np.ones(panel.n_experts, dtype=np.bool_)
    return {name: panel.take(everybody, np.asarray(mask)) for name, mask in here.items() if mask.any()}
