"""The two priors: presets, states, and hyper-parameters that are the best for given annotators and items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from softgold.errors import UsageError
from softgold.models.base import find_model
from softgold.models.crowd.annotators import Skills, annotator_bound
from softgold.models.crowd.population import ItemTotals, Population
from softgold.models.crowd.priors import GladPrior, TwoClassPrior
from softgold.models.crowd.states import normal_nodes, quantiles, sinh_nodes

FloatArray = NDArray[np.float64]

ROOT3 = np.sqrt(3.0)


def glad(**options: Any) -> GladPrior:
    return find_model("glad").settings(**options).crowd_prior


# --- settings ---


def test_presets() -> None:
    assert glad() == GladPrior(0.0, 1.0, None)
    assert glad(prior="paper") == GladPrior(0.0, 1.0, 1000.0)
    assert glad(prior="paper", ability_mean=1, ability_scale=2) == GladPrior(1.0, 2.0, 1000.0)
    assert glad(difficulty_scale=4) == GladPrior(0.0, 1.0, 4.0)
    assert find_model("two-class").settings(prevalence=0.3).crowd_prior == TwoClassPrior(0.3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prior": "vague"}, "prior must be one of default, paper"),
        ({"difficulty_scale": 0.0}, "difficulty_scale must be"),
        ({"difficulty_scale": -1.0}, "difficulty_scale must be"),
        ({"difficulty_scale": float("nan")}, "difficulty_scale must be"),
        ({"ability_scale": -2}, "ability_scale"),
        ({"ability_scale": float("inf")}, "ability_scale"),
        ({"ability_mean": float("nan")}, "ability_mean must be a number from -1e+09 to 1e+09, got nan"),
        ({"difficulty_scale": 1e7}, "must be at most 100000, got 1e+07"),
        ({"ability_mean": 1e6}, "must be at most 100000, got 3e+06"),
        ({"ability_scale": 1e-300}, "ability_scale must be a number from 1e-09 to 1e+09"),
        ({"ability_mean": 1e300}, "ability_mean must be a number from -1e+09 to 1e+09"),
    ],
    ids=str,
)
def test_bad_priors_of_glad_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        glad(**options)
    assert said in str(caught.value)


@pytest.mark.parametrize("prevalence", ["half", 0.0, 1.0, -0.2, 1.2, float("nan")])
def test_bad_prevalences_are_named(prevalence: Any) -> None:
    with pytest.raises(UsageError, match="prevalence must"):
        find_model("two-class").settings(prevalence=prevalence)


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("glad", {"engine": "coordinate", "init": "paper"}, "init='paper' has no meaning for the coordinate engine"),
        ("glad", {"init": "paper", "batch_items": 5}, "init='paper'"),
        ("glad", {"init": "zeros"}, "init must be one of coordinate, paper; got 'zeros'"),
        ("glad", {"prevalence": 0.5}, "prevalence has no meaning for the model glad"),
        ("two-class", {"init": "paper"}, "init has no meaning for the model two-class"),
        ("two-class", {"prior": "paper"}, "prior has no meaning for the model two-class"),
        ("two-class", {"engine": "coordinate", "batch_items": 5}, "batch_items=5 has no meaning"),
        ("two-class", {"engine": "coordinate", "device": "cuda"}, "device='cuda' has no meaning"),
        ("two-class", {"engine": "em"}, "engine must be one of svi, coordinate; got 'em'"),
        ("two-class", {"max_steps": 0}, "max_steps must be a whole number of at least 1, got 0"),
        ("two-class", {"batch_items": 0}, "batch_items must be a whole number of at least 1, got 0"),
        ("two-class", {"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
    ids=str,
)
def test_settings_that_have_no_meaning_are_refused(model: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_model(model).checked_settings(**options)
    assert said in str(caught.value)


# --- states ---


def test_the_states_of_the_two_class_model() -> None:
    """Mean and spread of b within a class, P(z = 1 | b), and the pull, against their definitions."""
    prior = TwoClassPrior()
    population = Population(ROOT3, 0.0, ROOT3, 0.0, 1.0, 0.7, log_odds=-1.2)
    states = prior.states(population, prior.lattice(np.array([5])))
    mass = np.exp(states.log_prior)
    assert mass.sum() == pytest.approx(1.0)
    assert mass @ states.positive == pytest.approx(expit(-1.2), abs=1e-3)
    for label, centre in ((1, 1.0), (0, -1.0)):
        weight = states.given_class(label)
        assert weight @ states.b == pytest.approx(centre, abs=5e-3)
        assert np.sqrt(weight @ (states.b - centre) ** 2) == pytest.approx(0.8, abs=0.01)
        assert (weight @ states.u, weight @ states.u**2) == pytest.approx((0.0, 0.49))
    density = {z: np.log(expit((2 * z - 1) * -1.2)) + norm.logpdf(states.b, 2 * z - 1, 0.8) for z in (0, 1)}
    assert states.positive == pytest.approx(expit(density[1] - density[0]))
    assert logit(states.positive) == pytest.approx(-1.2 + 2 * states.b / 0.8**2, abs=1e-6)


@pytest.mark.parametrize("scale", [None, 1000.0])
@pytest.mark.parametrize("votes", [1, 7, 5000])
def test_the_states_of_the_published_model(scale: float | None, votes: int) -> None:
    prior = GladPrior(difficulty_scale=scale)
    states = prior.states(prior.start(), prior.lattice(np.array([1, votes])))
    mass = np.exp(states.log_prior)
    assert (mass.sum(), mass @ states.b, mass @ states.b**2) == pytest.approx((1.0, 0.0, 1.0), abs=1e-6)
    assert set(states.u) == {0.0}
    assert np.array_equal(states.positive, np.where(states.b == 0, 0.5, states.b > 0))
    assert np.abs(states.b).max() ** 2 / 2 > votes * np.log(2) + 20  # beyond what any votes make likely
    assert np.abs(states.b[states.b != 0]).min() * (scale or 10.0) < 1


def test_more_votes_get_a_finer_lattice() -> None:
    few, many = (TwoClassPrior().lattice(np.array([count])) for count in (5, 50))
    assert len(many.b) > len(few.b)
    assert len(many.pull) > len(few.pull)


def test_nodes() -> None:
    nodes, weights = normal_nodes(7)
    assert [weights @ nodes**power for power in range(0, 9, 2)] == pytest.approx([1, 1, 3, 15, 105])
    b, width = sinh_nodes(12.0, finest=0.1, step=0.1)
    assert np.array_equal(b, -b[::-1])
    assert b[-2] < 12 <= b[-1]
    assert width @ np.exp(-0.5 * b**2) == pytest.approx(np.sqrt(2 * np.pi), rel=1e-9)


@pytest.mark.parametrize(("centre", "sd"), [(0.0, 0.8), (1.3, 0.5), (-1.4, 0.6)])
def test_quantiles_of_masses_on_a_lattice(centre: float, sd: float) -> None:
    nodes = TwoClassPrior().lattice(np.array([5])).b
    mass = norm.pdf(nodes, centre, sd)[None]
    low, middle, high = quantiles(nodes, mass / mass.sum(), (0.025, 0.5, 0.975))
    assert (low[0], middle[0], high[0]) == pytest.approx(norm.ppf([0.025, 0.5, 0.975], centre, sd), abs=0.01)


# --- hyper-parameters ---


def skills_of(seed: int, count: int) -> Skills:
    rng = np.random.default_rng(seed)
    mean = rng.normal([1.0, 0.3], [1.5, 0.8], (count, 2))
    variance = rng.uniform(0.01, 1.0, (count, 2))
    return Skills(mean, np.column_stack([variance[:, 0], np.zeros(count), variance[:, 1]]))


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_populations_of_the_two_class_model_are_the_most_probable(count: int) -> None:
    """Any other mean or spread of abilities or leans lowers the annotators' part of the bound and its prior."""
    prior, skills, weight = TwoClassPrior(), skills_of(count, count), np.linspace(1, 3, count)
    totals = ItemTotals(100.0, 40.0, 12.0, 40.0, -10.0, 200.0, 0.0)
    found = prior.learn(prior.start(), skills, weight, totals)

    def value(population: Population) -> float:
        return float(weight @ annotator_bound(skills, population)) + prior.log_density(population)

    best = value(found)
    for name in ("ability_mean", "ability_sd", "lean_mean", "lean_sd"):
        for step in (-0.2, -0.01, 0.01, 0.2):
            assert value(replace(found, **{name: getattr(found, name) + step})) < best, name


