"""How far conclusions about a detector depend on single experts, on the items drawn, and on items with few votes.

A detector is anything that scores items, the crowd's soft label among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgold.agreement import cohen_kappa
from softgold.checks import FloatArray, as_finite, check_positive_int, check_same_length
from softgold.experts.panel import NO_LABEL, ExpertPanel, LabelArray, Tie
from softgold.experts.resampling import PanelAndItems
from softgold.metrics import Ranking
from softgold.metrics.bootstrap.engine import Settings, resample
from softgold.tables.text import as_text

VOTE_CUTOFFS = (1, 3, 5, 7, 10, 15)
_METRICS = {"soft_auroc": "auroc", "soft_average_precision": "average_precision"}

Detectors = Mapping[str, ArrayLike]


def leave_one_expert_out(panel: ExpertPanel, detectors: Detectors, *, tie: Tie = "negative") -> pd.DataFrame:
    """Judge detectors against the majority of the whole panel, and of the panel without each expert.

    Args:
        panel: Answers of E experts about N items.
        detectors: Scores of the N items by the name of the detector.
        tie: Label of an even split, which leaving out an expert makes common (CleanPatrick, Table 6: negative).

    Returns:
        `held_out` (missing for the whole panel), `n_labelled, n_positive, kappa` (Cohen's, with the labels of the
        whole panel), `detector, auroc, average_precision`; one row per fold and detector. A single expert cannot be
        left out, and has one row only.

    Example:
        >>> panel = ExpertPanel.from_matrix([[0, 1, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1]])
        >>> leave_one_expert_out(panel, {"net": [0.1, 0.6, 0.4, 0.9]})[["held_out", "n_positive", "auroc"]].values
        array([[nan, 3, 1.0],
               ['expert 1', 1, 1.0],
               ['expert 2', 2, 1.0],
               ['expert 3', 2, 0.75]], dtype=object)
    """
    seats = np.ones((1, panel.n_experts), dtype=np.int64)
    names: list[str | None] = [None]
    if panel.n_experts > 1:
        seats = np.vstack([seats, 1 - np.eye(panel.n_experts, dtype=np.int64)])
        names += [str(name) for name in panel.expert_ids]
    folds = panel.majorities(seats, tie)
    rows = [
        {"held_out": name, **_against_full(labels, folds[0]), "detector": detector, **_ranked(labels, scores)}
        for name, labels in zip(names, folds, strict=True)
        for detector, scores in _checked(detectors, len(panel.item_ids))
    ]
    table = pd.DataFrame(rows)
    return table.assign(held_out=as_text(table["held_out"]))


def hierarchical_bootstrap(
    panel: ExpertPanel,
    detectors: Detectors,
    *,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    tie: Tie = "negative",
    seed: int = 0,
    groups: NDArray[np.intp] | None = None,
) -> pd.DataFrame:
    """Resample experts and items together, and judge each detector against the majority of the resampled panel.

    Every replicate draws E experts and N items with replacement (CleanPatrick, appendix I); all detectors are judged on
    the same replicates. All replicates are enumerated where there are few experts and items.
    With `groups`, the number of the group of each item, whole groups are drawn in place of items.

    Returns:
        `detector, metric` (auroc or average_precision), `value` against the whole panel, `mean, low, high` of the
        replicates and `defined`, the share of replicates in which the metric exists (the others are dropped).

    Example:
        >>> panel = ExpertPanel.from_matrix([[0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
        >>> table = hierarchical_bootstrap(panel, {"net": [0.1, 0.4, 0.9, 0.6]})
        >>> table["mean"].round(4).tolist()
        [0.7954, 0.8954]
    """
    checked = dict(_checked(detectors, len(panel.item_ids)))
    settings = Settings(n_bootstrap, level, seed)
    scores = np.column_stack(list(checked.values()))
    (results,) = resample(PanelAndItems(panel, tie, groups), [list(_METRICS)], scores, settings)
    rows = [
        {
            "detector": detector,
            "metric": _METRICS[name],
            "value": float(result.estimate[place]),
            "mean": float(result.mean[place]),
            "low": float(result.low[place]),
            "high": float(result.high[place]),
            "defined": float(result.defined[place]),
        }
        for place, detector in enumerate(checked)
        for name, result in results.items()
    ]
    return pd.DataFrame(rows)


def min_vote_cutoffs(
    n_votes: ArrayLike, labels: ArrayLike, detectors: Detectors, *, cutoffs: Sequence[int] = VOTE_CUTOFFS
) -> pd.DataFrame:
    """Judge detectors on the items with at least k votes, for several k (CleanPatrick, appendix J).

    Args:
        n_votes: Votes of each item, shape (N,).
        labels: Labels 0 or 1, `NO_LABEL` where there is none, shape (N,).
        detectors: Scores of the N items by the name of the detector.
        cutoffs: The numbers k.

    Returns:
        `min_votes, kept, fraction, detector, auroc, average_precision`; both metrics are NaN where the kept items
        have labels of one class only.

    Example:
        >>> min_vote_cutoffs([1, 3, 5], [0, 1, 0], {"net": [0.1, 0.7, 0.6]}, cutoffs=[1, 5])["kept"].tolist()
        [3, 1]
    """
    votes, truth = as_finite(n_votes, "n_votes"), np.asarray(labels)
    check_same_length(len(votes), labels=truth)
    rows = []
    for cutoff in cutoffs:
        kept = votes >= check_positive_int(cutoff, "a minimum number of votes")
        one_class = len(np.unique(truth[kept & (truth != NO_LABEL)])) < 2
        share = {"min_votes": cutoff, "kept": int(kept.sum()), "fraction": float(kept.mean()) if len(kept) else np.nan}
        for detector, scores in _checked(detectors, len(votes)):
            metrics = _ranked(np.where(kept, truth, NO_LABEL), scores)
            undefined = dict.fromkeys(metrics, float("nan"))
            rows.append({**share, "detector": detector, **(undefined if one_class else metrics)})
    return pd.DataFrame(rows)


def _checked(detectors: Detectors, length: int) -> Iterator[tuple[str, FloatArray]]:
    for name, scores in detectors.items():
        values = as_finite(scores, f"scores of {name!r}")
        check_same_length(length, **{f"scores of {name!r}": values})
        yield name, values


def _against_full(labels: LabelArray, full: LabelArray) -> dict[str, float]:
    given = labels != NO_LABEL
    return {
        "n_labelled": int(given.sum()),
        "n_positive": int((labels == 1).sum()),
        "kappa": cohen_kappa(full[given], labels[given]),
    }


def _ranked(labels: NDArray[np.integer], scores: FloatArray) -> dict[str, float]:
    given = labels != NO_LABEL
    ranking = Ranking.from_scores(labels[given], scores[given])
    return {"auroc": ranking.auroc(), "average_precision": ranking.average_precision()}
