"""Reading and cleaning of long tables (item, annotator, value): votes, ratings and expert labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from softgold.checks import check_choice
from softgold.errors import InputError, UsageError
from softgold.readers.base import Source, shorten
from softgold.readers.cells import CodedIds, as_index, code_ids
from softgold.readers.repeats import DUPLICATE_RULES, DuplicateRule, Repeats, find_repeats, resolve_repeats

SHOWN_CONFLICTS = 3

Codes = NDArray[np.int32]
Reader = Callable[[Source, int, pa.ChunkedArray], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Entries:
    """Who said what about which item, one entry per vote, in the order of the source.

    Attributes:
        source: Where the entries come from.
        item_codes: Shape (n,).
        annotator_codes: Shape (n,).
        values: What was said, shape (n,).
        absent: Whether nothing was said, shape (n,).
        item_texts: Ids of the items by code.
        annotator_texts: Ids of the annotators by code.
        item_kind: Type of item ids that were whole numbers; see `CodedIds`.
        annotator_kind: The same of the annotators.
        rows: Row of the source for each entry, or None when entry and row are the same.
        weights: Weight of each entry, or None when all weigh 1.
        n_abstentions: Empty values that were left out.
        silent_items: Ids of items without a value.
        silent_annotators: Ids of annotators without a value.
        notes: What had to be decided, one sentence each.
        warnings: The notes on problems, to be raised as warnings.
    """

    source: Source = field(repr=False)
    item_codes: Codes
    annotator_codes: Codes
    values: NDArray[Any]
    absent: NDArray[np.bool_]
    item_texts: pa.Array
    annotator_texts: pa.Array
    item_kind: str | None = None
    annotator_kind: str | None = None
    rows: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    n_abstentions: int = 0
    silent_items: tuple[str, ...] = ()
    silent_annotators: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def where(self, entry: int) -> str:
        """Say where an entry is in the source."""
        return self.source.where(entry if self.rows is None else int(self.rows[entry]))

    @property
    def item_ids(self) -> pd.Index[str]:
        """Ids of the items as text."""
        return as_index(self.item_texts, self.item_kind)

    @property
    def annotator_ids(self) -> pd.Index[str]:
        """Ids of the annotators as text."""
        return as_index(self.annotator_texts, self.annotator_kind)


def read_long(
    source: Source, items: int, annotators: int | None, values: int, read: Reader, *, only_annotator: str = ""
) -> Entries:
    """Read one entry per row; without a column of annotators all entries are of `only_annotator`."""
    positions = [items, values] if annotators is None else [items, values, annotators]
    columns = source.load(positions)
    with ThreadPoolExecutor(1) as pool:  # Arrow encodes one column in one thread
        later = None if annotators is None else pool.submit(code_ids, source, annotators, columns[2])
        item_ids = code_ids(source, items, columns[0])
        who = _sole_annotator(only_annotator, len(item_ids.codes)) if later is None else later.result()
    said = read(source, values, columns[1])
    warnings = tuple(ids.warning for ids in (item_ids, who) if ids.warning is not None)
    return Entries(
        source,
        item_ids.codes,
        who.codes,
        said,
        _is_absent(said),
        item_ids.texts,
        who.texts,
        item_ids.kind,
        who.kind,
        notes=warnings,
        warnings=warnings,
    )


def _sole_annotator(name: str, n_rows: int) -> CodedIds:
    return CodedIds(np.zeros(n_rows, dtype=np.int32), pa.array([name]))


def read_wide(source: Source, items: int, read: Reader) -> Entries:
    """Read one row per item and one column per rater; a blank cell is no vote, which is not an abstention."""
    raters = [position for position in range(len(source.columns)) if position != items]
    names = [source.columns[position] for position in raters]
    check_names(source, names, "rater")
    columns = source.load([items, *raters])
    ids = code_ids(source, items, columns[0])
    said = np.stack([read(source, at, cells) for at, cells in zip(raters, columns[1:], strict=True)], axis=1)
    rows, who = np.nonzero(~_is_absent(said))
    return Entries(
        source,
        ids.codes[rows],
        who.astype(np.int32),
        said[rows, who],
        np.zeros(len(rows), dtype=np.bool_),
        ids.texts,
        pa.array(names),
        item_kind=ids.kind,
        rows=rows,
        notes=() if ids.warning is None else (ids.warning,),
        warnings=() if ids.warning is None else (ids.warning,),
    )


def check_names(source: Source, names: Sequence[str], noun: str) -> None:
    """Raise unless the columns of a wide table have names, each its own."""
    if not names:
        raise InputError(f"{source.name} has no column besides the items; a wide table has one column per {noun}")
    seen: set[str] = set()
    for name in names:
        if not name.strip() or name in seen:
            problem = "is named twice" if name in seen else "has a blank name"
            raise InputError(f"{source.name}: the column of a {noun} {problem}: {shorten(name)}")
        seen.add(name)


def _is_absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else values < 0


def clean(entries: Entries, duplicates: DuplicateRule, noun: str) -> Entries:
    """Leave out abstentions, resolve repeats, and drop the ids that are left with nothing."""
    check_choice(duplicates, DUPLICATE_RULES, "duplicates")
    if len(entries.values) == 0 or entries.absent.all():
        raise InputError(f"{entries.source.name} has no {noun}s: every {noun} is empty")
    return _without_silent(_without_repeats(_without_absent(entries), duplicates, noun), noun)


def _without_absent(entries: Entries) -> Entries:
    if not entries.absent.any():
        return entries
    kept = _select(entries, ~entries.absent)
    return replace(kept, n_abstentions=int(entries.absent.sum()))


def _select(entries: Entries, keep: NDArray[np.bool_]) -> Entries:
    rows = np.flatnonzero(keep) if entries.rows is None else entries.rows[keep]
    return replace(
        entries,
        item_codes=entries.item_codes[keep],
        annotator_codes=entries.annotator_codes[keep],
        values=entries.values[keep],
        absent=entries.absent[keep],
        rows=rows,
    )


def _without_repeats(entries: Entries, rule: DuplicateRule, noun: str) -> Entries:
    repeats = find_repeats(entries.item_codes, entries.annotator_codes, entries.values)
    if repeats is None:
        return entries
    if rule == "error" and repeats.conflicting.any():
        raise _conflict_error(entries, repeats, noun)
    resolution = resolve_repeats(repeats, len(entries.values), rule)
    kept = replace(_select(entries, resolution.keep), weights=resolution.weights)
    return _with_repeat_notes(kept, entries, repeats, rule, noun)


def _with_repeat_notes(kept: Entries, before: Entries, repeats: Repeats, rule: DuplicateRule, noun: str) -> Entries:
    equal, conflicting = (
        (int(which.sum()), before.where(int(repeats.rows[repeats.starts[which][0] + 1])) if which.any() else "")
        for which in (~repeats.conflicting, repeats.conflicting)
    )
    notes, warnings = repeat_notes(equal, conflicting, rule, noun)
    return replace(kept, notes=(*kept.notes, *notes), warnings=(*kept.warnings, *warnings))


def repeat_notes(
    equal: tuple[int, str], conflicting: tuple[int, str], rule: DuplicateRule, noun: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say what was done with repeats: all notes, and those of them that nobody asked for.

    Args:
        equal: Pairs of item and annotator with the same value more than once, and where the first of these repeats is.
        conflicting: The same of pairs with different values.
        rule: What was done with them.
        noun: What a value is.
    """
    same = _repeat_sentence(*equal, f"the same {noun}")
    different = _repeat_sentence(*conflicting, f"different {noun}s")
    if rule == "all":
        return tuple(f"{text}; all are kept" for text in (same, different) if text), ()
    warnings = (f"{same}; one of each is kept",) if same else ()
    action = "their mean is used" if rule == "mean" else f"the {rule} of each is kept"
    asked = (f"{different}; {action}",) if different else ()
    return (*warnings, *asked), warnings


