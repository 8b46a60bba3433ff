"""Tables and figures of a calibration: what labels are like at a threshold, each expert, and the detectors."""

from __future__ import annotations

import numpy as np
import pandas as pd

from softgold.agreement import cohen_kappa
from softgold.checks import FloatArray
from softgold.errors import InputError
from softgold.experts.alignment import Intake, detector_scores
from softgold.experts.choice import Evidence, ThresholdRule
from softgold.experts.detectors import hierarchical_bootstrap, leave_one_expert_out, min_vote_cutoffs
from softgold.experts.panel import NO_LABEL, ExpertPanel, LabelArray, Tie
from softgold.experts.result import DetectorChecks, LabelQuality, ReleasedLabels
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

__all__ = ["SOFT_LABEL", "detector_checks", "experts_table", "label_quality"]

SOFT_LABEL = "soft label"
"""Name of the crowd's soft label among the detectors."""


def label_quality(released: ReleasedLabels, intake: Intake, majority: LabelArray, threshold: float) -> LabelQuality:
    """Return what labels [p >= threshold] would be like, and how they agree with the experts' majority."""
    evidence = intake.evidence
    label = released.p >= threshold
    at_experts = label[intake.position]
    agrees = at_experts == (majority == 1)
    weight = evidence.design_weight(np.ones((1, len(majority))))[0]
    return LabelQuality(
        threshold=threshold,
        positives=int(label.sum()),
        prevalence=float(label.mean()),
        expected_wrong=_share_wrong(label, released.p),
        expected_wrong_calibrated=_share_wrong(label, released.p_calibrated),
        agreement=float(agrees.mean()),
        agreement_weighted=float(np.average(agrees, weights=weight)),
        kappa=cohen_kappa(majority, at_experts.astype(np.int8)),
    )


def _share_wrong(label: np.ndarray[tuple[int], np.dtype[np.bool_]], p: FloatArray) -> float:
    return float(np.where(label, 1.0 - p, p).mean())


def experts_table(
    panel: ExpertPanel, evidence: Evidence, rule: ThresholdRule, crowd: LabelArray, tie: Tie
) -> pd.DataFrame:
    """Return one row an expert.

    `expert, n_labels, n_positive, positive_rate`; `agreement_with_others, kappa_with_others`: with the majority of the
    other experts on the items that both labelled; `agreement_with_crowd, kappa_with_crowd`: with the released labels;
    `kappa_without, threshold_without`: of the panel without this expert, against the whole panel. NaN for a single
    expert where others are needed.
    """
    others, full = panel.others(tie), panel.majority(tie)
    thresholds = evidence.choose(rule, others).threshold
    rows = []
    for place, name in enumerate(panel.expert_ids):
        own, rest = panel.answers[place], others[place]
        given = own != NO_LABEL
        alone = panel.n_experts == 1
        rows.append(
            {
                "expert": str(name),
                "n_labels": int(given.sum()),
                "n_positive": int((own == 1).sum()),
                "positive_rate": float((own[given] == 1).mean()),
                **_agreeing(own, rest, "others"),
                **_agreeing(own, crowd, "crowd"),
                "kappa_without": _agreeing(full, rest, "")["kappa_with_"],
                "threshold_without": float("nan") if alone else float(thresholds[place]),
            }
        )
    return pd.DataFrame(rows)


def _agreeing(first: LabelArray, second: LabelArray, whom: str) -> dict[str, float]:
    both = (first != NO_LABEL) & (second != NO_LABEL)
    share = float((first[both] == second[both]).mean()) if both.any() else float("nan")
    return {f"agreement_with_{whom}": share, f"kappa_with_{whom}": cohen_kappa(first[both], second[both])}


def detector_checks(
    soft_labels: SoftLabels,
    intake: Intake,
    released: ReleasedLabels,
    rule: ThresholdRule,
    scores: Scores | None,
    *,
    tie: Tie,
    level: float,
    replicates: int,
    seed: int,
) -> DetectorChecks:
    """Judge the soft label, and the detectors if there are any, against other panels, other items and fewer votes."""
    panel = intake.panel
    detectors: dict[str, FloatArray] = {SOFT_LABEL: intake.evidence.p}
    if scores is not None:
        if SOFT_LABEL in scores.models:
            raise InputError(f"a detector cannot be called {SOFT_LABEL!r}; rename the column")
        detectors |= detector_scores(scores, panel.item_ids, "expert-labelled items")
    folds = leave_one_expert_out(panel, detectors, tie=tie)
    return DetectorChecks(
        leave_one_out=_with_thresholds(folds, intake, rule, released.p, tie),
        bootstrap=hierarchical_bootstrap(panel, detectors, replicates=replicates, level=level, tie=tie, seed=seed),
        min_votes=_min_votes(soft_labels, intake, released, scores, tie),
    )


def _with_thresholds(
    folds: pd.DataFrame, intake: Intake, rule: ThresholdRule, all_p: FloatArray, tie: Tie
) -> pd.DataFrame:
    panel = intake.panel
    labels = np.vstack([panel.majority(tie)[None, :], panel.others(tie)])
    thresholds = intake.evidence.choose(rule, labels).threshold
    per_fold = len(folds) // folds["held_out"].nunique(dropna=False)
    columns = {"threshold": thresholds, "positives": [int((all_p >= t).sum()) for t in thresholds]}
    at = np.arange(len(folds)) // per_fold
    return folds.assign(**{name: np.asarray(values)[at] for name, values in columns.items()})


def _min_votes(
    soft_labels: SoftLabels, intake: Intake, released: ReleasedLabels, scores: Scores | None, tie: Tie
) -> pd.DataFrame:
    votes = soft_labels.n_votes
    if not votes.any():
        return pd.DataFrame()
    own = {SOFT_LABEL: intake.evidence.p}
    parts = [min_vote_cutoffs(votes[intake.position], intake.panel.majority(tie), own).assign(against="experts")]
    if scores is not None:
        scored = np.flatnonzero(scores.item_ids.get_indexer(soft_labels.item_ids) >= 0)
        values = detector_scores(scores, soft_labels.item_ids[scored], "items")
        parts.append(min_vote_cutoffs(votes[scored], released.label[scored], values).assign(against="labels"))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(coverage=[float((votes >= cutoff).mean()) for cutoff in table["min_votes"]])
