"""From soft labels and expert labels to released labels: the one call on top of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from softgold.agreement import Agreement, agreement
from softgold.checks import check_in_range, check_positive_int
from softgold.errors import InputError, warn
from softgold.experts.alignment import Intake, take_in
from softgold.experts.cautions import warnings_of
from softgold.experts.choice import FALLBACK, Evidence, ThresholdRule
from softgold.experts.intervals import (
    ThresholdInterval,
    item_interval,
    joint_interval,
    panel_interval,
    prevalence_sensitivity,
)
from softgold.experts.panel import ExpertPanel, LabelArray, Tie
from softgold.experts.result import Calibration, ReleasedLabels, SoftMapOutcome
from softgold.experts.sampling import ExpertSample, Scheme
from softgold.experts.soft_map import MapName, fit_soft_map
from softgold.experts.summaries import detector_checks, experts_table, label_quality
from softgold.experts.thresholds import Rule
from softgold.tables.experts import ExpertLabels
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels

__all__ = ["calibrate"]

IntervalDraw = Callable[..., ThresholdInterval]
_INTERVALS: tuple[IntervalDraw, ...] = (panel_interval, item_interval, joint_interval)


def calibrate(
    soft_labels: SoftLabels,
    experts: ExpertLabels,
    *,
    rule: Rule = "changepoint",
    target: float | None = None,
    of: Literal["all", "sampled"] = "all",
    tie: Tie = "negative",
    sample: ExpertSample | None = None,
    bins: int = 20,
    scheme: Scheme = "rank",
    soft_map: MapName = "auto",
    scores: Scores | None = None,
    ignore_unknown: bool = False,
    replicates: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """Draw a threshold for soft labels from expert labels, and say how sure it is (CleanPatrick, section 3.4).

    Args:
        soft_labels: Soft labels of the whole data set.
        experts: Labels of one expert or more on some of its items; experts may have labelled different items.
        rule: "changepoint" (default), "largest_jump", "onset", "f1", "youden", or "precision" and "recall" with a
            `target` that the lower end of a Wilson interval must reach. See docs/calibration.md.
        target: Precision or recall to reach, under the rules of that name.
        of: The threshold is the mean soft label of "all" items of the chosen bin, or of those "sampled".
        tie: Label of an item on which the experts are evenly split.
        sample: The sample that the experts' items were drawn in, for its bins and weights. Without it, `bins` bins are
            cut over all soft labels and the labelled items are taken where they fall.
        bins: Number of bins when there is no sample.
        scheme: How they are cut, see `assign_bins`.
        soft_map: Which map leads from p to p_calibrated, see `fit_soft_map`.
        scores: Detectors to judge beside the soft label; every expert-labelled item needs a score.
        ignore_unknown: Leave out items that the soft labels (or the sample) lack, instead of raising.
        replicates: Resamples for every bootstrap that is not enumerated.
        level: Level of all intervals.
        seed: Seed of everything random: order of equal soft labels, resamples, folds.

    Returns:
        A frozen `Calibration`. Its warnings are also raised as `DataWarning`.

    Raises:
        InputError: Labels of unknown items, no item in common, an expert without labels, or a target that no threshold
            reaches.

    Example:
        >>> import pandas as pd
        >>> from softgold.readers import read_experts, read_soft_labels
        >>> p = np.linspace(0, 1, 400)
        >>> items = [f"x{i}" for i in range(400)]
        >>> soft = read_soft_labels(pd.DataFrame({"item": items, "p": p}))
        >>> answers = pd.DataFrame({"item": items * 2, "expert": ["ann"] * 400 + ["bob"] * 400,
        ...                         "label": (np.tile(p, 2) > 0.72).astype(int)})
        >>> result = calibrate(soft, read_experts(answers), bins=10)
        >>> round(result.threshold, 2), result.after.positives, result.interval("panel").is_point
        (0.75, 100, True)
    """
    chosen = ThresholdRule(rule, target, of)
    check_positive_int(replicates, "replicates", minimum=2)
    check_positive_int(seed, "seed", minimum=0)
    check_in_range(level, 0, 1, "level", ends="open")
    intake = take_in(
        soft_labels, experts, bins=bins, scheme=scheme, sample=sample, seed=seed, ignore_unknown=ignore_unknown
    )
    drawing = {"tie": tie, "level": level, "replicates": replicates, "seed": seed}
    result = _calibration(soft_labels, intake, chosen, soft_map, scores, drawing)
    # The coefficient of agreement has given its own warnings already.
    for sentence in result.warnings[len(result.agreement.notes) if result.agreement else 0 :]:
        warn(sentence)
    return result


def _calibration(
    soft_labels: SoftLabels,
    intake: Intake,
    rule: ThresholdRule,
    soft_map: MapName,
    scores: Scores | None,
    drawing: dict[str, Any],
) -> Calibration:
    panel, evidence, tie = intake.panel, intake.evidence, drawing["tie"]
    majority = panel.majority(tie)
    threshold, chosen_bin = _threshold(evidence, rule, majority)
    outcome = _fit_map(evidence, majority, soft_map, drawing["seed"])
    labels = _release(soft_labels, threshold, outcome)
    bins = evidence.table(majority)
    before, after = (label_quality(labels, intake, majority, cut) for cut in (FALLBACK, threshold))
    among = _agreement(panel, drawing)
    return Calibration(
        threshold=threshold,
        bin=chosen_bin,
        rule=rule,
        settings={"scheme": evidence.bins.scheme, "bins": len(evidence.bins), **drawing},
        bins=bins,
        labels=labels,
        before=before,
        after=after,
        agreement=among,
        experts=experts_table(panel, evidence, rule, labels.label[intake.position], tie),
        intervals=tuple(draw(evidence, panel, rule, soft_labels.p, **drawing) for draw in _INTERVALS),
        sensitivity=prevalence_sensitivity(soft_labels.p, threshold),
        detectors=detector_checks(soft_labels, intake, labels, rule, scores, **drawing),
        soft_map=outcome,
        warnings=warnings_of(rule, chosen_bin, bins, (before, after), panel.n_experts, among, outcome, intake.ignored),
    )


def _threshold(evidence: Evidence, rule: ThresholdRule, majority: LabelArray) -> tuple[float, int | None]:
    choice = evidence.choose(rule, majority[None, :])
    threshold, chosen = float(choice.threshold[0]), int(choice.bin[0])
    if np.isnan(threshold):
        best = evidence.best_bound(rule, majority)
        raise InputError(
            f"no threshold reaches a {rule.name} of {rule.target:g}: the best lower end of a 95 % interval is "
            f"{best:.3f}; ask for less, or label more items"
        )
    return threshold, None if chosen < 0 else chosen


def _fit_map(evidence: Evidence, majority: LabelArray, method: MapName, seed: int) -> SoftMapOutcome:
    weight = evidence.design_weight(np.ones((1, len(majority))))[0]
    try:
        fit = fit_soft_map(evidence.p, majority, weight=weight, method=method, seed=seed)
    except InputError as reason:
        return SoftMapOutcome(None, refused=str(reason))
    return SoftMapOutcome(fit)


def _release(soft_labels: SoftLabels, threshold: float, outcome: SoftMapOutcome) -> ReleasedLabels:
    return ReleasedLabels(
        item_ids=soft_labels.item_ids,
        label=(soft_labels.p >= threshold).astype(np.int8),
        p=soft_labels.p,
        p_calibrated=outcome.apply(soft_labels.p),
        threshold=threshold,
    )


def _agreement(panel: ExpertPanel, drawing: dict[str, Any]) -> Agreement | None:
    if panel.n_experts < 2:
        return None
    return agreement(panel.nominal(), n_bootstrap=drawing["replicates"], level=drawing["level"], seed=drawing["seed"])