def _repeat_sentence(count: int, where: str, what: str) -> str:
    if not count:
        return ""
    pairs = "1 pair of item and annotator has" if count == 1 else f"{count} pairs of item and annotator have"
    return f"{pairs} {what} more than once (first at {where})"


def _conflict_error(entries: Entries, repeats: Repeats, noun: str) -> InputError:
    groups = np.flatnonzero(repeats.conflicting)
    examples = [_conflict_sentence(entries, repeats, int(group)) for group in groups[:SHOWN_CONFLICTS]]
    return conflict_error(entries.source.name, examples, len(groups), noun)


def conflict_error(name: str, examples: Sequence[str], count: int, noun: str) -> InputError:
    """Build the error for different values by the same annotator on the same item, `count` times."""
    more = f"; and {count - len(examples)} more" if count > len(examples) else ""
    return InputError(
        f"{name}: different {noun}s by the same annotator on the same item: {'; '.join(examples)}{more}; "
        "say with --duplicates first, last, mean or all (duplicates=) what to do"
    )


def _conflict_sentence(entries: Entries, repeats: Repeats, group: int) -> str:
    first, other = first_conflict(repeats, group, entries.values)
    item, annotator = entries.item_texts[int(entries.item_codes[first])], int(entries.annotator_codes[first])
    said = [(entries.values[row], entries.where(row)) for row in (first, other)]
    return conflict_sentence(item, entries.annotator_texts[annotator], said)


