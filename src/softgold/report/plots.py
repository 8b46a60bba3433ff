"""The charts of the report: each takes plain values and returns a drawing; only positions are computed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from softgold.report.svg import Canvas, Scale, nice_ticks, padded, shorten_text

NAME_LENGTH = 14
LABEL_STEP = 14.0
# With more labels they would overlap; the table beside the chart has all names.
MOST_LABELS = 14


@dataclass(frozen=True)
class Mark:
    """A value to mark with a vertical line, in words."""

    value: float
    words: str
    style: str = "mark"


@dataclass(frozen=True)
class Point:
    """A named point."""

    name: str
    x: float
    y: float


@dataclass(frozen=True)
class Spread:
    """A value with an interval, at a place on the horizontal axis; `warns` draws it as a diamond."""

    x: float
    value: float
    low: float
    high: float
    hint: str
    warns: bool = False


def histogram(
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    x_title: str,
    y_title: str = "items",
    marks: Sequence[Mark] = (),
    labels: Sequence[str] | None = None,
) -> Canvas:
    """Draw counts in bins; on a logarithmic axis where a linear one would hide the small ones.

    Args:
        edges: Edges of the bins, one more than counts.
        counts: Items in each bin.
        x_title: What is counted along the axis.
        y_title: What is counted.
        marks: Vertical lines.
        labels: A name for each bin, in place of a scale.
    """
    most = max(counts, default=0)
    filled = [count for count in counts if count]
    is_log = bool(filled) and most > 60 * max(1, sorted(filled)[len(filled) // 3])
    canvas = Canvas(top=_room_for(marks), left=_room_for_ticks([f"{most:,}"]))
    x = canvas.x_scale(edges[0], edges[-1])
    low = 0.5 if is_log else 0.0
    y = canvas.y_scale(low, max(most, 1) * (1.6 if is_log else 1.08), log=is_log)
    canvas.y_axis(y, f"{y_title}, log scale" if is_log else y_title, show="{:,.0f}".format)
    for number, count in enumerate(counts):
        left, right = x(edges[number]), x(edges[number + 1])
        span = labels[number] if labels else f"{edges[number]:g} to {edges[number + 1]:g}"
        if count:
            canvas.bar(left + 0.5, y(count), right - left - 1, y(low) - y(count), "bar", f"{span}: {count:,}")
    if labels is None:
        canvas.x_axis(x, x_title)
    else:
        _named_bins(canvas, x, edges, labels, x_title)
    for row, mark in enumerate(marks):
        canvas.marker(x, mark.value, mark.words, mark.style, row=row)
    return canvas


def _room_for(marks: Sequence[Mark]) -> int:
    """Return the room above a chart whose marks have a line of words each."""
    return 14 + 14 * max(0, len(marks) - 1)


def _room_for_ticks(words: Sequence[str]) -> int:
    """Return the room beside a chart for the words of its vertical axis and the title beyond them."""
    return max(52, 32 + round(7.4 * max((len(word) for word in words), default=0)))


def _named_bins(canvas: Canvas, x: Scale, edges: Sequence[float], labels: Sequence[str], title: str) -> None:
    base = canvas.height - canvas.bottom
    canvas.line(canvas.left, base, canvas.width - canvas.right, base, "axis")
    longest = max(len(label) for label in labels)
    every = max(1, math.ceil(len(labels) * (longest * 7 + 6) / (x.end - x.start)))
    for number, label in enumerate(labels):
        if number % every == 0:
            canvas.text((x(edges[number]) + x(edges[number + 1])) / 2, base + 17, label)
    canvas.text((canvas.left + canvas.width - canvas.right) / 2, canvas.height - 8, title, style="label")


def spreads(values: Sequence[Spread], *, x_title: str, y_title: str, zero: str | None = None) -> Canvas:
    """Draw values with their intervals side by side, in the order given; `zero` names a line at 0."""
    canvas = Canvas(width=940, height=300)
    low, high = min(v.low for v in values), max(v.high for v in values)
    room = 0.06 * ((high - low) or 1.0)
    x = canvas.x_scale(-0.8, len(values) - 0.2)
    y = canvas.y_scale(min(low, 0.0) - room, max(high, 0.0) + room)
    canvas.y_axis(y, y_title)
    canvas.line(
        canvas.left, canvas.height - canvas.bottom, canvas.width - canvas.right, canvas.height - canvas.bottom, "axis"
    )
    canvas.text((canvas.left + canvas.width - canvas.right) / 2, canvas.height - 14, x_title, style="label")
    if zero is not None:
        canvas.line(canvas.left, y(0), canvas.width - canvas.right, y(0), "mark")
        canvas.text(canvas.width - canvas.right - 4, y(0) - 6, zero, anchor="end", style="note mark-text")
    for spread in values:
        kind = "warn" if spread.warns else "main"
        canvas.line(x(spread.x), y(spread.low), x(spread.x), y(spread.high), f"range-{kind}")
        draw = canvas.diamond if spread.warns else canvas.dot
        draw(x(spread.x), y(spread.value), f"dot-{kind}", spread.hint, 4.5 if spread.warns else 2.6)
    return canvas


def curve(
    points: Sequence[tuple[float, float]],
    *,
    x_title: str,
    y_title: str,
    marks: Sequence[Mark] = (),
    from_zero: bool = False,
    percent: bool = False,
) -> Canvas:
    """Draw a line through points."""
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    room = 0.05 * ((max(ys) - min(ys)) or abs(max(ys)) or 1.0)
    low, high = 0.0 if from_zero else min(ys) - room, max(ys) + room
    show = "{:.0%}".format if percent else "{:,.10g}".format
    canvas = Canvas(top=_room_for(marks), left=_room_for_ticks([show(tick) for tick in nice_ticks(low, high)]))
    x, y = canvas.x_scale(min(xs), max(xs)), canvas.y_scale(low, high)
    canvas.y_axis(y, y_title, show=show)
    canvas.x_axis(x, x_title)
    for row, mark in enumerate(marks):
        canvas.marker(x, mark.value, mark.words, mark.style, row=row)
    canvas.path([(x(a), y(b)) for a, b in points], "curve")
    return canvas


def scatter(points: Sequence[Point], *, x_title: str, y_title: str) -> Canvas:
    """Draw named points with the diagonal, on which both values are equal."""
    canvas = Canvas(height=330, right=112, left=68)
    x_low, x_high = padded([point.x for point in points])
    y_low, y_high = padded([point.y for point in points])
    x, y = canvas.x_scale(x_low, x_high), canvas.y_scale(y_low, y_high)
    canvas.y_axis(y, y_title)
    canvas.x_axis(x, x_title, count=4)
    start, end = max(x_low, y_low), min(x_high, y_high)
    if start < end:
        canvas.line(x(start), y(start), x(end), y(end), "diagonal")
    if len(points) <= MOST_LABELS:
        _side_labels(canvas, [(x(p.x), y(p.y), p.name) for p in points])
    for point in points:
        canvas.dot(x(point.x), y(point.y), "dot-main", f"{point.name}: {point.x:.3f}, {point.y:.3f}", 5)
    return canvas


def _side_labels(canvas: Canvas, places: Sequence[tuple[float, float, str]]) -> None:
    """Write names in a column on the right, apart from each other, each with a line to its point."""
    column = canvas.width - canvas.right + 14
    ordered = sorted(places, key=lambda place: place[1])
    heights = spaced([place[1] for place in ordered], LABEL_STEP, canvas.top + 4, canvas.height - canvas.bottom + 18)
    for (x, y, name), height in zip(ordered, heights, strict=True):
        canvas.line(x, y, column - 3, height - 4, "leader")
        canvas.text(column, height, shorten_text(name, NAME_LENGTH), anchor="start", style="name")


def spaced(places: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """Move ascending places apart until they are `step` from each other, inside [low, high] where that can be.

    >>> spaced([10, 11, 40], 10, 0, 100)
    [10.0, 20.0, 40.0]
    """
    found: list[float] = []
    for place in places:
        found.append(max(float(place), low, found[-1] + step if found else low))
    ceiling = high
    for number in range(len(found) - 1, -1, -1):
        found[number] = min(found[number], ceiling)
        ceiling = found[number] - step
    return found


def slope(
    names: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    *,
    place_names: tuple[Sequence[str], Sequence[str]],
    left_title: str,
    right_title: str,
) -> Canvas:
    """Draw ranks before and after as lines between two columns; rising and falling differ in dash and colour.

    Args:
        names: Names of the models.
        before: Ranks in the left column; equal ones are placed in the order given.
        after: Ranks in the right column.
        place_names: How both ranks are written, such as "2=" for a shared place.
        left_title: Title of the left column.
        right_title: Title of the right column.
    """
    canvas = Canvas(height=max(280, 70 + round(LABEL_STEP * 1.5 * len(names))), left=136, right=136, top=40, bottom=20)
    left_places, right_places = _places(before), _places(after)
    y = Scale(0, max(len(names) - 1, 1), canvas.top + 12, canvas.height - canvas.bottom - 8)
    x1, x2 = canvas.left, canvas.width - canvas.right
    canvas.text(x1, canvas.top - 16, left_title, anchor="end", style="label")
    canvas.text(x2, canvas.top - 16, right_title, anchor="start", style="label")
    for number, name in enumerate(names):
        y1, y2 = y(left_places[number]), y(right_places[number])
        kind = _direction(before[number], after[number])
        canvas.line(x1, y1, x2, y2, f"slope-{kind}")
        left, right = place_names[0][number], place_names[1][number]
        hint = f"{name}: {left} to {right}"
        for x, height, anchor, place, away in ((x1, y1, "end", left, -9), (x2, y2, "start", right, 9)):
            canvas.dot(x, height, f"dot-{kind}", hint)
            short = shorten_text(name, NAME_LENGTH)
            words = f"{short}  {place}" if anchor == "end" else f"{place}  {short}"
            canvas.text(x + away, height + 4, words, anchor=anchor, style="name")
    return canvas


def _direction(before: float, after: float) -> str:
    if before == after:
        return "same"
    return "up" if after < before else "down"


def _places(ranks: Sequence[float]) -> list[int]:
    """Return a place of its own for each, equal ranks in the order given."""
    order = sorted(range(len(ranks)), key=lambda number: (ranks[number], number))
    places = [0] * len(ranks)
    for place, number in enumerate(order):
        places[number] = place
    return places


def paired_bars(rows: Sequence[tuple[str, float, float]], *, names: tuple[str, str], x_title: str) -> Canvas:
    """Draw two bars for each row, ordinary above soft, with their values written beside them."""
    shown = [shorten_text(name, NAME_LENGTH + 2) for name, _, _ in rows]
    canvas = Canvas(height=76 + 46 * len(rows), left=24 + round(7.6 * max(map(len, shown))), top=30, right=48)
    x = canvas.x_scale(min(0.0, *(min(a, b) for _, a, b in rows)), 1.0)
    canvas.x_axis(x, x_title)
    for place, (words, style) in enumerate(zip(names, ("bar-hard", "bar-soft"), strict=True)):
        canvas.bar(canvas.left + 120 * place, 8, 12, 12, style, words)
        canvas.text(canvas.left + 120 * place + 18, 18, words, anchor="start", style="name")
    for number, (name, first, second) in enumerate(rows):
        top = canvas.top + 8 + 46 * number
        canvas.text(canvas.left - 8, top + 21, shown[number], anchor="end", style="name")
        for shift, value, style in ((0, first, "bar-hard"), (17, second, "bar-soft")):
            start, end = sorted((x(0), x(value)))
            canvas.bar(start, top + shift, end - start, 14, style, f"{name}: {value:.3f}")
            canvas.text(end + 5, top + shift + 11, f"{value:.3f}", anchor="start", style="tick")
    return canvas
