"""From labels and scores to an evaluation: the one call on top of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from softgold.checks import check_positive_int
from softgold.evaluation.intake import Missing, TaskData, Tasks, take_in
from softgold.evaluation.labels import GivenLabels
from softgold.evaluation.measures import (
    Measured,
    beat_matrix,
    compare_ranks,
    measure,
    metric_table,
    vote_stability,
)
from softgold.evaluation.metrics import LENGTHS, METRICS, metric_specs
from softgold.evaluation.result import Average, Evaluation, TaskEvaluation
from softgold.metrics.intervals import percentile_interval
from softgold.readers import TableLike, read_scores, read_soft_labels
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

__all__ = ["evaluate"]


def evaluate(
    soft_labels: SoftLabels | TableLike,
    scores: Scores | TableLike,
    *,
    soft: str = "p",
    labels: GivenLabels = None,
    tasks: Tasks = None,
    metrics: Sequence[str] = METRICS,
    k: Sequence[int] = LENGTHS,
    missing: Missing = "error",
    ignore_unknown: bool = False,
    bootstrap: int = 2000,
    annotation_bootstrap: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    workers: int = 1,
) -> Evaluation:
    """Judge models against hard labels and against soft ones, with intervals, ranks and the stability of the ranking.

    Ordinary AUROC, AP, P@k and R@k are measured against hard labels; soft AUROC, soft AP, soft P@k, Brier, balanced
    Brier, log loss and ECE against soft ones. All metrics and models of a task see the same item resamples. Intervals
    are percentiles of these (exact where all resamples could be enumerated), and Wilson's for P@k. The tasks are
    resampled independently of each other, task number t with the seed `seed + t`.

    How stable the ranking of the models is comes from resampling each item's votes: against the majority of the votes
    drawn (an even split is negative) and against their share. A model of the annotators is not fitted anew.

    Args:
        soft_labels: Soft labels of the items, or a table that `read_soft_labels` reads.
        scores: Scores of K models, or a table that `read_scores` reads; any real numbers. Metrics of probabilities are
            left out, with a note, for a model whose scores leave [0, 1].
        soft: Column that serves as soft label: `p`, `p_calibrated`, `expected_vote` or `mean_vote`.
        labels: Hard labels: those of a calibration (`Calibration.labels`), a table `item, label`, a series of 0 and 1
            indexed by item, an array in the order of the soft labels, or None for the column `label` of the soft labels
            where they have one, else p >= 0.5.
        tasks: Task of each item, indexed by item; None for a single task.
        metrics: Which metrics, of `softgold.evaluation.METRICS`.
        k: Lengths of the lists for P@k and R@k; those that are not shorter than the data are left out.
        missing: What to do about items that a model has no score for: "error", or "drop" them for all models.
        ignore_unknown: Leave out scores of items without a soft label, instead of raising.
        bootstrap: Item resamples.
        annotation_bootstrap: Vote resamples; 0 leaves out the stability of the ranking.
        level: Mass of the intervals.
        seed: Seed of everything random.
        workers: Threads; the result does not depend on their number.

    Returns:
        A frozen `Evaluation`.

    Reference:
        Lionetti et al., Clinical Uncertainty Impacts Machine Learning Evaluations; CleanPatrick, sections 3.5 and 4.2.

    Example:
        >>> items = ["a", "b", "c", "d", "e"]
        >>> labels = pd.DataFrame({"item": items, "p": [0.9, 0.6, 0.4, 0.4, 0.1]})
        >>> scores = pd.DataFrame({"item": items, "x": [0.9, 0.8, 0.2, 0.3, 0.4], "y": [9, 5, 6, 3, 1]})
        >>> result = evaluate(labels, scores)
        >>> result.only.wide()[["auroc", "soft_auroc"]].round(3).to_numpy().tolist()
        [[1.0, 0.692], [0.833, 0.756]]
        >>> result.only.comparisons[0].swapped
        (('x', 'y'),)
    """
    check_positive_int(annotation_bootstrap, "annotation_bootstrap", minimum=0)
    check_positive_int(seed, "seed", minimum=0)
    table = soft_labels if isinstance(soft_labels, SoftLabels) else read_soft_labels(soft_labels)
    models = scores if isinstance(scores, Scores) else read_scores(scores, missing="keep")
    intake = take_in(
        table, models, soft=soft, labels=labels, tasks=tasks, missing=missing, ignore_unknown=ignore_unknown
    )
    # Tasks can be averaged resample by resample only if each has the same number of them.
    method = "auto" if len(intake.tasks) == 1 else "sample"
    drawing = {"n_replicates": bootstrap, "level": level, "method": method, "workers": workers}
    measured, found = [], []
    for number, task in enumerate(intake.tasks):
        seeded = {**drawing, "seed": seed + number}
        measured.append(measure(task, metric_specs(metrics, k, len(task)), seeded))
        found.append(_task_evaluation(task, measured[-1], intake.models, annotation_bootstrap, seeded))
    settings = {"bootstrap": bootstrap, "annotation_bootstrap": annotation_bootstrap, "level": level, "seed": seed}
    return Evaluation(
        models=intake.models,
        soft=soft,
        hard=intake.hard,
        settings={**settings, "missing": missing},
        tasks=tuple(found),
        average=_average(found, measured, intake.models, level) if len(found) > 1 else None,
        notes=intake.notes,
    )


def _task_evaluation(
    task: TaskData, measured: list[Measured], models: tuple[str, ...], n_votes_drawn: int, drawing: dict[str, Any]
) -> TaskEvaluation:
    stability = vote_stability(task, n_votes_drawn, drawing) if n_votes_drawn else "ranking stability was not asked for"
    notes = _notes(task, measured, models)
    if isinstance(stability, str):
        notes.append(stability)
    return TaskEvaluation(
        task=task.name,
        n_items=len(task),
        n_dropped=task.n_dropped,
        base_rate=float(task.hard.mean()),
        soft_base_rate=float(task.soft.mean()),
        table=metric_table(measured, models),
        comparisons=compare_ranks(measured, models),
        beats={one.spec.name: beat_matrix(one) for one in measured},
        stability=None if isinstance(stability, str) else stability,
        notes=tuple(notes),
    )


def _notes(task: TaskData, measured: list[Measured], models: tuple[str, ...]) -> list[str]:
    notes = []
    for word, share in (("positive", task.hard.mean()), ("negative", 1 - task.hard.mean())):
        if share == 0:
            notes.append(f"no item has a {word} hard label: ordinary metrics that need one are undefined")
    for number, model in enumerate(models):
        column = task.scores[:, number]
        if column.min() == column.max():
            notes.append(f"{model} gives every item the same score: it ranks nothing, and its AUROC is 0.5")
        outside = int(((column < 0) | (column > 1)).sum())
        if outside:
            notes.append(
                f"{outside} of {len(column)} scores of {model} leave [0, 1]: no Brier score, log loss and ECE for it"
            )
    for one in measured:
        for number, model in enumerate(models):
            if np.isinf(one.value[number]):
                notes.append(f"the {one.spec.title} of {model} is infinite: it rules out something that may be so")
    return notes


def _average(
    tasks: list[TaskEvaluation], measured: list[list[Measured]], models: tuple[str, ...], level: float
) -> Average:
    by_task = [{one.spec.name: one for one in of_task} for of_task in measured]
    shared = [name for name in by_task[0] if all(name in of_task for of_task in by_task)]
    means = [_mean([of_task[name] for of_task in by_task], level) for name in shared]
    stabilities = [task.stability for task in tasks if task.stability is not None]
    return Average(
        table=metric_table(means, models),
        comparisons=compare_ranks(means, models),
        beats={one.spec.name: beat_matrix(one) for one in means},
        stability=_mean_stability(stabilities) if len(stabilities) == len(tasks) else None,
    )


def _mean(parts: list[Measured], level: float) -> Measured:
    """Average one metric over tasks; a resample in which a task is undefined is undefined."""
    replicates = np.mean([part.replicates for part in parts], axis=0)
    ends = [percentile_interval(column, level) for column in replicates.T]
    return Measured(
        spec=parts[0].spec,
        value=np.mean([part.value for part in parts], axis=0),
        low=np.array([end.low for end in ends]),
        high=np.array([end.high for end in ends]),
        interval="bootstrap",
        replicates=replicates,
        weights=parts[0].weights,
    )


def _mean_stability(tables: list[pd.DataFrame]) -> pd.DataFrame:
    numbers = ["mean_pairwise", "mean_vs_observed"]
    together = pd.concat(tables, ignore_index=True)
    # A task whose rankings are undefined has no part in the mean.
    grouped = together.groupby(["metric", "labels"], sort=False)
    means = grouped[numbers].mean()
    return means.join(grouped[["n_used", "n_dropped"]].sum()).reset_index()
