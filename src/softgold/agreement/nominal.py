"""Krippendorff's alpha with its interval, Fleiss' kappa and percent agreement, for nominal labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from softgold.agreement.kappa import NO_PAIRS, cohen_kappas
from softgold.agreement.labels import FloatArray, NominalLabels, UnitCounts
from softgold.agreement.wording import krippendorff_wording, landis_koch
from softgold.checks import MOST_RESAMPLES, check_in_range, check_positive_int
from softgold.errors import warn

_CHUNK_CELLS = 4_000_000
MOST_PAIRS = 20_000_000
"""Number of pairs of labels above which `agreement` leaves out Cohen's kappa."""


def krippendorff_alpha(labels: NominalLabels | UnitCounts) -> float:
    """Return Krippendorff's alpha for nominal labels; labels may be missing.

    alpha = 1 - D_o / D_e: disagreement within units over the disagreement of all pairable labels pooled
    (Krippendorff, 2004; Tschirschwitz and Rodehorst, Label Convergence, eq. 6). Units with fewer than two labels are
    ignored. Time is O(labels). With one category alpha is 1, and without a unit of two labels it is NaN; both warn.

    >>> rows = [[1, 0, 1, 1, 0, None, 0, 1], [1, 0, 0, 1, 0, 1, 0, None], [1, 1, 1, 1, 0, 1, None, None]]
    >>> round(krippendorff_alpha(NominalLabels.from_matrix(rows)), 4)
    0.5909
    """
    alpha, note = _alpha_and_note(_counts(labels))
    if note:
        warn(note)
    return alpha


def percent_agreement(labels: NominalLabels | UnitCounts) -> float:
    """Return the probability that two raters of a unit agree, mean over units with at least two labels.

    >>> percent_agreement(NominalLabels.from_matrix([[1, 0, 1], [1, 1, None]]))
    0.5
    """
    counts = _counts(labels)
    size = counts.labels_per_unit[counts.pairable]
    if not len(size):
        return float("nan")
    return float(np.mean(counts.agreeing_pairs[counts.pairable] / (size * (size - 1))))


def fleiss_kappa(labels: NominalLabels | UnitCounts) -> float | None:
    """Return Fleiss' kappa (1971), or None if labelled units have one label or different numbers of labels.

    >>> round(fleiss_kappa(NominalLabels.from_matrix([[1, 0, 1, 0], [1, 0, 0, 0]])), 4)
    0.4667
    """
    counts = _counts(labels)
    sizes = np.unique(counts.labels_per_unit[counts.labels_per_unit > 0])
    if len(sizes) != 1 or sizes[0] < 2:
        return None
    shares = counts.category_totals / counts.category_totals.sum()
    by_chance = float((shares**2).sum())
    if np.isclose(by_chance, 1.0, atol=1e-12):
        return 1.0
    return (percent_agreement(counts) - by_chance) / (1.0 - by_chance)


@dataclass(frozen=True)
class AlphaInterval:
    """Percentile bootstrap interval of alpha over units.

    Attributes:
        low: Lower end.
        high: Upper end.
        level: Confidence level.
        n_bootstrap: Number of resamples.
        one_category: Resamples with a single category, where alpha is 1 by definition; if there are many, the upper
            end means little.

    Example:
        >>> from softgold.agreement import NominalLabels, alpha_interval
        >>> alpha_interval(NominalLabels.from_matrix([[1, 0, 1, 1] * 9, [1, 0, 0, 1] * 9]), n_bootstrap=50).level
        0.95
    """

    low: float
    high: float
    level: float
    n_bootstrap: int
    one_category: int


