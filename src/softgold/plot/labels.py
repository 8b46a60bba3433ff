"""Figures of a fit: soft labels, and annotators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from softgold.checks import FloatArray, check_in_range, check_positive_int
from softgold.experts import Calibration
from softgold.models.base import ADVERSARIAL, Fit
from softgold.plot.axes import FAINT, MAIN, MARK, SECOND, get_axes, legend_inside, shown_name, unit_square
from softgold.plot.sources import annotators_of, labels_of
from softgold.readers.base import counted
from softgold.runs import Run
from softgold.tables.soft_labels import SoftLabels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES = 8
MANY_ANNOTATORS = 60


def soft_labels(
    labels: SoftLabels | Fit | Run | Calibration,
    *,
    threshold: float | None = None,
    bins: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many items have which soft label, and where they are cut into positive and negative.

    Args:
        labels: Soft labels, a fit or a run; or a calibration, whose threshold is then drawn.
        threshold: Where to draw the cut; a calibration or a calibrated run has its own.
        bins: Bins of equal width between 0 and 1.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The Axes.

    Example:
        >>> import softgold
        >>> votes = softgold.simulate(n_items=60, n_annotators=12, seed=1).votes
        >>> ax = softgold.plot.soft_labels(softgold.fit(votes, engine="coordinate"), threshold=0.4)
        >>> sum(int(bar.get_height()) for bar in ax.patches)
        60
    """
    check_positive_int(bins, "bins")
    cut = _threshold(labels) if threshold is None else check_in_range(threshold, 0, 1, "threshold")
    p = labels.labels.p if isinstance(labels, Calibration) else labels_of(labels).p
    ax = get_axes(ax)
    ax.hist(p, bins=np.linspace(0, 1, bins + 1).tolist(), color=MAIN)
    if cut is not None:
        shown = f"threshold {cut:.3g}: {np.count_nonzero(p >= cut):,} of {len(p):,} positive"
        ax.axvline(min(cut, 1.0), color=MARK, linestyle="--", label=shown)
        legend_inside(ax)
    ax.set(xlim=(0, 1), xlabel="soft label p", ylabel="items", title="Soft labels")
    return ax


def _threshold(labels: SoftLabels | Fit | Run | Calibration) -> float | None:
    if isinstance(labels, Run):
        return labels.calibration.threshold if labels.has("calibration") else None
    return labels.threshold if isinstance(labels, Calibration) else None


def annotators(source: Fit | Run | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw sensitivity against specificity of each annotator, with 95 % credible intervals.

    On the dashed line an annotator guesses. Those below it with a probability above 0.95 vote the opposite of the
    truth; they are drawn as diamonds, and named where they are few.

    Args:
        source: A fit, a run, or the table of annotators.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The Axes.

    Example:
        >>> import softgold
        >>> votes = softgold.simulate(n_items=60, n_annotators=12, seed=1).votes
        >>> ax = softgold.plot.annotators(softgold.fit(votes, engine="coordinate"))
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('specificity: says no to negatives', 'sensitivity: says yes to positives')
    """
    table = annotators_of(source)
    ax = get_axes(ax, size=(4.6, 4.4))
    ax.plot([0, 1], [1, 0], linestyle="--", color=FAINT, linewidth=1, label="guessing")
    opposite = (
        table["p_adversarial"].to_numpy() > ADVERSARIAL if "p_adversarial" in table else np.zeros(len(table), bool)
    )
    others = int((~opposite).sum())
    _draw_rates(ax, table[~opposite], "o", MAIN, counted(others, "annotator"))
    if opposite.any():
        _draw_rates(ax, table[opposite], "D", SECOND, f"{int(opposite.sum()):,} voting the opposite")
        _name_points(ax, table[opposite])
    unit_square(ax)
    ax.set(
        xlabel="specificity: says no to negatives",
        ylabel="sensitivity: says yes to positives",
        title="Annotators",
        aspect="equal",
    )
    legend_inside(ax, "lower left")
    return ax


def _draw_rates(ax: Axes, table: pd.DataFrame, marker: str, colour: str, label: str) -> None:
    """Draw dots with the intervals of both rates; the intervals of many are faint."""
    if table.empty:
        return
    alpha = 0.35 if len(table) <= MANY_ANNOTATORS else 0.12
    ax.errorbar(
        table["specificity"].to_numpy(),
        table["sensitivity"].to_numpy(),
        xerr=_reach(table, "specificity"),
        yerr=_reach(table, "sensitivity"),
        fmt="none",
        ecolor=colour,
        elinewidth=0.8,
        alpha=alpha,
    )
    ax.scatter(table["specificity"], table["sensitivity"], s=16, marker=marker, color=colour, label=label, zorder=3)


def _reach(table: pd.DataFrame, name: str) -> FloatArray | None:
    """Return how far an interval reaches to either side, shape (2, A); None for tables without intervals."""
    if f"{name}_lo" not in table:
        return None
    low, value, high = (table[column].to_numpy(np.float64) for column in (f"{name}_lo", name, f"{name}_hi"))
    return np.asarray(np.maximum(np.stack([value - low, high - value]), 0.0))


def _name_points(ax: Axes, table: pd.DataFrame) -> None:
    if len(table) > MOST_NAMES:
        return
    for name, x, y in zip(table["annotator"], table["specificity"], table["sensitivity"], strict=True):
        ax.annotate(shown_name(name), (x, y), xytext=(5, 4), textcoords="offset points", fontsize="small")
