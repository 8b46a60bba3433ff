"""What an evaluation says: tables of metrics, ranks and who changes places, and how far the ranking can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Average", "Evaluation", "RankComparison", "TaskEvaluation"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RankComparison:
    """How the ranking of the models by an ordinary metric and by its soft twin compare.

    Attributes:
        ordinary: Name of the metric against hard labels.
        soft: Name of the metric against soft labels.
        r_squared: Squared correlation of both over the models; NaN with fewer than two models.
        best_ordinary: The first model, or models, by the ordinary metric.
        best_soft: The first by the soft metric.
        moved: Models whose rank differs.
        swapped: Pairs of models of which the first leads by the ordinary and the second by the soft metric.
    """

    ordinary: str
    soft: str
    r_squared: float
    best_ordinary: tuple[str, ...]
    best_soft: tuple[str, ...]
    moved: tuple[str, ...]
    swapped: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class TaskEvaluation:
    """The models on one task.

    Attributes:
        task: Name of the task; None when there are no tasks.
        n_items: Items that the models were judged on.
        n_dropped: Items that were left out for a missing score.
        base_rate: Share of positive hard labels, p+.
        soft_base_rate: Mean soft label.
        table: One row a model and metric: `model, metric, title, labels (hard or soft), value, low, high, interval
            (bootstrap, exact or wilson), n_undefined (resamples on which it is), rank (1 is best)`.
        comparisons: Ordinary beside soft, one for each ordinary metric with a soft twin.
        beats: By metric, the share of item resamples in which the model of the row is better than that of the column,
            shape (K, K); NaN on the diagonal and where a metric is undefined.
        stability: One row a metric and kind of label: `metric, labels, mean_pairwise, mean_vs_observed, n_used,
            n_dropped`, the mean Spearman correlation of rankings when the votes are drawn anew. None without votes.
        notes: What the reader should know, one sentence each.
    """

    task: str | None
    n_items: int
    n_dropped: int
    base_rate: float
    soft_base_rate: float
    table: pd.DataFrame
    comparisons: tuple[RankComparison, ...]
    beats: Mapping[str, FloatArray]
    stability: pd.DataFrame | None
    notes: tuple[str, ...]

    def wide(self) -> pd.DataFrame:
        """Return the values as one row a model and one column a metric."""
        return self.table.pivot(index="model", columns="metric", values="value").loc[
            list(self.table["model"].unique()), list(self.table["metric"].unique())
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **{name: getattr(self, name) for name in ("task", "n_items", "n_dropped", "base_rate", "soft_base_rate")},
            "metrics": _rows(self.table),
            "comparisons": self.comparisons,
            "beats": self.beats,
            "stability": None if self.stability is None else _rows(self.stability),
            "notes": self.notes,
        }


@dataclass(frozen=True, eq=False)
class Average:
    """The mean over the tasks, each counting the same.

    Attributes:
        table: As in `TaskEvaluation`, for the metrics that every task has; resamples of the tasks are independent.
        comparisons: Ordinary beside soft, of the means.
        beats: As in `TaskEvaluation`, of the means.
        stability: Mean of the stabilities of the tasks.
    """

    table: pd.DataFrame
    comparisons: tuple[RankComparison, ...]
    beats: Mapping[str, FloatArray]
    stability: pd.DataFrame | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "metrics": _rows(self.table),
            "comparisons": self.comparisons,
            "beats": self.beats,
            "stability": None if self.stability is None else _rows(self.stability),
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Models judged against hard and soft labels.

    Attributes:
        models: Names of the K models.
        soft: Column that served as soft label.
        hard: Where the hard labels come from, in words.
        settings: `bootstrap, annotation_bootstrap, level, seed, missing`.
        tasks: One evaluation a task.
        average: The mean over tasks; None for a single one.
        notes: What concerns all tasks, one sentence each.
    """

    models: tuple[str, ...]
    soft: str
    hard: str
    settings: Mapping[str, Any]
    tasks: tuple[TaskEvaluation, ...]
    average: Average | None
    notes: tuple[str, ...]

    @property
    def only(self) -> TaskEvaluation:
        """The first task, which is the only one when there are no tasks."""
        return self.tasks[0]

    def to_frame(self) -> pd.DataFrame:
        """Return the table of `metrics.csv`: the tables of all tasks, and of their `average`, below each other."""
        parts = [(task.task or "", task.table) for task in self.tasks]
        if self.average is not None:
            parts.append(("average", self.average.table))
        return pd.concat([table.assign(task=name) for name, table in parts], ignore_index=True)[
            ["task", *self.only.table.columns]
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for `evaluation.json`."""
        return {
            **{name: getattr(self, name) for name in ("models", "soft", "hard", "settings")},
            "tasks": [task.to_dict() for task in self.tasks],
            "average": None if self.average is None else self.average.to_dict(),
            "notes": self.notes,
        }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict(orient="records")]
