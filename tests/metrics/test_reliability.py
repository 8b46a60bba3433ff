"""Calibration curves and errors, and Platt scaling, against worked examples and scikit-learn."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.calibration import calibration_curve as sklearn_curve
from sklearn.frozen import FrozenEstimator

from softgold.errors import InputError, UsageError
from softgold.metrics import (
    average_calibration_error,
    calibration_curve,
    expected_calibration_error,
    over_images,
    platt_scaling,
)


@pytest.mark.parametrize(
    ("confidence", "correct", "expected"),
    [
        ([0.02, 0.03, 0.52, 0.54, 0.97, 1.0, 1.0], [0, 0, 1, 0, 1, 1, 0], 0.1261111111111111),
        ([0.9, 0.95, 0.99], [1, 1, 1], 0.053333333333333344),
    ],
)
def test_worked_average_calibration_errors(confidence, correct, expected):
    assert_allclose(average_calibration_error(correct, confidence, n_bins=20), expected, rtol=0, atol=1e-12)


UNCERTAINTY = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.5, 0.6, 0.65, 0.69])
CORRECT = np.array([1, 1, 1, 1, 0, 1, 1, 0, 0, 1])
CONFIDENCE = [
    0.853648192866393,
    0.8346573445988481,
    0.8137399024856128,
    0.7908393401810448,
    0.7390396497965622,
    0.6473633380414725,
    0.6137173035922395,
    0.5433796257506024,
    0.5073622945415955,
    0.4784752303678511,
]


def test_worked_platt_scaling():
    fit = platt_scaling(CORRECT, -UNCERTAINTY)
    assert_allclose((fit.a, fit.b), (-2.89009081484705, -1.9080103364205736), rtol=0, atol=1e-9)
    confidence = fit.transform(-UNCERTAINTY)
    assert_allclose(confidence, CONFIDENCE, rtol=0, atol=1e-9)
    assert_allclose(average_calibration_error(CORRECT, confidence), 0.3838155574526123, rtol=0, atol=1e-9)


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision is its only feature."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("seed", range(5))
def test_platt_scaling_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(50, 20, 200)
    y = (rng.random(200) < 1 / (1 + np.exp(-(scores - 60) / 10))).astype(int)
    fit = platt_scaling(y, scores)
    column = scores[:, None]
    theirs = CalibratedClassifierCV(FrozenEstimator(GivenScores().fit(column, y)), method="sigmoid")
    expected = theirs.fit(column, y).predict_proba(column)[:, 1]
    assert_allclose(fit.transform(scores), expected, atol=2e-4)


def test_platt_scaling_is_at_the_minimum_of_its_likelihood():
    rng = np.random.default_rng(1)
    p, scores, w = rng.random(40), rng.normal(size=40), rng.random(40)
    fit = platt_scaling(p, scores, sample_weight=w)
    positive, negative = w @ p, w @ (1 - p)
    targets = p * (positive + 1) / (positive + 2) + (1 - p) / (negative + 2)
    residual = w * (fit.transform(scores) - targets)
    assert_allclose([residual.sum(), residual @ scores], 0, atol=1e-12)


def test_platt_scaling_without_anything_to_learn_from():
    everything_right = platt_scaling([1, 1, 1], [0.1, 0.5, 0.9])
    assert_allclose(everything_right.transform([0.0, 1.0]), 0.8, rtol=1e-9)
    equal_scores = platt_scaling([1, 0, 0], [2, 2, 2])
    assert_allclose((equal_scores.a, equal_scores.transform([2.0])[0]), (0, (2 / 3 + 2 / 4) / 3), atol=1e-12)
    separated = platt_scaling([0, 0, 1, 1], [-2, -1, 1, 2])
    assert np.isfinite([separated.a, separated.b]).all()
    assert separated.a < 0
    with pytest.raises(InputError, match="at least one row"):
        platt_scaling([], [])


def test_legacy_platt_scaling_is_the_mean_of_the_fits_of_the_images():
    rng = np.random.default_rng(2)
    y, scores, images = rng.integers(0, 2, 60), rng.normal(size=60), np.repeat(["a", "b", "c"], 20)
    fits = [platt_scaling(y[images == name], scores[images == name]) for name in "abc"]
    legacy = platt_scaling(y, scores, pooling="legacy", images=images)
    assert_allclose(legacy.a, np.mean([fit.a for fit in fits]), rtol=1e-12)
    assert_allclose(legacy.b, np.mean([fit.b for fit in fits]), rtol=1e-12)
    assert abs(legacy.a - platt_scaling(y, scores).a) > 1e-3


@pytest.mark.parametrize("options", [{"pooling": "legacy"}, {"images": [1, 1]}, {"pooling": "mean"}])
def test_platt_options_are_checked(options):
    with pytest.raises(UsageError, match=r"images must be given|pooling must be one of"):
        platt_scaling([0, 1], [1, 2], **options)


@pytest.mark.parametrize("n_bins", [5, 10, 20])
def test_equal_width_bins_agree_with_scikit_learn(n_bins):
    rng = np.random.default_rng(n_bins)
    q = rng.random(500)
    y = (rng.random(500) < q).astype(int)
    observed, predicted = sklearn_curve(y, q, n_bins=n_bins)
    curve = calibration_curve(y, q, n_bins=n_bins)
    assert_allclose(curve.observed, observed, rtol=1e-12)
    assert_allclose(curve.predicted, predicted, rtol=1e-12)
    assert_allclose(expected_calibration_error(y, q, n_bins=n_bins), curve.weight @ curve.gap / 500, rtol=1e-12)
    assert_allclose(average_calibration_error(y, q, n_bins=n_bins), curve.gap.mean(), rtol=1e-12)


def test_bins_are_closed_on_the_left_of_edges_just_above_the_round_numbers():
    # The edges are those of [0, 1 + 1e-8], so a round number lies below its edge and 1 lies inside the last bin.
    curve = calibration_curve([0, 0, 1, 1], [0.0, 0.5, 0.5 + 1e-8, 1.0], n_bins=2)
    assert curve.weight.tolist() == [2, 2]
    assert curve.observed.tolist() == [0, 1]


def test_equal_count_bins_share_the_items_and_keep_ties_together():
    rng = np.random.default_rng(0)
    q = rng.random(1000) ** 4
    assert calibration_curve(q, q, n_bins=10, binning="count").weight.tolist() == 10 * [100]
    tied = calibration_curve([0, 1, 1, 0], [0.2, 0.7, 0.7, 0.7], n_bins=4, binning="count")
    assert tied.weight.tolist() == [1, 3]
    assert_allclose(tied.observed, [0, 2 / 3])
    constant = calibration_curve([0, 1], [0.5, 0.5], n_bins=4, binning="count")
    assert constant.observed.tolist() == [0.5]


def test_perfectly_calibrated_soft_labels_have_no_error():
    q = np.random.default_rng(4).random(300)
    for binning in ("width", "count"):
        assert_allclose(expected_calibration_error(q, q, binning=binning), 0, atol=1e-15)
        assert_allclose(average_calibration_error(q, q, binning=binning), 0, atol=1e-15)


def test_error_of_each_image_and_their_mean():
    result = over_images(average_calibration_error, [[1, 1, 1], []], [[0.9, 0.95, 0.99], []], n_bins=20)
    assert_allclose(result.mean, 0.053333333333333344)
    assert result.n_undefined == 1


def test_nothing_and_nonsense():
    assert math.isnan(expected_calibration_error([], []))
    assert len(calibration_curve([], []).gap) == 0
    assert len(calibration_curve([], [], binning="count").gap) == 0
    with pytest.raises(UsageError, match="binning must be one of width, count"):
        calibration_curve([0], [0.5], binning="quantile")
    with pytest.raises(UsageError, match="n_bins must be a whole number"):
        calibration_curve([0], [0.5], n_bins=0)
    with pytest.raises(InputError, match=r"predicted must lie in \[0, 1\]"):
        average_calibration_error([0], [1.1])
