"""What a fit of a crowd model says: rates of annotators, intervals, votes to expect, votes of newcomers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from scipy.stats import multivariate_normal

from softgold.models.agreement import agreement_with_others
from softgold.models.base import Fit, find_model, fit
from softgold.models.crowd.annotators import Skills, respond
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import CrowdPrior, GladPrior, TwoClassPrior
from softgold.models.crowd.summary import class_rates, response_curve
from softgold.readers import read_votes
from softgold.tables.soft_labels import COLUMNS
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]

ROOT3 = np.sqrt(3.0)
SETTINGS: dict[str, tuple[CrowdPrior, Population]] = {
    "two-class": (TwoClassPrior(), Population(ROOT3, 0.9, 1.2, 0.1, 0.8, 0.5, log_odds=-0.7)),
    "glad": (GladPrior(), Population(2.5, 0.0, 2.5)),
}


@pytest.fixture(scope="module")
def drawn(draw_crowd: Callable[..., Any]) -> Any:
    return draw_crowd(7, n_items=300, n_annotators=30, ability=(0.9, 0.8), lean_sd=1.2)


@pytest.fixture(scope="module")
def coordinate(drawn: Any) -> Fit:
    return fit(drawn.votes, engine="coordinate")


@pytest.fixture(
    scope="module",
    params=[
        "two-class coordinate",
        "glad coordinate",
        *(pytest.param(f"{model} svi", marks=pytest.mark.slow) for model in ("two-class", "glad")),
    ],
)
def any_fit(request: pytest.FixtureRequest, drawn: Any) -> Fit:
    model, engine = request.param.split()
    return fit(drawn.votes, model=model, engine=engine)


def frame_of(*rows: tuple[str, str, int]) -> VoteTable:
    return read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]))


# --- sensitivity and specificity ---


def true_rates(name: str, c: float, d: float) -> tuple[float, float]:
    """P(yes | z = 1) and P(no | z = 0) of one annotator, b and u integrated on a fine grid of its own."""
    _, population = SETTINGS[name]
    u, b = np.linspace(-6, 6, 241), np.linspace(-7, 7, 1401)
    pull = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
    yes = expit(c * b[:, None] + d + population.pull_sd * u) @ pull
    if name == "glad":
        density = {1: np.exp(-0.5 * b**2) * (b > 0), 0: np.exp(-0.5 * b**2) * (b < 0)}
    else:
        density = {z: np.exp(-0.5 * ((b - (2 * z - 1)) / 0.8) ** 2) for z in (0, 1)}
    rate = {z: float(density[z] @ yes / density[z].sum()) for z in (0, 1)}
    return rate[1], 1 - rate[0]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("c", "d"), [(2.0, 0.0), (0.0, 0.5), (-1.0, -0.5), (4.0, 1.0)])
def test_rates_of_a_narrow_posterior_against_quadrature(name: str, c: float, d: float) -> None:
    prior, population = SETTINGS[name]
    d = d if name == "two-class" else 0.0
    narrow = [1e-8, 0.0, 1e-8 if name == "two-class" else 0.0]
    skills = Skills(np.array([[c, d], [0.5, 0.0]]), np.array([narrow, narrow]))
    states = prior.states(population, prior.lattice(np.array([5])))
    for label, expected in zip((1, 0), true_rates(name, c, d), strict=True):
        mean, low, high = class_rates(skills, states, label)[:, 0]
        assert mean == pytest.approx(expected, abs=5e-3)
        assert (low, high) == pytest.approx((mean, mean), abs=1e-3)


def test_an_annotator_at_chance_is_right_in_half_of_the_items() -> None:
    for name, (prior, population) in SETTINGS.items():
        states = prior.states(population, prior.lattice(np.array([5])))
        skills = Skills(np.array([[0.0, 0.0], [1.0, 0.0]]), np.tile([1e-9, 0.0, 1e-9], (2, 1)))
        rates = [class_rates(skills, states, label)[0, 0] for label in (1, 0)]
        assert rates == pytest.approx([0.5, 0.5], abs=1e-3), name


def test_intervals_of_rates_against_draws() -> None:
    """A correlated posterior of ability and lean: the quantiles of the rate over draws of both."""
    prior, population = SETTINGS["two-class"]
    states = prior.states(population, prior.lattice(np.array([5])))
    mean, cov = np.array([1.5, 0.4]), np.array([[0.2, -0.08], [-0.08, 0.15]])
    skills = Skills(mean[None], np.array([[0.2, -0.08, 0.15]]))
    draws = multivariate_normal(mean, cov).rvs(20_000, random_state=1)
    for label in (1, 0):
        weight = states.given_class(label)
        yes = expit(draws[:, :1] * states.b + draws[:, 1:] + states.u) @ weight
        rate = yes if label else 1 - yes
        found = class_rates(skills, states, label)
        low, high = np.quantile(rate, [0.025, 0.975])
        width = high - low
        assert found[0, 0] == pytest.approx(rate.mean(), abs=0.02 * width)
        assert found[1:, 0] == pytest.approx([low, high], abs=0.1 * width)


def test_more_votes_make_narrower_intervals(coordinate: Fit, drawn: Any) -> None:
    frame = drawn.votes.to_frame()
    rare = frame["annotator"].eq("a0") & (frame.groupby("annotator").cumcount() >= 5)
    found = fit(read_votes(frame[~rare]), engine="coordinate").posterior.annotators().set_index("annotator")
    whole = coordinate.posterior.annotators().set_index("annotator")
    for name in ("sensitivity", "specificity", "ability", "lean"):
        width, before = (rows.loc["a0", f"{name}_hi"] - rows.loc["a0", f"{name}_lo"] for rows in (found, whole))
        assert width > 1.3 * before, name


# --- annotators and items ---


def test_the_table_of_annotators(any_fit: Fit, drawn: Any) -> None:
    frame = any_fit.posterior.annotators()
    assert list(frame.columns) == [
        "annotator",
        *(f"{name}_{part}" for name in ("ability", "lean") for part in ("mean", "sd", "lo", "hi")),
        *("sensitivity", "sensitivity_lo", "sensitivity_hi", "specificity", "specificity_lo", "specificity_hi"),
        *("p_adversarial", "n_votes", "agreement"),
    ]
    for name, middle in (("ability", "ability_mean"), ("sensitivity",) * 2, ("specificity",) * 2):
        assert (frame[f"{name}_lo"] < frame[middle]).all()
        assert (frame[middle] < frame[f"{name}_hi"]).all()
    for name in ("sensitivity", "specificity"):
        assert ((frame[f"{name}_lo"] >= 0) & (frame[f"{name}_hi"] <= 1)).all()
    mean, sd, low, high = (frame[f"ability_{part}"].to_numpy() for part in ("mean", "sd", "lo", "hi"))
    assert high - mean == pytest.approx(1.959964 * sd, rel=1e-5)
    assert mean - low == pytest.approx(1.959964 * sd, rel=1e-5)
    assert frame["p_adversarial"].to_numpy() == pytest.approx(ndtr(-mean / sd))
    assert frame["agreement"].tolist() == agreement_with_others(drawn.votes).tolist()


def test_the_sign_of_leans(any_fit: Fit, drawn: Any) -> None:
    lean = any_fit.posterior.annotators()["lean_mean"].to_numpy()
    if any_fit.model == "glad":
        assert (any_fit.posterior.annotators()[["lean_mean", "lean_sd", "lean_lo", "lean_hi"]] == 0).all(axis=None)
    else:
        clear = np.abs(drawn.lean) > 1.2
        assert clear.sum() > 5
        assert np.array_equal(lean[clear] > 0, drawn.lean[clear] > 0)


def test_a_lean_is_what_tells_sensitivity_from_specificity(any_fit: Fit) -> None:
    frame = any_fit.posterior.annotators()
    gap = frame["sensitivity"] - frame["specificity"]
    if any_fit.model == "glad":
        assert np.abs(gap).max() < 1e-6
    else:
        assert np.corrcoef(gap, frame["lean_mean"])[0, 1] > 0.9


def test_the_table_of_items(any_fit: Fit) -> None:
    labels = any_fit.posterior.soft_labels()
    assert tuple(labels.to_frame().columns) == COLUMNS
    b = labels.difficulty
    assert b is not None
    assert (b.low < b.mean).all()
    assert (b.mean < b.high).all()
    assert (b.sd > 0).all()
    assert ((labels.expected_vote > 0) & (labels.expected_vote < 1)).all()
    assert np.corrcoef(labels.expected_vote, b.mean)[0, 1] > 0.9
    assert np.corrcoef(labels.p, labels.mean_vote)[0, 1] > 0.8


@pytest.mark.parametrize("name", SETTINGS)
def test_the_vote_to_expect_is_the_mean_over_the_annotators(name: str) -> None:
    prior, population = SETTINGS[name]
    states = prior.states(population, prior.lattice(np.array([5])))
    lean = 1.0 if name == "two-class" else 0.0
    skills = Skills(np.array([[2.0, 0.3 * lean], [-0.5, -0.4 * lean]]), np.tile([1e-14, 0.0, 1e-14 * lean], (2, 1)))
    curve = response_curve(respond(skills, states), np.array([1, 3]))
    first, second = (expit(c * states.b + d + states.u) for c, d in skills.mean)
    assert curve == pytest.approx(0.25 * first + 0.75 * second, abs=1e-6)


def test_agreement_with_others_by_hand() -> None:
    rows = [("x", "a", 1), ("x", "b", 1), ("x", "c", 0), ("y", "a", 1), ("y", "b", 0), ("z", "c", 1)]
    # a: x others tie (1/2), y against b (0); b: the same; c: x against both (0), z alone (not counted).
    assert agreement_with_others(frame_of(*rows)).tolist() == [0.25, 0.25, 0.0]


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
@pytest.mark.parametrize("duplicates", ["mean", "all"])
def test_own_repeats_are_not_votes_of_others(duplicates: Any) -> None:
    rows = [("x", "a", 1), ("x", "a", 1), ("x", "a", 0), ("x", "b", 0), ("y", "b", 1), ("y", "b", 0)]
    votes = read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), duplicates=duplicates)
    # b's only company is on x, where a has two of three (or two thirds) positive; a's is b's 0.
    assert agreement_with_others(votes) == pytest.approx([1 / 3, 0.0])


# --- sampling ---


def test_sampled_soft_labels_are_binomial_around_the_exact_ones(any_fit: Fit) -> None:
    exact = any_fit.posterior.soft_labels().p
    draws = np.array([any_fit.posterior.sample_soft_labels(1000, seed=seed).p for seed in range(20)])
    error = np.sqrt(exact * (1 - exact) / 1000)
    open_items = error * 1000 > 3
    z = (draws.mean(axis=0) - exact)[open_items] / (error[open_items] / np.sqrt(20))
    assert np.abs(z).max() < 5
    assert draws.std(axis=0)[open_items].mean() == pytest.approx(error[open_items].mean(), rel=0.1)


# --- new votes ---


def test_a_soft_label_of_new_votes_by_the_formula(coordinate: Fit) -> None:
    """Two known annotators and a newcomer on a new item: the item's posterior written out over its states."""
    posterior = coordinate.posterior
    votes = frame_of(("new", "a3", 1), ("new", "a8", 0), ("new", "stranger", 1))
    states, population = posterior.states, posterior.population
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    centre = [population.ability_mean, population.lean_mean]
    spread = [population.ability_sd**2, 0.0, population.lean_sd**2]
    factors = [
        (*(part[who] for part in (posterior.skills.mean, posterior.skills.cov)), vote) for who, vote in ((3, 1), (8, 0))
    ]
    log_q = states.log_prior.copy()
    for (c, d), (cc, cd, dd), vote in [*factors, (centre, spread, 1)]:
        x = (c * states.b + d + states.u)[:, None] + np.sqrt(cc * states.b**2 + 2 * cd * states.b + dd)[:, None] * nodes
        log_q -= np.logaddexp(0, -x if vote else x) @ weights
    q = np.exp(log_q - log_q.max())
    assert posterior.predict(votes).p[0] == pytest.approx(q @ states.positive / q.sum(), abs=1e-3)


