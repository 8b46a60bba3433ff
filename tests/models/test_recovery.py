"""Recovery of what a simulator put in: classes, abilities, leans, calibrated soft labels, and the prevalence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from softgold.models.base import Fit, fit

FloatArray = NDArray[np.float64]

ENGINES = ("coordinate", pytest.param("svi", marks=pytest.mark.slow))
STUDY = {"n_items": 1500, "n_annotators": 60, "votes_per_item": 7}


@pytest.fixture(scope="module")
def even(draw_crowd: Callable[..., Any]) -> Any:
    """As many positive items as negative ones."""
    return draw_crowd(1, prevalence=0.5, **STUDY)


@pytest.fixture(scope="module", params=ENGINES)
def fitted(request: pytest.FixtureRequest, even: Any) -> Fit:
    return fit(even.votes, engine=request.param)


@pytest.fixture(scope="module")
def rare(draw_crowd: Callable[..., Any]) -> Any:
    """One item in four is positive."""
    return draw_crowd(3, prevalence=0.25, **STUDY)


@pytest.fixture(scope="module", params=ENGINES)
def informed(request: pytest.FixtureRequest, rare: Any) -> Fit:
    """A fit that is told so."""
    return fit(rare.votes, engine=request.param, prevalence=0.25)


def check_calibration(p: FloatArray, label: NDArray[np.bool_]) -> None:
    """In every bin of p, the share of positives is within 3.5 standard errors of the mean p, and 0.02."""
    bins = np.digitize(p, [0.05, 0.2, 0.4, 0.6, 0.8])
    assert (np.bincount(bins, minlength=6) > 50).all()
    for number in range(6):
        inside = bins == number
        error = np.sqrt((p[inside] * (1 - p[inside])).sum()) / inside.sum()
        assert abs(label[inside].mean() - p[inside].mean()) < 3.5 * error + 0.02, number


# --- items ---


def test_soft_labels_rank_the_items(even: Any, fitted: Fit) -> None:
    p, share = fitted.posterior.soft_labels().p, even.votes.item_shares
    assert roc_auc_score(even.label, p) > 0.92
    assert roc_auc_score(even.label, p) > roc_auc_score(even.label, share) + 0.01
    smoothed = (even.votes.item_positives + 1) / (even.votes.item_counts + 2)
    assert log_loss(even.label, p) < 0.9 * log_loss(even.label, smoothed)


def test_soft_labels_are_calibrated(even: Any, fitted: Fit) -> None:
    """Mean p against the positive share.

    The share of 1,500 items has a standard error of 0.013; the mean lean of 60 annotators one of 0.10 on the logit
    scale, which moves the share of yes votes, at a mean slope of about 0.13, by another 0.013. Three of both: 0.055.
    """
    p = fitted.posterior.soft_labels().p
    assert abs(p.mean() - even.label.mean()) < 0.055
    check_calibration(p, even.label)


def test_soft_labels_are_calibrated_where_the_prevalence_is_known(rare: Any, informed: Fit) -> None:
    p = informed.posterior.soft_labels().p
    assert p.mean() == pytest.approx(0.25, abs=1e-3)
    check_calibration(p, rare.label)


def test_what_items_look_like(even: Any, fitted: Fit) -> None:
    b = fitted.posterior.soft_labels().difficulty
    assert b is not None
    assert np.corrcoef(b.mean, even.look)[0, 1] > 0.85
    assert 0.9 < ((b.low <= even.look) & (even.look <= b.high)).mean() < 0.98


def test_the_published_model_ranks_them_too(even: Any) -> None:
    found = fit(even.votes, model="glad", engine="coordinate")
    assert roc_auc_score(even.label, found.posterior.soft_labels().p) > 0.9
    assert np.corrcoef(found.posterior.annotators()["ability_mean"], even.ability)[0, 1] > 0.85


# --- annotators ---


def test_abilities_and_leans(even: Any, fitted: Fit) -> None:
    found = fitted.posterior.annotators()
    assert np.corrcoef(found["ability_mean"], even.ability)[0, 1] > 0.88
    assert np.corrcoef(found["lean_mean"], even.lean)[0, 1] > 0.9
    clear = np.abs(even.lean) > 0.6
    assert np.array_equal(found["lean_mean"][clear] > 0, even.lean[clear] > 0)


def test_adversaries_are_recognised(draw_crowd: Callable[..., Any]) -> None:
    drawn = draw_crowd(5, n_items=300, n_annotators=20, votes_per_item=8, ability=(0.7, 1.0))
    found = fit(drawn.votes, engine="coordinate").posterior.annotators()
    adversarial, helpful = drawn.ability < -0.4, drawn.ability > 0.4
    assert adversarial.sum() >= 2
    assert found["p_adversarial"][adversarial].min() > 0.9
    assert found["p_adversarial"][helpful].max() < 0.1


def true_rates(drawn: Any) -> tuple[FloatArray, FloatArray]:
    """Sensitivity and specificity of each annotator, b and u integrated over the classes that were drawn from."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    weights = weights / weights.sum()

    def yes(sign: int) -> FloatArray:
        b = np.sqrt(3.0) * (sign + 0.8 * nodes)
        x = drawn.ability[:, None, None] * b[:, None] + drawn.lean[:, None, None] + 0.6 * nodes
        return (expit(x) * weights[:, None] * weights).sum(axis=(1, 2))

    return yes(1), 1 - yes(-1)