def first_conflict(repeats: Repeats, group: int, values: NDArray[Any]) -> tuple[int, int]:
    """Return the first entry of a group, and the first one with another value."""
    start = repeats.starts[group]
    rows = repeats.rows[start : start + repeats.sizes[group]]
    differs = values[rows] != values[rows[0]]
    return int(rows[0]), int(rows[differs.argmax()])


def conflict_sentence(item: object, annotator: object, said: Sequence[tuple[float, str]]) -> str:
    """Say that an annotator said different things on an item: each value, and where it is."""
    values = " but ".join(f"{value:g} in {where}" for value, where in said)
    return f"item {shorten(item)}, annotator {shorten(annotator)}: {values}"


def silent_warning(items: Sequence[str], noun: str) -> str:
    """Say that items without a value are left out."""
    names = f"1 item has no {noun} and is" if len(items) == 1 else f"{len(items)} items have no {noun} and are"
    return f"{names} left out (first: {shorten(items[0])})"


def _without_silent(entries: Entries, noun: str) -> Entries:
    item_codes, item_texts, items = _used(entries.item_codes, entries.item_texts)
    annotator_codes, annotator_texts, annotators = _used(entries.annotator_codes, entries.annotator_texts)
    warnings = entries.warnings
    if items:
        warnings = (*warnings, silent_warning(items, noun))
    return replace(
        entries,
        item_codes=item_codes,
        item_texts=item_texts,
        annotator_codes=annotator_codes,
        annotator_texts=annotator_texts,
        silent_items=items,
        silent_annotators=annotators,
        notes=(*entries.notes, *warnings[len(entries.warnings) :]),
        warnings=warnings,
    )


def _used(codes: Codes, texts: pa.Array) -> tuple[Codes, pa.Array, tuple[str, ...]]:
    """Return codes and texts without the texts that no entry has, and those texts."""
    counts = np.bincount(codes, minlength=len(texts))
    if counts.all():
        return codes, texts, ()
    used = counts > 0
    new_code = (np.cumsum(used) - 1).astype(np.int32)
    return new_code[codes], texts.filter(pa.array(used)), tuple(texts.filter(pa.array(~used)).to_pylist())


def refuse_with_wide(**options: str | None) -> None:
    """Raise when a column option is given that a wide table has no use for."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name}={value!r} has no meaning in a wide table, where every other column is a rater")