def test_ten_annotators_at_the_standard_normal_are_the_prior() -> None:
    """By hand: one annotator of ability 11 in units of m, known exactly, beside ten of N(0, 1)."""
    totals = ItemTotals(100.0, 40.0, 12.0, 40.0, -10.0, 200.0, 0.0)
    skills = Skills(np.array([[11 * ROOT3, 0.0]]), np.zeros((1, 3)))
    found = TwoClassPrior().learn(TwoClassPrior().start(), skills, np.ones(1), totals)
    assert found.ability_mean == pytest.approx(ROOT3)
    assert found.ability_sd**2 == pytest.approx((10 * (3 + 3) + 300) / 11)
    assert (found.lean_mean, found.lean_sd**2) == pytest.approx((0.0, 10 / 11))
    # E[u^2] is 0.36 (1 - 0.1) in the mean, and known as well as if u had been seen; with 120 items at 0.6.
    assert found.pull_sd**2 == pytest.approx((32.4 + 120 * 0.36) / 220)


@pytest.mark.parametrize(("seen", "share"), [(1.0, 1.0), (0.25, 0.25), (0.001, 0.003)])
def test_a_pull_that_votes_tell_little_of_takes_longer_steps(seen: float, share: float) -> None:
    """By hand: the step of E[u^2] over the share of the information that votes give, or 0.003 if that is more."""
    items, before, skills = 1e9, TwoClassPrior().start(), Skills(np.zeros((1, 2)), np.array([[1.0, 0.0, 1.0]]))
    totals = ItemTotals(items, 0.4 * items, 0.1 * items, 0.4 * items, -0.002 * items, 2 * seen * items, 0.0)
    found = TwoClassPrior().learn(before, skills, np.ones(1), totals)
    assert np.log(found.pull_sd / before.pull_sd) == pytest.approx(0.5 * np.log(0.998) / share, rel=1e-4)
    still = replace(totals, pull_score=0.0)
    assert TwoClassPrior().learn(before, skills, np.ones(1), still).pull_sd == before.pull_sd
    far = replace(totals, pull_score=-0.9 * items)
    assert TwoClassPrior().learn(before, skills, np.ones(1), far).pull_sd == pytest.approx(
        before.pull_sd * np.exp(-0.5)
    )


