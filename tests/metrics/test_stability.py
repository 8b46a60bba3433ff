"""Ranking stability against worked examples, SciPy, and the full mean over pairs."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import linregress, spearmanr

from softgold.errors import InputError
from softgold.metrics import annotation_bootstrap, r_squared, ranking_stability

WORKED = np.array([[0.9, 0.8, 0.7, 0.6], [0.85, 0.88, 0.7, 0.6], [0.9, 0.7, 0.8, 0.65], [0.7, 0.7, 0.6, 0.65]])


def test_worked_example():
    assert_allclose(ranking_stability(WORKED).mean_pairwise, 0.6144246809038559, rtol=0, atol=1e-12)
    against_first = ranking_stability(WORKED[1:], reference=WORKED[0]).mean_vs_reference
    assert_allclose(against_first, 0.7792882624575407, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_closed_form_is_the_mean_over_pairs(seed):
    values = np.random.default_rng(seed).integers(0, 6, (12, 5)) / 10
    kept = [row for row in values if np.ptp(row) > 0]
    pairs = [spearmanr(a, b).statistic for a, b in itertools.combinations(kept, 2)]
    result = ranking_stability(values, reference=values[0])
    assert_allclose(result.mean_pairwise, np.mean(pairs), rtol=1e-12)
    assert_allclose(result.mean_vs_reference, np.mean([spearmanr(a, values[0]).statistic for a in kept]), rtol=1e-12)
    assert (result.n_used, result.n_dropped) == (len(kept), 12 - len(kept))


def test_undefined_and_constant_replicates_are_dropped_and_counted():
    rows = np.vstack([WORKED, [[math.nan, 1, 2, 3], [0.5, 0.5, 0.5, 0.5]]])
    result = ranking_stability(rows, reference=WORKED[0])
    assert (result.n_used, result.n_dropped) == (4, 2)
    assert_allclose(result.mean_pairwise, 0.6144246809038559)


def test_enumerated_rows_count_by_their_probability():
    """Rows of probability m / n are the limit of m copies among n, of which a pair may be equal."""
    copies = np.array([3, 1, 2, 2])
    many = np.repeat(WORKED, copies * 500, axis=0)
    exact = ranking_stability(WORKED, reference=WORKED[0], probability=copies / 8)
    drawn = ranking_stability(many, reference=WORKED[0])
    assert_allclose(exact.mean_pairwise, drawn.mean_pairwise, atol=1e-3)
    assert_allclose(exact.mean_vs_reference, drawn.mean_vs_reference, rtol=1e-12)


def test_rounding_does_not_rank_equal_models():
    result = ranking_stability([[0.3, 0.1 + 0.2, 0.5], [0.3, 0.3, 0.5]])
    assert_allclose(result.mean_pairwise, 1)


def test_too_little_to_compare():
    assert math.isnan(ranking_stability([[1, 2, 3]]).mean_pairwise)
    assert math.isnan(ranking_stability([[1], [2]]).mean_pairwise)
    assert math.isnan(ranking_stability(np.zeros((0, 3)), reference=[1, 2, 3]).mean_vs_reference)
    assert math.isnan(ranking_stability(WORKED, reference=[1, 1, 1, 1]).mean_vs_reference)
    assert math.isnan(ranking_stability(WORKED).mean_vs_reference)
    assert ranking_stability(WORKED[:, :2]).n_dropped == 1


def test_soft_labels_rank_models_more_stably_than_hard_ones():
    """What figure 3 of the soft-metrics paper reports, on a simulation: eight votes an item, four models."""
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 1.2, 300)
    scores = p[:, None] + rng.normal(0, [0.30, 0.32, 0.34, 0.36], (300, 4))
    result = annotation_bootstrap(rng.binomial(8, p), np.full(300, 8), scores, n_bootstrap=300)
    for metric in ("soft_auroc", "soft_average_precision"):
        soft, hard = result.stability(metric)
        assert soft.mean_pairwise > hard.mean_pairwise
        assert soft.n_used == 300


def test_r_squared_is_that_of_a_line():
    x, y = np.random.default_rng(1).random((2, 9))
    assert_allclose(r_squared(x, y), linregress(x, y).rvalue ** 2, rtol=1e-12)
    assert r_squared(x, 2 - 3 * x) == pytest.approx(1)
    assert math.isnan(r_squared([1, 1], [1, 2]))
    assert math.isnan(r_squared([1], [2]))


def test_bad_tables_are_named():
    with pytest.raises(InputError, match="metric_values must have 2 dimensions"):
        ranking_stability([1, 2, 3])
    with pytest.raises(InputError, match="reference must have one value for each of 4 models"):
        ranking_stability(WORKED, reference=[1, 2])
    with pytest.raises(InputError, match="probability must have 4 rows"):
        ranking_stability(WORKED, probability=[1])
    with pytest.raises(InputError, match="probability must not be negative"):
        ranking_stability(WORKED, probability=[1, 1, 1, -1])
    with pytest.raises(InputError, match="y must have 2 rows"):
        r_squared([1, 2], [1])
