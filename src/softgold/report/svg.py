"""A small writer of SVG charts: scales, axes and marks.

Drawn by hand and not by a plotting library, because text must stay text (to be selected, searched and read aloud),
colours must follow the page between light and dark, and 30 charts must stay small. Colours are class names, which the
style sheet of the page (`templates/style.css`) turns into colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup, escape

TEMPLATES = Path(__file__).parent / "templates"

# Wide and bold letters, so that an estimate of the width of a text errs on the long side.
LETTER_WIDTH = 8.4


def template_text(name: str) -> str:
    """Return a file of the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def standalone(chart: Markup) -> str:
    """Return a chart as a file of its own, with its colours in it, light and dark.

    >>> "<style>" in standalone(Canvas().render("Nothing", "An empty chart"))
    True
    """
    own = "svg { background: var(--card); font-family: system-ui, sans-serif; }"
    style = f"<style>{template_text('palette.css')}{template_text('charts.css')}{own}</style>"
    opened = str(chart).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace("<desc>", f"{style}<desc>", 1) + "\n"


def number(value: float) -> str:
    """Write a coordinate with a tenth of a pixel.

    >>> number(3.14159), number(-0.01), number(12.0)
    ('3.1', '0', '12')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def shorten_text(text: str, length: int) -> str:
    """Cut a text in the middle, where names differ least.

    >>> shorten_text("resnet50_run_3", 9)
    'resn…un_3'
    """
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[len(text) - (length - head - 1) :]}"


def padded(values: Sequence[float], share: float = 0.12) -> tuple[float, float]:
    """Return the range of the values with some room on both sides."""
    low, high = min(values), max(values)
    room = max(share * (high - low), 0.004)
    return low - room, high + room


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values inside [low, high], about `count` of them.

    >>> nice_ticks(0.62, 0.91)
    [0.65, 0.7, 0.75, 0.8, 0.85, 0.9]
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= 0.8 * raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


@dataclass(frozen=True)
class Scale:
    """A map from values to pixels, linear or logarithmic.

    >>> Scale(0, 10, 100, 200)(5), Scale(1, 100, 0, 200, log=True)(10)
    (150.0, 100.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; a constant domain lies in the middle."""
        low, high, at = (
            (math.log10(x) for x in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Return round values of the domain; powers of ten on a logarithmic scale."""
        if not self.log:
            return nice_ticks(self.low, self.high, count)
        powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high) + 1e-9) + 1)
        return [10.0**power for power in powers]


@dataclass(frozen=True)
class Canvas:
    """A chart in the making: a frame of pixels, and the marks drawn so far.

    Attributes:
        width: Pixels; the page scales the whole.
        height: Pixels.
        left: Room for the vertical axis.
        right: Room beside the frame.
        top: Room above.
        bottom: Room for the horizontal axis.
    """

    width: int = 460
    height: int = 280
    left: int = 52
    right: int = 16
    top: int = 14
    bottom: int = 46
    parts: list[Markup] = field(default_factory=list)

    def x_scale(self, low: float, high: float, *, log: bool = False) -> Scale:
        """Return a scale over the width of the frame."""
        return Scale(low, high, self.left, self.width - self.right, log)

    def y_scale(self, low: float, high: float, *, log: bool = False) -> Scale:
        """Return a scale over the height of the frame, upwards."""
        return Scale(low, high, self.height - self.bottom, self.top, log)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """Draw a line."""
        self.parts.append(
            Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
                style, number(x1), number(y1), number(x2), number(y2)
            )
        )

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """Draw a line through points."""
        steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(Markup('<polyline class="{}" points="{}"/>').format(style, steps))

    def bar(self, x: float, y: float, width: float, height: float, style: str, hint: str) -> None:
        """Draw a rectangle that says what it is when pointed at."""
        self.parts.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                style, number(x), number(y), number(max(width, 0.5)), number(max(height, 0)), hint
            )
        )

    def dot(self, x: float, y: float, style: str, hint: str, radius: float = 4) -> None:
        """Draw a disc that says what it is when pointed at."""
        self.parts.append(
            Markup('<circle class="{}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
                style, number(x), number(y), number(radius), hint
            )
        )

    def diamond(self, x: float, y: float, style: str, hint: str, radius: float = 5) -> None:
        """Draw a diamond, for what must differ from a disc without its colour."""
        corners = ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))
        points = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
        self.parts.append(
            Markup('<polygon class="{}" points="{}"><title>{}</title></polygon>').format(style, points, hint)
        )

    def text(self, x: float, y: float, words: str, *, anchor: str = "middle", style: str = "tick") -> None:
        """Write text; its baseline is at y."""
        self.parts.append(
            Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
                style, number(x), number(y), anchor, words
            )
        )

    def x_axis(self, scale: Scale, title: str, *, show: Callable[[float], str] = "{:g}".format, count: int = 5) -> None:
        """Draw the horizontal axis with ticks and title."""
        base = self.height - self.bottom
        self.line(self.left, base, self.width - self.right, base, "axis")
        for tick in scale.ticks(count):
            self.line(scale(tick), base, scale(tick), base + 4, "axis")
            self.text(scale(tick), base + 17, show(tick))
        self.text((self.left + self.width - self.right) / 2, self.height - 8, title, style="label")

    def y_axis(self, scale: Scale, title: str, *, show: Callable[[float], str] = "{:g}".format, count: int = 5) -> None:
        """Draw the vertical axis with grid lines, ticks and title."""
        for tick in scale.ticks(count):
            self.line(self.left, scale(tick), self.width - self.right, scale(tick), "grid")
            self.text(self.left - 7, scale(tick) + 4, show(tick), anchor="end")
        middle = (self.top + self.height - self.bottom) / 2
        self.parts.append(
            Markup(
                '<text class="label" transform="translate(13 {}) rotate(-90)" text-anchor="middle">{}</text>'
            ).format(number(middle), title)
        )

    def marker(self, scale: Scale, value: float, words: str, style: str, *, row: int = 0) -> None:
        """Draw a vertical line at a value, with words beside its top, on the side where there is room."""
        x = scale(value)
        self.line(x, self.top, x, self.height - self.bottom, style)
        fits = x + 6 + LETTER_WIDTH * len(words) < self.width
        self.text(
            x + 5 if fits else x - 5,
            self.top + 11 + 14 * row,
            words,
            anchor="start" if fits else "end",
            style=f"note {style}-text",
        )

    def render(self, title: str, description: str) -> Markup:
        """Return the chart, with title and description for screen readers."""
        return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>').format(
            self.width,
            self.height,
            f"{title}. {description}",
            Markup("<desc>{}</desc>").format(escape(description)),
            Markup("").join(self.parts),
        )
