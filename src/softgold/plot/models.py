"""Figures of models: their ranks by ordinary and soft metrics, and how reliable their probabilities are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from softgold.checks import check_choice
from softgold.errors import InputError, UsageError
from softgold.evaluation.alignment import Aligned, align
from softgold.evaluation.result import Average, Evaluation, TaskEvaluation
from softgold.evaluation.words import place_names
from softgold.metrics.reliability import calibration_curve
from softgold.models.base import Fit
from softgold.plot.axes import FAINT, MAIN, SECOND, get_axes, legend_inside, shown_name, unit_square
from softgold.plot.sources import labels_of, ranking_of
from softgold.runs import Run, Study
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TWINS = {"auroc": "soft_auroc", "ap": "soft_ap"}
SMALLEST_DOT, LARGEST_DOT = 6.0, 120.0  # areas of the dots, in square points


def ranks(
    source: Evaluation | TaskEvaluation | Average | Run | Study,
    *,
    metric: Literal["auroc", "ap"] = "auroc",
    task: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the ranks of the models by an ordinary metric beside those by its soft twin.

    A line is a model. Lines that cross are models that change places, by their values, when doubtful labels count
    less; whether the resamples separate them, `softgold.evaluation.words.swap_words` says.

    Args:
        source: An evaluation, one of its tasks, or a run or study that has one.
        metric: `auroc` or `ap`.
        task: Name of a task of an evaluation with several; the average over them if left out.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The Axes. Its lines have the names of the models as labels; the vertical axis is the rank, 1 on top.

    Example:
        >>> import softgold
        >>> study = softgold.simulate(n_items=80, n_annotators=12, model_aurocs=(0.9, 0.8), seed=1)
        >>> result = softgold.evaluate(softgold.Mean().aggregate(study.votes), study.scores, n_bootstrap=20)
        >>> len(softgold.plot.ranks(result).lines)
        2
    """
    check_choice(metric, tuple(TWINS), "metric")
    table = ranking_of(source, task).table
    before, after = (_places(table, name) for name in (metric, TWINS[metric]))
    models = [model for model in before if model in after]
    if not models:
        raise UsageError(f"no model has both {metric} and {TWINS[metric]}: these metrics need items of both classes")
    ax = get_axes(ax, size=(5.0, max(2.6, 0.3 * len(models) + 1.2)))
    for model in models:
        (left, left_name), (right, right_name) = before[model], after[model]
        short = shown_name(model)
        ax.plot([0, 1], [left, right], marker="o", markersize=4, label=short, **_line_style(left, right))
        ax.annotate(f"{short}  {left_name}", (0, left), xytext=(-8, 0), **_beside("right"))
        ax.annotate(f"{right_name}  {short}", (1, right), xytext=(8, 0), **_beside("left"))
    title = metric.upper()
    ax.set(xlim=(-0.9, 1.9), xticks=[0, 1], xticklabels=[f"by {title}", f"by soft {title}"], yticks=[])
    ax.set(ylim=(len(models) + 0.5, 0.5), title=f"Ranks by {title}, ordinary and soft")
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(False)
    return ax


def _places(table: pd.DataFrame, metric: str) -> dict[str, tuple[int, str]]:
    """Return each model's height in the figure and the place as people write it; equal ones are below each other."""
    own = table[(table["metric"] == metric) & table["rank"].notna()].sort_values(["rank", "model"])
    names = place_names(own["rank"].tolist())
    return {str(model): (at, name) for at, (model, name) in enumerate(zip(own["model"], names, strict=True), 1)}


def _line_style(left: int, right: int) -> dict[str, Any]:
    """Return colour and dash: rising, falling and unchanged differ in both."""
    if left == right:
        return {"color": FAINT, "linestyle": "-"}
    return {"color": MAIN, "linestyle": "-"} if right < left else {"color": SECOND, "linestyle": "--"}


def _beside(side: str) -> dict[str, Any]:
    return {"textcoords": "offset points", "ha": side, "va": "center", "fontsize": "small"}


def reliability(
    labels: SoftLabels | Fit | Run,
    scores: Scores,
    *,
    models: Sequence[str] | None = None,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean soft label against the mean prediction, bin by bin, for each model.

    On the dashed diagonal a model's probabilities are right on average. The area of a dot grows with the items in its
    bin. Items without a score are left out, and so are models whose scores are not probabilities.

    Args:
        labels: Soft labels, a fit or a run.
        scores: Scores of the models.
        models: Models to draw; all if left out.
        n_bins: Bins of equal width between 0 and 1.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The Axes. Its lines after the diagonal have the names of the models as labels.

    Example:
        >>> import softgold
        >>> study = softgold.simulate(n_items=80, n_annotators=12, model_aurocs=(0.9, 0.8), seed=1)
        >>> ax = softgold.plot.reliability(softgold.Mean().aggregate(study.votes), study.scores)
        >>> ax.get_xlabel()
        'mean prediction'
    """
    aligned = _aligned(labels_of(labels), scores, models)
    ax = get_axes(ax, size=(4.6, 4.2))
    ax.plot([0, 1], [0, 1], linestyle="--", color=FAINT, linewidth=1, label="right on average")
    for number, model in enumerate(aligned.models):
        task = aligned.tasks[0]
        curve = calibration_curve(task.soft, task.scores[:, number], n_bins=n_bins)
        [line] = ax.plot(curve.predicted, curve.observed, linewidth=1.2, label=shown_name(model))
        area = LARGEST_DOT * curve.weight / len(task)
        ax.scatter(curve.predicted, curve.observed, s=SMALLEST_DOT + area, color=line.get_color(), zorder=3)
    unit_square(ax)
    ax.set(xlabel="mean prediction", ylabel="mean soft label", title="Reliability", aspect="equal")
    legend_inside(ax)
    return ax


def _aligned(labels: SoftLabels, scores: Scores, models: Sequence[str] | None) -> Aligned:
    """Return labels and scores in one order, of the models whose scores are probabilities."""
    wanted = tuple(scores.models if models is None else models)
    if not wanted:
        raise UsageError("reliability needs at least one model to draw")
    values = np.stack([scores.of(model) for model in wanted], axis=1)
    outside = np.asarray(((values < 0) | (values > 1)).any(axis=0))
    if outside.all():
        raise InputError("reliability needs scores that are probabilities in [0, 1]; no model drawn has such scores")
    drawn = tuple(model for model, is_outside in zip(wanted, outside, strict=True) if not is_outside)
    kept = Scores(scores.item_ids, drawn, values[:, ~outside])
    return align(labels, kept, soft="p", labels=None, tasks=None, groups=None, missing="drop", ignore_unknown=True)
