"""From labels and scores to an evaluation: the one call on top of this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_positive_int
from softgold.evaluation.alignment import Aligned, ByItem, Missing, TaskData, align
from softgold.evaluation.ceilings import positive_mass_notices
from softgold.evaluation.comparisons import compare_ranks
from softgold.evaluation.labels import GivenLabels
from softgold.evaluation.measures import (
    STABILITY_COLUMNS,
    Measured,
    beat_matrix,
    mean_over_tasks,
    measure,
    metric_table,
    vote_stability,
    why_no_stability,
)
from softgold.evaluation.metrics import LENGTHS, METRICS, metric_specs
from softgold.evaluation.result import (
    Average,
    Evaluation,
    EvaluationSettings,
    Notice,
    NoticeKind,
    TaskEvaluation,
)
from softgold.evaluation.words import list_names
from softgold.metrics.bootstrap.engine import Settings
from softgold.readers import TableLike, read_scores, read_soft_labels
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

OnProgress = Callable[[float], None]


def evaluate(
    soft_labels: SoftLabels | TableLike,
    scores: Scores | TableLike,
    *,
    soft: str = "p",
    labels: GivenLabels = None,
    tasks: ByItem = None,
    groups: ByItem = None,
    metrics: Sequence[str] = METRICS,
    k: Sequence[int] = LENGTHS,
    missing: Missing = "error",
    ignore_unknown: bool = False,
    n_bootstrap: int = 2000,
    n_vote_bootstrap: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Judge models against hard labels and against soft ones, with intervals, ranks and the stability of the ranking.

    Ordinary AUROC, AP, P@k and R@k are measured against hard labels; soft AUROC, soft AP, soft P@k, Brier, balanced
    Brier, log loss and ECE against soft ones. All metrics and models of a task see the same resamples. Intervals are
    percentiles of these (exact where all resamples could be enumerated), and Wilson's for P@k. Tasks are resampled
    independently of each other, task number t with the seed `seed + t`; with groups, a group that has items in several
    tasks is redrawn in all of them at once.

    The stability of the ranking comes from resampling each item's votes: against the majority of the votes drawn (an
    even split is negative) and against their share. A model of the annotators is not fitted again.

    Args:
        soft_labels: Soft labels of the items, or a table that `read_soft_labels` reads.
        scores: Scores of K models, or a table that `read_scores` reads; any real numbers. A model with scores outside
            [0, 1] has no metrics of probabilities, and a notice says so.
        soft: Column that serves as soft label: `p`, `p_calibrated`, `expected_vote` or `mean_vote`.
        labels: Hard labels: those of a calibration (`Calibration.labels`), a table `item, label`, a series of 0 and 1
            indexed by item, an array in the order of the soft labels, or None for the column `label` of the soft labels
            where they have one, else p >= 0.5.
        tasks: Task of each item, indexed by item; None for a single task.
        groups: Group of each item, such as the patient of an image, indexed by item. Bootstraps then redraw whole
            groups, since items of one group are not independent. None redraws items.
        metrics: Which metrics, of `softgold.evaluation.METRICS`.
        k: Lengths of the lists for P@k and R@k; those that are not shorter than the data are left out.
        missing: What to do about items that a model has no score for: "error", or "drop" them for all models.
        ignore_unknown: Leave out scores of items without a soft label, instead of raising.
        n_bootstrap: Resamples of the items or groups.
        n_vote_bootstrap: Resamples of the votes; 0 leaves out the stability of the ranking.
        level: Mass of the intervals.
        seed: Seed of everything random.
        workers: Most processes at a time; the result does not depend on their number.
        on_progress: Called with the share of the work that is done, from any thread.

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
        >>> swap = result.only.comparisons[0].swaps[0]
        >>> swap.first, swap.second, swap.is_separated
        ('x', 'y', False)
    """
    table = soft_labels if isinstance(soft_labels, SoftLabels) else read_soft_labels(soft_labels)
    models = scores if isinstance(scores, Scores) else read_scores(scores, missing="keep")
    aligned = align(
        table,
        models,
        soft=soft,
        labels=labels,
        tasks=tasks,
        groups=groups,
        missing=missing,
        ignore_unknown=ignore_unknown,
    )
    drawing = Settings(n_bootstrap, level, seed, workers=workers)
    plan = Plan(tuple(metrics), tuple(k), drawing, n_vote_bootstrap, missing, on_progress or (lambda share: None))
    return judge(aligned, soft, plan)


@dataclass(frozen=True)
class Plan:
    """What to measure and how; the fields are explained in `evaluate`."""

    metrics: tuple[str, ...]
    lengths: tuple[int, ...]
    drawing: Settings
    n_vote_bootstrap: int
    missing: Missing
    on_progress: OnProgress

    def __post_init__(self) -> None:
        """Check what `Settings` does not."""
        check_positive_int(self.n_vote_bootstrap, "n_vote_bootstrap", minimum=0)