def test_votes_of_newcomers_count(any_fit: Fit) -> None:
    """In the two-class model a newcomer is of the fitted population, whose mean ability is above chance."""
    rows = [("yes", f"new{k}", 1) for k in range(3)] + [("no", f"new{k}", 0) for k in range(3)] + [("one", "new0", 1)]
    yes, no, one = any_fit.posterior.predict(frame_of(*rows)).p
    if any_fit.model == "two-class":
        assert yes > 0.75
        assert no < 0.25
        assert 0.5 < one < yes
    else:  # the published model expects chance of a newcomer, as published
        assert (yes, no, one) == pytest.approx((0.5, 0.5, 0.5))


def test_a_newcomer_beside_known_annotators_moves_p(coordinate: Fit) -> None:
    known = [("x", "a1", 1), ("x", "a2", 0)]
    before, up, down = (
        float(coordinate.posterior.predict(frame_of(*known, *more)).p[0])
        for more in ([], [("x", "new", 1)], [("x", "new", 0)])
    )
    assert down < before - 0.02
    assert up > before + 0.02


def test_newcomers_under_a_prior_that_expects_help_are_believed(drawn: Any) -> None:
    posterior = fit(drawn.votes, model="glad", engine="coordinate", ability_mean=1.0, difficulty_scale=3.0).posterior
    up, down = posterior.predict(frame_of(("x", "new", 1), ("y", "new", 0))).p
    assert up > 0.7
    assert down == pytest.approx(1 - up, abs=1e-9)


