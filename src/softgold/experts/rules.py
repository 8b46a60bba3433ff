"""Rules that choose a threshold from the experts' answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from softgold.checks import FloatArray, check_choice, check_in_range
from softgold.errors import InputError, UsageError
from softgold.experts.bins import IntArray
from softgold.experts.evidence import Copies, Evidence
from softgold.experts.logit_map import NEVER, crossings, fit_logit_maps, log_odds
from softgold.experts.panel import NO_LABEL, LabelArray
from softgold.experts.soft_map import MapName, fit_isotonic, isotonic_crossing
from softgold.experts.thresholds import CHANGE_RULES, CUT_RULES, TARGET_RULES, bins_reaching, shrunken_rates

Rule = Literal[
    "map", "bins", "paper", "changepoint", "largest_jump", "onset", "f1", "youden", "precision", "recall"
]  # fmt: skip
FALLBACK = 0.5
"""Threshold when the experts' answers give a rule nothing to go by."""

RULES = ("map", "bins", *CHANGE_RULES, *CUT_RULES, *TARGET_RULES)
COST_RULES = ("map", "bins")
_CHUNK_CELLS = 2_000_000


@dataclass(frozen=True)
class ThresholdRule:
    """How a threshold is chosen.

    Attributes:
        name: One of `RULES`.
        target: Precision or recall to reach, for the rules of that name.
        of: Take the mean soft label of "all" items of the chosen bin, or of the "sampled" ones that experts labelled.
        cut: Experts' rate from which on an item is labelled positive, under the rules `map` and `bins`.
        map: The map that the rules `map` and `bins` use.
    """

    name: Rule = "map"
    target: float | None = None
    of: Literal["all", "sampled"] = "all"
    cut: float = FALLBACK
    map: MapName = "logit"

    def __post_init__(self) -> None:
        """Check every field."""
        check_choice(self.name, RULES, "rule")
        check_choice(self.of, ("all", "sampled"), "of")
        check_in_range(self.cut, 0, 1, "cut", ends="open")
        if (self.target is not None) != (self.name in TARGET_RULES):
            verb = "needs a" if self.target is None else "takes no"
            raise UsageError(f"rule {self.name!r} {verb} target")
        if self.target is not None:
            check_in_range(self.target, 0, 1, "target", ends="open")
        if self.cut != FALLBACK and self.name not in COST_RULES:
            raise UsageError(f"rule {self.name!r} takes no cost; the rules {' and '.join(COST_RULES)} do")


def cut_of_cost(cost: tuple[float, float]) -> float:
    """Return the rate from which on "positive" is the cheaper label, given the costs of a false one of each kind.

    >>> cut_of_cost((1, 4))  # a false negative costs four times as much
    0.2
    """
    false_positive, false_negative = (float(value) for value in cost)
    if not (np.isfinite([false_positive, false_negative]).all() and min(false_positive, false_negative) > 0):
        raise UsageError(f"cost must be two positive numbers, FP:FN; got {false_positive:g}:{false_negative:g}")
    return false_positive / (false_positive + false_negative)


@dataclass(frozen=True, eq=False)
class Choice:
    """Thresholds of M replicates, shape (M,), and whether the rule found them, shape (M,).

    Where it found none the threshold is `FALLBACK`, or NaN when a target of precision or recall was not reached.
    """

    threshold: FloatArray
    found: np.ndarray[tuple[int], np.dtype[np.bool_]]


