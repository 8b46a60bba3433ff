"""How good labels are against the experts: cross-validated, weighted by the design, beside labels cut at 0.5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import FloatArray
from softgold.experts.cross_validation import BoolArray, mean_over_folds
from softgold.experts.evidence import Evidence
from softgold.experts.intervals import Resampling, draw_items, draw_labels
from softgold.experts.panel import NO_LABEL, ExpertPanel, LabelArray
from softgold.experts.rules import FALLBACK, ThresholdRule, choose, row_chunks
from softgold.metrics.intervals import percentile_interval, wilson_interval

# A difference from 0.5 counts as more than noise beyond this many standard errors.
NOISE = 1.96
# Rules that need no more than the labels, in the order of the table that compares them.
COMPARED = ("map", "bins", "changepoint", "largest_jump", "onset", "f1", "youden")


@dataclass(frozen=True)
class LabelQuality:
    """Quality of the labels [p >= t] at one threshold.

    Attributes:
        threshold: The threshold t.
        positives: Items labelled positive.
        prevalence: Their share of all items.
        expected_wrong: Share of wrong labels to expect if p is right: the mean of 1 - p over positives and p over
            negatives.
        expected_wrong_calibrated: The same by p_calibrated.
        agreement: Share of labels that agree with the experts, weighted by the sampling design; at a threshold that
            was chosen from the experts' labels, each of them is judged by folds that did not see it. NaN without.
        kappa: Cohen's kappa of the same.
    """

    threshold: float
    positives: int
    prevalence: float
    expected_wrong: float
    expected_wrong_calibrated: float
    agreement: float
    kappa: float


@dataclass(frozen=True)
class Comparison:
    """Labels at the threshold against labels cut at 0.5, on the same held-out labels with the same weights.

    Attributes:
        gain: Agreement at the threshold minus agreement at 0.5; weighted by cost where costs were given.
        z: The gain in standard errors, sum(w d) / sqrt(sum(w^2 d^2)), with groups in place of items where given.
        is_worse: Whether labels at the threshold are worse beyond noise.
    """

    gain: float
    z: float
    is_worse: bool


@dataclass(frozen=True)
class Rate:
    """A share with its interval; NaN where it is not defined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ErrorRates:
    """How the released labels do against the experts, as estimates for the whole data set.

    Attributes:
        accuracy: Share of labels that agree with the experts.
        sensitivity: Share of the experts' positives that are labelled positive.
        specificity: Share of the experts' negatives that are labelled negative.
        level: Level of the intervals.
        sentence: All of it in words, for a data sheet.
    """

    accuracy: Rate
    sensitivity: Rate
    specificity: Rate
    level: float
    sentence: str


def held_out_labels(evidence: Evidence, rule: ThresholdRule, majority: LabelArray, masks: BoolArray) -> FloatArray:
    """Return how often each item is labelled positive by thresholds that did not see its expert label, shape (N,).

    `masks` are those of `fold_masks`; without folds (fewer than two labels) no threshold sees any label.
    """
    if not len(masks):
        masks = np.ones((1, len(majority)), dtype=np.bool_)
    unseen = np.where(masks, NO_LABEL, majority).astype(np.int8)
    thresholds = np.concatenate(
        [choose(evidence, rule, unseen[rows]).threshold for rows in row_chunks(len(unseen), len(majority))]
    )
    above = np.where(np.isnan(thresholds)[:, None], np.nan, evidence.p >= thresholds[:, None])
    return mean_over_folds(above, masks)


def compare(evidence: Evidence, held_out: FloatArray, majority: LabelArray, cut: float) -> Comparison:
    """Compare held-out labels with labels cut at 0.5; an error costs 2 cut (false positive) or 2 (1 - cut)."""
    defined = ~np.isnan(held_out)
    if not defined.any():
        return Comparison(float("nan"), float("nan"), False)
    weight = evidence.design_weight(majority[None, :])[0][defined]
    positive = majority[defined] == 1
    price = np.where(positive, 2 * (1 - cut), 2 * cut)
    at_half = (evidence.p[defined] >= FALLBACK).astype(np.float64)
    difference = price * np.where(positive, held_out[defined] - at_half, at_half - held_out[defined])
    parts = weight * difference
    if evidence.groups is not None:  # items of a group err together
        parts = np.bincount(evidence.groups[defined], weights=parts)
    scale = np.sqrt((parts**2).sum())
    z = float((weight * difference).sum() / scale) if scale > 0 else 0.0
    return Comparison(float(np.average(difference, weights=weight)), z, z < -NOISE)


def agreement_and_kappa(evidence: Evidence, labels: FloatArray, majority: LabelArray) -> tuple[float, float]:
    """Return agreement of labels in [0, 1] with the experts and Cohen's kappa, weighted by the design; NaN without."""
    defined = ~np.isnan(labels)
    if not defined.any():
        return float("nan"), float("nan")
    weight = evidence.design_weight(majority[None, :])[0][defined]
    share, label = weight / weight.sum(), labels[defined]
    positive = (majority[defined] == 1).astype(np.float64)
    agreement = float(share @ (positive * label + (1 - positive) * (1 - label)))
    ours, theirs = float(share @ label), float(share @ positive)
    by_chance = ours * theirs + (1 - ours) * (1 - theirs)
    return agreement, (agreement - by_chance) / (1 - by_chance) if by_chance < 1 else float("nan")


