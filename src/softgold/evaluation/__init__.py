"""Models judged against uncertain labels: ordinary metrics beside soft ones, and how far a ranking can be trusted."""

from softgold.evaluation.labels import read_labels, read_tasks
from softgold.evaluation.metrics import METRICS, MetricName
from softgold.evaluation.result import Average, Evaluation, RankComparison, TaskEvaluation
from softgold.evaluation.run import evaluate

__all__ = [
    "METRICS",
    "Average",
    "Evaluation",
    "MetricName",
    "RankComparison",
    "TaskEvaluation",
    "evaluate",
    "read_labels",
    "read_tasks",
]
