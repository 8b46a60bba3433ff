"""Maps from p to the experts' rate: monotone, inside (0, 1), weighted, honest about what they are worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from softgold.errors import InputError, UsageError
from softgold.experts import IsotonicMap, LogitMap, fit_soft_map
from softgold.experts.soft_map import EPSILON, MIN_PER_CLASS


def biased_crowd(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Honest log odds x; the crowd says 2.5 x + 1, which is too sure and leans to yes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, n)
    return expit(2.5 * x + 1), (rng.random(n) < expit(x)).astype(int)


def test_logit_map_undoes_overconfidence_and_bias() -> None:
    p, labels = biased_crowd(20_000)
    fit = fit_soft_map(p, labels, method="logit")
    assert fit.map.slope == pytest.approx(1 / 2.5, abs=0.02)
    assert fit.map.intercept == pytest.approx(-1 / 2.5, abs=0.05)
    assert fit.improves


def test_logit_map_is_logistic_regression_on_the_log_odds() -> None:
    p, labels = biased_crowd(5000)
    fit = fit_soft_map(p, labels, method="logit")
    reference = LogisticRegression(C=np.inf).fit(logit(p)[:, None], labels)
    # Platt's smoothed targets move the fit a little.
    np.testing.assert_allclose(fit.map.apply(p), reference.predict_proba(logit(p)[:, None])[:, 1], atol=0.003)


def test_weights_are_as_good_as_repeats() -> None:
    p, labels = biased_crowd(300)
    weight = np.random.default_rng(1).integers(1, 5, 300)
    weighted = fit_soft_map(p, labels, weight=weight, method="logit").map
    repeated = fit_soft_map(np.repeat(p, weight), np.repeat(labels, weight), method="logit").map
    assert weighted.slope == pytest.approx(repeated.slope, abs=0.02)
    assert weighted.slope != pytest.approx(fit_soft_map(p, labels, method="logit").map.slope, abs=1e-4)


def test_isotonic_map_is_scikit_learns_away_from_the_ends() -> None:
    p, labels = biased_crowd(500)
    weight = np.random.default_rng(1).random(500) + 0.5
    fit = fit_soft_map(p, labels, weight=weight, method="isotonic")
    plain = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, labels, sample_weight=weight)
    inner = (p > np.quantile(p, 0.25)) & (p < np.quantile(p, 0.9))
    np.testing.assert_allclose(fit.map.apply(p)[inner], plain.predict(p)[inner])


def test_isotonic_ends_keep_half_a_label_of_doubt() -> None:
    p = np.linspace(0, 1, 40)
    fit = fit_soft_map(p, p > 0.5, method="isotonic")
    assert fit.map.apply([0.0, 1.0]).tolist() == [pytest.approx(0.5 / 20.5), pytest.approx(1 - 0.5 / 20.5)]


def test_one_early_negative_does_not_lift_the_rest() -> None:
    p = np.linspace(0, 1, 1001)
    labels = (np.arange(1001) % 20 == 1).astype(int)
    fit = fit_soft_map(p, labels, method="isotonic")
    assert fit.map.apply(p).max() < 0.08


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=0, max_size=60),
    st.sampled_from(["logit", "isotonic"]),
    st.integers(0, 3),
)
def test_maps_are_monotone_and_inside_zero_and_one(pairs: list[tuple[float, bool]], method: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.concatenate([[x for x, _ in pairs], rng.choice([0.0, 0.5, 1.0], 2 * MIN_PER_CLASS)])
    labels = np.concatenate([[y for _, y in pairs], np.tile([0, 1], MIN_PER_CLASS)])
    fit = fit_soft_map(p, labels, weight=rng.random(len(p)) + 0.1, method=method)
    mapped = fit.map.apply(np.linspace(0, 1, 501))
    assert (np.diff(mapped) >= 0).all()
    assert (mapped > 0).all()
    assert (mapped < 1).all()
    assert np.isfinite(list(fit.log_loss_after.values())).all()


def test_separable_labels_have_a_finite_map() -> None:
    p = np.concatenate([np.zeros(30), np.ones(30)])
    fit = fit_soft_map(p, p.astype(int), method="logit")
    assert 0 < fit.map.apply([0.0])[0] < fit.map.apply([1.0])[0] < 1


def test_a_falling_rate_gives_a_constant() -> None:
    p, labels = biased_crowd(400)
    for method in ("logit", "isotonic"):
        mapped = fit_soft_map(p, 1 - labels, method=method).map.apply([0.0, 0.5, 1.0])
        assert np.ptp(mapped) < 0.35
        assert (np.diff(mapped) >= 0).all()
    assert fit_soft_map(p, 1 - labels, method="logit").map.slope == 0.0


def test_design_weights_bring_back_the_rate_of_the_whole() -> None:
    """Positives sampled four times as often as negatives, and weighted back."""
    p, labels = biased_crowd(8000)
    keep = (labels == 1) | (np.random.default_rng(3).random(8000) < 0.25)
    weight = np.where(labels == 1, 1.0, 4.0)
    whole = fit_soft_map(p, labels, method="logit").map.apply(p).mean()
    naive = fit_soft_map(p[keep], labels[keep], method="logit").map.apply(p).mean()
    weighted = fit_soft_map(p[keep], labels[keep], weight=weight[keep], method="logit").map.apply(p).mean()
    assert abs(weighted - whole) < 0.02 < abs(naive - whole)


def test_auto_takes_the_lower_cross_validated_log_loss() -> None:
    p, labels = biased_crowd(1000)
    smooth = fit_soft_map(p, labels)
    assert smooth.name == min(smooth.log_loss_after, key=smooth.log_loss_after.get)
    rng = np.random.default_rng(0)
    uniform = rng.random(3000)
    step = fit_soft_map(uniform, rng.random(3000) < np.where(uniform < 0.8, 0.05, 0.6))
    assert step.name == "isotonic"
    assert step.chosen_by == "log loss"


def test_cross_validation_does_not_flatter() -> None:
    """Labels that have nothing to do with p: no map may look better than the base rate."""
    rng = np.random.default_rng(5)
    p, labels = rng.random(300), (rng.random(300) < 0.3).astype(int)
    share = labels.mean()
    base_rate = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    fit = fit_soft_map(p, labels)
    assert all(loss > base_rate - 0.005 for loss in fit.log_loss_after.values())


def test_log_loss_before_is_that_of_p() -> None:
    p, labels = biased_crowd(200)
    p[0], labels[0] = 1.0, 0
    clipped = np.clip(p, EPSILON, 1 - EPSILON)
    expected = -np.mean(np.where(labels == 1, np.log(clipped), np.log1p(-clipped)))
    assert fit_soft_map(p, labels).log_loss_before == pytest.approx(expected)


@pytest.mark.parametrize(("positives", "negatives"), [(MIN_PER_CLASS - 1, 100), (100, MIN_PER_CLASS - 1), (0, 50)])
def test_too_few_labels_are_refused_with_the_reason(positives: int, negatives: int) -> None:
    labels = np.repeat([1, 0], [positives, negatives])
    with pytest.raises(
        InputError, match=rf"too few expert labels .*: {min(positives, negatives)} .*{MIN_PER_CLASS} are"
    ):
        fit_soft_map(np.linspace(0, 1, len(labels)), labels)


def test_exactly_enough_labels_are_enough() -> None:
    labels = np.repeat([0, 1], MIN_PER_CLASS)
    assert fit_soft_map(np.linspace(0, 1, len(labels)), labels).n_positive == MIN_PER_CLASS


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="must be 0 or 1"):
        fit_soft_map([0.5] * 30, [0.3] * 30)
    with pytest.raises(InputError, match="rows"):
        fit_soft_map([0.5] * 30, [1] * 29)
    with pytest.raises(UsageError, match="method must be one of auto, logit, isotonic"):
        fit_soft_map([0.5] * 30, [1] * 30, method="spline")


def test_maps_say_what_they_are() -> None:
    assert LogitMap(0.0, 1.0).apply([0.2, 0.7]).tolist() == pytest.approx([0.2, 0.7])
    assert LogitMap(0.5, 1.0).to_dict() == {"name": "logit", "intercept": 0.5, "slope": 1.0, "epsilon": EPSILON}
    assert IsotonicMap(np.array([0.0, 1.0]), np.array([0.1, 0.9])).to_dict()["values"] == [0.1, 0.9]
