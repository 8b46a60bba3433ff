"""Figure of a calibration: what experts say, and the map that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softgold.experts import Calibration
from softgold.plot.axes import FAINT, MAIN, MARK, get_axes, legend_inside, unit_square
from softgold.plot.sources import calibration_of
from softgold.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE_POINTS = 201


def expert_map(source: Calibration | Run, *, ax: Axes | None = None) -> Axes:
    """Draw the map from p to p_calibrated with its credible band, the experts' rate in each bin, and the threshold.

    A dot is a bin of items with similar soft labels: across, their mean soft label; upwards, the share that experts
    called positive, with a 95 % interval. On the dashed diagonal the map would change nothing; the dotted line is the
    rate from which on an item is labelled positive.

    Args:
        source: A calibration, or a run that has one.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The Axes.

    Example:
        >>> import softgold
        >>> study = softgold.simulate(n_items=300, n_annotators=20, seed=1)
        >>> labels = softgold.Mean().aggregate(study.votes)
        >>> ax = softgold.plot.expert_map(softgold.calibrate(labels, study.experts, n_bootstrap=50))
        >>> ax.get_ylabel()
        'share that experts call positive'
    """
    calibration = calibration_of(source)
    ax = get_axes(ax)
    at = np.linspace(0, 1, CURVE_POINTS)
    ax.plot(at, calibration.soft_map.apply(at), color=MAIN, label="map to p_calibrated")
    low, high = calibration.soft_map.band(at)
    ax.fill_between(at, low, high, color=MAIN, alpha=0.18, linewidth=0, label="its credible band")
    ax.plot([0, 1], [0, 1], linestyle="--", color=FAINT, linewidth=1)
    _draw_bins(ax, calibration)
    ax.axhline(calibration.rule.cut, color=FAINT, linestyle=":", linewidth=1)
    threshold = calibration.threshold
    ax.axvline(min(threshold, 1.0), color=MARK, linestyle="--", label=f"threshold {threshold:.3f}")
    unit_square(ax)
    ax.set(xlabel="soft label p", ylabel="share that experts call positive", title="What experts call positive")
    legend_inside(ax)
    return ax


def _draw_bins(ax: Axes, calibration: Calibration) -> None:
    """Draw the bins with expert labels; without any, the map is what it was before."""
    bins = calibration.bins[calibration.bins["labelled"] > 0]
    if bins.empty:
        return
    low, rate, high = (bins[name].to_numpy(np.float64) for name in ("rate_lo", "rate", "rate_hi"))
    reach = np.maximum(np.stack([rate - low, high - rate]), 0.0)
    ax.errorbar(
        bins["p_mean"].to_numpy(), rate, yerr=reach, fmt="o", markersize=4, color=MAIN, elinewidth=0.8, label="bins"
    )
