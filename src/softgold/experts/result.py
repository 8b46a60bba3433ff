"""The result of a calibration: the threshold, the labels, and their uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.agreement import Agreement
from softgold.checks import FloatArray
from softgold.experts.intervals import Resampling, ThresholdInterval
from softgold.experts.notices import CalibrationNotice
from softgold.experts.quality import Comparison, ErrorRates, LabelQuality
from softgold.experts.rules import ThresholdRule
from softgold.experts.soft_map import SoftMapFit
from softgold.tables.ids import restore_ids

ROWS_AT_ONCE = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedLabels:
    """The labels, one per item, in the order of the soft labels.

    Attributes:
        item_ids: Ids, length I.
        label: 1 where p >= threshold, int8, shape (I,).
        p: Soft labels, shape (I,).
        p_calibrated: Soft labels mapped to the experts' rate, shape (I,).
        threshold: The threshold.
        p_calibrated_lo: Lower end of the credible band of p_calibrated, shape (I,); None in tables made elsewhere.
        p_calibrated_hi: Upper end, likewise.
    """

    item_ids: pd.Index[str]
    label: NDArray[np.int8]
    p: FloatArray
    p_calibrated: FloatArray
    threshold: float
    p_calibrated_lo: FloatArray | None = None
    p_calibrated_hi: FloatArray | None = None

    def __repr__(self) -> str:
        return f"ReleasedLabels: {int(self.label.sum()):,} of {len(self.label):,} items positive"

    def to_frame(self) -> pd.DataFrame:
        """Return `labels.csv`: `item, label, p, p_calibrated, p_calibrated_lo, p_calibrated_hi, threshold`."""
        nothing = np.full(len(self.p), np.nan)
        return pd.DataFrame(
            {
                "item": restore_ids(self.item_ids),
                "label": self.label,
                "p": self.p,
                "p_calibrated": self.p_calibrated,
                "p_calibrated_lo": nothing if self.p_calibrated_lo is None else self.p_calibrated_lo,
                "p_calibrated_hi": nothing if self.p_calibrated_hi is None else self.p_calibrated_hi,
                "threshold": self.threshold,
            }
        )

    def parts(self, size: int = ROWS_AT_ONCE) -> Iterator[ReleasedLabels]:
        """Give the labels some rows at a time, for tables that are written row by row."""
        for start in range(0, max(len(self.p), 1), size):
            rows = slice(start, start + size)
            ends = (None if end is None else end[rows] for end in (self.p_calibrated_lo, self.p_calibrated_hi))
            columns = (self.label[rows], self.p[rows], self.p_calibrated[rows])
            yield ReleasedLabels(self.item_ids[rows], *columns, self.threshold, *ends)

    @classmethod
    def from_parts(cls, parts: Iterable[ReleasedLabels]) -> ReleasedLabels:
        """Put labels below each other."""
        every = list(parts)
        first, *others = every
        columns: dict[str, Any] = {}
        for name in ("label", "p", "p_calibrated", "p_calibrated_lo", "p_calibrated_hi"):
            some = [getattr(part, name) for part in every]
            columns[name] = None if some[0] is None else np.concatenate(some)
        return replace(first, item_ids=first.item_ids.append([part.item_ids for part in others]), **columns)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> ReleasedLabels:
        """Rebuild the labels from the table that `to_frame` returns; at least one row.

        >>> frame = pd.DataFrame({"item": ["x"], "label": [1], "p": [0.8], "p_calibrated": [0.6],
        ...                       "p_calibrated_lo": [0.4], "p_calibrated_hi": [0.7], "threshold": [0.7]})
        >>> ReleasedLabels.from_frame(frame).to_frame().equals(frame.astype({"label": "int8"}))
        True
        """
        numbers = {str(name): frame[name].to_numpy(dtype=np.float64) for name in frame.columns if name != "item"}
        if not np.isin(numbers["label"], (0, 1)).all():
            raise ValueError("a label is neither 0 nor 1")
        return cls(
            item_ids=pd.Index(frame["item"]),
            label=numbers["label"].astype(np.int8),
            p=numbers["p"],
            p_calibrated=numbers["p_calibrated"],
            threshold=float(numbers["threshold"][0]),
            p_calibrated_lo=numbers.get("p_calibrated_lo"),
            p_calibrated_hi=numbers.get("p_calibrated_hi"),
        )


@dataclass(frozen=True, eq=False)
class DetectorChecks:
    """How far conclusions about detectors hold, the soft label itself among them.

    Attributes:
        leave_one_out: Against the panel without each expert, with the threshold of each fold.
        bootstrap: Over experts and items.
        min_votes: On items with at least k votes; `against` says whether experts or released labels judge, `coverage`
            is the share of the whole data set with that many votes. Empty when the numbers of votes are not known.
    """

    leave_one_out: pd.DataFrame
    bootstrap: pd.DataFrame
    min_votes: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings(Resampling):
    """How a calibration was computed.

    Attributes:
        scheme: How the bins were cut.
        bins: Number of bins; fewer than asked for where soft labels are equal.
        group_name: What the groups are, such as "patient"; empty where single items were redrawn.
        n_groups: Number of groups among the labelled items; 0 where single items were redrawn.
    """

    scheme: Literal["rank", "width", "neyman", "paper"]
    bins: int
    group_name: str = ""
    n_groups: int = 0

    @property
    def redrawn(self) -> str:
        """What the resamples redraw beside experts, in words."""
        return f"{self.n_groups:,} groups ({self.group_name})" if self.group_name else "items"


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """A threshold calibrated with experts, the labels that follow from it, and their uncertainty.

    Attributes:
        threshold: The threshold t; labels are [p >= t].
        bin: The bin that holds it; None when the rule found no threshold and 0.5 is taken.
        rule: How it was chosen.
        settings: The other settings.
        bins: One row per bin: range and mean of p, items, labelled, expert positives, rate with its Wilson interval,
            the map there, and the rate shrunken to the map.
        labels: The released labels.
        before: What labels cut at 0.5 are like.
        after: What labels at the threshold are like.
        comparison: Whether labels at the threshold are better or worse than at 0.5.
        rules: What every rule would give, cross-validated.
        error_rates: Accuracy, sensitivity and specificity of the released labels.
        agreement: Agreement among the experts; None with fewer than two.
        experts: One row per expert, the table of `experts_summary.csv`.
        intervals: Intervals of the threshold over panels, over items, and over both, in this order.
        sensitivity: Positives and prevalence for thresholds around t.
        detectors: How far conclusions about detectors hold.
        soft_map: The map to p_calibrated.
        notices: Problems found, the most serious first.

    Example:
        >>> from softgold import calibrate, fit, simulate
        >>> study = simulate(n_items=300, n_annotators=20, seed=0)
        >>> labels = fit(study.votes, engine="coordinate").posterior.soft_labels()
        >>> result = calibrate(labels, study.experts, n_bootstrap=50)
        >>> result.rule.name, result.n_labelled, result.labels.to_frame().columns[:3].tolist()
        ('map', 300, ['item', 'label', 'p'])
    """

    threshold: float
    bin: int | None
    rule: ThresholdRule
    settings: CalibrationSettings
    bins: pd.DataFrame
    labels: ReleasedLabels
    before: LabelQuality
    after: LabelQuality
    comparison: Comparison
    rules: pd.DataFrame
    error_rates: ErrorRates
    agreement: Agreement | None
    experts: pd.DataFrame
    intervals: tuple[ThresholdInterval, ...]
    sensitivity: pd.DataFrame
    detectors: DetectorChecks
    soft_map: SoftMapFit
    notices: tuple[CalibrationNotice, ...]

    def __repr__(self) -> str:
        return f"Calibration: threshold {self.threshold:.4g} from {self.n_labelled:,} labelled items; {self.labels}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems found, one sentence each."""
        return tuple(notice.text for notice in self.notices)

    @property
    def n_labelled(self) -> int:
        """Number of items with an expert label."""
        return int(self.bins["labelled"].sum())

    def interval(self, source: str) -> ThresholdInterval:
        """Return the interval over "panel", "items" or "both"."""
        return next(interval for interval in self.intervals if interval.source == source)
