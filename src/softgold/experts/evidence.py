"""The experts' answers by bin: counts, design weights, and agreement of a cut with the experts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import FloatArray
from softgold.experts.bins import BinTable, IntArray
from softgold.experts.logit_map import effective_weight
from softgold.experts.panel import NO_LABEL, LabelArray
from softgold.experts.thresholds import Cuts
from softgold.metrics.intervals import wilson_interval

Copies = NDArray[np.generic] | None


@dataclass(frozen=True, eq=False)
class Design:
    """Strata that the labelled items were drawn from, where these are not the bins.

    Attributes:
        stratum: Strata of the N labelled items, shape (N,).
        n_items: Items of the whole data set in each of H strata, shape (H,).
    """

    stratum: IntArray
    n_items: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Expert-labelled items with their soft labels and bins.

    Methods work on M replicates of the labels at once, arrays of shape (M, N) with `NO_LABEL` allowed; `copies` says
    how often each item was drawn in each replicate, shape (M, N), once each if None.

    Attributes:
        p: Soft labels of the N labelled items, shape (N,).
        bin: Their bins, shape (N,).
        bins: What the K bins hold of the whole data set.
        strata: How the items were drawn, where not from the bins.
        groups: Number of the group of each item from 0, such as its patient, shape (N,); None without groups.
    """

    p: FloatArray
    bin: IntArray
    bins: BinTable
    strata: Design | None = None
    groups: IntArray | None = None

    @property
    def design(self) -> Design:
        """How the items were drawn."""
        return Design(self.bin, self.bins.n_items) if self.strata is None else self.strata

    @property
    def member(self) -> FloatArray:
        """Which item is in which bin, 0 or 1, shape (N, K)."""
        return np.equal(self.bin[:, None], np.arange(len(self.bins))).astype(np.float64)

    def candidates(self, of: str) -> FloatArray:
        """Mean soft label of each bin, shape (K,); NaN for a bin without (labelled) items."""
        if of == "all":
            return self.bins.p_mean
        return BinTable.from_items(self.p, self.bin, self.bins.scheme, len(self.bins)).p_mean

    def tally(self, labels: LabelArray, copies: Copies = None) -> tuple[FloatArray, FloatArray]:
        """Return expert positives and labelled items per bin, shapes (M, K)."""
        mass = _mass(labels, copies)
        return (mass * (labels == 1)) @ self.member, mass @ self.member

    def design_weight(self, labels: LabelArray, copies: Copies = None) -> FloatArray:
        """Return how many items each label stands for, shape (M, N): size of the stratum / labels in it.

        The other labels of a stratum make up for missing ones; a stratum without labels has no weight.
        """
        mass, design = _mass(labels, copies), self.design
        labelled = mass @ np.equal(design.stratum[:, None], np.arange(len(design.n_items))).astype(np.float64)
        per_label = np.divide(design.n_items, labelled, out=np.zeros_like(labelled), where=labelled > 0)
        return np.asarray(mass * per_label[:, design.stratum])

    def map_weight(self, labels: LabelArray, copies: Copies = None) -> FloatArray:
        """Return the design weights scaled to the effective number of labels, shape (M, N)."""
        return effective_weight(self.design_weight(labels, copies), _mass(labels, copies))

    def cuts(self, candidates: FloatArray, labels: LabelArray, copies: Copies = None) -> Cuts:
        """Return how labels [p >= t] do against the experts at each candidate t, weighted by the design."""
        mass, weight = _mass(labels, copies), self.design_weight(labels, copies)
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

    def table(self, labels: LabelArray) -> pd.DataFrame:
        """Return the bins with the experts' answers, one row per bin; `labels` of shape (N,)."""
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


def _mass(labels: LabelArray, copies: Copies) -> FloatArray:
    labelled = (labels != NO_LABEL).astype(np.float64)
    return labelled if copies is None else np.asarray(labelled * copies)


def _effective_size(weight: FloatArray, squares: FloatArray) -> FloatArray:
    return np.divide(weight**2, squares, out=np.zeros_like(weight), where=squares > 0)