def test_helpful_and_adversarial_annotators_count_with_their_sign(any_fit: Fit) -> None:
    frame = any_fit.posterior.annotators().set_index("annotator")["ability_mean"]
    best, worst = frame.idxmax(), frame.idxmin()
    assert frame[worst] < -0.2
    found = any_fit.posterior.predict(frame_of(("x", best, 1), ("y", best, 0), ("v", worst, 1), ("w", worst, 0))).p
    assert found[0] > 0.7
    assert found[1] < 0.3
    assert found[2] < found[3]


def test_a_lean_is_allowed_for(coordinate: Fit, drawn: Any) -> None:
    """The yes of somebody who says yes readily counts less than that of somebody who does not."""
    frame = coordinate.posterior.annotators().set_index("annotator")
    alike = frame[frame["ability_mean"].between(0.6, 1.4)].sort_values("lean_mean")
    reluctant, ready = alike.index[0], alike.index[-1]
    assert alike["lean_mean"].iloc[-1] - alike["lean_mean"].iloc[0] > 1
    p = coordinate.posterior.predict(
        frame_of(("x", reluctant, 1), ("y", ready, 1), ("v", reluctant, 0), ("w", ready, 0))
    ).p
    assert p[0] > p[1] + 0.05
    assert p[2] > p[3] + 0.05


