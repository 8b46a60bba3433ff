"""The section on label convergence: how high a model can score, why, and on which images the raters differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softgold.report.blocks import Cell, Figure, Panel, Section, Table, Tile, amount, figure, named, numbers, real
from softgold.report.convergence.plots import Range, Series, StraightLine, cloud, ranges, series
from softgold.report.convergence.summary import ConvergenceSummary
from softgold.report.convergence.variation import MOST_THRESHOLDS, image_table, rest_words, thin, variation_figure

MOST_POINTS = 300
MOST_PAIRS = 40
# What each basis of the upper bound is called in the tables.
ESTIMATES = {
    "two raters": "mAP between the raters",
    "refitted line": "mAP by the refitted line",
    "published line": "mAP by the published line",
}

Record = Mapping[str, Any]
Estimate = tuple[str, float | None, Record]


def convergence_section(found: ConvergenceSummary) -> Section:
    """Show the upper bound, its basis, and how the raters differ."""
    record = found.record
    figures = [_interval_figure(record), _threshold_figure(record)]
    points = _points(found)
    if points:
        figures.append(_line_figure(record, points))
    if record["variation"]["counts"]:
        figures.append(variation_figure(record))
    tables = [_interval_table(record), _pair_table(record["pairs"])]
    if found.images is not None and len(found.images):
        tables.append(image_table(found.images))
    words = (
        "Where raters differ, a perfect model cannot agree with all of them. This says how far the raters agree on "
        f"{record['n_images']:,} images, and from which score on a model can only be copying one of them. mAP is mean "
        "average precision, one rater taken for the truth and the other for the model; alpha is Krippendorff's, 1 for "
        "full agreement and 0 for chance. The sentence counts mAP from 0 to 100, charts and tables from 0 to 1."
    )
    return Section(
        "convergence", "Label convergence", words, (Panel(tuple(figures), tuple(tables), (record["sentence"],)),)
    )


def convergence_tiles(found: ConvergenceSummary) -> list[Tile]:
    """Return the key numbers."""
    record = found.record
    kind = "masks" if record["masks"] else "boxes"
    drawn = f"{record['n_annotations']:,} {kind} of {len(record['raters']):,} raters"
    return [
        Tile(f"{100 * record['upper_bound']:.1f}", "is the upper bound", ESTIMATES[record["basis"]]),
        Tile(real(record["alpha"]).text, "alpha between raters", "1 is full agreement, 0 is chance"),
        Tile(f"{record['n_images']:,}", "images", drawn),
    ]


def _estimates(record: Record) -> list[Estimate]:
    """Return name, value on the full data and intervals of what a model can reach, the most reliable first."""
    rows: list[Estimate] = [(ESTIMATES["published line"], None, record["published"]["clipped"])]
    if record.get("refitted") is not None:
        rows.insert(0, (ESTIMATES["refitted line"], None, record["refitted"]["clipped"]))
    if record.get("map_interval") is not None:
        rows.insert(0, (ESTIMATES["two raters"], record["map"], record["map_interval"]))
    return rows


def _basis(record: Record) -> Estimate:
    """Return the estimate that is the basis of the upper bound."""
    return next(row for row in _estimates(record) if row[0] == ESTIMATES[record["basis"]])


def _share(record: Record) -> str:
    return f"{100 * record['settings']['fraction']:.3g} %"


def _interval_figure(record: Record) -> Figure:
    name, _, found = _basis(record)
    share = _share(record)
    (low, high), (subset_low, subset_high) = found["full_normal"], found["normal"]
    rows = [
        Range("full data, 95 %", found["mean"], low, high),
        Range(f"subsets of {share}, 95 %", found["mean"], subset_low, subset_high, warns=True),
    ]
    told = "; ".join(f"{row.name}: {row.low:.3f} to {row.high:.3f}" for row in rows)
    title = "The upper bound and its two intervals"
    return figure(
        title,
        f"{name}: the upper bound is the right end of the interval of the full data. The interval of subsets of "
        f"{share} of the images is that of published tables; it says where such a subset falls.",
        ranges(rows, x_title=name),
        told,
    )


def _interval_table(record: Record) -> Table:
    rows = [("alpha", record["alpha"], record["alpha_interval"]), *_estimates(record)]
    basis = _basis(record)[0]
    share = _share(record)
    cells = tuple(
        (
            named(name),
            real(value),
            _ends(found["full_normal"], strong=name == basis),
            _ends(found["normal"]),
            _ends(found["percentile"]),
        )
        for name, value, found in rows
    )
    return Table(
        (
            "measure",
            "full data",
            "interval of the full data",
            f"interval of {share} subsets",
            f"percentiles of {share} subsets",
        ),
        cells,
        "Intervals, 95 %",
        f"From {record['alpha_interval']['n_subsets']:,} subsets of {record['subset_size']:,} images, drawn without "
        "replacement: mean ± 1.96 standard deviations, and the 2.5 and 97.5 percentiles. What a line gives is cut to "
        "0 and 1; convergence.json has the raw values. In bold is what the upper bound comes from.",
    )


def _ends(ends: Sequence[float | None], *, strong: bool = False) -> Cell:
    low, high = ends
    if low is None or high is None:
        return real(None)
    return Cell(f"{low:.3f} to {high:.3f}", float(high), strong)


def _threshold_figure(record: Record) -> Figure:
    rows = record["thresholds"]
    alpha = f"alpha_{record['settings']['alpha']}"
    lines = [
        Series(name, tuple((row["threshold"], row[key]) for row in rows if row.get(key) is not None))
        for name, key in (("alpha", alpha), ("mAP", "map"))
    ]
    lines = [line for line in lines if line.points]
    title = "Agreement over the overlap threshold"
    told = "; ".join(
        f"{line.name} is {line.points[0][1]:.3f} at {line.points[0][0]:g} and {line.points[-1][1]:.3f} at "
        f"{line.points[-1][0]:g}"
        for line in lines
    )
    shown = thin(rows, MOST_THRESHOLDS)
    table = Table(
        ("threshold", "alpha", "mAP"),
        tuple((real(row["threshold"], 2), real(row.get(alpha)), real(row.get("map"))) for row in shown),
        rest=rest_words(len(shown), len(rows), "thresholds", "thresholds.csv"),
    )
    return figure(
        title,
        "Two shapes count as one thing if they overlap by the threshold (intersection over union). The steeper a line "
        f"falls, the more raters differ in where things end and not in what they are. {told[:1].upper()}{told[1:]}.",
        series(lines, x_title="overlap threshold", y_title="agreement"),
        told,
        table,
    )


def _points(found: ConvergenceSummary) -> list[tuple[float, float]]:
    """Return alpha and mAP of subsets; of pairs of raters where subsets have no mAP."""
    if found.record.get("map_interval") is None:
        pairs = found.record["pairs"]
        return [(row["alpha"], row["map"]) for row in pairs if None not in (row["alpha"], row["map"])]
    if found.subsets is None:
        return []
    known = found.subsets[["alpha", "map"]].dropna()
    return [(float(alpha), float(score)) for alpha, score in known.to_numpy()]


def _line_figure(record: Record, points: list[tuple[float, float]]) -> Figure:
    of_pairs = record.get("map_interval") is None
    what = "pair of raters" if of_pairs else "subset of the images"
    shown = thin(points, MOST_POINTS)
    part = "" if len(shown) == len(points) else f" ({len(shown):,} of {len(points):,} are drawn)"
    lines = [
        (name, record[key]["line"])
        for name, key in (("published", "published"), ("refitted", "refitted"))
        if record.get(key)
    ]
    told = "; ".join(f"{name} line: mAP = {_equation(line)}" for name, line in lines)
    drawn = [StraightLine(f"{name}: {_equation(line)}", line["slope"], line["intercept"]) for name, line in lines]
    keys = ("slope", "intercept", "pearson", "r2")
    rows = [[Cell(name), *(real(line[key]) for key in keys), real(line["n_points"], 0)] for name, line in lines]
    table = numbers(("line", "slope", "intercept", "Pearson", "R²", "points"), rows)
    return figure(
        "From alpha to mAP",
        f"One dot per {what}{part}, averaged over the thresholds. The published line was fitted on three data sets, "
        f"the refitted one on this data{'' if of_pairs else ' at each threshold'}. The upper bound uses the refitted "
        "line only with at least ten points and an R² of 0.5 or more.",
        cloud(shown, drawn, x_title="alpha", y_title="mAP"),
        f"One dot per {what}. {told}.",
        table,
    )


def _equation(line: Record) -> str:
    sign = "+" if line["intercept"] >= 0 else "−"
    return f"{line['slope']:.3f} alpha {sign} {abs(line['intercept']):.3f}"


def _pair_table(pairs: Sequence[Record]) -> Table:
    ordered = sorted(pairs, key=lambda row: np.inf if row["alpha"] is None else row["alpha"])
    shown = ordered[:MOST_PAIRS]
    rows = tuple(
        (named(row["rater_a"]), named(row["rater_b"]), amount(row["n_images"]), real(row["alpha"]), real(row["map"]))
        for row in shown
    )
    return Table(
        ("rater", "other rater", "images", "alpha", "mAP"),
        rows,
        "Pairs of raters",
        "Averaged over the thresholds, the pair that agrees least first.",
        rest_words(len(shown), len(pairs), "pairs", "pairs.csv"),
    )
