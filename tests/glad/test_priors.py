"""Priors: presets, explicit values, the hyper-prior, and the scale that maximises the bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from softgold.errors import UsageError
from softgold.glad.priors import Prior, learned_scale, log_hyper_prior, resolve_prior


def test_presets() -> None:
    assert resolve_prior("default") == Prior(0.0, 1.0, None)
    assert resolve_prior("paper") == Prior(0.0, 1.0, 1000.0)
    assert resolve_prior() == Prior()
    assert resolve_prior(Prior(0.5, 2.0, 3.0)) == Prior(0.5, 2.0, 3.0)


def test_explicit_values_replace_those_of_the_preset() -> None:
    assert resolve_prior("paper", ability_mean=1, ability_scale=2) == Prior(1.0, 2.0, 1000.0)
    assert resolve_prior("default", difficulty_scale=4) == Prior(0.0, 1.0, 4.0)
    assert not resolve_prior("default", difficulty_scale=4).learned
    assert resolve_prior("default", ability_scale=2).learned


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prior": "vague"}, "prior must be one of default, paper or a Prior, got 'vague'"),
        ({"prior": 3}, "prior must be one of default, paper or a Prior, got 3"),
        ({"difficulty_scale": 0.0}, "difficulty_scale must be a positive number, got 0.0"),
        ({"difficulty_scale": -1.0}, "difficulty_scale must be a positive number, got -1.0"),
        ({"difficulty_scale": float("nan")}, "difficulty_scale must be a positive number, got nan"),
        ({"ability_scale": -2}, "ability_scale must be a positive number, got -2.0"),
        ({"ability_scale": float("inf")}, "ability_scale must be a positive number, got inf"),
        ({"ability_mean": float("nan")}, "ability_mean must be a finite number, got nan"),
        ({"difficulty_scale": 1e7}, "must be at most 100000, got 1e+07"),
        ({"ability_mean": 1e6}, "must be at most 100000, got 3e+06"),
        ({"ability_scale": 1e-300}, "must be between 1e-9 and 1e9 in size"),
        ({"ability_mean": 1e300}, "must be between 1e-9 and 1e9 in size"),
    ],
)
def test_bad_values_are_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_prior(**changes)
    assert said in str(caught.value)


def test_whitening() -> None:
    whitened = Prior(0.5, 2.0, 10.0).whitened_abilities(10.0)
    assert (whitened.mean, whitened.sd) == (5.0, 20.0)
    x = np.array([-1.0, 3.0])
    assert whitened.log_density(x) == pytest.approx(norm.logpdf(x, 5.0, 20.0))
    mean, second = np.array([2.0]), np.array([4.0 + 9.0])
    draws = 2.0 + 3.0 * norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    expected = float(norm.logpdf(draws, 5.0, 20.0).mean())
    assert whitened.expected_log_density(mean, second)[0] == pytest.approx(expected, rel=1e-4)


def test_the_hyper_prior_is_a_normal_in_the_log_of_the_product_of_scales() -> None:
    assert log_hyper_prior(7.0, 0.5) == pytest.approx(norm.logpdf(np.log(3.5), np.log(3.0), 1.0))
    assert log_hyper_prior(3.0, 1.0) == pytest.approx(-0.5 * np.log(2 * np.pi))


def bound_at(scale: float, prior: Prior, first: np.ndarray, second: np.ndarray) -> float:
    """The part of the bound in which the scale appears, written out."""
    whitened = prior.whitened_abilities(scale)
    return float(whitened.expected_log_density(first, second).sum()) + log_hyper_prior(scale, prior.ability_scale)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 200),
    st.floats(-20, 20),
    st.floats(0.05, 10),
    st.floats(-3, 3),
    st.floats(0.1, 10),
)
def test_the_learned_scale_maximises_the_bound(
    count: int, level: float, spread: float, ability_mean: float, ability_scale: float
) -> None:
    prior = Prior(ability_mean, ability_scale)
    first = np.full(count, level)
    second = first**2 + spread**2
    found = learned_scale(prior, prior.starting_scale, count, float(first.sum()), float(second.sum()))
    best = bound_at(found, prior, first, second)
    tries = [bound_at(found * factor, prior, first, second) for factor in np.exp(np.linspace(-3, 3, 121))]
    assert best >= max(tries) - 1e-9 * max(1.0, abs(best))


def test_the_learned_scale_in_closed_form_where_the_hyper_prior_hardly_counts() -> None:
    second = 25.0 * 100_000
    assert learned_scale(Prior(), 3.0, 100_000, 0.0, second) == pytest.approx(5.0, rel=1e-4)


def test_one_annotator_weighs_as_much_as_the_hyper_prior() -> None:
    """With E[c^2] = 9 the bound alone is greatest at 3, which is the hyper-prior's median as well."""
    assert learned_scale(Prior(), 1.0, 1, 0.0, 9.0) == pytest.approx(3.0, rel=1e-9)
    assert 0.3 < learned_scale(Prior(), 1.0, 1, 0.0, 1e-12) < 3.0  # t = log 3 - 1: the hyper-prior alone against -t
    assert learned_scale(Prior(), 1.0, 1, 0.0, 0.0) == pytest.approx(3.0 / np.e, rel=1e-9)
