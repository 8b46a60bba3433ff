"""Maps from p to the experts' rate: centred on p, monotone, inside (0, 1), weighted, honest about their worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from softgold.errors import InputError, UsageError
from softgold.experts import LogitMap, fit_soft_map
from softgold.experts.logit_map import EPSILON, INTERCEPT_SD, LOG_SLOPE_SD, NEVER, effective_weight, fit_logit_maps
from softgold.experts.soft_map import MIN_PER_CLASS, isotonic_crossing


def biased_crowd(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Honest log odds x; the crowd says 2.5 x + 1, which is too sure and leans to yes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, n)
    return expit(2.5 * x + 1), (rng.random(n) < expit(x)).astype(int)


def slow_fit(p: np.ndarray, labels: np.ndarray, weight: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The posterior mode by scipy, straight from the definition."""
    x = logit(np.clip(p, EPSILON, 1 - EPSILON))

    def loss(theta: np.ndarray) -> float:
        odds = theta[0] + np.exp(theta[1]) * x
        likelihood = weight @ np.where(labels == 1, log_expit(odds), log_expit(-odds))
        away = (theta - centre) / (INTERCEPT_SD, LOG_SLOPE_SD)
        return float(-likelihood + 0.5 * away @ away)

    return minimize(loss, centre, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000}).x


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.03, 0.4, 0.5, 0.9, 1.0]), st.booleans()), min_size=0, max_size=30),
    st.integers(0, 5),
)
def test_batched_fits_are_the_posterior_modes(pairs: list[tuple[float, bool]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, labels = np.array([x for x, _ in pairs]), np.array([int(y) for _, y in pairs])
    weight, centre = rng.exponential(1, (3, len(p))), rng.normal(0, (INTERCEPT_SD, LOG_SLOPE_SD), (3, 2))
    theta, _ = fit_logit_maps(p, np.broadcast_to(labels, weight.shape), weight, centre)
    for row in range(3):
        np.testing.assert_allclose(theta[row], slow_fit(p, labels, weight[row], centre[row]), atol=2e-4)


def test_no_labels_give_the_identity_with_the_prior_as_band() -> None:
    fit = fit_soft_map([], [])
    assert (fit.logit.intercept, fit.logit.slope) == (0.0, 1.0)
    assert (fit.logit.intercept_sd, fit.logit.log_slope_sd) == (INTERCEPT_SD, LOG_SLOPE_SD)
    np.testing.assert_allclose(fit.apply([0.2, 0.7]), [0.2, 0.7])
    low, high = fit.band([0.5])
    np.testing.assert_allclose([low[0], high[0]], expit([-1.96, 1.96]), atol=0.02)
    assert fit.crossing(0.5) == 0.5
    assert np.isnan(fit.log_loss.p)


def test_one_label_moves_the_map_a_little() -> None:
    up, down = (fit_soft_map([0.5], [label]).apply([0.5])[0] for label in (1, 0))
    assert 0.5 < up < 0.65
    assert up == pytest.approx(1 - down)


def test_logit_map_undoes_overconfidence_and_bias() -> None:
    p, labels = biased_crowd(20_000)
    fit = fit_soft_map(p, labels)
    assert fit.logit.slope == pytest.approx(1 / 2.5, abs=0.02)
    assert fit.logit.intercept == pytest.approx(-1 / 2.5, abs=0.05)
    assert fit.improves


def test_with_many_labels_it_is_logistic_regression_on_the_log_odds() -> None:
    p, labels = biased_crowd(5000)
    odds = logit(np.clip(p, EPSILON, 1 - EPSILON))[:, None]
    reference = LogisticRegression(C=np.inf).fit(odds, labels)
    np.testing.assert_allclose(fit_soft_map(p, labels).apply(p), reference.predict_proba(odds)[:, 1], atol=0.003)


def test_equal_weights_are_no_weights_and_unequal_ones_count_for_less() -> None:
    p, labels = biased_crowd(300)
    plain = fit_soft_map(p, labels)
    assert fit_soft_map(p, labels, weight=np.full(300, 17.0)).logit.slope == pytest.approx(plain.logit.slope)
    assert plain.n_effective == pytest.approx(300)
    uneven = fit_soft_map(p, labels, weight=np.random.default_rng(1).exponential(1, 300) ** 2)
    assert uneven.n_effective < 120
    assert uneven.logit.intercept_sd > plain.logit.intercept_sd


def test_effective_weight_by_hand() -> None:
    weight = np.array([[1.0, 1.0, 4.0]])
    np.testing.assert_allclose(effective_weight(weight, np.ones((1, 3))).sum(), 36 / 18)
    # The third label drawn twice is two labels of weight 2.
    np.testing.assert_allclose(effective_weight(weight, np.array([[1.0, 1.0, 2.0]])).sum(), 36 / 10)


def test_design_weights_bring_back_the_rate_of_the_whole() -> None:
    """Positives sampled four times as often as negatives, and weighted back."""
    p, labels = biased_crowd(8000)
    keep = (labels == 1) | (np.random.default_rng(3).random(8000) < 0.25)
    weight = np.where(labels == 1, 1.0, 4.0)
    whole = fit_soft_map(p, labels).apply(p).mean()
    naive = fit_soft_map(p[keep], labels[keep]).apply(p).mean()
    weighted = fit_soft_map(p[keep], labels[keep], weight=weight[keep]).apply(p).mean()
    assert abs(weighted - whole) < 0.02 < abs(naive - whole)


@pytest.mark.slow
def test_the_band_covers_the_true_map_about_as_often_as_it_says() -> None:
    covered = []
    at = np.array([0.1, 0.5, 0.8])
    for seed in range(200):
        rng = np.random.default_rng(seed)
        # Truths drawn from the prior, so that the credible band is calibrated on average.
        intercept, slope = rng.normal(0, INTERCEPT_SD), np.exp(rng.normal(0, LOG_SLOPE_SD))
        p = rng.random(40)
        labels = rng.random(40) < expit(intercept + slope * logit(p))
        low, high = fit_soft_map(p, labels).band(at)
        true = expit(intercept + slope * logit(at))
        covered.append((low <= true) & (true <= high))
    assert 0.91 < np.mean(covered) < 0.985


def test_crossings_are_where_the_map_reaches_the_cut() -> None:
    found = LogitMap(-1.0, 0.7, 0.1, 0.1, 0.0)
    for cut in (0.1, 0.5, 0.8):
        assert found.apply([found.crossing(cut)])[0] == pytest.approx(cut)
    assert LogitMap(30.0, 1.0, 0.1, 0.1, 0.0).crossing(0.5) == 0.0
    assert LogitMap(-30.0, 1.0, 0.1, 0.1, 0.0).crossing(0.5) == NEVER > 1
    low, high = found.crossing_interval(0.5, 0.95)
    assert low < found.crossing(0.5) < high


def test_isotonic_crossing_by_hand() -> None:
    knots, values = np.array([0.2, 0.4, 0.8]), np.array([0.1, 0.3, 0.7])
    assert isotonic_crossing(knots, values, 0.5) == pytest.approx(0.6)
    assert isotonic_crossing(knots, values, 0.1) == 0.0
    assert isotonic_crossing(knots, values, 0.71) == NEVER


def test_isotonic_map_is_scikit_learns_away_from_the_ends() -> None:
    p, labels = biased_crowd(500)
    weight = np.random.default_rng(1).random(500) + 0.5
    fit = fit_soft_map(p, labels, weight=weight, method="isotonic")
    plain = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, labels, sample_weight=weight)
    inner = (p > np.quantile(p, 0.25)) & (p < np.quantile(p, 0.9))
    np.testing.assert_allclose(fit.apply(p)[inner], plain.predict(p)[inner])
    low, high = fit.band(p)
    assert ((low <= fit.apply(p) + 0.1) & (fit.apply(p) - 0.1 <= high)).all()


def test_isotonic_ends_keep_half_a_label_of_doubt() -> None:
    p = np.linspace(0, 1, 40)
    fit = fit_soft_map(p, p > 0.5, method="isotonic")
    assert fit.apply([0.0, 1.0]).tolist() == [pytest.approx(0.5 / 20.5), pytest.approx(1 - 0.5 / 20.5)]


@pytest.mark.parametrize("method", ["logit", "isotonic", "auto"])
@settings(deadline=None, max_examples=20)
@given(pairs=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=0, max_size=60), seed=st.integers(0, 3))
def test_maps_are_monotone_and_inside_zero_and_one(method: str, pairs: list[tuple[float, bool]], seed: int) -> None:
    weight = np.random.default_rng(seed).random(len(pairs)) + 0.1
    fit = fit_soft_map([x for x, _ in pairs], [y for _, y in pairs], weight=weight, method=method)
    at = np.linspace(0, 1, 501)
    mapped, (low, high) = fit.apply(at), fit.band(at)
    assert (np.diff(mapped) >= 0).all()
    assert not pairs or ((mapped > 0) & (mapped < 1)).all()
    assert (np.diff(low) >= -1e-12).all()
    assert (low <= high).all()
    crossing = fit.crossing(0.5)
    np.testing.assert_array_equal(at >= crossing + 1e-9, (mapped >= 0.5) & (at >= crossing + 1e-9))


