"""The part of a result that a figure draws: of the value itself, or of a run directory that holds it."""

from __future__ import annotations

from typing import Any, TypeVar

import pandas as pd

from softgold.errors import UsageError
from softgold.evaluation.result import Average, ClassEvaluation, Evaluation, TaskEvaluation
from softgold.experts import Calibration
from softgold.models.base import Fit
from softgold.readers.base import shorten
from softgold.runs import Run, Study
from softgold.tables.classes import ClassLabels
from softgold.tables.soft_labels import SoftLabels

Wanted = TypeVar("Wanted")
Ranking = TaskEvaluation | Average


def labels_of(source: SoftLabels | Fit | Run) -> SoftLabels:
    """Return soft labels of two classes."""
    _refuse_several(source, "soft_labels")
    if isinstance(source, Fit):
        return source.posterior.soft_labels()
    return _checked(
        source.soft_labels if isinstance(source, Run) else source, SoftLabels, "soft labels, a fit or a run"
    )


def annotators_of(source: pd.DataFrame | Fit | Run) -> pd.DataFrame:
    """Return a table with sensitivity and specificity of each annotator."""
    _refuse_several(source, "annotators")
    if isinstance(source, Fit):
        source = source.posterior.annotators()
    elif isinstance(source, Run):
        source = source.annotators
    table = _checked(source, pd.DataFrame, "a fit, a run or the table of annotators")
    absent = [name for name in ("sensitivity", "specificity") if name not in table]
    if absent:
        raise UsageError(
            f"the annotators have no {' and no '.join(absent)}, which majority and mean do not estimate; "
            "fit the model 'two-class'"
        )
    return table


def calibration_of(source: Calibration | Run) -> Calibration:
    """Return a calibration."""
    _refuse_several(source, "calibration")
    return _checked(source.calibration if isinstance(source, Run) else source, Calibration, "a calibration or a run")


def ranking_of(source: Evaluation | TaskEvaluation | Average | Run | Study, task: str | None) -> Ranking:
    """Return the evaluation of one task; without a name that of the only one, or the average over all."""
    found: Any = source
    if isinstance(source, Study) and source.kind == "classes":
        found = source.class_evaluation
    elif isinstance(source, Run | Study):
        found = source.evaluation
    if isinstance(found, ClassEvaluation):
        raise UsageError(
            f"this is an evaluation of {len(found.classes)} classes: draw the ranks of its part per_class, "
            f"of one class with task={found.classes[0]!r}"
        )
    if isinstance(found, Evaluation):
        return found.leading if task is None else _task(found, task)
    if isinstance(found, Average):
        return found
    return _checked(found, TaskEvaluation, "an evaluation or a run")


def _task(evaluation: Evaluation, name: str) -> TaskEvaluation:
    known = {task.task: task for task in evaluation.tasks}
    if name not in known:
        names = ", ".join(shorten(str(task)) for task in list(known)[:12])
        raise UsageError(f"the evaluation has no task {shorten(name)}; it has {names}")
    return known[name]


def _refuse_several(source: object, part: str) -> None:
    """Refuse what has several questions or classes: a figure draws one."""
    if isinstance(source, ClassLabels):
        raise UsageError(
            f"these soft labels have {len(source.classes)} classes: draw those of one class against the rest, "
            f"study.tasks[{source.classes[0]!r}].soft_labels of the run"
        )
    if isinstance(source, Study):
        what = "questions" if source.kind == "tasks" else "classes"
        first = next(iter(source.tasks))
        raise UsageError(f"{source.path} has {len(source.tasks)} {what}: draw one, study.tasks[{first!r}].{part}")


def _checked(value: object, kind: type[Wanted], words: str) -> Wanted:
    if not isinstance(value, kind):
        raise UsageError(f"the figure is drawn from {words}, got {type(value).__name__}")
    return value
