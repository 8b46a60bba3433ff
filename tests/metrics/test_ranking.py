"""Ranking metrics: worked examples, scikit-learn, edges, and what bad input is told."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from softgold.errors import InputError, UsageError
from softgold.metrics import (
    Ranking,
    auc_pr,
    precision_at_k,
    recall_at_k,
    soft_auroc,
    soft_average_precision,
    soft_precision_recall_curve,
    soft_roc_curve,
)

nan = math.nan

# scores, p, (half, exclude, include, pairs), average precision, half of the reversed scores
WORKED = [
    ([0.9, 0.8, 0.7, 0.6, 0.5], [1, 0.75, 0.5, 0.25, 0], (0.9, 0.85, 0.95, 0.9444444444444444), 0.875, 0.1),
    (
        [0.9, 0.8, 0.7, 0.6, 0.5],
        [0.2, 0.9, 0.4, 0.7, 0.1],
        (0.5644122383252818, 0.500805152979066, 0.6280193236714976, 0.5738007380073801),
        0.5069565217391304,
        0.4355877616747182,
    ),
    (
        [0.9, 0.8, 0.8, 0.8, 0.5, 0.5],
        [0.6, 0.9, 0.1, 0.4, 0.3, 0.8],
        (0.5, 0.44271412680756395, 0.557285873192436, 0.5),
        0.5252688172043011,
        0.5,
    ),
    ([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], (0.75, 0.75, 0.75, 0.75), 0.8333333333333334, 0.25),
    (
        [1, 1, 1, 1],
        [0.1, 0.2, 0.8, 0.4],
        (0.5, 0.41333333333333333, 0.5866666666666667, 0.5),
        0.375,
        0.5,
    ),
    ([0.3, 0.2, 0.1], [0.5, 0.5, 0.5], (0.5, 0.3333333333333333, 0.6666666666666666, 0.5), 0.5, 0.5),
    ([0.3, 0.2], [1, 1], (nan, nan, nan, nan), 1.0, nan),
    ([0.3, 0.2], [0, 0], (nan, nan, nan, nan), nan, nan),
]


@pytest.mark.parametrize(("scores", "p", "areas", "precision", "reverse"), WORKED)
def test_worked_examples(scores, p, areas, precision, reverse):
    rules = ("half", "exclude", "include", "pairs")
    assert_allclose([soft_auroc(p, scores, diagonal=rule) for rule in rules], areas, rtol=0, atol=1e-12)
    assert_allclose(soft_average_precision(p, scores), precision, rtol=0, atol=1e-12)
    assert_allclose(soft_auroc(p, -np.asarray(scores)), reverse, rtol=0, atol=1e-12)


TIED_SCORES = [0.9, 0.8, 0.8, 0.8, 0.4, 0.3, 0.2, 0.1]
TIED_LABELS = [1, 0, 1, 1, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("k", "ties", "precision", "recall"),
    [
        (3, "stable", 0.6666666666666666, 0.5),
        (3, "expected", 0.7777777777777778, 0.5833333333333334),
        (20, "stable", 0.5, 1.0),
        (20, "expected", 0.5, 1.0),
        (1, "expected", 1.0, 0.25),
        (4, "expected", 0.75, 0.75),
    ],
)
def test_precision_and_recall_at_k(k, ties, precision, recall):
    assert_allclose(precision_at_k(TIED_LABELS, TIED_SCORES, k, ties=ties), precision, rtol=0, atol=1e-12)
    assert_allclose(recall_at_k(TIED_LABELS, TIED_SCORES, k, ties=ties), recall, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_ties_at_the_cut_are_the_mean_over_all_orders():
    rng = np.random.default_rng(5)
    orders = [rng.permutation(8) for _ in range(20_000)]
    labels, scores = np.array(TIED_LABELS), np.array(TIED_SCORES)
    for k in (2, 3):
        drawn = [precision_at_k(labels[order], scores[order], k, ties="stable") for order in orders[:4000]]
        assert abs(np.mean(drawn) - precision_at_k(labels, scores, k)) < 4 * np.std(drawn) / math.sqrt(len(drawn))


@pytest.mark.parametrize(
    ("y", "scores", "area", "step"),
    [
        ([0, 1, 1, 0, 0, 1, 0, 0], [0.95, 0.9, 0.7, 0.7, 0.5, 0.4, 0.3, 0.1], 0.4, 0.5),
        ([0, 1], [0.9, 0.1], 0.25, 0.5),
    ],
)
def test_auc_pr_is_a_trapezoid_and_not_average_precision(y, scores, area, step):
    assert_allclose(auc_pr(y, scores), area, rtol=0, atol=1e-12)
    assert_allclose(soft_average_precision(y, scores), step, rtol=0, atol=1e-12)


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-4, 4), st.sampled_from([0.5, 1.0, 2.0, 3.0])), min_size=2, max_size=40
)


@pytest.mark.slow
@given(rows=ROWS)
@settings(max_examples=200)
def test_binary_labels_give_scikit_learn_ties_and_weights_included(rows):
    y, scores, weights = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if 0 < y.sum() < len(y):
        for w in (None, weights):
            assert_allclose(
                soft_auroc(y, scores, sample_weight=w), roc_auc_score(y, scores, sample_weight=w), atol=1e-14
            )
            assert_allclose(
                soft_average_precision(y, scores, sample_weight=w),
                average_precision_score(y, scores, sample_weight=w),
                atol=1e-14,
            )


@pytest.mark.parametrize("seed", range(5))
def test_soft_labels_give_scikit_learn_on_the_expanded_data(seed):
    """Every item as a positive of weight w p and a negative of weight w (1 - p)."""
    rng = np.random.default_rng(seed)
    p, scores, w = rng.random(300), rng.integers(0, 40, 300).astype(float), rng.random(300)
    y, twice, weights = np.repeat([1, 0], 300), np.tile(scores, 2), np.append(w * p, w * (1 - p))
    assert_allclose(soft_auroc(p, scores, sample_weight=w), roc_auc_score(y, twice, sample_weight=weights), rtol=1e-12)
    assert_allclose(
        soft_average_precision(p, scores, sample_weight=w),
        average_precision_score(y, twice, sample_weight=weights),
        rtol=1e-12,
    )
    fpr, tpr, thresholds = roc_curve(y, twice, sample_weight=weights, drop_intermediate=False)
    ours = soft_roc_curve(p, scores, sample_weight=w)
    assert_allclose(np.column_stack([ours.fpr, ours.tpr]), np.column_stack([fpr, tpr]), atol=1e-12)
    assert_allclose(ours.thresholds, thresholds)
    precision, recall, thresholds = precision_recall_curve(y, twice, sample_weight=weights)
    curve = soft_precision_recall_curve(p, scores, sample_weight=w)
    assert_allclose(curve.precision, precision[::-1], atol=1e-12)
    assert_allclose(curve.recall, recall[::-1], atol=1e-12)
    assert_allclose(curve.thresholds[1:], thresholds[::-1])


def test_areas_under_the_curves_are_the_metrics():
    rng = np.random.default_rng(3)
    p, scores = rng.random(200), rng.integers(0, 30, 200).astype(float)
    roc = soft_roc_curve(p, scores)
    assert_allclose(np.trapezoid(roc.tpr, roc.fpr), soft_auroc(p, scores), rtol=1e-12)
    curve = soft_precision_recall_curve(p, scores)
    steps = np.diff(curve.recall) @ curve.precision[1:]
    assert_allclose(steps, soft_average_precision(p, scores), rtol=1e-12)
    assert_allclose(np.trapezoid(curve.precision, curve.recall), auc_pr(p, scores), rtol=1e-12)


def brute_force(p, scores, diagonal):
    """The definition, pair by pair."""
    p = np.asarray(p)
    above = np.greater.outer(scores, scores) + 0.5 * np.equal.outer(scores, scores)
    np.fill_diagonal(above, {"half": 0.5, "exclude": 0.0, "include": 1.0, "pairs": 0.0}[diagonal])
    pairs = np.outer(p, 1 - p)
    below = pairs.sum() - (np.trace(pairs) if diagonal == "pairs" else 0)
    return (above * pairs).sum() / below


@pytest.mark.parametrize("diagonal", ["half", "exclude", "include", "pairs"])
def test_every_convention_is_its_sum_over_pairs(diagonal):
    rng = np.random.default_rng(9)
    for _ in range(20):
        p, scores = rng.random(25), rng.integers(0, 8, 25).astype(float)
        assert_allclose(soft_auroc(p, scores, diagonal=diagonal), brute_force(p, scores, diagonal), rtol=1e-12)


def test_one_ranking_serves_every_metric():
    rng = np.random.default_rng(1)
    p, scores, w = rng.random(50), rng.integers(0, 12, 50).astype(float), rng.integers(0, 4, 50).astype(float)
    ranking = Ranking.from_scores(p, scores, w)
    assert ranking.auroc("pairs") == soft_auroc(p, scores, diagonal="pairs", sample_weight=w)
    assert ranking.average_precision() == soft_average_precision(p, scores, sample_weight=w)
    assert ranking.precision_at(7) == precision_at_k(p, scores, 7, sample_weight=w)
    assert ranking.recall_at(7, "stable") == recall_at_k(p, scores, 7, ties="stable", sample_weight=w)
    assert ranking.auc_pr() == auc_pr(p, scores, sample_weight=w)
    assert_allclose(ranking.n_positive + ranking.n_negative, w.sum())
    assert len(ranking) == (w > 0).sum()


def test_nothing_to_rank_is_undefined():
    assert math.isnan(soft_auroc([], []))
    assert math.isnan(soft_average_precision([], []))
    assert math.isnan(precision_at_k([], [], 3))
    assert math.isnan(recall_at_k([0, 0], [1, 2], 1))
    assert precision_at_k([0, 0], [1, 2], 1) == 0
    assert math.isnan(auc_pr([0, 0], [1, 2]))
    assert math.isnan(soft_auroc([0.3], [1], diagonal="pairs"))
    assert soft_auroc([0.3], [1]) == 0.5
    assert np.isnan(soft_roc_curve([1, 1], [1, 2]).fpr[1:]).all()
    assert np.isnan(soft_precision_recall_curve([0, 0], [1, 2]).recall[1:]).all()


def test_series_and_lists_are_arrays():
    p, scores = [0.2, 0.9, 0.4], [0.5, 0.6, 0.1]
    expected = soft_auroc(p, scores)
    assert soft_auroc(pd.Series(p, index=[7, 8, 9]), pd.Series(scores)) == expected
    assert soft_auroc(tuple(p), np.array(scores, dtype=np.float32)) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, math.nan], [1, 2]), "p must be finite, got nan at position 1"),
        (([0.5, 1.2], [1, 2]), r"p must lie in \[0, 1\], got 1.2 at position 1"),
        (([0.5, -0.1], [1, 2]), r"p must lie in \[0, 1\]"),
        (([0.5, 1], [1, math.inf]), "scores must be finite, got inf at position 1"),
        (([0.5, 1], [1, 2, 3]), "scores must have 2 rows"),
        (([[0.5], [1]], [1, 2]), "p must have 1 dimension"),
    ],
)
@pytest.mark.parametrize("metric", [soft_auroc, soft_average_precision, soft_roc_curve, auc_pr])
def test_bad_input_is_named(metric, arguments, message):
    with pytest.raises(InputError, match=message):
        metric(*arguments)


def test_bad_weights_and_options_are_named():
    with pytest.raises(InputError, match="sample_weight must not be negative"):
        soft_auroc([0, 1], [1, 2], sample_weight=[1, -1])
    with pytest.raises(InputError, match="sample_weight must have 2 rows"):
        soft_auroc([0, 1], [1, 2], sample_weight=[1])
    with pytest.raises(UsageError, match="diagonal must be one of half, exclude, include, pairs"):
        soft_auroc([0, 1], [1, 2], diagonal="none")
    with pytest.raises(UsageError, match="ties must be one of"):
        precision_at_k([0, 1], [1, 2], 1, ties="first")
    with pytest.raises(UsageError, match="k must be a whole number of at least 1, got 0"):
        precision_at_k([0, 1], [1, 2], 0)
    with pytest.raises(UsageError, match="k must be a whole number"):
        recall_at_k([0, 1], [1, 2], 1.5)
