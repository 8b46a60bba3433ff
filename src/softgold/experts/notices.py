"""Problems found in a calibration, one typed notice each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from softgold.agreement import Agreement
from softgold.agreement.wording import TENTATIVE
from softgold.experts.logit_map import NEVER
from softgold.experts.quality import Comparison, LabelQuality
from softgold.experts.rules import FALLBACK, ThresholdRule
from softgold.experts.soft_map import MIN_PER_CLASS, MapChoice, SoftMapFit
from softgold.experts.thresholds import CHANGE_RULES

NoticeKind = Literal["worse", "labels", "threshold", "bins", "experts", "agreement", "map", "unsure", "unknown"]
# Below this many labels the sentence about few labels appears.
FEW_LABELS = 10


@dataclass(frozen=True)
class CalibrationNotice:
    """A problem found.

    Attributes:
        kind: "worse": labels at the threshold are worse than at 0.5; "labels": there are few or none; "threshold": the
            rule found none, or it labels everything alike; "bins": bins without labels, or a falling rate; "experts":
            few of them, or they disagree; "agreement": a note on the coefficient; "map": the map does not help, or
            another than asked for; "unsure": answers that are no labels; "unknown": items that were left out.
        text: One sentence.
    """

    kind: NoticeKind
    text: str


def find_notices(
    *,
    rule: ThresholdRule,
    threshold: float,
    found: bool,
    bins: pd.DataFrame,
    qualities: tuple[LabelQuality, LabelQuality],
    comparison: Comparison,
    n_experts: int,
    n_unsure: Mapping[str, int],
    agreement: Agreement | None,
    fit: SoftMapFit,
    map_asked: MapChoice,
    unknown: Sequence[str],
) -> tuple[CalibrationNotice, ...]:
    """Return the notices, the most serious first; `qualities` at 0.5 and at the threshold."""
    notes = [] if agreement is None else [CalibrationNotice("agreement", note) for note in agreement.notes]
    return (
        *_of_comparison(comparison, qualities, rule),
        *_of_labels(fit),
        *_of_threshold(rule, threshold, found, bins),
        *_of_bins(bins),
        *_of_experts(n_experts, agreement),
        *notes,
        *_of_map(fit, map_asked),
        *_of_unsure(n_unsure),
        *_of_unknown(unknown),
    )


def _of_comparison(
    comparison: Comparison, qualities: tuple[LabelQuality, LabelQuality], rule: ThresholdRule
) -> Iterator[CalibrationNotice]:
    before, after = qualities
    if not comparison.is_worse:
        return
    what = "agree less with the experts than labels cut at 0.5"
    if rule.cut != FALLBACK:
        what = "cost more by the experts than labels cut at 0.5"
    advice = "take the rule map, or cut at 0.5" if rule.name != "map" else "cut at 0.5"
    yield CalibrationNotice(
        "worse",
        f"labels at the threshold {after.threshold:.4f} (rule {rule.name}) {what}: {after.agreement:.1%} against "
        f"{before.agreement:.1%}, cross-validated, and more than noise explains (z = {comparison.z:.1f}); {advice}",
    )


def _of_labels(fit: SoftMapFit) -> Iterator[CalibrationNotice]:
    total = fit.n_positive + fit.n_negative
    if total == 0:
        yield CalibrationNotice("labels", "there are no expert labels: p_calibrated is p, and the threshold is the cut")
    elif total < FEW_LABELS:
        yield CalibrationNotice(
            "labels", f"only {total} items have an expert label; look at the width of the intervals"
        )
    elif not fit.n_positive or not fit.n_negative:
        kind = "negative" if not fit.n_positive else "positive"
        yield CalibrationNotice("labels", f"every expert label is {kind}: the map knows one class only")


def _of_threshold(
    rule: ThresholdRule, threshold: float, found: bool, bins: pd.DataFrame
) -> Iterator[CalibrationNotice]:
    if not found and rule.name == "bins":
        yield CalibrationNotice("threshold", f"no bin reaches the rate {rule.cut:g}: every item is labelled negative")
    elif not found:
        what = (
            "the experts' rate of positives does not increase with the soft label"
            if rule.name in CHANGE_RULES
            else "no threshold does better than chance against the experts"
        )
        yield CalibrationNotice("threshold", f"{what}, so the threshold is {FALLBACK}")
    elif threshold > bins["p_high"].max():
        above = "above every soft label" if threshold < NEVER else "never reached"
        yield CalibrationNotice("threshold", f"the threshold is {above}: every item is labelled negative")
    elif threshold <= bins["p_low"].min():
        yield CalibrationNotice("threshold", "the threshold is below every soft label: every item is labelled positive")


def _of_bins(bins: pd.DataFrame) -> Iterator[CalibrationNotice]:
    empty = int(((bins["labelled"] == 0) & (bins["items"] > 0)).sum())
    labelled = bins[bins["labelled"] > 0]
    if empty and len(labelled):
        yield CalibrationNotice(
            "bins", f"{empty} of {len(bins)} bins have no expert label; weighted estimates leave their items out"
        )
    steps = np.diff(labelled["rate"].to_numpy())
    if (steps < 0).any():
        before = int(steps.argmin())
        last, this = labelled.iloc[before], labelled.iloc[before + 1]
        if this["rate_hi"] < last["rate_lo"]:
            yield CalibrationNotice(
                "bins",
                f"the experts' rate of positives falls from {last['rate']:.2f} in bin {int(last['bin'])} to "
                f"{this['rate']:.2f} in bin {int(this['bin'])}, more than noise explains; look at these items",
            )


def _of_experts(n_experts: int, agreement: Agreement | None) -> Iterator[CalibrationNotice]:
    if n_experts == 1:
        yield CalibrationNotice("experts", "one expert: how far experts agree is unknown, and no interval includes it")
    elif agreement is not None and agreement.alpha < TENTATIVE:
        yield CalibrationNotice(
            "experts",
            f"the experts disagree: alpha {agreement.alpha:.2f} is below {TENTATIVE}, so conclusions from their labels "
            "are not reliable",
        )


def _of_map(fit: SoftMapFit, asked: MapChoice) -> Iterator[CalibrationNotice]:
    if asked == "isotonic" and fit.name != "isotonic":
        yield CalibrationNotice(
            "map",
            f"the isotonic map needs {MIN_PER_CLASS} positive and {MIN_PER_CLASS} negative labels, and there are "
            f"{fit.n_positive} and {fit.n_negative}; the logit map is used",
        )
    if fit.log_loss.is_worse(fit.name):
        yield CalibrationNotice(
            "map",
            f"p_calibrated does worse than p: cross-validated log loss {fit.log_loss.of(fit.name):.3f} against "
            f"{fit.log_loss.p:.3f}",
        )


def _of_unsure(n_unsure: Mapping[str, int]) -> Iterator[CalibrationNotice]:
    counts = {name: count for name, count in n_unsure.items() if count}
    if counts:
        shown = ", ".join(f"{str(name)[:60]} {count}" for name, count in list(counts.items())[:5])
        more = f" and {len(counts) - 5} more experts" if len(counts) > 5 else ""
        total = sum(counts.values())
        yield CalibrationNotice("unsure", f"{total} answers are unsure and count as no label: {shown}{more}")


def _of_unknown(unknown: Sequence[str]) -> Iterator[CalibrationNotice]:
    if unknown:
        yield CalibrationNotice("unknown", f"{len(unknown)} items that experts answered are unknown and were left out")
