"""Rules that choose a bin of soft labels from the experts' answers.

Change rules look at the rate of expert positives from bin to bin; cut rules look at how [p >= t] does against the
experts, t being the mean soft label of a bin. All work on arrays of shape (M, K), M replicates of K bins, and return
one bin per replicate, -1 where the rule finds none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from softgold.checks import FloatArray
from softgold.metrics.intervals import wilson_interval

IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# A bin's rate counts as its labels and this many at the rate that the map expects there.
MAP_LABELS = 10.0

# Values that are equal in exact arithmetic count as a tie, and a tie goes to the lowest bin.
_TIE = 1e-9


def changepoint_bins(positives: ArrayLike, labelled: ArrayLike) -> IntArray:
    """Return the bin where the rate of expert positives changes to a higher one, by likelihood.

    Split b explains the bins below b by one Bernoulli rate and those from b on by another; the split of the highest
    likelihood wins among those whose later rate is the higher (CleanPatrick, section 3.4: "the bin where the
    distribution of positive labels starts to increase", in a reading that a single stray positive cannot move).
    Bins without labels are skipped. A tie goes to the lowest bin.

    Args:
        positives: Expert positives per bin, shape (K,) or (M, K).
        labelled: Expert-labelled items per bin, same shape.

    Returns:
        The bin, shape (M,); -1 where no split has a higher rate after it.

    Example:
        >>> changepoint_bins([0, 0, 1, 0, 0, 4, 3, 4], [20] * 8)
        array([5])
        >>> changepoint_bins([3, 3, 2, 1], [20] * 4)
        array([-1])
    """
    hits, counts = _two_rows(positives, labelled)
    hits_before, counts_before = np.cumsum(hits, axis=1)[:, :-1], np.cumsum(counts, axis=1)[:, :-1]
    hits_after = hits.sum(axis=1, keepdims=True) - hits_before
    counts_after = counts.sum(axis=1, keepdims=True) - counts_before
    rises = hits_after * counts_before > hits_before * counts_after
    likelihood = _log_likelihood(hits_before, counts_before) + _log_likelihood(hits_after, counts_after)
    return _first_best(likelihood, rises & (counts[:, 1:] > 0), offset=1)


def largest_jump_bins(positives: ArrayLike, labelled: ArrayLike) -> IntArray:
    """Return the bin whose rate of expert positives rises most over the labelled bin before it.

    Arguments and result as in `changepoint_bins`.

    >>> largest_jump_bins([0, 1, 0, 9, 10], [20] * 5)
    array([3])
    """
    hits, counts = _two_rows(positives, labelled)
    rises, jump = _rises(hits, counts)
    return _first_best(jump, rises, offset=1)


def onset_bins(positives: ArrayLike, labelled: ArrayLike) -> IntArray:
    """Return the first bin whose rate of expert positives is above that of the labelled bin before it.

    The literal reading of CleanPatrick; a single stray positive decides it. Arguments and result as in
    `changepoint_bins`.

    >>> onset_bins([0, 1, 0, 9, 10], [20] * 5)
    array([1])
    """
    hits, counts = _two_rows(positives, labelled)
    rises, _ = _rises(hits, counts)
    return _first_best(np.zeros_like(hits[:, 1:]), rises, offset=1)


def shrunken_rates(positives: FloatArray, labelled: FloatArray, mapped: FloatArray) -> FloatArray:
    """Return the rate of each bin, shrunken to the map and made non-decreasing, shape (M, K).

    A bin of n labels counts as n + 10 labels, 10 of them at the rate that the map expects. The isotonic fit is
    max over i <= k of min over j >= k of the mean of bins i .. j.

    >>> shrunken_rates(np.array([[0.0, 20.0]]), np.array([[20.0, 20.0]]), np.array([[0.3, 0.6]])).round(3).tolist()
    [[0.1, 0.867]]
    """
    weight = labelled + MAP_LABELS
    zero = np.zeros((len(weight), 1))
    hits = np.concatenate([zero, np.cumsum(positives + MAP_LABELS * mapped, axis=1)], axis=1)
    counts = np.concatenate([zero, np.cumsum(weight, axis=1)], axis=1)
    bins = np.arange(weight.shape[1])
    # mean[:, i, j] is the rate of bins i .. j taken together.
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (hits[:, None, 1:] - hits[:, :-1, None]) / (counts[:, None, 1:] - counts[:, :-1, None])
    mean = np.where(bins[:, None] <= bins, mean, np.inf)
    lowest = np.minimum.accumulate(mean[:, :, ::-1], axis=2)[:, :, ::-1]
    reachable = np.where(bins[:, None] <= bins, lowest, -np.inf)
    return np.asarray(reachable.max(axis=1))


def bins_reaching(rates: FloatArray, cut: float) -> IntArray:
    """Return the lowest bin whose rate is at least `cut`, shape (M,); -1 where none is.

    >>> bins_reaching(np.array([[0.1, 0.5, 0.9]]), 0.5)
    array([1])
    """
    return _first_best(np.zeros_like(rates), rates >= cut - _TIE)


@dataclass(frozen=True, eq=False)
class Cuts:
    """How labels [p >= t] do against the experts at each candidate t; shapes (M, K).

    Counts are weighted by the sampling design, so that they estimate those of the whole data set.

    Attributes:
        true_positive: Weight of items at or above t that the experts call positive.
        predicted: Weight of items at or above t.
        positive: Weight of items that the experts call positive.
        total: Weight of all labelled items.
        predicted_size: Effective number of labels at or above t, (sum w)^2 / sum w^2.
        positive_size: Effective number of expert positives.
    """

    true_positive: FloatArray
    predicted: FloatArray
    positive: FloatArray
    total: FloatArray
    predicted_size: FloatArray
    positive_size: FloatArray

    @property
    def precision(self) -> FloatArray:
        """Share of items at or above t that the experts call positive; NaN where there is none."""
        return _ratio(self.true_positive, self.predicted)

    @property
    def recall(self) -> FloatArray:
        """Share of the expert positives that is at or above t; NaN where there is none."""
        return _ratio(self.true_positive, self.positive)

    @property
    def f1(self) -> FloatArray:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self.true_positive, self.predicted + self.positive)

    @property
    def youden(self) -> FloatArray:
        """True positive rate minus false positive rate; NaN where a class is missing."""
        false_positive_rate = _ratio(self.predicted - self.true_positive, self.total - self.positive)
        return self.recall - false_positive_rate

    @property
    def precision_bound(self) -> FloatArray:
        """Lower end of the 95 % Wilson interval of the precision."""
        return _wilson_low(self.precision, self.predicted_size)

    @property
    def recall_bound(self) -> FloatArray:
        """Lower end of the 95 % Wilson interval of the recall."""
        return _wilson_low(self.recall, self.positive_size)

    def f1_bins(self) -> IntArray:
        """Candidate of the highest F1; -1 where there is no true positive at any."""
        return _first_best(self.f1, self.f1 > 0)

    def youden_bins(self) -> IntArray:
        """Candidate of the highest Youden index; -1 where none is above chance."""
        return _first_best(self.youden, self.youden > 0)

    def precision_bins(self, target: float) -> IntArray:
        """Lowest candidate whose precision is at least `target` by the lower end of its Wilson interval."""
        reached = self.precision_bound >= target
        return _first_best(np.zeros_like(self.precision), reached)

    def recall_bins(self, target: float) -> IntArray:
        """Highest candidate whose recall is at least `target` by the lower end of its Wilson interval."""
        reached = self.recall_bound >= target
        from_above = _first_best(np.zeros_like(self.recall), reached[:, ::-1])
        return np.where(from_above < 0, -1, reached.shape[1] - 1 - from_above)


CHANGE_RULES = {
    "paper": changepoint_bins,
    "changepoint": changepoint_bins,
    "largest_jump": largest_jump_bins,
    "onset": onset_bins,
}
CUT_RULES = {"f1": Cuts.f1_bins, "youden": Cuts.youden_bins}
TARGET_RULES = {"precision": Cuts.precision_bins, "recall": Cuts.recall_bins}


def _two_rows(positives: ArrayLike, labelled: ArrayLike) -> tuple[FloatArray, FloatArray]:
    hits = np.atleast_2d(np.asarray(positives, dtype=np.float64))
    counts = np.atleast_2d(np.asarray(labelled, dtype=np.float64))
    return hits, counts


def _log_likelihood(hits: FloatArray, counts: FloatArray) -> FloatArray:
    safe = np.maximum(counts, 1.0)
    return np.asarray(xlogy(hits, hits / safe) + xlogy(counts - hits, (counts - hits) / safe))


def _rises(hits: FloatArray, counts: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Whether, and by how much, each bin's rate is above that of the labelled bin before it; shapes (M, K - 1)."""
    own = np.where(counts > 0, np.arange(counts.shape[1]), -1)
    before = np.maximum.accumulate(own, axis=1)[:, :-1]
    hits_before = np.take_along_axis(hits, np.maximum(before, 0), axis=1)
    counts_before = np.where(before < 0, 0.0, np.take_along_axis(counts, np.maximum(before, 0), axis=1))
    # Cross-multiplied whole numbers decide, so that rounding cannot make a rise of equal rates.
    rises = (hits[:, 1:] * counts_before > hits_before * counts[:, 1:]) & (counts[:, 1:] > 0)
    jump = hits[:, 1:] / np.maximum(counts[:, 1:], 1.0) - hits_before / np.maximum(counts_before, 1.0)
    return rises, jump


def _first_best(value: FloatArray, allowed: BoolArray, offset: int = 0) -> IntArray:
    masked = np.where(allowed, value, -np.inf)
    best = masked.max(axis=1, keepdims=True, initial=-np.inf)
    first = np.argmax(allowed & (masked >= best - _TIE), axis=1) if masked.shape[1] else np.zeros(len(masked), np.intp)
    return np.where(allowed.any(axis=1), first + offset, -1)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    undefined = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    return np.asarray(np.divide(part, whole, out=undefined, where=whole > 0))


def _wilson_low(share: FloatArray, size: FloatArray) -> FloatArray:
    """Lower end of the Wilson interval of a share of `size` labels, which need not be whole; NaN without labels."""
    return np.asarray(np.vectorize(_lower_end, otypes=[np.float64])(np.nan_to_num(share), size))


def _lower_end(share: float, size: float) -> float:
    return wilson_interval(min(share, 1.0) * size, size).low