def alpha_interval(
    labels: NominalLabels | UnitCounts, *, n_bootstrap: int = 2000, level: float = 0.95, seed: int = 0
) -> AlphaInterval:
    """Return a percentile bootstrap interval of alpha over units with at least two labels.

    A resample is one multinomial draw over the distinct count vectors, so the cost hardly depends on the number of
    units.

    >>> labels = NominalLabels.from_matrix([[1, 0, 1, 1, 0, 0] * 20, [1, 0, 0, 1, 0, 0] * 20])
    >>> interval = alpha_interval(labels, n_bootstrap=500, seed=1)
    >>> interval.low < krippendorff_alpha(labels) < interval.high
    True
    """
    check_positive_int(n_bootstrap, "n_bootstrap", minimum=2, maximum=MOST_RESAMPLES)
    check_positive_int(seed, "seed", minimum=0)
    check_in_range(level, 0, 1, "level", ends="open")
    counts = _counts(labels)
    if not counts.pairable.any():
        return AlphaInterval(float("nan"), float("nan"), level, n_bootstrap, 0)
    alphas, one_category = _resampled_alphas(_Patterns.of(counts), n_bootstrap, np.random.default_rng(seed))
    low, high = np.percentile(alphas, [50 * (1 - level), 50 * (1 + level)])
    return AlphaInterval(float(low), float(high), level, n_bootstrap, int(one_category.sum()))


