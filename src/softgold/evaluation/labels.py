"""Hard labels, tasks and groups of an evaluation: read from files, or taken from what the caller has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgold.checks import as_finite, check_choice, check_same_length
from softgold.errors import InputError, UsageError
from softgold.experts import ReleasedLabels
from softgold.readers import TableLike, read_items
from softgold.readers.base import shorten
from softgold.tables.ids import find_ids, repeated_id
from softgold.tables.soft_labels import SoftLabels

FloatArray = NDArray[np.float64]
GivenLabels = ReleasedLabels | pd.DataFrame | pd.Series | ArrayLike | None
SOFT_COLUMNS = ("p", "p_calibrated", "expected_vote", "mean_vote")
HALF = 0.5


@dataclass(frozen=True, eq=False)
class HardLabels:
    """Hard labels 0 and 1 of every item, shape (I,), NaN where there is none, and in words where they come from."""

    values: FloatArray
    source: str


def hard_labels(soft_labels: SoftLabels, given: GivenLabels) -> HardLabels:
    """Return the hard labels to judge against, in the order of the soft labels.

    Args:
        soft_labels: Soft labels of I items.
        given: The labels of a calibration; a table `item, label`; a series of 0 and 1 indexed by item; an array of
            shape (I,); or None for the column `label` of the soft labels where they have one, else p >= 0.5.
    """
    if isinstance(given, ReleasedLabels):
        by_item = pd.Series(given.label, index=given.item_ids)
        cut = "the threshold of each task" if np.isnan(given.threshold) else f"p >= {given.threshold:.4f}"
        return HardLabels(_aligned(by_item, soft_labels), f"labels released at {cut}")
    if isinstance(given, pd.DataFrame):
        if not {"item", "label"} <= set(given.columns):
            raise InputError(f"a table of hard labels needs the columns item and label, got {list(given.columns)}")
        given = pd.Series(given["label"].to_numpy(), index=given["item"].astype("str"))
    if isinstance(given, pd.Series):
        return HardLabels(_aligned(given, soft_labels), "labels given")
    if given is not None:
        values = _binary(as_finite(given, "labels"))
        check_same_length(len(soft_labels), labels=values)
        return HardLabels(values, "labels given")
    if soft_labels.label is not None:
        return HardLabels(soft_labels.label.astype(np.float64), "column label of the soft labels")
    return HardLabels((soft_labels.p >= HALF).astype(np.float64), "p >= 0.5")


def soft_values(soft_labels: SoftLabels, given: GivenLabels, soft: str) -> FloatArray:
    """Return the column that serves as soft label, shape (I,); NaN where an item has none."""
    check_choice(soft, SOFT_COLUMNS, "soft")
    if soft != "p_calibrated":
        return np.asarray(getattr(soft_labels, soft), dtype=np.float64)
    if not isinstance(given, ReleasedLabels):
        raise UsageError("soft='p_calibrated' needs the labels of a calibration: labels=softgold.calibrate(...).labels")
    return _taken(given.p_calibrated, given.item_ids, soft_labels)


def read_tasks(source: TableLike, *, item: str | None = None, task: str = "task") -> pd.Series:
    """Read which task each item belongs to, as in `items.csv`.

    Args:
        source: A path, `-` or a data frame.
        item: Name of the item column, where it is not one of the common names.
        task: Name of the column with the tasks.

    Returns:
        The tasks as text, indexed by item.

    >>> read_tasks(pd.DataFrame({"item": ["x1", "y1"], "task": ["x", "y"]})).to_dict()
    {'x1': 'x', 'y1': 'y'}
    """
    return read_items(source, task, item=item)


def read_groups(source: TableLike, group: str, *, item: str | None = None) -> pd.Series:
    """Read which group each item belongs to, such as the patient of an image; arguments as in `read_tasks`.

    An item may have several rows, as in a long table of scores, if they agree.

    >>> read_groups(pd.DataFrame({"item": ["x1", "x2"], "patient": [7, 7]}), "patient").to_dict()
    {'x1': '7', 'x2': '7'}
    """
    return read_items(source, group, item=item)


def _binary(values: FloatArray) -> FloatArray:
    bad = (values != 0) & (values != 1)
    if bad.any():
        at = int(bad.argmax())
        raise InputError(f"a hard label must be 0 or 1, got {values[at]:g} at position {at}")
    return values


def _aligned(by_item: pd.Series, soft_labels: SoftLabels) -> FloatArray:
    twice = repeated_id(by_item.index)
    if twice is not None:
        raise InputError(f"item {shorten(twice)} has two hard labels")
    return _taken(_binary(as_finite(by_item.to_numpy(), "labels")), by_item.index, soft_labels)


def _taken(values: FloatArray, item_ids: pd.Index[str], soft_labels: SoftLabels) -> FloatArray:
    """Return values in the order of the soft labels, NaN where there is none."""
    at = find_ids(item_ids, soft_labels.item_ids)
    return np.where(at >= 0, values[at], np.nan) if len(values) else np.full(len(at), np.nan)
