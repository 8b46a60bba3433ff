"""What to expect from a sheet before any expert has seen it: how sure the threshold and the error rate will be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from softgold.checks import FloatArray, check_in_range
from softgold.experts.evidence import Evidence
from softgold.experts.logit_map import LogitMap, fit_logit_maps
from softgold.experts.rules import FALLBACK
from softgold.experts.sampling import ExpertSample


@dataclass(frozen=True)
class Expectation:
    """What to expect from the labels of a sheet, if the soft labels are right.

    Attributes:
        n_labels: Labels that each expert is asked for.
        n_effective: Their effective number under the design weights.
        threshold_low: Lower end of the interval to expect for the threshold.
        threshold_high: Upper end.
        error_rate: Share of labels cut at 0.5 that would be wrong.
        error_low: Lower end of the interval to expect for it.
        error_high: Upper end.
        level: Level of the intervals.
    """

    n_labels: int
    n_effective: float
    threshold_low: float
    threshold_high: float
    error_rate: float
    error_low: float
    error_high: float
    level: float

    def sentence(self) -> str:
        """Say it in words."""
        return (
            f"{self.n_labels:,} labels per expert; if the soft labels are right, expect the {100 * self.level:g} % "
            f"interval of the threshold to be about {self.threshold_low:.2f} to {self.threshold_high:.2f}, and of the "
            f"error rate {100 * self.error_low:.1f} to {100 * self.error_high:.1f} %"
        )


def expect(sample: ExpertSample, *, cut: float = FALLBACK, level: float = 0.95) -> Expectation:
    """Return what to expect from the labels of a sample.

    The threshold: the posterior of the logit map with each label at its expected value p. The error rate of labels cut
    at 0.5: e = sum over strata of (N_h / I) e_h with variance sum (N_h / I)^2 e_h (1 - e_h) / n_h, e_h the mean of
    min(p, 1 - p) over the sampled items of stratum h.

    >>> import pandas as pd
    >>> from softgold.experts.sampling import sample_for_experts
    >>> soft = pd.DataFrame({"item": range(1000), "p": np.linspace(0.01, 0.99, 1000)})
    >>> few, many = (expect(sample_for_experts(soft, budget)) for budget in (25, 400))
    >>> few.threshold_low < many.threshold_low < 0.5 < many.threshold_high < few.threshold_high
    True
    """
    check_in_range(cut, 0, 1, "cut", ends="open")
    check_in_range(level, 0, 1, "level", ends="open")
    evidence = Evidence(sample.p, sample.bin, sample.bins)
    weight = evidence.map_weight(np.zeros((1, len(sample)), dtype=np.int8))
    low, high = _expected_map(sample.p, weight).crossing_interval(cut, level)
    rate, deviation = _error_rate(sample)
    reach = float(ndtri((1 + level) / 2)) * deviation
    return Expectation(
        n_labels=len(sample),
        n_effective=float(weight.sum()),
        threshold_low=low,
        threshold_high=min(high, 1.0),
        error_rate=rate,
        error_low=max(0.0, rate - reach),
        error_high=min(1.0, rate + reach),
        level=level,
    )


def _expected_map(p: FloatArray, weight: FloatArray) -> LogitMap:
    """Return the identity with the posterior that labels of these items would give it."""
    # A label of weight w and rate p is w p positives and w (1 - p) negatives.
    both = np.concatenate([weight * p, weight * (1 - p)], axis=1)
    labels = np.repeat([[1, 0]], len(p), axis=1)
    _, precision = fit_logit_maps(np.concatenate([p, p]), labels, both)
    covariance = np.linalg.inv(precision[0])
    sd = np.sqrt(np.diag(covariance))
    return LogitMap(0.0, 1.0, float(sd[0]), float(sd[1]), float(covariance[0, 1] / (sd[0] * sd[1])))


def _error_rate(sample: ExpertSample) -> tuple[float, float]:
    """Return the expected error rate of labels cut at 0.5, and the standard deviation of its estimate."""
    n_drawn, n_items = sample.sampled_per_bin, sample.bins.n_items
    drawn = n_drawn > 0
    wrong = np.minimum(sample.p, 1 - sample.p)
    by_bin = np.bincount(sample.bin, weights=wrong, minlength=len(n_items))[drawn] / n_drawn[drawn]
    share = n_items[drawn] / n_items[drawn].sum()
    # A stratum of which every item is labelled has no sampling error.
    rest = 1 - n_drawn[drawn] / n_items[drawn]
    variance = (share**2 * by_bin * (1 - by_bin) / n_drawn[drawn] * rest).sum()
    return float(share @ by_bin), float(np.sqrt(variance))