def test_sensitivity_and_specificity(rare: Any, informed: Fit) -> None:
    found = informed.posterior.annotators()
    inside = []
    for name, truth in zip(("sensitivity", "specificity"), true_rates(rare), strict=True):
        assert np.corrcoef(found[name], truth)[0, 1] > 0.85
        assert np.abs(found[name] - truth).mean() < 0.05
        inside.append(found[f"{name}_lo"].le(truth) & found[f"{name}_hi"].ge(truth))
    # Mean-field factors are somewhat narrow; svi's, with the items integrated out, cover as they should.
    assert np.mean(inside) >= (0.9 if informed.settings.engine == "svi" else 0.8)


# --- prevalence ---


@pytest.mark.parametrize("engine", ENGINES)
def test_the_mean_of_p_is_how_often_those_who_can_tell_say_yes(crowd: Any, engine: str) -> None:
    """By hand from the fitted abilities: votes count their squared ability, reversed where it is negative."""
    votes = crowd.votes
    found = fit(votes, engine=engine)
    ability = found.posterior.annotators()["ability_mean"].to_numpy()[votes.annotator_codes]
    says = np.where(ability < 0, 1 - votes.votes, votes.votes)
    total = np.bincount(votes.item_codes, ability**2)
    rate = np.bincount(votes.item_codes, ability**2 * says) / total
    assert found.posterior.soft_labels().p.mean() == pytest.approx((rate.sum() + 1) / (votes.n_items + 2), abs=1e-3)


def test_the_mean_of_p_is_the_share_of_yes_votes(crowd: Any) -> None:
    found = fit(crowd.votes, engine="coordinate", prevalence="share")
    target = (crowd.votes.item_shares.sum() + 1) / (crowd.votes.n_items + 2)
    assert found.posterior.soft_labels().p.mean() == pytest.approx(target, abs=1e-3)


def test_the_mean_of_p_is_the_share_of_majorities(crowd: Any) -> None:
    found = fit(crowd.votes, engine="coordinate", prevalence="majority")
    labels = found.posterior.soft_labels()
    target = (labels.majority.sum() + 1) / (crowd.votes.n_items + 2)
    assert labels.p.mean() == pytest.approx(target, abs=1e-3)


@pytest.mark.parametrize("given", [0.02, 0.2, 0.5, 0.9])
def test_the_mean_of_p_is_the_number_given(crowd: Any, given: float) -> None:
    found = fit(crowd.votes, engine="coordinate", prevalence=given)
    assert found.posterior.soft_labels().p.mean() == pytest.approx(given, abs=1e-3)


def test_prevalence_moves_p_and_hardly_the_ranking(crowd: Any) -> None:
    low, high = (
        fit(crowd.votes, engine="coordinate", prevalence=given).posterior.soft_labels().p for given in (0.3, 0.5)
    )
    assert (low < high).all()
    assert np.corrcoef(np.argsort(np.argsort(low)), np.argsort(np.argsort(high)))[0, 1] > 0.98
