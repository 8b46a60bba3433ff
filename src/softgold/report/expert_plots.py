"""Charts of the section on experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softgold.report.plots import Mark, Spread
from softgold.report.svg import Canvas


@dataclass(frozen=True)
class MapPoint:
    """A point of the map: soft label, calibrated soft label, and both ends of its band."""

    p: float
    value: float
    low: float
    high: float


def map_chart(
    bins: Sequence[Spread],
    curve: Sequence[MapPoint],
    *,
    cut: float,
    threshold: float,
) -> Canvas:
    """Draw the experts' rate in each bin with its interval, and the map with its band through them.

    Args:
        bins: Mean soft label and rate of each bin.
        curve: The map, ascending in p.
        cut: Rate from which on an item is labelled positive.
        threshold: The threshold.
    """
    mark = Mark(min(threshold, 1.0), f"threshold {threshold:.2f}")
    canvas = Canvas(height=320)  # the words beside the threshold stand above the rates
    x, y = canvas.x_scale(0, 1), canvas.y_scale(0, 1.1)
    canvas.y_axis(y, "experts' rate of positives")
    canvas.x_axis(x, "soft label p")
    upper, lower = [(x(point.p), y(point.high)) for point in curve], [(x(point.p), y(point.low)) for point in curve]
    canvas.path([*upper, *reversed(lower)], "band")
    canvas.line(x(0), y(0), x(1), y(1), "diagonal")
    canvas.line(x(0), y(cut), x(1), y(cut), "faint")
    canvas.path([(x(point.p), y(point.value)) for point in curve], "curve")
    canvas.marker(x, mark.value, mark.words, mark.style)
    for spread in bins:
        canvas.line(x(spread.x), y(spread.low), x(spread.x), y(spread.high), "interval-main")
        canvas.dot(x(spread.x), y(spread.value), "dot-main", spread.hint)
    return canvas
