"""How the raters differ, and on which images: part of the section on label convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from softgold.report.blocks import Cell, Figure, Table, amount, figure, named, real
from softgold.report.convergence.plots import Stack, stacked_bars

# Name in the files, and words; in the order of the bars, from below.
TYPES = (
    ("correct", "correct"),
    ("bad_boundary", "bad boundary"),
    ("wrong_class", "wrong class"),
    ("merge", "merged"),
    ("merge_wrong_class", "merged, with wrong class"),
    ("missed_or_additional", "missed or additional"),
)
MOST_BARS = 12
MOST_THRESHOLDS = 40
MOST_IMAGES = 25

Record = Mapping[str, Any]
Entry = TypeVar("Entry")


def variation_figure(record: Record) -> Figure:
    """Draw the types of variation at each threshold, all pairs of raters together."""
    totals: dict[float, dict[str, int]] = {}
    for row in record["variation"]["counts"]:
        at = totals.setdefault(row["threshold"], dict.fromkeys((name for name, _ in TYPES), 0))
        for name, _ in TYPES:
            at[name] += row[name]
    ordered = [(threshold, totals[threshold]) for threshold in sorted(totals)]
    stacks = [
        Stack(f"{threshold:g}", tuple(counts[name] for name, _ in TYPES))
        for threshold, counts in thin(ordered, MOST_BARS)
    ]
    first, counts = ordered[0]
    told = f"At {first:g}: " + ", ".join(f"{words} {counts[name]:,}" for name, words in TYPES)
    kinds = [(f"type-{name.replace('_', '-')}", words) for name, words in TYPES]
    shown = thin(ordered, MOST_THRESHOLDS)
    table = Table(
        ("threshold", *(words for _, words in TYPES)),
        tuple((real(threshold, 2), *(amount(counts[name]) for name, _ in TYPES)) for threshold, counts in shown),
        rest=rest_words(len(shown), len(ordered), "thresholds", "variation.csv"),
    )
    return figure(
        "Types of variation",
        "How the raters differ, all pairs of raters together. Two shapes that match count once, and one that the "
        f"other rater did not draw counts by itself, so bars grow where matches fall apart. {told}.",
        stacked_bars(stacks, kinds, x_title="overlap threshold", y_title="count"),
        told,
        table,
    )


def image_table(images: pd.DataFrame) -> Table:
    """List the images on which two raters differ most."""
    shown = images.head(MOST_IMAGES).to_dict(orient="records")
    kinds = TYPES[1:]
    rows = tuple(
        (
            named(row["image"]),
            Cell(f"{named(row['rater_a']).text}, {named(row['rater_b']).text}"),
            amount(row["n_variations"]),
            *(amount(row[name]) for name, _ in kinds),
        )
        for row in shown
    )
    threshold = images["threshold"].iloc[0]
    return Table(
        ("image", "raters", "variations", *(words for _, words in kinds)),
        rows,
        "Images to look at",
        f"Where two raters differ most at an overlap threshold of {threshold:g}; these images often "
        "show which instruction is missing.",
        f"{len(shown):,} of {len(images):,} rows at this threshold; all are in images.csv",
    )


def thin(values: Sequence[Entry], most: int) -> list[Entry]:
    """Return at most `most` of the values, evenly spaced, both ends among them.

    >>> thin([1, 2, 3, 4, 5], 3)
    [1, 3, 5]
    """
    if len(values) <= most:
        return list(values)
    return [values[round(place)] for place in np.linspace(0, len(values) - 1, most)]


def rest_words(shown: int, total: int, what: str, file: str) -> str:
    """Say where to find rows that are not shown; nothing if all are."""
    return "" if shown == total else f"{shown:,} of {total:,} {what}; all are in {file}"
