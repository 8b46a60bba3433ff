"""The result of an evaluation: tables of metrics, who is first, who changes places, and how stable the ranking is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NoticeKind = Literal["items", "labels", "scores", "stability", "positive mass"]


@dataclass(frozen=True)
class Notice:
    """A note for the reader.

    Attributes:
        kind: What it is about: items that were left out, hard labels, scores, the stability of the ranking, or clear
            items that carry much of the positive mass.
        text: One sentence, without a full stop.
        tasks: The tasks that it concerns; empty for all of them.
    """

    kind: NoticeKind
    text: str
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lead:
    """Who is first by a metric, and whether the resamples separate it from the others.

    Attributes:
        models: The first model by value, or those that share the first place; empty if no model has a value.
        rivals: The other models that the first beats in too few resamples to be told apart from it.
        closest: The model behind that the first beats least often, or one that shares its place where nobody is behind;
            empty for a single model.
        probability: Share of the resamples in which the first model is better than `closest`; NaN for a single model.
    """

    models: tuple[str, ...]
    rivals: tuple[str, ...]
    closest: str
    probability: float

    @property
    def is_separated(self) -> bool:
        """Whether one model is first and better than every other in enough resamples."""
        return len(self.models) == 1 and bool(self.closest) and not self.rivals


@dataclass(frozen=True)
class Swap:
    """Two models that change places: `first` leads by the ordinary metric, `second` by the soft one.

    Attributes:
        first: The model that leads by the ordinary metric.
        second: The model that leads by the soft metric.
        p_ordinary: Share of the resamples in which `first` is better by the ordinary metric.
        p_soft: Share of the resamples in which `second` is better by the soft metric.
        is_separated: Whether both shares are large enough to tell the models apart.
    """

    first: str
    second: str
    p_ordinary: float
    p_soft: float
    is_separated: bool


@dataclass(frozen=True)
class RankComparison:
    """How the rankings of the models by an ordinary metric and by its soft twin compare.

    Attributes:
        ordinary: Name of the metric against hard labels.
        soft: Name of the metric against soft labels.
        r_squared: Squared correlation of both over the models; NaN with fewer than three models, or where a metric is
            the same for all.
        best_ordinary: Who is first by the ordinary metric.
        best_soft: Who is first by the soft metric.
        moved: Models whose rank differs.
        swaps: Pairs of models that change places, by their values.
        ties: Pairs of models that are equal by one of the metrics and different by the other.
    """

    ordinary: str
    soft: str
    r_squared: float
    best_ordinary: Lead
    best_soft: Lead
    moved: tuple[str, ...]
    swaps: tuple[Swap, ...]
    ties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Average:
    """The mean over the tasks, each counting the same.

    Attributes:
        table: As in `TaskEvaluation`, for the metrics that every task has.
        comparisons: Ordinary beside soft, of the means.
        beats: As in `TaskEvaluation`, of the means.
        stability: Mean of the stabilities of the tasks; no rows if a task has none.
    """

    table: pd.DataFrame
    comparisons: tuple[RankComparison, ...]
    beats: Mapping[str, NDArray[np.float64]]
    stability: pd.DataFrame


@dataclass(frozen=True, eq=False)
class TaskEvaluation:
    """The models on one task.

    Attributes:
        task: Name of the task; None when there are no tasks.
        n_items: Items that the models were judged on.
        n_dropped: Items that were left out because a score is missing.
        base_rate: Share of positive hard labels, p+.
        soft_base_rate: Mean soft label.
        table: One row per model and metric: `model, metric, title, labels (hard or soft), value, low, high, interval
            (bootstrap, exact or wilson), n_undefined (resamples without a value), rank (1 is best), chance, ceiling,
            share`. For soft metrics, `chance` is what scores without information get (for losses: the best constant
            prediction), `ceiling` what the soft labels themselves score, and `share` how far the model is on the way
            from chance to there.
        comparisons: Ordinary beside soft, one for each ordinary metric with a soft twin.
        beats: By metric, the share of resamples in which the model of the row is better than that of the column,
            shape (K, K); NaN on the diagonal and where a metric is undefined.
        stability: One row per metric and kind of label: `metric, labels, mean_pairwise, mean_vs_observed, n_used,
            n_dropped`, the mean Spearman correlation of rankings under resampled votes. No rows without votes.
    """

    task: str | None
    n_items: int
    n_dropped: int
    base_rate: float
    soft_base_rate: float
    table: pd.DataFrame
    comparisons: tuple[RankComparison, ...]
    beats: Mapping[str, NDArray[np.float64]]
    stability: pd.DataFrame

    def wide(self) -> pd.DataFrame:
        """Return the values as one row per model and one column per metric."""
        return self.table.pivot(index="model", columns="metric", values="value").loc[
            list(self.table["model"].unique()), list(self.table["metric"].unique())
        ]


@dataclass(frozen=True)
class EvaluationSettings:
    """How an evaluation was made.

    Attributes:
        n_bootstrap: Resamples of the items or groups, for the intervals.
        n_vote_bootstrap: Resamples of the votes, for the stability of the ranking; 0 for none.
        level: Mass of the intervals. Two models are told apart when one is better in at least (1 + level) / 2 of the
            resamples.
        seed: Seed of everything random.
        missing: What was done about missing scores.
        group_name: What the groups are, such as "patient"; empty where single items were redrawn.
        n_groups: Number of groups; 0 where single items were redrawn.
    """

    n_bootstrap: int
    n_vote_bootstrap: int
    level: float
    seed: int
    missing: Literal["error", "drop"]
    group_name: str
    n_groups: int

    @property
    def redrawn(self) -> str:
        """What the resamples redraw, in words."""
        return f"the {self.n_groups:,} groups ({self.group_name})" if self.group_name else "the items"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Models judged against hard and soft labels.

    Attributes:
        models: Names of the K models.
        soft: Column that served as soft label.
        hard: Where the hard labels come from, in words.
        settings: How it was made.
        tasks: One evaluation per task.
        average: The mean over tasks; None for a single one.
        notices: Notes for the reader.

    Example:
        >>> from softgold import evaluate, fit, simulate
        >>> study = simulate(n_items=300, n_annotators=20, model_aurocs=(0.9, 0.7), model_ambiguity=(0, 0), seed=0)
        >>> labels = fit(study.votes, engine="coordinate").posterior.soft_labels()
        >>> result = evaluate(labels, study.scores, n_bootstrap=50, n_vote_bootstrap=0)
        >>> result.models, result.only.wide()["soft_auroc"].round(2).tolist()
        (('model_1', 'model_2'), [0.68, 0.59])
    """

    models: tuple[str, ...]
    soft: str
    hard: str
    settings: EvaluationSettings
    tasks: tuple[TaskEvaluation, ...]
    average: Average | None
    notices: tuple[Notice, ...]

    @property
    def only(self) -> TaskEvaluation:
        """The first task, which is the only one when there are no tasks."""
        return self.tasks[0]

    @property
    def leading(self) -> TaskEvaluation | Average:
        """What a headline is about: the average over tasks, or the only task."""
        return self.average or self.only

    def to_frame(self) -> pd.DataFrame:
        """Return the table of `metrics.csv`: the tables of all tasks, and of their `average`, below each other."""
        parts = [(task.task or "", task.table) for task in self.tasks]
        if self.average is not None:
            parts.append(("average", self.average.table))
        return pd.concat([table.assign(task=name) for name, table in parts], ignore_index=True)[
            ["task", *self.only.table.columns]
        ]


@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """Models with one probability per class, judged against soft labels with one column per class.

    Attributes:
        classes: Names of the classes.
        per_class: One task per class, one against the rest; its average is the macro average.
        overall: One row per model and metric over all classes: `model, metric, title, value, low, high, rank, ceiling`.
    """

    classes: tuple[str, ...]
    per_class: Evaluation
    overall: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return the table of `metrics.csv`: that of every class and of their average, and `overall` below."""
        return pd.concat([self.per_class.to_frame(), self.overall.assign(task="overall")], ignore_index=True)
