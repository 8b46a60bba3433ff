"""Tables of a calibration: each expert, and the detectors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from softgold.agreement import cohen_kappa
from softgold.checks import FloatArray
from softgold.errors import InputError
from softgold.experts.alignment import AlignedExperts, detector_scores
from softgold.experts.detectors import hierarchical_bootstrap, leave_one_expert_out, min_vote_cutoffs
from softgold.experts.evidence import Evidence
from softgold.experts.panel import NO_LABEL, ExpertPanel, LabelArray, Tie
from softgold.experts.result import CalibrationSettings, DetectorChecks, ReleasedLabels
from softgold.experts.rules import ThresholdRule, choose
from softgold.tables.ids import find_ids
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

SOFT_LABEL = "soft label"
"""Name of the crowd's soft label among the detectors."""


def experts_table(
    panel: ExpertPanel,
    n_unsure: Mapping[str, int],
    evidence: Evidence,
    rule: ThresholdRule,
    crowd: LabelArray,
    tie: Tie,
) -> pd.DataFrame:
    """Return one row per expert.

    `expert, n_labels, n_unsure, n_positive, positive_rate`; `agreement_with_others, kappa_with_others`: with the
    majority of the other experts on the items that both labelled; `agreement_with_crowd, kappa_with_crowd`: with the
    released labels; `kappa_without, threshold_without`: of the panel without this expert, against the whole panel. NaN
    where there is nothing to compare. Experts without labels have `n_labels` 0.
    """
    others, full = panel.others(tie), panel.majority(tie)
    thresholds = choose(evidence, rule, others).threshold if panel.n_experts else np.zeros(0)
    place_of = {str(name): place for place, name in enumerate(panel.expert_ids)}
    nobody = np.full(len(panel.item_ids), NO_LABEL, dtype=np.int8)
    rows = []
    for name, unsure in n_unsure.items():
        place = place_of.get(name)
        own, rest = (nobody, nobody) if place is None else (panel.answers[place], others[place])
        given = own != NO_LABEL
        rows.append(
            {
                "expert": name,
                "n_labels": int(given.sum()),
                "n_unsure": unsure,
                "n_positive": int((own == 1).sum()),
                "positive_rate": float((own[given] == 1).mean()) if given.any() else float("nan"),
                **_agreeing(own, rest, "others"),
                **_agreeing(own, crowd, "crowd"),
                "kappa_without": _agreeing(full, rest, "")["kappa_with_"],
                "threshold_without": (
                    float("nan") if place is None or panel.n_experts == 1 else float(thresholds[place])
                ),
            }
        )
    return pd.DataFrame(rows)


def _agreeing(first: LabelArray, second: LabelArray, whom: str) -> dict[str, float]:
    both = (first != NO_LABEL) & (second != NO_LABEL)
    share = float((first[both] == second[both]).mean()) if both.any() else float("nan")
    return {f"agreement_with_{whom}": share, f"kappa_with_{whom}": cohen_kappa(first[both], second[both])}


def detector_checks(
    soft_labels: SoftLabels,
    aligned: AlignedExperts,
    released: ReleasedLabels,
    rule: ThresholdRule,
    scores: Scores | None,
    settings: CalibrationSettings,
) -> DetectorChecks:
    """Judge the soft label, and the detectors if there are any, against other panels, other items and fewer votes."""
    panel = aligned.panel
    if scores is not None and SOFT_LABEL in scores.models:
        raise InputError(f"a detector cannot be called {SOFT_LABEL!r}; rename the column")
    if not len(panel.item_ids):
        return DetectorChecks(pd.DataFrame(), pd.DataFrame(), pd.DataFrame())
    detectors: dict[str, FloatArray] = {SOFT_LABEL: aligned.evidence.p}
    if scores is not None:
        detectors |= detector_scores(scores, panel.item_ids, "expert-labelled items")
    folds = leave_one_expert_out(panel, detectors, tie=settings.tie)
    return DetectorChecks(
        leave_one_out=_with_thresholds(folds, aligned, rule, released.p, settings.tie),
        bootstrap=hierarchical_bootstrap(
            panel,
            detectors,
            n_bootstrap=settings.n_bootstrap,
            level=settings.level,
            tie=settings.tie,
            seed=settings.seed,
            groups=aligned.evidence.groups,
        ),
        min_votes=_min_votes(soft_labels, aligned, released, scores, settings.tie),
    )


def _with_thresholds(
    folds: pd.DataFrame, aligned: AlignedExperts, rule: ThresholdRule, all_p: FloatArray, tie: Tie
) -> pd.DataFrame:
    panel = aligned.panel
    labels = np.vstack([panel.majority(tie)[None, :], panel.others(tie)])
    thresholds = choose(aligned.evidence, rule, labels).threshold
    per_fold = len(folds) // folds["held_out"].nunique(dropna=False)
    columns = {"threshold": thresholds, "positives": [int((all_p >= t).sum()) for t in thresholds]}
    at = np.arange(len(folds)) // per_fold
    return folds.assign(**{name: np.asarray(values)[at] for name, values in columns.items()})


def _min_votes(
    soft_labels: SoftLabels, aligned: AlignedExperts, released: ReleasedLabels, scores: Scores | None, tie: Tie
) -> pd.DataFrame:
    votes = soft_labels.n_votes
    if not votes.any():
        return pd.DataFrame()
    own = {SOFT_LABEL: aligned.evidence.p}
    parts = [min_vote_cutoffs(votes[aligned.position], aligned.panel.majority(tie), own).assign(against="experts")]
    if scores is not None:
        scored = np.flatnonzero(find_ids(scores.item_ids, soft_labels.item_ids) >= 0)
        values = detector_scores(scores, soft_labels.item_ids[scored], "items")
        parts.append(min_vote_cutoffs(votes[scored], released.label[scored], values).assign(against="labels"))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(coverage=[float((votes >= cutoff).mean()) for cutoff in table["min_votes"]])