def choose(
    evidence: Evidence,
    rule: ThresholdRule,
    labels: LabelArray,
    copies: Copies = None,
    centre: FloatArray | None = None,
) -> Choice:
    """Apply a rule to M replicates of labels.

    Args:
        evidence: The labelled items.
        rule: The rule.
        labels: Shape (M, N), `NO_LABEL` allowed.
        copies: How often each item was drawn in each replicate, shape (M, N); once each if None.
        centre: Centre of the logit map's prior in each replicate, shape (M, 2); zeros if None.
    """
    if rule.name == "map":
        thresholds = _map_thresholds(evidence, rule, labels, copies, centre)
        return Choice(thresholds, np.ones(len(labels), dtype=np.bool_))
    candidates = evidence.candidates(rule.of)
    if rule.name == "bins":
        bins = _bins_rule(evidence, rule, labels, copies, centre)
        # The map speaks for bins without labels too, and those have no mean of sampled items.
        candidates = np.where(np.isnan(candidates), evidence.bins.p_mean, candidates)
        return Choice(_threshold_at(bins, candidates, NEVER), bins >= 0)
    if rule.name in CHANGE_RULES:
        bins = CHANGE_RULES[rule.name](*evidence.tally(labels, copies))
    else:
        cuts = evidence.cuts(candidates, labels, copies)
        bins = CUT_RULES[rule.name](cuts) if rule.target is None else TARGET_RULES[rule.name](cuts, rule.target)
    return Choice(_threshold_at(bins, candidates, FALLBACK if rule.target is None else np.nan), bins >= 0)


def choose_one(evidence: Evidence, rule: ThresholdRule, labels: LabelArray) -> tuple[float, bool]:
    """Return the threshold for labels of shape (N,), and whether the rule found one; an unreached target raises."""
    choice = choose(evidence, rule, labels[None, :])
    threshold = float(choice.threshold[0])
    if np.isnan(threshold):
        cuts = evidence.cuts(evidence.candidates(rule.of), labels[None, :])
        bounds = cuts.precision_bound if rule.name == "precision" else cuts.recall_bound
        best = f"{np.nanmax(bounds):.3f}" if not np.isnan(bounds).all() else "not defined"
        raise InputError(
            f"no threshold reaches a {rule.name} of {rule.target:g}: the best lower end of a 95 % interval is "
            f"{best}; ask for less, or label more items"
        )
    return threshold, bool(choice.found[0])


def row_chunks(total: int, width: int) -> Iterator[slice]:
    """Cut `total` replicates of `width` numbers into slices that fit into memory."""
    step = max(1, _CHUNK_CELLS // max(width, 1))
    return (slice(start, min(start + step, total)) for start in range(0, total, step))


def _threshold_at(bins: IntArray, candidates: FloatArray, otherwise: float) -> FloatArray:
    return np.where(bins < 0, otherwise, candidates[bins])


def _map_thresholds(
    evidence: Evidence, rule: ThresholdRule, labels: LabelArray, copies: Copies, centre: FloatArray | None
) -> FloatArray:
    if rule.map == "isotonic":
        fits = _isotonic_fits(evidence, labels, copies)
        return np.array([rule.cut if fit is None else isotonic_crossing(*fit, rule.cut) for fit in fits])
    theta, _ = fit_logit_maps(evidence.p, labels, evidence.map_weight(labels, copies), centre)
    return crossings(theta[:, 0], np.exp(theta[:, 1]), rule.cut)


def _bins_rule(
    evidence: Evidence, rule: ThresholdRule, labels: LabelArray, copies: Copies, centre: FloatArray | None
) -> IntArray:
    """Return the lowest bin whose rate, shrunken to the map and made monotone, reaches the cut."""
    at = np.nan_to_num(evidence.bins.p_mean)
    if rule.map == "isotonic":
        fits = _isotonic_fits(evidence, labels, copies)
        mapped = np.stack([at if fit is None else np.interp(at, *fit) for fit in fits])
    else:
        theta, _ = fit_logit_maps(evidence.p, labels, evidence.map_weight(labels, copies), centre)
        mapped = 1 / (1 + np.exp(-(theta[:, :1] + np.exp(theta[:, 1:]) * log_odds(at))))
    return bins_reaching(shrunken_rates(*evidence.tally(labels, copies), mapped), rule.cut)


def _isotonic_fits(
    evidence: Evidence, labels: LabelArray, copies: Copies
) -> Iterator[tuple[FloatArray, FloatArray] | None]:
    """Fit the isotonic map to each replicate; None for one without labels."""
    for row, weight in zip(labels, evidence.design_weight(labels, copies), strict=True):
        used = (row != NO_LABEL) & (weight > 0)
        if not used.any():
            yield None
            continue
        yield fit_isotonic(evidence.p[used], (row[used] == 1).astype(np.float64), weight[used] / weight[used].mean())