# --- damage ---


def damage(array: Any, value: float) -> Any:
    array = array.astype(float)
    array.flat[0] = value
    return array


DAMAGES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "too few items": ("item_mean", lambda array: array[1:], "item_mean is not an array of numbers of shape"),
    "too many dimensions": ("item_sd", lambda array: array[:, None], "item_sd is not an array of numbers of shape"),
    "too few annotators": ("skill_mean", lambda array: array[1:], "skill_mean is not an array of numbers of shape"),
    "a flat covariance": ("skill_cov", lambda array: array[:, 0], "skill_cov is not an array of numbers of shape"),
    "text": ("item_low", lambda array: array.astype(str), "item_low is not an array of numbers"),
    "complex": ("item_low", lambda array: array.astype(complex), "item_low is not an array of numbers"),
    "NaN": ("skill_mean", lambda array: damage(array, np.nan), "skill_mean is not finite"),
    "infinite": ("item_high", lambda array: array + np.inf, "item_high is not finite"),
    "p above 1": ("item_positive", lambda array: damage(array, 1.5), "item_positive is not between 0 and 1"),
    "a negative p": ("item_positive", lambda array: damage(array, -0.1), "item_positive is not between 0 and 1"),
    "certainty above 1": ("certainty", lambda array: array + 1, "certainty is not between 0 and 1"),
    "hyper-parameters left out": ("population", lambda array: array[:-1], "population is not an array of numbers"),
    "a lattice that does not fit": ("lattice_width", lambda array: array[1:], "lattice_width is not an array of"),
    "pulls that do not fit": ("lattice_pull_weight", lambda array: array[1:], "lattice_pull_weight is not an array of"),
    "a negative variance": ("skill_cov", lambda array: -array, "skill_cov"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_arrays_are_refused(coordinate: Fit, kind: str) -> None:
    name, change, said = DAMAGES[kind]
    arrays = coordinate.posterior.to_arrays()
    ids = coordinate.posterior.item_ids, coordinate.posterior.annotator_ids
    with pytest.raises(ValueError, match=said):
        find_model("two-class").posterior({**arrays, name: change(arrays[name])}, *ids, coordinate.settings)


def test_missing_arrays_are_refused(coordinate: Fit) -> None:
    arrays = coordinate.posterior.to_arrays()
    ids = coordinate.posterior.item_ids, coordinate.posterior.annotator_ids
    for name in arrays:
        others = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(KeyError, match=name):
            find_model("two-class").posterior(others, *ids, coordinate.settings)