def rule_table(
    evidence: Evidence, majority: LabelArray, all_p: FloatArray, chosen: ThresholdRule, masks: BoolArray
) -> pd.DataFrame:
    """Compare the rules: `rule, threshold, positives, agreement, agreement_at_half, gain, z`, cross-validated."""
    rules = [ThresholdRule(name, of=chosen.of, map=chosen.map) for name in COMPARED]  # type: ignore[arg-type]
    rules = [chosen if rule.name == chosen.name else rule for rule in rules]
    if chosen.name not in COMPARED:
        rules.append(chosen)
    rows = []
    for rule in rules:
        held_out = held_out_labels(evidence, rule, majority, masks)
        at_half = np.where(np.isnan(held_out), np.nan, evidence.p >= FALLBACK)
        found = compare(evidence, held_out, majority, rule.cut)
        threshold = float(choose(evidence, rule, majority[None, :]).threshold[0])
        rows.append(
            {
                "rule": rule.name,
                "threshold": threshold,
                "positives": int((all_p >= threshold).sum()),
                "agreement": agreement_and_kappa(evidence, held_out, majority)[0],
                "agreement_at_half": agreement_and_kappa(evidence, at_half, majority)[0],
                "gain": found.gain,
                "z": found.z,
            }
        )
    return pd.DataFrame(rows)


def error_rates(
    evidence: Evidence,
    panel: ExpertPanel,
    held_out: FloatArray,
    n_items: int,
    settings: Resampling,
) -> ErrorRates:
    """Estimate accuracy, sensitivity and specificity, with intervals over items and panels.

    Items are drawn anew within their strata (or whole groups of them) and experts with replacement, at once. An
    interval is the hull of the bootstrap's percentiles and of Wilson's interval at the effective number of labels,
    which few labels without an error need: their bootstrap has no spread.
    """
    rng = np.random.default_rng(settings.seed)
    known = np.where(np.isnan(held_out), 0.0, 1.0)
    label = np.nan_to_num(held_out)
    drawn = []
    for rows in row_chunks(settings.n_bootstrap, len(label)):
        size = rows.stop - rows.start
        answers = draw_labels(panel, panel.n_experts, size, settings.tie, rng)
        drawn.append(_rates(evidence, answers, draw_items(evidence, size, rng) * known, label))
    replicates = np.concatenate(drawn)
    majority = panel.majority(settings.tie)[None, :]
    values = _rates(evidence, majority, known[None, :], label)[0]
    sizes = _effective_labels(evidence.design_weight(majority, known[None, :])[0], majority[0])
    accuracy, sensitivity, specificity = (
        _rate(value, column, size, settings.level)
        for value, column, size in zip(values, replicates.T, sizes, strict=True)
    )
    sentence = _sentence((accuracy, sensitivity, specificity), panel, n_items, settings)
    return ErrorRates(accuracy, sensitivity, specificity, settings.level, sentence)


def _rates(evidence: Evidence, labels: LabelArray, copies: NDArray[np.generic], label: FloatArray) -> FloatArray:
    """Return accuracy, sensitivity and specificity of M replicates, shape (M, 3)."""
    weight = evidence.design_weight(labels, copies)
    positive = labels == 1
    caught, spared = (weight * positive) @ label, (weight * ~positive) @ (1 - label)
    positives, negatives = (weight * positive).sum(axis=1), (weight * ~positive).sum(axis=1)
    parts = ((caught + spared, positives + negatives), (caught, positives), (spared, negatives))
    return np.column_stack([np.divide(a, b, out=np.full(len(b), np.nan), where=b > 0) for a, b in parts])


def _effective_labels(weight: FloatArray, majority: LabelArray) -> list[float]:
    groups = [np.ones(len(weight), dtype=np.bool_), majority == 1, majority != 1]
    return [float(w.sum() ** 2 / max((w**2).sum(), 1e-300)) for w in (weight[group] for group in groups)]


def _rate(value: float, replicates: FloatArray, size: float, level: float) -> Rate:
    if np.isnan(value):
        return Rate(value, value, value)
    wilson = wilson_interval(min(max(value, 0.0), 1.0) * size, size, level=level)
    low, high = percentile_interval(replicates, level)
    return Rate(float(value), float(np.nanmin([low, wilson.low])), float(np.nanmax([high, wilson.high])))


def _sentence(rates: tuple[Rate, Rate, Rate], panel: ExpertPanel, n_items: int, settings: Resampling) -> str:
    if not len(panel.item_ids):
        return "The labels were not compared with experts: there are no expert labels."
    who = "one expert" if panel.n_experts == 1 else f"the majority of {panel.n_experts} experts"
    parts = [
        f"{name} {100 * rate.value:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f} %)"
        if not np.isnan(rate.value)
        else f"{name} unknown (no such label)"
        for name, rate in zip(("accuracy", "sensitivity", "specificity"), rates, strict=True)
    ]
    return (
        f"Compared with {who} on {len(panel.item_ids):,} of {n_items:,} items, weighted to the whole data set and "
        f"cross-validated, the labels have {', '.join(parts[:2])} and {parts[2]}; {100 * settings.level:g} % intervals "
        f"over {settings.redrawn} and experts."
    )
