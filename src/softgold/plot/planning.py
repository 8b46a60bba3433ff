"""Figure of a forecast: what further votes would change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softgold.errors import UsageError
from softgold.planning.forecast_result import Curve, Forecast, VotesNeeded
from softgold.plot.axes import FAINT, MAIN, MARK, SECOND, get_axes, legend_inside, shares_over_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VOTES_PER_ITEM = 10.0  # beyond so many further votes per item the curves are flat


def forecast(found: Forecast, *, ax: Axes | None = None) -> Axes:
    """Draw the expected share of wrong labels against further votes, with intervals over simulated campaigns.

    Solid: votes bought where they are worth most. Dashed: equally many for every item. Dotted: what stays wrong after
    any number of votes. A target is marked where the forecast has one that is reached.

    Args:
        found: What `softgold.forecast` returned.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The Axes.

    Example:
        >>> import softgold
        >>> fit = softgold.fit(softgold.simulate(n_items=60, n_annotators=12, seed=1).votes, engine="coordinate")
        >>> ax = softgold.plot.forecast(softgold.forecast(fit, n_campaigns=20))
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('further votes', 'expected share of wrong labels')
    """
    if not isinstance(found, Forecast):
        raise UsageError(f"the figure is drawn from what softgold.forecast returns, got {type(found).__name__}")
    ax = get_axes(ax)
    last = min(float(found.adaptive.votes[-1]), VOTES_PER_ITEM * found.n_items)
    _draw_curve(ax, found.adaptive, last, "where they are worth most", MAIN, "-")
    _draw_curve(ax, found.uniform, last, "equally many for every item", SECOND, "--")
    ax.axhline(found.error_left, color=FAINT, linestyle=":", label="left after any number of votes")
    if found.needed is not None:
        _mark_target(ax, found.needed, last)
    shares_over_counts(ax)
    ax.set(xlim=(0, max(last, 1.0)), xlabel="further votes", ylabel="expected share of wrong labels")
    ax.set_ylim(bottom=0)
    ax.set_title("What further votes would change")
    legend_inside(ax)
    return ax


def _draw_curve(ax: Axes, curve: Curve, last: float, label: str, colour: str, dash: str) -> None:
    shown = curve.votes <= last
    votes = curve.votes[shown]
    ax.fill_between(votes, curve.error_low[shown], curve.error_high[shown], color=colour, alpha=0.14, linewidth=0)
    ax.plot(votes, curve.error[shown], color=colour, linestyle=dash, label=label)


def _mark_target(ax: Axes, needed: VotesNeeded, last: float) -> None:
    """Mark where the target is reached, if that is in the figure."""
    if math.isfinite(needed.votes) and needed.votes <= last:
        label = f"{100 * needed.target_error:g} % wrong after about {float(f'{needed.votes:.2g}'):,.0f} votes"
        ax.plot([needed.votes], [needed.target_error], marker="D", linestyle="none", color=MARK, label=label)