@dataclass(frozen=True)
class Agreement:
    """Agreement of raters, in numbers and in words.

    Attributes:
        n_units: Units with at least one label.
        n_pairable: Units with at least two labels; only these carry agreement.
        n_raters: Raters with at least one label.
        n_labels: Labels.
        alpha: Krippendorff's nominal alpha.
        interval: Its bootstrap interval over units.
        landis_koch: Word of Landis and Koch for alpha.
        reliability: Word of Krippendorff for alpha.
        percent: Percent agreement, as a share.
        fleiss: Fleiss' kappa; None if units have different numbers of labels.
        kappas: Cohen's kappa of every pair of raters (`cohen_kappas`); empty above `MOST_PAIRS`.
        notes: Caveats, one sentence each.

    Example:
        >>> from softgold.agreement import NominalLabels, agreement
        >>> result = agreement(NominalLabels.from_matrix([[1, 0, 1, 1], [1, 0, 0, 1]]), n_bootstrap=50)
        >>> result.percent, result.n_raters, result.landis_koch
        (0.75, 2, 'moderate')
    """

    n_units: int
    n_pairable: int
    n_raters: int
    n_labels: int
    alpha: float
    interval: AlphaInterval
    landis_koch: str
    reliability: str
    percent: float
    fleiss: float | None
    kappas: pd.DataFrame
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; undefined numbers stay NaN."""
        values = {name: value for name, value in vars(self).items() if name not in {"interval", "kappas"}}
        return {**values, "interval": asdict(self.interval), "kappas": self.kappas.to_dict(orient="records")}


def agreement(
    labels: NominalLabels, *, n_bootstrap: int = 2000, level: float = 0.95, min_shared: int = 1, seed: int = 0
) -> Agreement:
    """Return the agreement of all raters (alpha, percent, Fleiss) and of each pair (Cohen's kappa).

    Args:
        labels: The labels, in long form.
        n_bootstrap: Resamples of units for the interval of alpha.
        level: Confidence level of the intervals.
        min_shared: Smallest number of shared units for a pair's kappa.
        seed: Seed of the resampling.

    Example:
        >>> result = agreement(NominalLabels.from_matrix([[1, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1, 1]]), n_bootstrap=100)
        >>> round(result.alpha, 3), result.landis_koch, result.reliability, len(result.kappas)
        (0.656, 'substantial', 'not reliable', 3)
    """
    counts = labels.counts
    alpha, note = _alpha_and_note(counts)
    size = counts.labels_per_unit
    too_many = float((size * (size - 1)).sum()) / 2 > MOST_PAIRS
    notes = [note] if note else []
    if too_many:
        notes.append("Cohen's kappa was left out: there are too many pairs of raters; call `cohen_kappas`")
    for sentence in notes:
        warn(sentence)
    return Agreement(
        n_units=int((counts.labels_per_unit > 0).sum()),
        n_pairable=int(counts.pairable.sum()),
        n_raters=len(np.unique(labels.rater_codes)),
        n_labels=len(labels),
        alpha=alpha,
        interval=alpha_interval(counts, n_bootstrap=n_bootstrap, level=level, seed=seed),
        landis_koch=landis_koch(alpha),
        reliability=krippendorff_wording(alpha),
        percent=percent_agreement(counts),
        fleiss=fleiss_kappa(counts),
        kappas=NO_PAIRS if too_many else cohen_kappas(labels, min_shared=min_shared, level=level),
        notes=tuple(notes),
    )


def _counts(labels: NominalLabels | UnitCounts) -> UnitCounts:
    return labels.counts if isinstance(labels, NominalLabels) else labels


def _alpha_and_note(counts: UnitCounts) -> tuple[float, str]:
    """Return alpha, and a caveat or an empty text."""
    pairable = counts.pairable
    if not pairable.any():
        return float("nan"), "alpha is undefined: no unit has labels from two raters"
    totals = counts.category_totals.astype(np.float64)
    alpha, one_category = _alpha_of_sums(_agreement_mass(counts).sum()[None], totals[None, :])
    if one_category[0]:
        return 1.0, "alpha is 1 by definition: all labels have the same category"
    return float(alpha[0]), ""


def _agreement_mass(counts: UnitCounts) -> FloatArray:
    """Return each unit's part of the coincidence matrix's diagonal; 0 for a unit with one label."""
    return np.asarray(counts.agreeing_pairs / np.maximum(counts.labels_per_unit - 1, 1))


def alpha_of_sums(agreeing: FloatArray, size: FloatArray, same: FloatArray) -> FloatArray:
    """Return alpha from sums over units, elementwise; 1 where there is one category or no label.

    Args:
        agreeing: Diagonal of the coincidence matrix, summed.
        size: Pairable labels n.
        same: Sum of n_c (n_c - 1) over the categories c.

    Example:
        >>> alpha_of_sums(np.array([4.0]), np.array([6.0]), np.array([6.0])).round(4).tolist()
        [0.5833]
    """
    pairs = size * (size - 1.0)
    one_category = same == pairs
    observed = 1.0 - agreeing / np.maximum(size, 1.0)
    expected = 1.0 - same / np.where(pairs > 0, pairs, 1.0)
    return np.where(one_category, 1.0, 1.0 - observed / np.where(one_category, 1.0, expected))


def _alpha_of_sums(agreeing: FloatArray, totals: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return alpha from the summed diagonal, shape (B,), and category totals, shape (B, C)."""
    alpha = alpha_of_sums(agreeing, totals.sum(axis=1), (totals * (totals - 1.0)).sum(axis=1))
    return alpha, (totals > 0).sum(axis=1) == 1


@dataclass(frozen=True, eq=False)
class _Patterns:
    """Distinct count vectors of pairable units, with their frequencies."""

    agreeing: FloatArray
    counts: sparse.csr_array
    frequency: NDArray[np.int64]

    @classmethod
    def of(cls, counts: UnitCounts) -> _Patterns:
        kept = np.flatnonzero(counts.pairable)
        matrix = counts.matrix()[kept]
        agreeing = _agreement_mass(counts)[kept]
        if counts.n_categories > 8:  # with many categories, vectors hardly repeat
            return cls(agreeing, matrix, np.ones(len(kept), dtype=np.int64))
        _, first, frequency = np.unique(matrix.toarray(), axis=0, return_index=True, return_counts=True)
        return cls(agreeing[first], matrix[first], frequency.astype(np.int64))


def _resampled_alphas(
    patterns: _Patterns, n_bootstrap: int, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.bool_]]:
    n_units = int(patterns.frequency.sum())
    chance = patterns.frequency / n_units
    step = max(1, _CHUNK_CELLS // len(chance))
    parts = []
    for start in range(0, n_bootstrap, step):
        drawn = rng.multinomial(n_units, chance, size=min(step, n_bootstrap - start)).astype(np.float64)
        parts.append(_alpha_of_sums(drawn @ patterns.agreeing, drawn @ patterns.counts))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