@pytest.mark.parametrize(("prevalence", "target"), [(0.2, 0.2), ("able", 31 / 102), ("share", 31 / 102)])
def test_the_step_of_the_odds_is_newtons(prevalence: Any, target: float) -> None:
    """The mean of p moves by its slope, the mean of p (1 - p), for each unit of the log odds."""
    prior = TwoClassPrior(prevalence)
    totals = ItemTotals(100.0, positive=25.0, spread=12.0, rate=30.0, pull_score=0.0, pull_information=9.0, bound=0.0)
    before, skills = prior.start(), Skills(np.zeros((1, 2)), np.array([[1.0, 0.0, 1.0]]))
    found = prior.learn(before, skills, np.ones(1), totals)
    assert found.log_odds - before.log_odds == pytest.approx((target - 0.25) / 0.12)
    far = replace(totals, positive=99.0)
    assert prior.learn(before, skills, np.ones(1), far).log_odds == before.log_odds - 1


@settings(max_examples=100)
@given(st.integers(1, 200), st.floats(-20, 20), st.floats(0.05, 10), st.floats(-3, 3), st.floats(0.1, 10))
def test_the_scale_of_glad_maximises_the_bound(
    count: int, level: float, spread: float, ability_mean: float, ability_scale: float
) -> None:
    prior = GladPrior(ability_mean, ability_scale)
    skills = Skills(np.full((count, 2), [level, 0.0]), np.tile([spread**2, 0.0, 1.0], (count, 1)))
    weight, totals = np.ones(count), ItemTotals(10.0, 5.0, 1.0, 0.0, 0.0, 0.0, 0.0)

    def bound(unit: float) -> float:
        population = Population(unit, ability_mean * unit, ability_scale * unit)
        return float(annotator_bound(skills, population).sum()) + prior.log_density(population)

    found = prior.learn(prior.start(), skills, weight, totals)
    assert (found.ability_mean, found.ability_sd) == (ability_mean * found.unit, ability_scale * found.unit)
    assert found.unit <= 100 / ability_scale
    best = bound(found.unit)
    factors = np.exp(np.linspace(-3, 3, 121))
    tried = [bound(found.unit * factor) for factor in factors if found.unit * factor <= 100 / ability_scale]
    assert best >= max(tried) - 1e-9 * max(1.0, abs(best))