class _Progress:
    """Counts resamples of all tasks, and tells the share that is done."""

    def __init__(self, total: int, tell: OnProgress) -> None:
        self._total, self._tell, self._done, self._lock = total, tell, 0, Lock()

    def __call__(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._tell(self._done / self._total)


def judge(aligned: Aligned, soft: str, plan: Plan) -> Evaluation:
    """Measure every task, and their average where there are several."""
    models, n_tasks = aligned.models, len(aligned.tasks)
    progress = _Progress(n_tasks * (plan.drawing.n_bootstrap + plan.n_vote_bootstrap), plan.on_progress)
    measured, found, notices = [], [], []
    for number, task in enumerate(aligned.tasks):
        seed = plan.drawing.seed + (0 if aligned.n_groups else number)
        # Tasks can be averaged resample by resample only if each has the same number of them.
        drawing = replace(plan.drawing, seed=seed, method="auto" if n_tasks == 1 else "sample")
        specs = metric_specs(plan.metrics, plan.lengths, len(task))
        measured.append(measure(task, aligned.n_groups, specs, drawing, progress))
        stability, why_not = _stability(task, plan.n_vote_bootstrap, drawing, progress)
        found.append(_task_evaluation(task, measured[-1], models, stability, drawing.level))
        of_task = [*_task_notices(task, measured[-1], models), *positive_mass_notices(task), *why_not]
        notices += [replace(notice, tasks=() if task.name is None else (task.name,)) for notice in of_task]
    settings = EvaluationSettings(
        plan.drawing.n_bootstrap,
        plan.n_vote_bootstrap,
        plan.drawing.level,
        plan.drawing.seed,
        plan.missing,
        aligned.group_name,
        aligned.n_groups if aligned.group_name else 0,
    )
    average = _average(found, measured, models, plan.drawing.level) if n_tasks > 1 else None
    return Evaluation(
        models, soft, aligned.hard, settings, tuple(found), average, (*aligned.notices, *_merged(notices))
    )


def _stability(
    task: TaskData, n_vote_bootstrap: int, drawing: Settings, progress: _Progress
) -> tuple[pd.DataFrame, list[Notice]]:
    """Return the stability of the ranking, without rows where it cannot be measured, and why it cannot."""
    reason = why_no_stability(task)
    if n_vote_bootstrap and not reason:
        return vote_stability(task, replace(drawing, n_bootstrap=n_vote_bootstrap), progress), []
    progress(n_vote_bootstrap)
    return pd.DataFrame(columns=list(STABILITY_COLUMNS)), [Notice("stability", reason)] if n_vote_bootstrap else []


def _task_evaluation(
    task: TaskData, measured: list[Measured], models: tuple[str, ...], stability: pd.DataFrame, level: float
) -> TaskEvaluation:
    beats = {one.spec.name: beat_matrix(one) for one in measured}
    return TaskEvaluation(
        task=task.name,
        n_items=len(task),
        n_dropped=task.n_dropped,
        base_rate=float(task.hard.mean()),
        soft_base_rate=float(task.soft.mean()),
        table=metric_table(measured, models),
        comparisons=compare_ranks(measured, beats, models, level),
        beats=beats,
        stability=stability,
    )


def _task_notices(task: TaskData, measured: list[Measured], models: tuple[str, ...]) -> list[Notice]:
    notices = []
    for word, share in (("positive", task.hard.mean()), ("negative", 1 - task.hard.mean())):
        if share == 0:
            text = f"no item has a {word} hard label: ordinary metrics that need one are undefined"
            notices.append(Notice("labels", text))
    constant = task.scores.min(axis=0) == task.scores.max(axis=0)
    if constant.any():
        who = _chosen(models, constant)
        notices.append(Notice("scores", f"the same score for every item, which ranks nothing (AUROC 0.5): {who}"))
    outside = np.asarray(((task.scores < 0) | (task.scores > 1)).any(axis=0))
    if outside.any():
        who = _chosen(models, outside)
        notices.append(Notice("scores", f"scores outside [0, 1], so no Brier score, log loss or ECE: {who}"))
    for one in measured:
        if np.isinf(one.value).any():
            who = _chosen(models, np.asarray(np.isinf(one.value)))
            text = f"infinite {one.spec.title}, because probability 0 was given to something that happened: {who}"
            notices.append(Notice("scores", text))
    return notices


def _chosen(models: tuple[str, ...], chosen: NDArray[np.bool_]) -> str:
    return list_names([model for model, is_chosen in zip(models, chosen, strict=True) if is_chosen])


def _merged(notices: list[Notice]) -> list[Notice]:
    """Say what concerns several tasks once, with their names."""
    tasks: dict[tuple[NoticeKind, str], tuple[str, ...]] = {}
    for notice in notices:
        key = (notice.kind, notice.text)
        tasks[key] = (*tasks.get(key, ()), *notice.tasks)
    return [Notice(kind, text, names) for (kind, text), names in tasks.items()]


def _average(
    tasks: list[TaskEvaluation], measured: list[list[Measured]], models: tuple[str, ...], level: float
) -> Average:
    by_task = [{one.spec.name: one for one in of_task} for of_task in measured]
    shared = [name for name in by_task[0] if all(name in of_task for of_task in by_task)]
    means = [mean_over_tasks([of_task[name] for of_task in by_task], level) for name in shared]
    beats = {one.spec.name: beat_matrix(one) for one in means}
    return Average(
        table=metric_table(means, models),
        comparisons=compare_ranks(means, beats, models, level),
        beats=beats,
        stability=_mean_stability([task.stability for task in tasks]),
    )


def _mean_stability(tables: list[pd.DataFrame]) -> pd.DataFrame:
    if any(table.empty for table in tables):
        return tables[0].iloc[:0]
    # A task whose rankings are undefined has no part in the mean.
    grouped = pd.concat(tables, ignore_index=True).groupby(["metric", "labels"], sort=False)
    means = grouped[["mean_pairwise", "mean_vs_observed"]].mean()
    return means.join(grouped[["n_used", "n_dropped"]].sum()).reset_index()
