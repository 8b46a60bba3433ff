"""Brier scores, logarithmic loss and the F1 threshold against worked examples and scikit-learn."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import brier_score_loss, f1_score
from sklearn.metrics import log_loss as sklearn_log_loss

from softgold.errors import InputError, UsageError
from softgold.metrics import balanced_brier, best_f1_threshold, brier_score, log_loss, stratified_brier

nan = math.nan

# y, predicted, (brier, positive, negative, sum, mean)
WORKED = [
    (
        [1, 0, 0, 1, 0],
        [0.8, 0.3, 0.1, 0.4, 0.6],
        (0.172, 0.19999999999999998, 0.15333333333333332, 0.3533333333333333, 0.17666666666666664),
    ),
    ([1] + 99 * [0], 100 * [0.0], (0.01, 1.0, 0.0, 1.0, 0.5)),
    ([0, 0], [0.1, 0.2], (0.025000000000000005, nan, 0.025000000000000005, nan, nan)),
]


@pytest.mark.parametrize(("y", "predicted", "expected"), WORKED)
def test_worked_brier_scores(y, predicted, expected):
    strata = stratified_brier(y, predicted)
    values = (brier_score(y, predicted), strata.positive, strata.negative, strata.balanced_sum, strata.balanced_mean)
    assert_allclose(values, expected, rtol=0, atol=1e-12)
    assert_allclose(balanced_brier(y, predicted), expected[3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_soft_labels_are_the_expanded_data(seed):
    rng = np.random.default_rng(seed)
    p, q, w = rng.random(80), rng.random(80), rng.random(80)
    y, twice, weights = np.repeat([1, 0], 80), np.tile(q, 2), np.append(w * p, w * (1 - p))
    assert_allclose(brier_score(p, q, sample_weight=w), brier_score_loss(y, twice, sample_weight=weights), rtol=1e-12)
    assert_allclose(log_loss(p, q, sample_weight=w), sklearn_log_loss(y, twice, sample_weight=weights), rtol=1e-12)
    strata = stratified_brier(p, q, sample_weight=w)
    share = (w @ p) / w.sum()
    mixture = share * strata.positive + (1 - share) * strata.negative
    assert_allclose(mixture, brier_score(p, q, sample_weight=w), rtol=1e-12)


def test_without_label_noise_a_score_is_the_distance_to_the_soft_label():
    rng = np.random.default_rng(0)
    p, q = rng.random(60), rng.random(60)
    assert_allclose(brier_score(p, q, label_noise="exclude"), np.mean((p - q) ** 2), rtol=1e-12)
    assert brier_score(p, p, label_noise="exclude") == 0
    assert_allclose(log_loss(p, p, label_noise="exclude"), 0, atol=1e-15)
    assert log_loss(p, q, label_noise="exclude") > 0
    y = (p > 0.5).astype(float)
    assert_allclose(log_loss(y, q, label_noise="exclude"), log_loss(y, q), rtol=1e-12)


def test_constant_half_and_impossible_predictions():
    assert balanced_brier([1, 0, 0], [0.5, 0.5, 0.5]) == 0.5
    assert log_loss([1, 0], [1, 0]) == 0
    assert log_loss([1, 0], [0, 0]) == math.inf
    assert log_loss([0.5], [1]) == math.inf
    assert log_loss([0, 1], [1, 1], sample_weight=[0, 1]) == 0
    assert math.isnan(brier_score([], []))
    assert math.isnan(log_loss([], []))


@pytest.mark.parametrize("seed", range(4))
def test_best_f1_is_the_best_of_all_thresholds(seed):
    rng = np.random.default_rng(seed)
    y, scores = rng.integers(0, 2, 60), rng.integers(0, 15, 60) / 15
    best = best_f1_threshold(y, scores)
    assert_allclose(best.f1, max(f1_score(y, scores >= t) for t in np.unique(scores)), rtol=1e-12)
    assert_allclose(best.f1, f1_score(y, scores >= best.threshold), rtol=1e-12)
    assert_allclose(best.f1, 2 * best.precision * best.recall / (best.precision + best.recall), rtol=1e-12)


def test_equal_maxima_take_the_shortest_list():
    # F1 of the first item alone is 2/3, and so is that of all four.
    assert best_f1_threshold([1, 0, 0, 1], [4, 3, 2, 1]).threshold == 4
    assert math.isnan(best_f1_threshold([0, 0], [1, 2]).threshold)


@pytest.mark.parametrize("metric", [brier_score, log_loss, stratified_brier, balanced_brier])
def test_bad_input_is_named(metric):
    with pytest.raises(InputError, match=r"predicted must lie in \[0, 1\], got 1.5 at position 1"):
        metric([0, 1], [0.5, 1.5])
    with pytest.raises(InputError, match="p must be finite"):
        metric([0, nan], [0.5, 0.5])
    with pytest.raises(InputError, match="predicted must have 2 rows"):
        metric([0, 1], [0.5])


def test_bad_label_noise_is_named():
    for metric in (brier_score, log_loss):
        with pytest.raises(UsageError, match="label_noise must be one of include, exclude"):
            metric([0], [0.5], label_noise="none")