def test_the_scale_of_glad_in_closed_form_where_its_prior_hardly_counts() -> None:
    skills = Skills(np.zeros((100_000, 2)), np.tile([25.0, 0.0, 1.0], (100_000, 1)))
    totals = ItemTotals(10.0, 5.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    found = GladPrior().learn(GladPrior().start(), skills, np.ones(100_000), totals)
    assert found.unit == pytest.approx(5.0, rel=1e-4)


def test_one_annotator_weighs_as_much_as_the_prior_of_the_scale() -> None:
    """E[c^2] = 9 is greatest at 3, the prior's median; E[c^2] = 0 leaves -t against the prior: log 3 - 1."""
    totals, weight = ItemTotals(10.0, 5.0, 1.0, 0.0, 0.0, 0.0, 0.0), np.ones(1)
    for square, expected in ((9.0, 3.0), (0.0, 3.0 / np.e)):
        skills = Skills(np.zeros((1, 2)), np.array([[square, 0.0, 1.0]]))
        found = GladPrior().learn(GladPrior().start(), skills, weight, totals)
        assert found.unit == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("prior", [TwoClassPrior(), GladPrior(), GladPrior.named("paper")], ids=repr)
def test_hyper_parameters_as_unconstrained_numbers(prior: Any) -> None:
    population = prior.start()
    vector = prior.vector(population)
    again = prior.with_vector(population, vector)
    for name, value in vars(population).items():
        assert getattr(again, name) == pytest.approx(value, rel=1e-12), name
    moved = prior.with_vector(population, vector + 0.1)
    assert prior.vector(moved) == pytest.approx(vector + 0.1)


def test_hyper_parameters_are_reported_in_their_own_units() -> None:
    named = Population(ROOT3, ROOT3, 2 * ROOT3, 0.3, 0.9, 0.5, log_odds=0.0).named()
    assert named == pytest.approx(
        {
            "ability_mean": 1.0,
            "ability_sd": 2.0,
            "difficulty_scale": ROOT3,
            "lean_mean": 0.3,
            "lean_sd": 0.9,
            "pull_sd": 0.5,
            "prevalence": 0.5,
        }
    )
    assert set(Population(2.0, 0.0, 2.0).named()) == {"ability_mean", "ability_sd", "difficulty_scale"}
