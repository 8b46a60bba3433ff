"""Entropies and their parts, pixel maps, uncertainty of items: worked examples, brute force, known limits."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr
from sklearn.metrics import roc_auc_score

from softgold.errors import InputError, UsageError
from softgold.imaging.segmentation import (
    aggregate_image,
    aggregate_patch,
    aggregate_threshold,
    al_improvement,
    entropy_decomposition,
    foreground_threshold,
    one_minus_max_probability,
    ood_auroc,
)

SAMPLES = [
    [[0.9, 0.1, 0.0], [0.5, 0.5, 0.0]],
    [[0.2, 0.8, 0.0], [0.5, 0.5, 0.0]],
    [[0.7, 0.2, 0.1], [0.5, 0.5, 0.0]],
]


def binary_entropy(q):
    return entr(q) + entr(1 - q)


# --- entropies ------------------------------------------------------------------------------------------------------


def test_worked_decomposition():
    parts = entropy_decomposition(SAMPLES)
    assert_allclose(parts.predictive_entropy, [0.7877460602317208, 0.6931471805599453], rtol=0, atol=1e-12)
    assert_allclose(parts.expected_entropy, [0.5424346498243244, 0.6931471805599453], rtol=0, atol=1e-12)
    assert_allclose(parts.mutual_information, [0.24531141040739635, 0], rtol=0, atol=1e-12)
    assert_allclose(one_minus_max_probability(SAMPLES[0]), [0.09999999999999998, 0.5], rtol=0, atol=1e-15)


def test_roles_swap_for_networks_that_model_ambiguity():
    bayesian, ambiguity = (entropy_decomposition(SAMPLES, roles=roles) for roles in ("bayesian", "ambiguity"))
    assert bayesian.epistemic is bayesian.mutual_information
    assert bayesian.aleatoric is bayesian.expected_entropy
    assert ambiguity.epistemic is ambiguity.expected_entropy
    assert ambiguity.aleatoric is ambiguity.mutual_information
    assert_allclose(ambiguity.aleatoric, bayesian.epistemic)


def test_parts_add_up_on_any_shape_and_never_go_below_zero():
    rng = np.random.default_rng(0)
    samples = rng.dirichlet(np.full(4, 0.5), size=(6, 3, 5, 2))
    parts = entropy_decomposition(samples)
    assert parts.predictive_entropy.shape == (3, 5, 2)
    assert_allclose(parts.expected_entropy + parts.mutual_information, parts.predictive_entropy, rtol=1e-12)
    assert (parts.mutual_information >= 0).all()
    assert (parts.predictive_entropy <= math.log(4) + 1e-12).all()
    same = entropy_decomposition(np.repeat(samples[:1], 3, axis=0))
    assert (same.mutual_information >= 0).all()
    assert_allclose(same.mutual_information, 0, atol=1e-15)


def test_a_sample_of_weight_two_is_there_twice():
    weighted = entropy_decomposition(SAMPLES, sample_weight=[2, 1, 1])
    repeated = entropy_decomposition([SAMPLES[0], *SAMPLES])
    assert_allclose(weighted.mutual_information, repeated.mutual_information, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([[0.5, 0.4]], "probabilities must sum to 1 over the last axis, got 0.9"),
        ([[1.5, -0.5]], r"probabilities must lie in \[0, 1\]"),
        ([[math.nan, 1]], "probabilities must be finite"),
        ([0.5, 0.5], "must have rows of probabilities"),
        (np.zeros((0, 2)), "must have rows of probabilities"),
    ],
)
def test_bad_probabilities_are_named(samples, message):
    with pytest.raises(InputError, match=message):
        entropy_decomposition(samples)


def test_single_precision_softmax_is_accepted():
    logits = np.random.default_rng(1).normal(size=(3, 50, 20)).astype(np.float32)
    softmax = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    assert entropy_decomposition(softmax.astype(np.float32)).predictive_entropy.shape == (50,)


def test_bad_roles_are_named():
    with pytest.raises(UsageError, match="roles must be one of bayesian, ambiguity"):
        entropy_decomposition(SAMPLES, roles="ssn")


# --- maps -----------------------------------------------------------------------------------------------------------

STRIPES = np.array([[((3 * i + 5 * j) % 7) / 7 for j in range(12)] for i in range(11)])


def test_worked_aggregations():
    assert_allclose(aggregate_image(STRIPES), 56.42857142857143, rtol=0, atol=1e-12)
    ten, three = aggregate_patch(STRIPES), aggregate_patch(STRIPES, size=3)
    assert_allclose([ten.total, three.total], [43.285714285714285, 4.285714285714286], rtol=0, atol=1e-12)
    assert ten.position == three.position == (0, 0)
    threshold = foreground_threshold([STRIPES], 0.2)
    assert_allclose(threshold, 0.7142857142857143, rtol=0, atol=1e-12)
    assert_allclose(aggregate_threshold(STRIPES, threshold), 0.785714285714286, rtol=0, atol=1e-12)
    assert aggregate_threshold([[0.1, 0.2], [0.3, 0.4]], 0.9) == 0


@pytest.mark.parametrize("shape", [(17,), (9, 14), (8, 7, 9), (5, 4, 6, 3), (3, 20), (2, 2, 2)])
@pytest.mark.parametrize("size", [1, 3, 4])
def test_patch_is_the_largest_of_all_windows(shape, size):
    values = np.random.default_rng(size).random(shape)
    window = tuple(min(size, length) for length in shape)
    sums = np.lib.stride_tricks.sliding_window_view(values, window).sum(axis=tuple(range(-len(shape), 0)))
    result = aggregate_patch(values, size=size)
    assert_allclose(result.total, sums.max(), rtol=1e-12)
    assert result.position == np.unravel_index(sums.argmax(), sums.shape)


def test_first_of_equal_windows_in_row_major_order():
    values = np.zeros((6, 6, 6))
    values[4, 1, 1] = values[1, 4, 4] = 0.1 + 0.2
    values[1, 4, 0] = 0.3
    assert aggregate_patch(values, size=2).position == (0, 3, 0)
    assert aggregate_patch(np.full((4, 4), 0.1), size=3).position == (0, 0)


def test_window_larger_than_the_map_is_the_map():
    assert aggregate_patch(STRIPES, size=50).total == pytest.approx(STRIPES.sum())
    assert aggregate_patch(np.ones((3, 30)), size=10).total == 30


def test_negative_maps_have_a_maximum_too():
    assert aggregate_patch([[-3.0, -1.0], [-2.0, -5.0]], size=1).position == (0, 1)


def test_thresholds_over_maps_of_different_shapes():
    maps = [np.arange(6.0).reshape(2, 3), np.arange(6.0, 11.0)]
    assert foreground_threshold(maps, 0.3) == np.quantile(np.arange(11.0), 0.7)
    assert foreground_threshold(maps, 0) == 10


def test_bad_maps_are_named():
    with pytest.raises(InputError, match="uncertainty must be finite"):
        aggregate_patch([[math.nan]])
    with pytest.raises(InputError, match="at least one pixel"):
        aggregate_patch(np.zeros((0, 3)))
    with pytest.raises(InputError, match="at least one pixel"):
        foreground_threshold([], 0.5)
    with pytest.raises(UsageError, match="size must be a whole number"):
        aggregate_patch([[1.0]], size=0)
    with pytest.raises(UsageError, match="foreground_ratio must lie in"):
        foreground_threshold([[1.0]], 1.5)
    with pytest.raises(UsageError, match="threshold must lie in"):
        aggregate_threshold([1.0], math.nan)


# --- tasks ----------------------------------------------------------------------------------------------------------


def test_worked_active_learning_improvement():
    assert_allclose(al_improvement(0.62, 0.68, 0.655), 0.04032258064516132, rtol=0, atol=1e-12)
    assert math.isnan(al_improvement(0, 0.5, 0.5))
    with pytest.raises(UsageError, match="dice_t1 must lie in"):
        al_improvement(1.2, 0.5, 0.5)


def test_ood_auroc_is_the_ordinary_one():
    rng = np.random.default_rng(0)
    labels, uncertainty = rng.integers(0, 2, 100), rng.integers(0, 20, 100)
    assert_allclose(ood_auroc(labels, uncertainty), roc_auc_score(labels, uncertainty), rtol=1e-12)
    assert math.isnan(ood_auroc([1, 1], [0.1, 0.2]))
    with pytest.raises(InputError, match=r"is_ood must be 0 or 1, got 0\.5"):
        ood_auroc([0.5, 1], [0.1, 0.2])
