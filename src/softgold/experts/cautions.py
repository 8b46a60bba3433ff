"""What the owner of the data should be told about a calibration, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from softgold.agreement import Agreement
from softgold.agreement.wording import TENTATIVE
from softgold.experts.choice import FALLBACK, ThresholdRule
from softgold.experts.result import LabelQuality, SoftMapOutcome
from softgold.experts.thresholds import CHANGE_RULES

__all__ = ["warnings_of"]


def warnings_of(
    rule: ThresholdRule,
    chosen_bin: int | None,
    bins: pd.DataFrame,
    qualities: tuple[LabelQuality, LabelQuality],
    n_experts: int,
    agreement: Agreement | None,
    outcome: SoftMapOutcome,
    ignored: Sequence[str],
) -> tuple[str, ...]:
    """Return the sentences, those of the coefficient of agreement first; `qualities` at 0.5 and at the threshold."""
    sentences = [*agreement.notes] if agreement else []
    sentences += _of_threshold(rule, chosen_bin)
    sentences += _of_ties(chosen_bin, bins)
    sentences += _of_labels(*qualities)
    sentences += _of_bins(bins)
    sentences += _of_experts(n_experts, agreement)
    sentences += _of_map(outcome)
    if ignored:
        sentences.append(f"{len(ignored)} items that experts labelled are unknown and were left out")
    return tuple(sentences)


def _of_threshold(rule: ThresholdRule, chosen_bin: int | None) -> Iterator[str]:
    if chosen_bin is None:
        what = (
            "the experts' rate of positives does not increase with the soft label"
            if rule.name in CHANGE_RULES
            else "no threshold does better than chance against the experts"
        )
        yield f"{what}, so the threshold is {FALLBACK}; calibration says nothing here"


def _of_ties(chosen_bin: int | None, bins: pd.DataFrame) -> Iterator[str]:
    """The items of one soft label may fall on both sides of a bin's edge, and then the edge means nothing."""
    if chosen_bin is None:
        return
    before = bins[(bins["bin"] < chosen_bin) & (bins["labelled"] > 0)]
    edge = bins["p_low"].iloc[chosen_bin]
    if len(before) and before["p_high"].iloc[-1] == edge:
        yield (
            f"items of the same soft label, {edge:.4g}, are in the chosen bin and in the one before it, and which is "
            "where is chance; ask for fewer bins, or look at another rule"
        )


def _of_labels(before: LabelQuality, after: LabelQuality) -> Iterator[str]:
    if after.agreement_weighted < before.agreement_weighted:
        yield (
            f"labels at the threshold agree less with the experts ({after.agreement_weighted:.3f}) than labels at "
            f"{before.threshold} do ({before.agreement_weighted:.3f}); look at another rule, such as f1"
        )


def _of_bins(bins: pd.DataFrame) -> Iterator[str]:
    empty = int(((bins["labelled"] == 0) & (bins["items"] > 0)).sum())
    if empty:
        yield f"{empty} of {len(bins)} bins have no expert label; the rules pass over them"
    labelled = bins[bins["labelled"] > 0]
    steps = np.diff(labelled["rate"].to_numpy())
    if (steps < 0).any():
        before = int(steps.argmin())
        last, this = labelled.iloc[before], labelled.iloc[before + 1]
        noise = "more than" if this["rate_hi"] < last["rate_lo"] else "no more than"
        yield (
            f"the experts' rate of positives is not monotone: it falls most from {last['rate']:.2f} in bin "
            f"{int(last['bin'])} to {this['rate']:.2f} in bin {int(this['bin'])}, {noise} so few labels explain"
        )


def _of_experts(n_experts: int, agreement: Agreement | None) -> Iterator[str]:
    if n_experts < 2:
        yield "fewer than two experts: their agreement is unknown, and the interval over panels is a point by necessity"
    elif agreement is not None and agreement.alpha < TENTATIVE:
        yield (
            f"the experts disagree: alpha {agreement.alpha:.2f} is below {TENTATIVE}, so conclusions from "
            "their labels are not reliable"
        )


def _of_map(outcome: SoftMapOutcome) -> Iterator[str]:
    if outcome.refused is not None:
        yield f"p_calibrated is left empty: {outcome.refused}"
    elif outcome.fit is not None and not outcome.fit.improves:
        fit = outcome.fit
        yield (
            f"p_calibrated does no better than p: cross-validated log loss {fit.log_loss_after[fit.name]:.3f} "
            f"against {fit.log_loss_before:.3f}"
        )
