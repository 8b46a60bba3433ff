"""The experts' answers laid over the bins, and the threshold that a rule draws from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import FloatArray, check_choice, check_in_range
from softgold.errors import UsageError
from softgold.experts.panel import NO_LABEL, LabelArray
from softgold.experts.sampling import BinTable
from softgold.experts.thresholds import CHANGE_RULES, CUT_RULES, TARGET_RULES, Cuts, IntArray, Rule
from softgold.metrics.intervals import wilson_interval

__all__ = ["FALLBACK", "RULES", "Choice", "Evidence", "ThresholdRule"]

FALLBACK = 0.5
"""Threshold when the experts' answers give a rule nothing to go by."""

RULES = (*CHANGE_RULES, *CUT_RULES, *TARGET_RULES)


@dataclass(frozen=True)
class ThresholdRule:
    """How a threshold is drawn from the bins.

    Attributes:
        name: One of `RULES`.
        target: Precision or recall to reach, for the rules of that name.
        of: Take the mean soft label of "all" items of the chosen bin, or of the "sampled" ones that experts labelled.
    """

    name: Rule = "changepoint"
    target: float | None = None
    of: Literal["all", "sampled"] = "all"

    def __post_init__(self) -> None:
        check_choice(self.name, RULES, "rule")
        check_choice(self.of, ("all", "sampled"), "of")
        if (self.target is not None) != (self.name in TARGET_RULES):
            verb = "needs a" if self.target is None else "takes no"
            raise UsageError(f"rule {self.name!r} {verb} target")
        if self.target is not None:
            check_in_range(self.target, 0, 1, "target", ends="open")


@dataclass(frozen=True, eq=False)
class Choice:
    """Chosen bins and thresholds of M replicates, each of shape (M,).

    Where the rule found nothing the bin is -1; the threshold is then `FALLBACK`, or NaN when a target of precision or
    recall was asked for and not reached.
    """

    bin: IntArray
    threshold: FloatArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """Expert-labelled items with their soft labels and bins.

    Attributes:
        p: Soft labels of the N labelled items, shape (N,).
        bin: Their bins, shape (N,).
        bins: What the K bins hold of the whole data set.
    """

    p: FloatArray
    bin: IntArray
    bins: BinTable

    @property
    def member(self) -> FloatArray:
        """Which item is in which bin, 0 or 1, shape (N, K)."""
        return np.equal(self.bin[:, None], np.arange(len(self.bins))).astype(np.float64)

    def candidates(self, of: str) -> FloatArray:
        """Mean soft label of each bin, shape (K,); NaN for a bin without (labelled) items."""
        if of == "all":
            return self.bins.p_mean
        return BinTable.of(self.p, self.bin, len(self.bins), self.bins.scheme).p_mean

    def tally(self, labels: LabelArray, copies: NDArray[np.generic] | None = None) -> tuple[FloatArray, FloatArray]:
        """Return expert positives and labelled items per bin, shapes (M, K).

        Args:
            labels: Labels of M replicates, shape (M, N), `NO_LABEL` allowed.
            copies: How often each item was drawn in each replicate, shape (M, N); once each if None.
        """
        labelled = (labels != NO_LABEL).astype(np.float64)
        mass = labelled if copies is None else labelled * copies
        return (mass * (labels == 1)) @ self.member, mass @ self.member

    def choose(self, rule: ThresholdRule, labels: LabelArray, copies: NDArray[np.generic] | None = None) -> Choice:
        """Apply a rule to M replicates of labels, shape (M, N); arguments as in `tally`."""
        if rule.name in CHANGE_RULES:
            chosen = CHANGE_RULES[rule.name](*self.tally(labels, copies))
        else:
            cuts = self.cuts(self.candidates(rule.of), labels, copies)
            chosen = CUT_RULES[rule.name](cuts) if rule.target is None else TARGET_RULES[rule.name](cuts, rule.target)
        nothing = FALLBACK if rule.target is None else np.nan
        threshold = np.where(chosen < 0, nothing, self.candidates(rule.of)[chosen])
        return Choice(chosen, threshold)

    def best_bound(self, rule: ThresholdRule, labels: LabelArray) -> float:
        """Return the highest lower bound of precision or recall that any candidate has; `labels` of shape (N,)."""
        cuts = self.cuts(self.candidates(rule.of), labels[None, :])
        bounds = cuts.precision_bound if rule.name == "precision" else cuts.recall_bound
        return float(np.nanmax(bounds)) if not np.isnan(bounds).all() else float("nan")

    def cuts(self, candidates: FloatArray, labels: LabelArray, copies: NDArray[np.generic] | None = None) -> Cuts:
        """Return how labels [p >= t] do against the experts at each candidate t, weighted by the design."""
        mass = (labels != NO_LABEL).astype(np.float64)
        mass = mass if copies is None else mass * copies
        weight = self.design_weight(mass)
        hit = labels == 1
        above = (self.p[:, None] >= candidates).astype(np.float64)
        size = weight * weight / np.maximum(mass, 1.0)  # an item drawn twice is two labels of half its weight
        predicted, positive = weight @ above, (weight * hit).sum(axis=1, keepdims=True)
        return Cuts(
            true_positive=(weight * hit) @ above,
            predicted=predicted,
            positive=np.broadcast_to(positive, predicted.shape),
            total=np.broadcast_to(weight.sum(axis=1, keepdims=True), predicted.shape),
            predicted_size=_effective_size(predicted, size @ above),
            positive_size=np.broadcast_to(
                _effective_size(positive, (size * hit).sum(axis=1, keepdims=True)), predicted.shape
            ),
        )

    def design_weight(self, mass: FloatArray) -> FloatArray:
        """Return how many items of the data set each label stands for, shape (M, N): bin size / labels in the bin.

        Labels that are missing (mass 0) are made up for by the others of their bin. Bins without any label are not
        spoken for by anybody.
        """
        labelled = mass @ self.member
        per_label = np.divide(self.bins.n_items, labelled, out=np.zeros_like(labelled), where=labelled > 0)
        return np.asarray(mass * per_label[:, self.bin])

    def table(self, labels: LabelArray) -> pd.DataFrame:
        """Return the bins with the experts' answers, one row a bin; `labels` of shape (N,)."""
        positives, labelled = (row[0] for row in self.tally(labels[None, :]))
        wilson = [wilson_interval(k, n) for k, n in zip(positives, labelled, strict=True)]
        return pd.DataFrame(
            {
                "bin": np.arange(len(self.bins)),
                "p_low": self.bins.p_low,
                "p_high": self.bins.p_high,
                "p_mean": self.bins.p_mean,
                "p_mean_sampled": self.candidates("sampled"),
                "items": self.bins.n_items,
                "labelled": labelled.astype(np.int64),
                "positives": positives.astype(np.int64),
                "rate": np.divide(positives, labelled, out=np.full(len(labelled), np.nan), where=labelled > 0),
                "rate_lo": [interval.low for interval in wilson],
                "rate_hi": [interval.high for interval in wilson],
            }
        )


def _effective_size(weight: FloatArray, squares: FloatArray) -> FloatArray:
    return np.divide(weight**2, squares, out=np.zeros_like(weight), where=squares > 0)
