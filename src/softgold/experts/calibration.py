"""From soft labels and expert labels to released labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

import numpy as np
import pandas as pd

from softgold.agreement import Agreement, agreement
from softgold.checks import MOST_RESAMPLES, FloatArray, check_choice, check_in_range, check_positive_int
from softgold.errors import DataWarning, warn
from softgold.experts.alignment import AlignedExperts, align_experts, with_groups
from softgold.experts.answers import as_panel
from softgold.experts.bins import Scheme
from softgold.experts.cross_validation import fold_masks
from softgold.experts.evidence import Evidence
from softgold.experts.intervals import SOURCES, prevalence_sensitivity, threshold_interval
from softgold.experts.notices import find_notices
from softgold.experts.panel import ExpertPanel, LabelArray, Tie
from softgold.experts.quality import (
    LabelQuality,
    agreement_and_kappa,
    compare,
    error_rates,
    held_out_labels,
    rule_table,
)
from softgold.experts.result import Calibration, CalibrationSettings, ReleasedLabels
from softgold.experts.rules import FALLBACK, Rule, ThresholdRule, choose_one, cut_of_cost
from softgold.experts.sampling import ExpertSample
from softgold.experts.soft_map import MapChoice, SoftMapFit, fit_soft_map
from softgold.experts.summaries import detector_checks, experts_table
from softgold.experts.thresholds import shrunken_rates
from softgold.readers import read_soft_labels
from softgold.readers.sources import TableLike
from softgold.tables.experts import ExpertLabels
from softgold.tables.scores import Scores
from softgold.tables.soft_labels import SoftLabels


def calibrate(
    soft_labels: SoftLabels | TableLike,
    experts: ExpertPanel | ExpertLabels | TableLike | Sequence[TableLike],
    *,
    rule: Rule = "map",
    cost: tuple[float, float] | None = None,
    target: float | None = None,
    of: Literal["all", "sampled"] = "all",
    tie: Tie = "negative",
    sample: ExpertSample | None = None,
    bins: int | None = None,
    scheme: Scheme = "rank",
    soft_map: MapChoice = "logit",
    scores: Scores | None = None,
    groups: pd.Series | None = None,
    ignore_unknown: bool = False,
    n_bootstrap: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """Calibrate soft labels with expert labels: p_calibrated, a threshold, and how sure both are.

    Any number of expert labels will do: with none, p_calibrated is p and the threshold is 0.5.

    Args:
        soft_labels: Soft labels of the whole data set, from a model or a baseline, or a table that `read_soft_labels`
            reads.
        experts: Answers of one expert or more on some of its items, or tables that `read_answers` reads. Experts may
            have labelled different items.
        rule: How the threshold is chosen. "map" (default): where p_calibrated reaches the cut. "bins": the lowest bin
            whose rate, shrunken to the map, does. "paper": CleanPatrick's protocol (20 rank bins, change point, bin
            mean). "changepoint", "largest_jump", "onset", "f1", "youden"; "precision" and "recall" with a `target` that
            the lower end of a Wilson interval must reach. See docs/calibration.md.
        cost: Costs of a false positive and of a false negative, for the rules map and bins; the cut is FP / (FP + FN),
            1/2 without.
        target: Precision or recall to reach, under the rules of that name.
        of: Under rules that choose a bin, the threshold is the mean soft label of "all" items of the bin, or of those
            "sampled".
        tie: Label of an item on which the experts are evenly split.
        sample: The sample that the experts' items were drawn in, for its strata and weights. Without it, bins are cut
            over all soft labels and the labelled items are taken where they fall.
        bins: Number of bins without a sample; by default one for every 10 labelled items, at most 20.
        scheme: How they are cut, see `assign_bins`.
        soft_map: Which map gives p_calibrated, see `fit_soft_map`.
        scores: Detectors to judge beside the soft label; every expert-labelled item needs a score.
        groups: Group of each item, such as the patient of an image, indexed by item. Bootstraps then redraw whole
            groups of labelled items, since items of one group are not independent. None redraws items.
        ignore_unknown: Leave out items that the soft labels (or the sample) lack, instead of raising.
        n_bootstrap: Number of resamples of every bootstrap that is not enumerated.
        level: Level of all intervals.
        seed: Seed of everything random: resamples and folds.

    Returns:
        A frozen `Calibration`. Its notices are also raised as `DataWarning`.

    Raises:
        InputError: Labels of unknown items, no item in common, or a target that no threshold reaches.

    Example:
        >>> p = np.linspace(0, 1, 400)
        >>> items = [f"x{i}" for i in range(400)]
        >>> soft = pd.DataFrame({"item": items, "p": p})
        >>> answers = pd.DataFrame({"item": items * 2, "expert": ["ann"] * 400 + ["bob"] * 400,
        ...                         "answer": np.where(np.tile(p, 2) > 0.72, "yes", "no")})
        >>> result = calibrate(soft, answers, n_bootstrap=100)
        >>> round(result.threshold, 2), result.after.positives, result.interval("panel").is_point
        (0.72, 114, True)
    """
    check_positive_int(n_bootstrap, "n_bootstrap", minimum=2, maximum=MOST_RESAMPLES)
    check_positive_int(seed, "seed", minimum=0)
    check_in_range(level, 0, 1, "level", ends="open")
    check_choice(tie, get_args(Tie), "tie")
    check_choice(soft_map, get_args(MapChoice), "soft_map")
    chosen = ThresholdRule(rule, target, of, FALLBACK if cost is None else cut_of_cost(cost))
    table = soft_labels if isinstance(soft_labels, SoftLabels) else read_soft_labels(soft_labels)
    aligned = align_experts(
        table, as_panel(experts), chosen, bins=bins, scheme=scheme, sample=sample, ignore_unknown=ignore_unknown
    )
    if groups is not None:
        aligned = with_groups(aligned, groups)
    cut = aligned.evidence.bins
    used = cast(Literal["rank", "width", "neyman", "paper"], cut.scheme)
    settings = CalibrationSettings(
        tie=tie,
        n_bootstrap=n_bootstrap,
        level=level,
        seed=seed,
        scheme=used,
        bins=len(cut),
        group_name="" if groups is None else str(groups.name or "group"),
        n_groups=aligned.n_groups,
    )
    result = _calibration(table, aligned, chosen, soft_map, scores, settings)
    for notice in result.notices:
        warn(notice.text)
    return result


def _calibration(
    soft_labels: SoftLabels,
    aligned: AlignedExperts,
    asked: ThresholdRule,
    map_asked: MapChoice,
    scores: Scores | None,
    settings: CalibrationSettings,
) -> Calibration:
    panel, evidence = aligned.panel, aligned.evidence
    majority = panel.majority(settings.tie)
    fit = _fit_map(evidence, majority, map_asked, settings)
    rule = replace(asked, map=fit.name)
    threshold, found = choose_one(evidence, rule, majority)
    labels = _release(soft_labels, threshold, fit)
    masks = fold_masks(majority, settings.seed)
    held_out = held_out_labels(evidence, rule, majority, masks)
    before, after = _qualities(labels, evidence, held_out, majority)
    comparison = compare(evidence, held_out, majority, rule.cut)
    table = _bin_table(evidence, majority, fit)
    among = _agreement(panel, settings)
    return Calibration(
        threshold=threshold,
        bin=_bin_of(evidence, threshold) if found else None,
        rule=rule,
        settings=settings,
        bins=table,
        labels=labels,
        before=before,
        after=after,
        comparison=comparison,
        rules=rule_table(evidence, majority, soft_labels.p, rule, masks),
        error_rates=error_rates(evidence, panel, held_out, len(soft_labels), settings),
        agreement=among,
        experts=experts_table(panel, aligned.n_unsure, evidence, rule, labels.label[aligned.position], settings.tie),
        intervals=tuple(threshold_interval(one, evidence, panel, rule, soft_labels.p, settings) for one in SOURCES),
        sensitivity=prevalence_sensitivity(soft_labels.p, threshold),
        detectors=detector_checks(soft_labels, aligned, labels, rule, scores, settings),
        soft_map=fit,
        notices=find_notices(
            rule=rule,
            threshold=threshold,
            found=found,
            bins=table,
            qualities=(before, after),
            comparison=comparison,
            n_experts=panel.n_experts,
            n_unsure=aligned.n_unsure,
            agreement=among,
            fit=fit,
            map_asked=map_asked,
            unknown=aligned.unknown,
        ),
    )


def _fit_map(evidence: Evidence, majority: LabelArray, method: MapChoice, settings: CalibrationSettings) -> SoftMapFit:
    weight = evidence.design_weight(majority[None, :])[0]
    return fit_soft_map(evidence.p, majority, weight=weight, method=method, level=settings.level, seed=settings.seed)


def _release(soft_labels: SoftLabels, threshold: float, fit: SoftMapFit) -> ReleasedLabels:
    low, high = fit.band(soft_labels.p)
    return ReleasedLabels(
        item_ids=soft_labels.item_ids,
        label=(soft_labels.p >= threshold).astype(np.int8),
        p=soft_labels.p,
        p_calibrated=fit.apply(soft_labels.p),
        threshold=threshold,
        p_calibrated_lo=low,
        p_calibrated_hi=high,
    )


def _qualities(
    released: ReleasedLabels, evidence: Evidence, held_out: FloatArray, majority: LabelArray
) -> tuple[LabelQuality, LabelQuality]:
    """Return the quality of labels at 0.5 and at the threshold, judged on the same labels with the same weights."""
    at_half = np.where(np.isnan(held_out), np.nan, evidence.p >= FALLBACK)
    half, chosen = (
        LabelQuality(
            threshold=threshold,
            positives=int((released.p >= threshold).sum()),
            prevalence=float((released.p >= threshold).mean()),
            expected_wrong=_share_wrong(released.p >= threshold, released.p),
            expected_wrong_calibrated=_share_wrong(released.p >= threshold, released.p_calibrated),
            agreement=found[0],
            kappa=found[1],
        )
        for threshold, found in (
            (FALLBACK, agreement_and_kappa(evidence, at_half, majority)),
            (released.threshold, agreement_and_kappa(evidence, held_out, majority)),
        )
    )
    return half, chosen


def _share_wrong(label: np.ndarray[tuple[int], np.dtype[np.bool_]], p: FloatArray) -> float:
    return float(np.where(label, 1.0 - p, p).mean())


def _bin_table(evidence: Evidence, majority: LabelArray, fit: SoftMapFit) -> pd.DataFrame:
    """Return the bins with the experts' rate, the map, and the rate shrunken to the map."""
    table = evidence.table(majority)
    at = np.nan_to_num(evidence.bins.p_mean)
    low, high = fit.band(at)
    tally = evidence.tally(majority[None, :])
    mapped = fit.apply(at)
    shrunken = shrunken_rates(*tally, mapped[None, :])[0]
    return table.assign(p_calibrated=mapped, p_calibrated_lo=low, p_calibrated_hi=high, rate_shrunken=shrunken)


def _bin_of(evidence: Evidence, threshold: float) -> int:
    """Return the bin that holds the threshold: the highest one that begins at or below it."""
    return max(0, int(np.searchsorted(np.nan_to_num(evidence.bins.p_low), threshold, side="right")) - 1)


def _agreement(panel: ExpertPanel, settings: CalibrationSettings) -> Agreement | None:
    if panel.n_experts < 2:
        return None
    with warnings.catch_warnings():
        # Its notes become notices of the calibration, which are raised once.
        warnings.simplefilter("ignore", DataWarning)
        return agreement(panel.nominal(), n_bootstrap=settings.n_bootstrap, level=settings.level, seed=settings.seed)
