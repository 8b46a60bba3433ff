"""What a calibration says: the threshold, the labels that follow, and how far to trust them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.agreement import Agreement
from softgold.checks import FloatArray
from softgold.experts.choice import ThresholdRule
from softgold.experts.intervals import ThresholdInterval
from softgold.experts.soft_map import SoftMapFit

__all__ = ["Calibration", "DetectorChecks", "LabelQuality", "ReleasedLabels", "SoftMapOutcome"]


@dataclass(frozen=True)
class LabelQuality:
    """What labels [p >= t] are like at one threshold.

    Attributes:
        threshold: The threshold t.
        positives: Items labelled positive.
        prevalence: Their share of all items.
        expected_wrong: Share of wrong labels to expect if p is right: the mean of 1 - p over positives and p over
            negatives, which is the mean of min(p, 1 - p) at t = 0.5 only.
        expected_wrong_calibrated: The same by p_calibrated; NaN when there is none.
        agreement: Share of the expert-labelled items on which label and experts agree.
        agreement_weighted: The same, weighted by the sampling design: an estimate for the whole data set.
        kappa: Cohen's kappa of label and experts.
    """

    threshold: float
    positives: int
    prevalence: float
    expected_wrong: float
    expected_wrong_calibrated: float
    agreement: float
    agreement_weighted: float
    kappa: float


@dataclass(frozen=True, eq=False)
class ReleasedLabels:
    """The labels, one an item, in the order of the soft labels.

    Attributes:
        item_ids: Ids, length I.
        label: 1 where p >= threshold, int8, shape (I,).
        p: Soft labels, shape (I,).
        p_calibrated: Soft labels mapped to the experts' rate, shape (I,); NaN where no map could be fitted.
        threshold: The threshold.
    """

    item_ids: pd.Index[str]
    label: NDArray[np.int8]
    p: FloatArray
    p_calibrated: FloatArray
    threshold: float

    def to_frame(self) -> pd.DataFrame:
        """Return the table of `labels.csv`: `item, label, p, p_calibrated, threshold`."""
        return pd.DataFrame(
            {
                "item": self.item_ids,
                "label": self.label,
                "p": self.p,
                "p_calibrated": self.p_calibrated,
                "threshold": self.threshold,
            }
        )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> ReleasedLabels:
        """Return the labels that `to_frame` gave."""
        numbers = {name: frame[name].to_numpy(dtype=np.float64) for name in ("label", "p", "p_calibrated", "threshold")}
        if not np.isin(numbers["label"], (0, 1)).all():
            raise ValueError("a label is neither 0 nor 1")
        label, threshold = numbers["label"].astype(np.int8), float(numbers["threshold"][0])
        return cls(pd.Index(frame["item"], dtype="str"), label, numbers["p"], numbers["p_calibrated"], threshold)


@dataclass(frozen=True, eq=False)
class DetectorChecks:
    """How conclusions about detectors (the soft label itself among them) hold; tables of `calibration.detectors`.

    Attributes:
        leave_one_out: Against the panel without each expert, with the threshold of each fold.
        bootstrap: Over experts and items.
        min_votes: On items with at least k votes; `against` says whether experts or released labels judge, `coverage`
            is the share of the whole data set with that many votes. Empty when the numbers of votes are not known.
    """

    leave_one_out: pd.DataFrame
    bootstrap: pd.DataFrame
    min_votes: pd.DataFrame


@dataclass(frozen=True, eq=False)
class SoftMapOutcome:
    """The map from p to p_calibrated, or the reason why there is none."""

    fit: SoftMapFit | None
    refused: str | None = None

    def apply(self, p: FloatArray) -> FloatArray:
        """Return p_calibrated, NaN without a map."""
        return np.full(len(p), np.nan) if self.fit is None else self.fit.map.apply(p)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"refused": self.refused} if self.fit is None else {"refused": None, **self.fit.to_dict()}


@dataclass(frozen=True, eq=False)
class Calibration:
    """A threshold that experts have calibrated, the labels that follow from it, and how sure all of it is.

    Attributes:
        threshold: The threshold t; labels are [p >= t].
        bin: The bin that it belongs to; None when the rule found none and t is 0.5.
        rule: How it was drawn.
        settings: The other settings: `tie, scheme, bins, replicates, level, seed`.
        bins: One row a bin: range and mean of p, items, labelled, expert positives, rate with its Wilson interval.
        labels: The released labels.
        before: What labels at 0.5 are like.
        after: What labels at the threshold are like.
        agreement: Agreement among the experts; None for a single expert.
        experts: One row an expert, the table of `experts_summary.csv`.
        intervals: Intervals of the threshold over panels, over items, and over both, in this order.
        sensitivity: Positives and prevalence for thresholds around t.
        detectors: How conclusions about detectors hold.
        soft_map: The map to p_calibrated.
        warnings: What the owner of the data should know, one sentence each.
    """

    threshold: float
    bin: int | None
    rule: ThresholdRule
    settings: dict[str, Any]
    bins: pd.DataFrame
    labels: ReleasedLabels
    before: LabelQuality
    after: LabelQuality
    agreement: Agreement | None
    experts: pd.DataFrame
    intervals: tuple[ThresholdInterval, ...]
    sensitivity: pd.DataFrame
    detectors: DetectorChecks
    soft_map: SoftMapOutcome
    warnings: tuple[str, ...]

    def interval(self, source: str) -> ThresholdInterval:
        """Return the interval over "panel", "items" or "both"."""
        return next(interval for interval in self.intervals if interval.source == source)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the labels themselves as plain values, for `calibration.json`."""
        return {
            "threshold": self.threshold,
            "bin": self.bin,
            "rule": asdict(self.rule),
            "settings": self.settings,
            "n_items": len(self.labels.item_ids),
            "n_labelled": int(self.bins["labelled"].sum()),
            "n_experts": len(self.experts),
            "before": asdict(self.before),
            "after": asdict(self.after),
            "agreement": None if self.agreement is None else self.agreement.to_dict(),
            "intervals": {interval.source: vars(interval) for interval in self.intervals},
            "soft_map": self.soft_map.to_dict(),
            "bins": _rows(self.bins),
            "experts": _rows(self.experts),
            "sensitivity": _rows(self.sensitivity),
            "leave_one_out": _rows(self.detectors.leave_one_out),
            "bootstrap": _rows(self.detectors.bootstrap),
            "min_votes": _rows(self.detectors.min_votes),
            "warnings": list(self.warnings),
        }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict(orient="records")]
