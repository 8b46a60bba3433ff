"""Ranking metrics with soft labels: AUROC, average precision, their curves, precision and recall at k.

Soft labels p are the probabilities that the items are positive. An item of weight w counts as w copies of itself, and
equal scores are never ordered by accident: a tied pair counts half, a tied group enters a curve at once. For several
metrics of the same scores build one `Ranking` and ask it: it sorts once.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from softgold.metrics.ranked import Diagonal, PrecisionRecallCurve, Ranking, RocCurve, Ties


def soft_auroc(
    p: ArrayLike, scores: ArrayLike, *, diagonal: Diagonal = "half", sample_weight: ArrayLike | None = None
) -> float:
    """Area under the ROC curve with soft labels.

    With S the sum of p_j (1 - p_i) over pairs j != i with j scored above i (half of it where they tie),
    d = sum p_i (1 - p_i), n+ = sum p_i and n- = sum (1 - p_i):

    - `half`: (S + d/2) / (n+ n-), the AUROC of the data in which every item appears as a positive of weight p and as a
      negative of weight 1 - p; chance is 0.5 and reversing the scores gives one minus the value;
    - `exclude`: S / (n+ n-); `include`: (S + d) / (n+ n-), the two lines of the paper's equation 4;
    - `pairs`: S / (n+ n- - d), the expected number of concordant pairs over the expected number of pairs.

    All four are the ordinary AUROC for binary labels; none is its expectation for soft ones.

    Args:
        p: Soft labels in [0, 1], shape (n,).
        scores: Model scores, higher for positive, shape (n,).
        diagonal: What a pair of an item with itself counts.
        sample_weight: Copies of each item, shape (n,). Copies are items of their own: a weight of 2 doubles d, so that
            all four agree with the duplicated rows, and only `half` does not depend on the scale of the weights.

    Returns:
        The area; NaN without positives, without negatives, or (`pairs`) without a pair of two items.

    Reference:
        Lionetti et al., Clinical Uncertainty Impacts Machine Learning Evaluations, definition 1.

    >>> p, scores = [0.2, 0.9, 0.4, 0.7, 0.1], [0.9, 0.8, 0.7, 0.6, 0.5]
    >>> [round(soft_auroc(p, scores, diagonal=rule), 6) for rule in ("half", "exclude", "include", "pairs")]
    [0.564412, 0.500805, 0.628019, 0.573801]
    """
    return Ranking.from_scores(p, scores, sample_weight).auroc(diagonal)


def soft_average_precision(p: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Average precision with soft labels: the sum of P_g (R_g - R_{g-1}) over groups g of equal scores, best first.

    P_g is the share of positives (sum of p) among the items down to g, R_g the share of all positives found there.

    Args:
        p, scores, sample_weight: As in `soft_auroc`.

    Returns:
        The average precision; NaN without positives, 1 without negatives.

    Reference:
        Lionetti et al., Clinical Uncertainty Impacts Machine Learning Evaluations, definition 2. It is below the
        expected average precision of labels drawn from p, which would put p where this has p squared.

    >>> round(soft_average_precision([0.2, 0.9, 0.4, 0.7, 0.1], [0.9, 0.8, 0.7, 0.6, 0.5]), 6)
    0.506957
    """
    return Ranking.from_scores(p, scores, sample_weight).average_precision()


def soft_roc_curve(p: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None) -> RocCurve:
    """Soft ROC curve: at each distinct score t, the shares of negatives and positives scored t or higher.

    Args:
        p, scores, sample_weight: As in `soft_auroc`.

    Returns:
        The points from (0, 0) at threshold infinity to (1, 1); a rate without its class is NaN.

    Reference:
        Lionetti et al., equation 2. The trapezoid under this curve is `soft_auroc` with `diagonal="half"`.

    >>> curve = soft_roc_curve([1, 0.5, 0], [0.9, 0.8, 0.1])
    >>> curve.tpr.round(3).tolist(), curve.fpr.round(3).tolist()
    ([0.0, 0.667, 1.0, 1.0], [0.0, 0.0, 0.333, 1.0])
    """
    return Ranking.from_scores(p, scores, sample_weight).roc_curve()


def soft_precision_recall_curve(
    p: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> PrecisionRecallCurve:
    """Soft precision-recall curve: at each distinct score t, precision and recall of the items scored t or higher.

    Args:
        p, scores, sample_weight: As in `soft_auroc`.

    Returns:
        The points at descending thresholds, after an artificial first one (recall 0, precision 1 at infinity); recall
        is NaN without positives.

    Reference:
        Lionetti et al., equation 3.

    >>> soft_precision_recall_curve([1, 0.5, 0], [0.9, 0.8, 0.1]).precision.tolist()
    [1.0, 1.0, 0.75, 0.5]
    """
    return Ranking.from_scores(p, scores, sample_weight).precision_recall_curve()


def auc_pr(p: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Trapezoid under the precision-recall curve, the artificial point (0, 1) included.

    This is not average precision: it interpolates between operating points and may lie above or below it.

    Args:
        p, scores, sample_weight: As in `soft_auroc`.

    Returns:
        The area; NaN without positives.

    Reference:
        Mosquera et al., Understanding the impact of class imbalance on the performance of chest x-ray image
        classifiers, section 2.2.3, where AUC-PR has this meaning.

    >>> auc_pr([0, 1], [0.9, 0.1]), soft_average_precision([0, 1], [0.9, 0.1])
    (0.25, 0.5)
    """
    return Ranking.from_scores(p, scores, sample_weight).auc_pr()


def precision_at_k(
    p: ArrayLike, scores: ArrayLike, k: int, *, ties: Ties = "expected", sample_weight: ArrayLike | None = None
) -> float:
    """Share of positives among the k items with the highest scores.

    Args:
        p, scores, sample_weight: As in `soft_auroc`.
        k: Size of the list; a list longer than the data is cut to n.
        ties: `expected`: mean over the orders of the items that tie at the cut; `stable`: their order in the input.

    Returns:
        The precision; NaN without items.

    Reference:
        CleanPatrick, section 4 (P@k).

    >>> y, scores = [1, 0, 1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.8, 0.8, 0.4, 0.3, 0.2, 0.1]
    >>> round(precision_at_k(y, scores, 3), 4), round(precision_at_k(y, scores, 3, ties="stable"), 4)
    (0.7778, 0.6667)
    """
    return Ranking.from_scores(p, scores, sample_weight).precision_at(k, ties)


def recall_at_k(
    p: ArrayLike, scores: ArrayLike, k: int, *, ties: Ties = "expected", sample_weight: ArrayLike | None = None
) -> float:
    """Share of all positives that are among the k items with the highest scores.

    Args:
        p, scores, sample_weight: As in `soft_auroc`.
        k: Size of the list.
        ties: `expected`: mean over the orders of the items that tie at the cut; `stable`: their order in the input.

    Returns:
        The recall; NaN without positives.

    Reference:
        CleanPatrick, section 4 (R@k).

    >>> round(recall_at_k([1, 0, 1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.8, 0.8, 0.4, 0.3, 0.2, 0.1], 3), 4)
    0.5833
    """
    return Ranking.from_scores(p, scores, sample_weight).recall_at(k, ties)
