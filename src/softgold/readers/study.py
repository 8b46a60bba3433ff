"""Votes of a study with several questions, several classes, or counts in place of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from softgold.errors import InputError, UsageError, warn
from softgold.readers.base import Source, cell_error, shorten
from softgold.readers.cells import ABSENT, SPELLINGS, code_categories, code_ids, python_cells
from softgold.readers.columns import ANNOTATOR, ITEM, VOTE, find_column, find_optional, find_task, listed
from softgold.readers.counts import read_count_study
from softgold.readers.export_source import ExportSource, origin_of
from softgold.readers.exports.base import ReadOptions
from softgold.readers.exports.export import Export
from softgold.readers.longform import Entries, clean, read_long
from softgold.readers.repeats import DuplicateRule
from softgold.readers.sources import TableLike, open_export, open_source
from softgold.readers.tasks import select_task
from softgold.readers.votes import read_votes
from softgold.tables.study import StudyVotes, anonymous_votes, are_slots, split_votes
from softgold.tables.votes import VoteTable

MOST_CLASSES = 200
DIRT = 0.01  # up to this share, values other than yes and no are mistakes, not classes


@dataclass(frozen=True)
class _Options:
    item: str | None
    annotator: str | None
    vote: str | None
    wide: bool
    duplicates: DuplicateRule
    format: str | None
    question: str | None
    positive: str | None
    max_bytes: int | None


def read_study(
    source: TableLike,
    *,
    item: str | None = None,
    annotator: str | None = None,
    vote: str | None = None,
    task: str | None = None,
    items: TableLike | None = None,
    wide: bool = False,
    duplicates: DuplicateRule = "error",
    format: str | None = None,
    question: str | None = None,
    positive: str | None = None,
    anonymous: bool = False,
    max_bytes: int | None = None,
) -> StudyVotes:
    """Read votes on one question or several, of two classes or more, or counts without annotators.

    Args:
        source: As in `softgold.read_votes`; or a table of counts, `item, n_positive, n_votes`, or with one column per
            class, `item, n_cat, n_dog, ...`.
        item: Name of the item column, where it is not a common one.
        annotator: Name of the annotator column.
        vote: Name of the vote column. Three values or more are classes, unless `positive` says which one is asked for.
        task: Name of the column with the questions; a column `task` is found by itself.
        items: Table `item, task` with the question of each item, where the votes do not say it.
        wide, duplicates, format, max_bytes: As in `softgold.read_votes`.
        question: Read this question only; it may have classes too.
        positive: The value that counts as a vote of 1, all others being 0.
        anonymous: The annotator ids do not identify people: each vote is taken as by a different unknown person.

    Example:
        >>> frame = pd.DataFrame({"item": ["x", "x", "y"], "annotator": ["ann", "bob", "ann"],
        ...                       "task": ["blur", "dark", "blur"], "vote": [1, 0, 0]})
        >>> study = read_study(frame)
        >>> study.kind, {name: votes.n_items for name, votes in study.votes.items()}
        ('tasks', {'blur': 2, 'dark': 1})
    """
    options = _Options(item, annotator, vote, wide, duplicates, format, question, positive, max_bytes)
    study = _read(source, options, task, items)
    if not anonymous:
        _warn_of_slots(study)
        return study
    return replace(study, votes={name: anonymous_votes(votes) for name, votes in study.votes.items()})


def _warn_of_slots(study: StudyVotes) -> None:
    for votes in study.votes.values():
        if are_slots(votes):
            names = f"{shorten(votes.annotator_ids[0])} to {shorten(votes.annotator_ids[-1])}"
            warn(
                f"the annotators {names} look like columns and not like people: every item has votes of the first "
                "ones. If they stand for no person, give --anonymous (anonymous=True); abilities mean nothing then"
            )
            return


def _read(source: TableLike, options: _Options, task: str | None, items: TableLike | None) -> StudyVotes:
    if items is not None:
        votes = split_votes(read_votes(source, **vars(options)), read_items(items, "task" if task is None else task))
        return StudyVotes("tasks", votes)
    if task is not None and (options.wide or options.question is not None):
        raise UsageError("a task column needs a long table, and no question chosen already")
    if options.wide:
        return StudyVotes("single", {"": read_votes(source, **vars(options))})
    reading = ReadOptions(options.item, options.question, False)
    opened = open_export(source, format=options.format, options=reading, max_bytes=options.max_bytes)
    if not isinstance(opened, Export):
        return _read_table(opened, options, task) if options.question is None else _read_chosen(opened, options)
    if task is not None:
        raise UsageError("an export has no task column; its questions are the tasks")
    options = replace(options, item=None)
    if options.question is None and len(opened.questions) > 1:
        return StudyVotes("tasks", {name: _read_question(opened, name, options) for name in opened.questions})
    return _read_one(ExportSource.of(opened, options.question, options.positive), options)


def _read_question(export: Export, name: str, options: _Options) -> VoteTable:
    try:
        return read_votes(ExportSource.of(export, name, options.positive), **vars(options))
    except InputError as error:
        raise InputError(f"question {shorten(name)}: {error}; choose one question with --question NAME") from None


def _read_chosen(table: Source, options: _Options) -> StudyVotes:
    """Read one task of a table with several."""
    chosen = select_task(table, find_column(table, ITEM, options.item), options.question)
    counted = read_count_study(chosen, item=options.item, task=None, positive=options.positive)
    return _read_one(chosen, replace(options, question=None)) if counted is None else counted


def _read_table(table: Source, options: _Options, task: str | None) -> StudyVotes:
    at = find_column(table, ("task",), task) if task is not None else _task_column(table, options)
    counted = read_count_study(table, item=options.item, task=at, positive=options.positive)
    if counted is not None:
        return counted
    said = None if at is None else _entries(table, options, at)
    return _read_one(table, options) if said is None or len(said.tasks) == 1 else _tasks(said, options)


def _read_one(table: Source, options: _Options) -> StudyVotes:
    """Read one question, of two classes or more."""
    column = find_optional(table, VOTE, options.vote)
    if column is None or options.positive is not None:
        return StudyVotes("single", {"": read_votes(table, **vars(options))})
    values = _values(table, column)
    if _is_binary(values):
        return StudyVotes("single", {"": read_votes(table, **vars(options))})
    return _classes(_entries(table, options, None), _class_names(table, values), options)


def _task_column(table: Source, options: _Options) -> int | None:
    items = find_optional(table, ITEM, options.item)
    return None if items is None else find_task(table, items)


def _values(table: Source, column: int) -> Mapping[str, int]:
    """Return the distinct values of the vote column, stripped, with their numbers; abstentions left out."""
    try:
        counted = table.load([column])[0].value_counts()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return {}  # no cells for votes, as `read_votes` will say
    counts: dict[str, int] = {}
    values = python_cells(table, column, counted.field("values"))
    for value, count in zip(values, counted.field("counts").to_pylist(), strict=True):
        text = "" if value is None else str(value).strip()
        if text.lower() not in ABSENT:  # "none" is a class; an empty cell is not
            counts[text] = counts.get(text, 0) + count
    return counts


def _is_binary(values: Mapping[str, int]) -> bool:
    """Return whether votes are yes and no, or so nearly that other values are mistakes, which `read_votes` names."""
    plain = [_plain(text) for text in values]
    others = sum(count for text, count in zip(plain, values.values(), strict=True) if text not in SPELLINGS)
    both = {SPELLINGS[text] for text in plain if text in SPELLINGS} >= {0, 1}
    return len(values) <= 2 or others == 0 or (both and others <= DIRT * sum(values.values()))


def _plain(text: str) -> str:
    """Return a value as `SPELLINGS` has it; 1.0 is 1."""
    lower = text.lower()
    return lower[:-2] if lower.endswith(".0") else lower


def _class_names(table: Source, values: Mapping[str, int]) -> list[str]:
    if len(values) > MOST_CLASSES:
        raise InputError(
            f"{table.name} has votes with {len(values):,} different values ({listed(tuple(values), 3)}); with more "
            f"than {MOST_CLASSES} these are not classes. Name another column with --vote-col (vote=)"
        )
    return sorted(values)


@dataclass(frozen=True, eq=False)
class _Said:
    """Entries of all tasks, with one item code per task and item, and the meaning of every code."""

    entries: Entries
    values: list[str]
    item_task: NDArray[np.int64]
    tasks: list[str]
    abstentions: NDArray[np.int64]


def _entries(table: Source, options: _Options, task: int | None) -> _Said:
    values: dict[str, int] = {}
    columns = (
        find_column(table, ITEM, options.item),
        find_column(table, ANNOTATOR, options.annotator),
        find_column(table, VOTE, options.vote),
    )
    raw = read_long(table, *columns, partial(code_categories, categories=values))
    if task is None:
        said, names, of_entry = raw, [""], np.zeros(len(raw.values), dtype=np.int64)
    else:
        coded = code_ids(table, task, table.load([task])[0])
        names, of_entry = coded.texts.to_pylist(), coded.codes.astype(np.int64)
        pairs = of_entry * len(raw.item_texts) + raw.item_codes
        codes, found = pd.factorize(pairs)
        texts = raw.item_texts.take(pa.array(found % len(raw.item_texts)))
        said = replace(raw, item_codes=codes.astype(np.int32), item_texts=texts)
    item_task = np.zeros(len(said.item_texts), dtype=np.int64)
    item_task[said.item_codes] = of_entry
    abstentions = np.bincount(of_entry[said.absent], minlength=len(names))
    return _Said(said, list(values), item_task, names, abstentions)


def _cleaned(said: _Said, duplicates: DuplicateRule) -> tuple[Entries, NDArray[np.int64]]:
    """Return the entries without abstentions and repeats, and the task of each."""
    entries = said.entries
    used = np.zeros(len(entries.item_texts), dtype=np.bool_)
    used[entries.item_codes[~entries.absent]] = True
    cleaned = clean(entries, duplicates, "vote")
    for message in cleaned.warnings:
        warn(message)
    return cleaned, said.item_task[used][cleaned.item_codes]


def _tasks(said: _Said, options: _Options) -> StudyVotes:
    cleaned, of_entry = _cleaned(said, options.duplicates)
    coded = _votes_of(said, options, cleaned.source)
    votes = {}
    for at, name in enumerate(said.tasks):
        rows = of_entry == at
        if not rows.any():
            warn(f"task {shorten(name)} has no votes and is left out")
            continue
        votes[name] = _table(cleaned, coded[cleaned.values], rows, int(said.abstentions[at]))
    return StudyVotes("tasks", votes)


def _votes_of(said: _Said, options: _Options, source: Source) -> NDArray[np.int8]:
    """Return the vote, 0 or 1, that each value stands for."""
    if options.positive is not None:
        hits = [text.casefold() == options.positive.strip().casefold() for text in said.values]
        if not any(hits):
            raise InputError(f"{source.name}: no vote is {options.positive!r}; there are {listed(tuple(said.values))}")
        return np.array(hits, dtype=np.int8)
    unknown = [text for text in said.values if SPELLINGS.get(_plain(text)) not in (0, 1)]
    if unknown:
        raise InputError(
            f"{source.name}: a vote must be 0 or 1 (or yes and no), got {shorten(unknown[0])}; of several classes in "
            "several tasks, choose one with --positive VALUE (positive=), or read one task with --question NAME: "
            f"{listed(tuple(said.tasks))}"
        )
    return np.array([SPELLINGS[_plain(text)] for text in said.values], dtype=np.int8)


def _classes(said: _Said, names: list[str], options: _Options) -> StudyVotes:
    cleaned, _ = _cleaned(said, options.duplicates)
    rows = np.ones(len(cleaned.values), dtype=np.bool_)
    votes = {}
    for name in names:
        hit = (cleaned.values == said.values.index(name)).astype(np.int8)
        votes[name] = _table(cleaned, hit, rows, int(said.abstentions[0]))
    return StudyVotes("classes", votes)


def _table(entries: Entries, votes: NDArray[np.int8], rows: NDArray[np.bool_], abstentions: int) -> VoteTable:
    items, item_codes = np.unique(entries.item_codes[rows], return_inverse=True)
    annotators, annotator_codes = np.unique(entries.annotator_codes[rows], return_inverse=True)
    return VoteTable.from_codes(
        item_codes,
        annotator_codes,
        votes[rows],
        entries.item_ids[items],
        entries.annotator_ids[annotators],
        weights=None if entries.weights is None else entries.weights[rows],
        n_abstentions=abstentions,
        notes=entries.notes,
        origin=origin_of(entries.source),
    )


def read_items(source: TableLike, column: str, *, item: str | None = None) -> pd.Series:
    """Read one column of a table of items, such as the task or the patient of each.

    Args:
        source: A table of items. An item may have several rows, as in a long table of scores, if they agree.
        column: Name of the column.
        item: Name of the item column, where it is not a common one.

    Returns:
        The values as text, indexed by item.

    Example:
        >>> read_items(pd.DataFrame({"item": ["x1", "y1"], "task": ["x", "y"]}), "task").to_dict()
        {'x1': 'x', 'y1': 'y'}
    """
    table = open_source(source)
    values = find_column(table, (column,), column)
    # The column itself may have one of the names that an item column has.
    names = tuple(name for name in ITEM if name != table.columns[values].strip().casefold())
    items = find_column(table, names, item)
    cells = table.load([items, values])
    ids, kinds = code_ids(table, items, cells[0]), code_ids(table, values, cells[1])
    first = kinds.codes[np.unique(ids.codes, return_index=True)[1]]
    differs = kinds.codes != first[ids.codes]
    if differs.any():
        row = int(differs.argmax())
        name = shorten(ids.texts[int(ids.codes[row])])
        raise cell_error(table, row, values, f"the item {name} has two values of {column}")
    return pd.Series(kinds.index()[first], index=ids.index(), name=column)
