"""The charts of label convergence: intervals, lines over thresholds, clouds of subsets, stacked types of variation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softgold.report.svg import Canvas, Scale, padded

ROW = 46
LEGEND_ROW = 18
# Room around the points, as a share of their range.
SHARE = 0.08
# Up to this many points are drawn large: they do not hide each other.
FEW = 30
# Room for the legend at the left edge, so that long names fit beside each other.
LEGEND_LEFT = 24


@dataclass(frozen=True)
class Range:
    """A value with an interval, on a row of its own."""

    name: str
    value: float
    low: float
    high: float
    warns: bool = False


@dataclass(frozen=True)
class Series:
    """Points to be joined, with a name."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class StraightLine:
    """A line y = slope x + intercept, with a name."""

    name: str
    slope: float
    intercept: float


@dataclass(frozen=True)
class Stack:
    """A bar made of counts, one on the other."""

    name: str
    counts: tuple[int, ...]


def ranges(rows: Sequence[Range], *, x_title: str) -> Canvas:
    """Draw intervals below each other, each with its name above and its ends written at it."""
    canvas = Canvas(height=64 + ROW * len(rows), left=24, right=24, top=8)
    x_low, x_high = padded([end for row in rows for end in (row.low, row.high, row.value)], SHARE)
    x = canvas.x_scale(x_low, x_high)
    canvas.x_axis(x, x_title)
    for place, row in enumerate(rows):
        y = canvas.top + ROW * place + 30
        kind = "warn" if row.warns else "main"
        words = f"{row.name}: {row.low:.3f} to {row.high:.3f}"
        canvas.text(canvas.left, y - 14, words, anchor="start", style="name")
        canvas.line(x(row.low), y, x(row.high), y, f"interval-{kind}")
        for end in (row.low, row.high):
            canvas.line(x(end), y - 5, x(end), y + 5, f"interval-{kind}")
        draw = canvas.diamond if row.warns else canvas.dot
        draw(x(row.value), y, f"dot-{kind}", f"{words}, mean {row.value:.3f}", 5)
    return canvas


def series(lines: Sequence[Series], *, x_title: str, y_title: str) -> Canvas:
    """Draw one or two lines through points: the first solid with discs, the second dashed with diamonds."""
    canvas = Canvas(top=34)
    everything = [point for line in lines for point in line.points]
    x_low, x_high = padded([a for a, _ in everything], SHARE / 2)
    y_low, y_high = padded([b for _, b in everything], SHARE)
    x, y = canvas.x_scale(x_low, x_high), canvas.y_scale(y_low, y_high)
    canvas.y_axis(y, y_title)
    canvas.x_axis(x, x_title)
    for place, line in enumerate(lines[:2]):
        style, draw = (("main", canvas.dot), ("warn", canvas.diamond))[place]
        canvas.path([(x(a), y(b)) for a, b in line.points], f"trend-{style}")
        for a, b in line.points:
            draw(x(a), y(b), f"dot-{style}", f"{line.name} at {a:g}: {b:.3f}", 4)
        draw(canvas.left + 130 * place + 6, 16, f"dot-{style}", line.name)
        canvas.text(canvas.left + 130 * place + 18, 20, line.name, anchor="start", style="name")
    return canvas


def cloud(
    points: Sequence[tuple[float, float]],
    lines: Sequence[StraightLine],
    *,
    x_title: str,
    y_title: str,
) -> Canvas:
    """Draw many points, and up to two straight lines across the frame: the first dashed, the second solid."""
    canvas = Canvas(height=320, top=20 + LEGEND_ROW * len(lines))
    x_low, x_high = padded([a for a, _ in points], SHARE)
    ends = [line.slope * at + line.intercept for line in lines for at in (x_low, x_high)]
    y_low, y_high = padded([*(b for _, b in points), *ends], SHARE)
    x, y = canvas.x_scale(x_low, x_high), canvas.y_scale(y_low, y_high)
    canvas.y_axis(y, y_title)
    canvas.x_axis(x, x_title)
    for place, line in enumerate(lines[:2]):
        style = ("line-published", "line-own")[place]
        height = 14 + LEGEND_ROW * place
        canvas.line(x(x_low), y(ends[2 * place]), x(x_high), y(ends[2 * place + 1]), style)
        canvas.line(canvas.left, height, canvas.left + 26, height, style)
        canvas.text(canvas.left + 34, height + 4, line.name, anchor="start", style="name")
    style, radius = ("dot-main", 5) if len(points) <= FEW else ("dot-cloud", 3)
    for a, b in points:
        canvas.dot(x(a), y(b), style, f"{a:.3f}, {b:.3f}", radius)
    return canvas


def stacked_bars(
    stacks: Sequence[Stack],
    kinds: Sequence[tuple[str, str]],
    *,
    x_title: str,
    y_title: str,
) -> Canvas:
    """Draw counts one on the other.

    Args:
        stacks: The bars, from left to right.
        kinds: Style and name of each count, from the bottom of a bar to its top.
        x_title: What differs between bars.
        y_title: What is counted.
    """
    rows = -(-len(kinds) // 2)
    canvas = Canvas(height=300 + LEGEND_ROW * rows, top=20 + LEGEND_ROW * rows, left=70)
    x = canvas.x_scale(0, len(stacks))
    y = canvas.y_scale(0, max(1.0, 1.04 * max(sum(stack.counts) for stack in stacks)))
    canvas.y_axis(y, y_title, show="{:,.10g}".format)
    for place, (style, words) in enumerate(kinds):
        left, top = LEGEND_LEFT + 216 * (place // rows), 8 + LEGEND_ROW * (place % rows)
        canvas.bar(left, top, 12, 12, style, words)
        canvas.text(left + 18, top + 10, words, anchor="start", style="name")
    for place, stack in enumerate(stacks):
        _one_stack(canvas, x, y, place, stack, kinds)
    base = canvas.height - canvas.bottom
    canvas.line(canvas.left, base, canvas.width - canvas.right, base, "axis")
    canvas.text((canvas.left + canvas.width - canvas.right) / 2, canvas.height - 8, x_title, style="label")
    return canvas


def _one_stack(canvas: Canvas, x: Scale, y: Scale, place: int, stack: Stack, kinds: Sequence[tuple[str, str]]) -> None:
    left, right = x(place + 0.12), x(place + 0.88)
    below = 0
    for count, (style, words) in zip(stack.counts, kinds, strict=True):
        if count:
            height = y(below) - y(below + count)
            canvas.bar(left, y(below + count), right - left, height, style, f"{stack.name}, {words}: {count:,}")
        below += count
    canvas.text((left + right) / 2, canvas.height - canvas.bottom + 17, stack.name)
