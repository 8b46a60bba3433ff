"""Models judged against uncertain labels: ordinary metrics beside soft ones, and how stable a ranking is."""

from softgold.evaluation.classes import evaluate_classes
from softgold.evaluation.labels import read_groups, read_tasks
from softgold.evaluation.metrics import METRICS, MetricName
from softgold.evaluation.result import (
    Average,
    ClassEvaluation,
    Evaluation,
    EvaluationSettings,
    Lead,
    Notice,
    RankComparison,
    Swap,
    TaskEvaluation,
)
from softgold.evaluation.run import evaluate

__all__ = [
    "METRICS",
    "Average",
    "ClassEvaluation",
    "Evaluation",
    "EvaluationSettings",
    "Lead",
    "MetricName",
    "Notice",
    "RankComparison",
    "Swap",
    "TaskEvaluation",
    "evaluate",
    "evaluate_classes",
    "read_groups",
    "read_tasks",
]
