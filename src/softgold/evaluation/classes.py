"""Evaluation against soft labels with one column per class: per class, macro average, and over all classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlogy

from softgold.errors import InputError
from softgold.evaluation.alignment import Aligned, ByItem, TaskData
from softgold.evaluation.measures import ranks
from softgold.evaluation.metrics import LENGTHS, METRICS
from softgold.evaluation.result import ClassEvaluation, Notice
from softgold.evaluation.run import OnProgress, Plan, judge
from softgold.metrics.bootstrap.engine import Settings, sample_means
from softgold.metrics.bootstrap.plans import ItemPlan
from softgold.metrics.intervals import percentile_interval
from softgold.readers.base import shorten

FloatArray = NDArray[np.float64]

PREFIX = "p_"
# Probabilities may be rounded to a few digits in a file.
SUM_TOLERANCE = 0.01
OVERALL = {
    "accuracy": ("accuracy", False),
    "expected_accuracy": ("expected accuracy", False),
    "brier": ("Brier", True),
    "log_loss": ("log loss", True),
}


def evaluate_classes(
    soft_labels: pd.DataFrame,
    scores: Mapping[str, pd.DataFrame],
    *,
    groups: ByItem = None,
    metrics: Sequence[str] = METRICS,
    k: Sequence[int] = LENGTHS,
    n_bootstrap: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> ClassEvaluation:
    """Judge models that give one probability per class against soft labels with one column per class.

    Every class is evaluated one against the rest, as `evaluate` does for two classes, with the class as task; the hard
    label of an item is its largest soft label (the first of equal ones). All classes and models see the same resamples
    of the items, so that the average over classes (macro) has an interval of its own. Over all classes there are, per
    item with soft labels p and probabilities q:

    - `accuracy`: whether the largest q is the hard label;
    - `expected_accuracy`: p of the class with the largest q;
    - `brier`: sum over classes of p (1 - q)^2 + (1 - p) q^2, the expected score of a label drawn from p;
    - `log_loss`: minus the sum over classes of p log q.

    Args:
        soft_labels: `item` and one column `p_<class>` per class; each row sums to 1.
        scores: By model, a table with `item` and the same columns. Where rows do not sum to 1, a notice says so and
            the model has no Brier score and log loss over all classes.
        groups: Group of each item, indexed by item; groups are then redrawn whole.
        metrics: Metrics per class, of `softgold.evaluation.METRICS`.
        k: Lengths of the lists for P@k and R@k.
        n_bootstrap: Resamples of the items or groups.
        level: Mass of the intervals.
        seed: Seed of everything random.
        workers: Most processes at a time; the result does not depend on their number.
        on_progress: Called with the share of the work that is done, from any thread.

    Returns:
        A frozen `ClassEvaluation`.

    Example:
        >>> items = list("abcd")
        >>> labels = pd.DataFrame({"item": items, "p_cat": [0.9, 0.8, 0.1, 0.3], "p_dog": [0.1, 0.2, 0.9, 0.7]})
        >>> net = pd.DataFrame({"item": items, "p_cat": [0.7, 0.4, 0.2, 0.3], "p_dog": [0.3, 0.6, 0.8, 0.7]})
        >>> result = evaluate_classes(labels, {"net": net})
        >>> result.overall.set_index("metric")["value"].round(3).to_dict()
        {'accuracy': 0.75, 'expected_accuracy': 0.675, 'brier': 0.38, 'log_loss': 0.562}
        >>> result.per_class.average.table.set_index("metric")["value"].round(3)["auroc"]
        np.float64(1.0)
    """
    classes = _classes(soft_labels, "the soft labels")
    items, p = _matrix(soft_labels, classes, "the soft labels")
    if not (np.abs(p.sum(axis=1) - 1) <= SUM_TOLERANCE).all():
        at = int((np.abs(p.sum(axis=1) - 1) > SUM_TOLERANCE).argmax())
        raise InputError(
            f"soft labels must sum to 1 over the classes, got {p[at].sum():g} for item {shorten(items[at])}"
        )
    _check_mass(p, classes)
    if not scores:
        raise InputError("evaluate_classes needs at least one model: scores={'name': table}")
    q = np.stack([_aligned_scores(table, classes, items, name) for name, table in scores.items()], axis=2)
    codes, n_groups, group_name = _groups(items, groups)
    models, notices = tuple(scores), _sum_notices(q, tuple(scores))
    aligned = Aligned(_tasks(p, q, classes, codes), models, "largest soft label", group_name, n_groups, notices)
    drawing = Settings(n_bootstrap, level, seed, "sample", workers)
    plan = Plan(tuple(metrics), tuple(k), drawing, 0, "error", on_progress or (lambda share: None))
    per_class = judge(aligned, "p_<class>", plan)
    return ClassEvaluation(classes, per_class, _overall(p, q, models, ItemPlan((), codes, n_groups), drawing))


def _classes(table: pd.DataFrame, what: str) -> tuple[str, ...]:
    found = tuple(str(name).removeprefix(PREFIX) for name in table.columns if str(name).startswith(PREFIX))
    if len(found) < 2:
        raise InputError(f"{what} need one column {PREFIX}<class> for each of two or more classes, got {list(table)}")
    return found


def _matrix(table: pd.DataFrame, classes: tuple[str, ...], what: str) -> tuple[pd.Index[str], FloatArray]:
    """Return items and probabilities, shape (n, classes)."""
    absent = [PREFIX + name for name in classes if PREFIX + name not in table]
    if "item" not in table or absent:
        raise InputError(f"{what} have no column {', '.join(absent) or 'item'}; the columns are {list(table)}")
    items = pd.Index(table["item"].astype("str"))
    if items.has_duplicates:
        raise InputError(f"the item {shorten(items[items.duplicated()][0])} is duplicated in {what}")
    values = table[[PREFIX + name for name in classes]].to_numpy(dtype=np.float64)
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"{what} must be probabilities in [0, 1], got {values[row, column]} for item {shorten(items[row])}, "
            f"class {shorten(classes[column])}"
        )
    return items, values


def _check_mass(p: FloatArray, classes: tuple[str, ...]) -> None:
    if len(p) < 2:
        raise InputError(f"an evaluation needs at least two items, got {len(p)}")
    for name, mass in zip(classes, p.sum(axis=0), strict=True):
        if mass == 0:
            raise InputError(f"the class {shorten(name)} has probability 0 for every item; leave out its column")


def _aligned_scores(table: pd.DataFrame, classes: tuple[str, ...], items: pd.Index[str], model: str) -> FloatArray:
    own, values = _matrix(table, classes, f"the scores of {shorten(model)}")
    position = own.get_indexer(items)
    if (position < 0).any():
        first = shorten(items[int((position < 0).argmax())])
        raise InputError(f"the scores of {shorten(model)} lack {int((position < 0).sum())} items, the first is {first}")
    return values[position]


def _groups(items: pd.Index[str], groups: ByItem) -> tuple[NDArray[np.intp], int, str]:
    """Return the group of each item, their number, and what they are; classes share the resamples of the items."""
    if groups is None:
        return np.arange(len(items)), len(items), ""
    names = pd.Series(groups).reindex(items)
    if names.isna().any():
        first = shorten(items[int(names.isna().to_numpy().argmax())])
        raise InputError(f"{int(names.isna().sum())} items have no group, the first is {first}")
    codes, found = pd.factorize(names)
    return codes, len(found), str(getattr(groups, "name", None) or "group")


def _sum_notices(q: FloatArray, models: tuple[str, ...]) -> tuple[Notice, ...]:
    loose = _is_loose(q)
    return tuple(
        Notice("scores", f"the probabilities of {model} do not sum to 1: no Brier score and log loss over all classes")
        for model, is_loose in zip(models, loose, strict=True)
        if is_loose
    )


def _is_loose(q: FloatArray) -> NDArray[np.bool_]:
    return np.asarray((np.abs(q.sum(axis=1) - 1) > SUM_TOLERANCE).any(axis=0))


def _tasks(p: FloatArray, q: FloatArray, classes: tuple[str, ...], codes: NDArray[np.intp]) -> tuple[TaskData, ...]:
    largest = p.argmax(axis=1)
    return tuple(
        TaskData(
            name=name,
            soft=p[:, at],
            hard=(largest == at).astype(np.float64),
            scores=q[:, at, :],
            n_votes=np.zeros(len(p), dtype=np.int64),
            n_positive=np.zeros(len(p)),
            groups=codes,
            n_dropped=0,
        )
        for at, name in enumerate(classes)
    )


def _overall(p: FloatArray, q: FloatArray, models: tuple[str, ...], plan: ItemPlan, drawing: Settings) -> pd.DataFrame:
    losses = {name: _per_item(p, q, name) for name in OVERALL}
    ceilings = {name: float(_per_item(p, p[:, :, None], name).mean()) for name in OVERALL}
    replicates = sample_means(plan, np.concatenate(list(losses.values()), axis=1), drawing)
    parts = []
    for number, (name, (title, lower_is_better)) in enumerate(OVERALL.items()):
        own = replicates[:, number * len(models) : (number + 1) * len(models)]
        ends = np.array([percentile_interval(column, drawing.level) for column in own.T])
        value = losses[name].mean(axis=0)
        columns = {
            "model": models,
            "metric": name,
            "title": title,
            "value": value,
            "low": ends[:, 0],
            "high": ends[:, 1],
        }
        parts.append(pd.DataFrame({**columns, "rank": ranks(value, lower_is_better), "ceiling": ceilings[name]}))
    return pd.concat(parts, ignore_index=True)


def _per_item(p: FloatArray, q: FloatArray, name: str) -> FloatArray:
    """Return one value per item and model, shape (n, K), from labels (n, classes) and scores (n, classes, K)."""
    soft = p[:, :, None]
    called = q.argmax(axis=1)
    if name == "accuracy":
        return np.asarray(called == p.argmax(axis=1)[:, None], dtype=np.float64)
    if name == "expected_accuracy":
        return np.asarray(np.take_along_axis(p, called, axis=1))
    if name == "brier":
        values = (soft * (1 - q) ** 2 + (1 - soft) * q**2).sum(axis=1)
    else:
        values = -np.asarray(xlogy(soft, q)).sum(axis=1) + 0.0
    values[:, _is_loose(q)] = np.nan
    return np.asarray(values)