def test_separable_labels_have_a_finite_map() -> None:
    p = np.concatenate([np.zeros(30), np.ones(30)])
    fit = fit_soft_map(p, p.astype(int))
    assert 0 < fit.apply([0.0])[0] < fit.apply([1.0])[0] < 1


def test_a_falling_rate_gives_a_flat_map() -> None:
    p, labels = biased_crowd(400)
    for method in ("logit", "isotonic"):
        mapped = fit_soft_map(p, 1 - labels, method=method).apply([0.05, 0.5, 0.95])
        assert np.ptp(mapped) < 0.35
        assert (np.diff(mapped) >= 0).all()


def test_auto_takes_the_lower_cross_validated_log_loss() -> None:
    p, labels = biased_crowd(1000)
    smooth = fit_soft_map(p, labels, method="auto")
    assert smooth.name == ("logit" if smooth.log_loss.logit <= smooth.log_loss.isotonic else "isotonic")
    rng = np.random.default_rng(0)
    uniform = rng.random(3000)
    step = fit_soft_map(uniform, rng.random(3000) < np.where(uniform < 0.8, 0.05, 0.6), method="auto")
    assert step.name == "isotonic"


def test_isotonic_without_enough_labels_is_the_logit_map() -> None:
    labels = np.repeat([1, 0], [MIN_PER_CLASS - 1, 100])
    fit = fit_soft_map(np.linspace(0, 1, len(labels)), labels, method="isotonic")
    assert fit.name == "logit"
    assert np.isnan(fit.log_loss.isotonic)
    enough = np.repeat([1, 0], [MIN_PER_CLASS, 100])
    assert fit_soft_map(np.linspace(0, 1, len(enough)), enough, method="isotonic").name == "isotonic"


def test_cross_validation_does_not_flatter() -> None:
    """Labels that have nothing to do with p: no map may look better than the base rate."""
    rng = np.random.default_rng(5)
    p, labels = rng.random(300), (rng.random(300) < 0.3).astype(int)
    share = labels.mean()
    base_rate = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    found = fit_soft_map(p, labels).log_loss
    assert min(found.logit, found.isotonic) > base_rate - 0.005


def test_log_loss_of_p_is_that_of_p() -> None:
    p, labels = biased_crowd(200)
    p[0], labels[0] = 1.0, 0
    clipped = np.clip(p, 1e-6, 1 - 1e-6)
    expected = -np.mean(np.where(labels == 1, np.log(clipped), np.log1p(-clipped)))
    assert fit_soft_map(p, labels).log_loss.p == pytest.approx(expected)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="must be 0 or 1"):
        fit_soft_map([0.5] * 30, [0.3] * 30)
    with pytest.raises(InputError, match="rows"):
        fit_soft_map([0.5] * 30, [1] * 29)
    with pytest.raises(UsageError, match="method must be one of logit, isotonic, auto"):
        fit_soft_map([0.5] * 30, [1] * 30, method="spline")
