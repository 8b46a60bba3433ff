"""Axes and colours that the figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from softgold.errors import UsageError
from softgold.readers.base import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by those who do not see all colours (Okabe and Ito), and in print by their lightness.
MAIN = "#0072b2"
SECOND = "#d55e00"
MARK = "#8a3a6e"
FAINT = "#808080"
NAME_LENGTH = 24


def get_axes(ax: Axes | None, *, size: tuple[float, float] = (5.0, 3.6)) -> Axes:
    """Return the Axes to draw on: those given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'softgold[plot]'") from None
    return plt.subplots(figsize=size, layout="constrained")[1]


def unit_square(ax: Axes) -> None:
    """Show rates from 0 to 1 on both axes, with a little room for dots at the ends."""
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def shares_over_counts(ax: Axes) -> None:
    """Write the vertical axis in per cent, and the horizontal one with commas between thousands."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def legend_inside(ax: Axes, place: Literal["best", "lower left"] = "best") -> None:
    """Explain the marks that have a label."""
    ax.legend(loc=place, framealpha=0.85, edgecolor="none", fontsize="small")


def shown_name(name: object) -> str:
    """Return a name on one line, cut when it is long, that matplotlib shows as it is.

    A dollar sign would begin a formula, and a label that begins with an underscore would be left out of a legend.

    >>> shown_name("_net$")
    ' _net\\\\$'
    """
    text = printable(name, NAME_LENGTH).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
