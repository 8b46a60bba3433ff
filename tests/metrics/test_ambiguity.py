"""NCC, Dice and the generalised energy distance against worked examples and brute force."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softgold.errors import InputError, UsageError
from softgold.metrics import ambiguity as ambiguity_module
from softgold.metrics import dice, generalized_energy_distance, ncc, over_images, rater_variance

RATERS = [[0, 1, 1, 0, 0, 1], [0, 1, 0, 0, 0, 1], [0, 1, 1, 0, 1, 1], [0, 0, 1, 0, 0, 1]]
PREDICTED = [0.1, 0.5, 0.6, 0.2, 0.3, 0.1]


def test_worked_ncc():
    variance = rater_variance(RATERS)
    assert_allclose(variance, [0, 0.1875, 0.1875, 0, 0.1875, 0], rtol=0, atol=1e-15)
    assert_allclose(ncc(variance, PREDICTED), 0.8703882797784893, rtol=0, atol=1e-12)
    assert math.isnan(ncc([0, 0, 0], [0.1, 0.2, 0.3]))


def test_ncc_is_pearson_on_any_shape():
    rng = np.random.default_rng(0)
    a, b = rng.random((4, 5, 6)), rng.random((4, 5, 6))
    assert_allclose(ncc(a, b), np.corrcoef(a.ravel(), b.ravel())[0, 1], rtol=1e-12)
    assert_allclose(ncc(a, 3 * a + 1), 1, rtol=1e-12)
    assert_allclose(ncc(a, -a), -1, rtol=1e-12)
    assert_allclose(ncc(a, 1e-200 * b), ncc(a, b), rtol=1e-9)
    assert math.isnan(ncc([], []))


def test_batches_average_what_is_defined_and_count_the_rest():
    result = over_images(ncc, [rater_variance(RATERS), np.zeros(6)], [PREDICTED, PREDICTED])
    assert_allclose(result.mean, 0.8703882797784893)
    assert_allclose(result.values, [0.8703882797784893, np.nan])
    assert result.n_undefined == 1
    assert math.isnan(over_images(ncc, [[1, 1]], [[1, 1]]).mean)
    shapes = over_images(dice, [np.ones((2, 2)), np.ones((3, 3, 3))], [np.ones((2, 2)), np.zeros((3, 3, 3))])
    assert shapes.values.tolist() == [1, 0]
    with pytest.raises(InputError, match="same number of images, but one ends after 1"):
        over_images(ncc, [[1, 2], [3, 4]], iter([[1, 2]]))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [([0, 0], [0, 0], 1.0), ([1, 1, 0], [0, 1, 1], 0.5), ([1, 0], [0, 1], 0.0), ([1, 0], [0, 0], 0.0)],
)
def test_worked_dice(a, b, expected):
    assert dice(a, b) == expected
    assert dice(np.array(a, dtype=bool)[None, :, None], np.array(b)[None, :, None]) == expected


SAMPLES = [[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0]]
REFERENCES = [[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0]]


@pytest.mark.parametrize(
    ("predicted", "estimator", "expected"),
    [
        (SAMPLES, "V", 0.11058201058201067),
        (SAMPLES, "U", -0.1912698412698412),
        (SAMPLES, "pooled", 0.02678571428571419),
        (REFERENCES, "V", 0.0),
        (REFERENCES, "U", -0.34444444444444433),
        (REFERENCES, "pooled", 0.0),
    ],
)
def test_worked_energy_distances(predicted, estimator, expected):
    value = generalized_energy_distance(predicted, REFERENCES, estimator=estimator)
    assert_allclose(value, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 2)])
def test_energy_distance_is_its_definition(shape, monkeypatch):
    monkeypatch.setattr(ambiguity_module, "PIXELS_AT_ONCE", 6)
    rng = np.random.default_rng(1)
    a, b = rng.random((3, *shape)) < 0.4, rng.random((4, *shape)) < 0.5

    def mean(first, second):
        return np.mean([1 - dice(x, y) for x in first for y in second])

    assert_allclose(generalized_energy_distance(a, b), 2 * mean(a, b) - mean(a, a) - mean(b, b), rtol=1e-12)
    assert generalized_energy_distance(a, b) >= 0


def test_undefined_and_empty_sets():
    assert math.isnan(generalized_energy_distance(SAMPLES[:1], REFERENCES, estimator="U"))
    assert generalized_energy_distance([[0, 0]], [[0, 0]], estimator="pooled") == 0


def test_bad_masks_are_named():
    with pytest.raises(InputError, match=r"a must be masks of 0 and 1, got 0\.5"):
        dice([0.5, 1], [1, 1])
    with pytest.raises(InputError, match=r"must have one shape, got \(2,\) and \(3,\)"):
        dice([0, 1], [1, 1, 0])
    with pytest.raises(InputError, match=r"same shape, got \(2,\) and \(3,\)"):
        ncc([0, 1], [1, 1, 0])
    with pytest.raises(InputError, match="predicted must have at least one mask"):
        generalized_energy_distance(np.zeros((0, 3)), REFERENCES)
    with pytest.raises(InputError, match="reference must be finite"):
        ncc([math.nan, 1], [0, 1])
    with pytest.raises(UsageError, match="estimator must be one of V, U, pooled"):
        generalized_energy_distance(SAMPLES, REFERENCES, estimator="W")
