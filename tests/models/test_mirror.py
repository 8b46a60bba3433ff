"""Mirror images: told apart where the annotators or the prevalence tell, mixed and reported where nothing does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from softgold.errors import DataWarning
from softgold.models.base import Fit, fit
from softgold.models.crowd.acceleration import History
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.coordinate import CoordinateState
from softgold.models.crowd.mirror import Images, VoteGraph, mix, weigh_images
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import TwoClassPrior
from softgold.readers import read_votes
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]

CAMPS = "annotators who divide into camps, and nothing tells which camp is right"
ALONE = "a single annotator, whom nothing can check"


def two_camps(
    n_items: int, sizes: tuple[int, int] = (21, 20), *, slips: float = 0.0, prevalence: float = 0.5
) -> tuple[VoteTable, NDArray[np.bool_]]:
    """Annotators who say what an item is, and annotators who say the opposite."""
    rng = np.random.default_rng(0)
    label = rng.random(n_items) < prevalence
    items, who = np.divmod(np.arange(n_items * sum(sizes)), sum(sizes))
    answers = label[items] ^ (who >= sizes[0]) ^ (rng.random(len(items)) < slips)
    return VoteTable.from_codes(items, who, answers, map(str, range(n_items)), map(str, range(sum(sizes)))), label


def fit_with_doubt(votes: VoteTable, **options: Any) -> Fit:
    """Fit a table whose orientation is in doubt: the warning and the notice are the same sentence."""
    with pytest.warns(DataWarning) as caught:
        found = fit(votes, **options)
    assert [str(warning.message) for warning in caught] == list(found.diagnostics.warnings)
    assert {notice.kind for notice in found.diagnostics.notices} == {"orientation"}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("slips", [0.0, 0.1], ids=["exact opposites", "with slips"])
@pytest.mark.parametrize("n_items", [50, 5000])
@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_camps_in_balance_leave_every_label_open(model: str, n_items: int, slips: float) -> None:
    """However many items there are: what is in doubt is one sign, not many."""
    votes, _ = two_camps(n_items, slips=slips)
    found = fit_with_doubt(votes, model=model, engine="coordinate")
    labels = found.posterior.soft_labels()
    assert np.abs(labels.p - 0.5).max() < 0.1
    (notice,) = found.diagnostics.notices
    assert notice.text.startswith(f"1 of 1 connected components ({n_items} items) have {CAMPS}")
    (component,) = found.diagnostics.components
    assert (component.items, component.annotators, component.votes) == (n_items, 41, 41 * n_items)
    assert 0.5 <= component.certainty < 0.6
    assert f"weight of the likelier one from {component.certainty:.2f}" in notice.text
    assert labels.difficulty is not None
    assert labels.difficulty.low == pytest.approx(-labels.difficulty.high)  # an interval over both images
    assert np.array_equal(found.posterior.predict(votes).p, labels.p)


@pytest.mark.slow
def test_camps_in_balance_by_svi() -> None:
    votes, _ = two_camps(50, slips=0.1)
    found = fit_with_doubt(votes)
    assert np.abs(found.posterior.soft_labels().p - 0.5).max() < 0.1


@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_a_clear_majority_of_annotators_is_followed(model: str) -> None:
    votes, label = two_camps(60, (15, 3), slips=0.1)
    found = fit(votes, model=model, engine="coordinate")
    assert found.diagnostics.components[0].certainty == 1
    assert np.array_equal(found.posterior.soft_labels().p > 0.5, label)
    ability = found.posterior.annotators()["ability_mean"].to_numpy()
    assert (ability[:15] > 0).all()
    assert (ability[15:] < 0).all()


def test_a_prevalence_that_is_given_tells_the_images_apart() -> None:
    """Twenty say that one item in ten is positive, twenty the opposite: who knows the share knows the camp."""
    votes, label = two_camps(200, (20, 20), slips=0.1, prevalence=0.1)
    p = fit(votes, engine="coordinate", prevalence=0.1).posterior.soft_labels().p
    assert p.mean() == pytest.approx(0.1, abs=0.01)
    assert p[label].mean() > p[~label].mean() + 0.5


@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_passers_by_do_not_turn_a_table(model: str) -> None:
    """Six annotators did the work; thirty with one wrong vote each are more people, and fewer votes."""
    rng = np.random.default_rng(0)
    label = rng.random(30) < 0.5
    items, who = np.divmod(np.arange(180), 6)
    answers = np.concatenate([label[items] ^ (rng.random(180) < 0.1), ~label])
    codes = np.concatenate([items, np.arange(30)]), np.concatenate([who, 6 + np.arange(30)])
    votes = VoteTable.from_codes(*codes, answers, map(str, range(30)), map(str, range(36)))
    p = fit(votes, model=model, engine="coordinate").posterior.soft_labels().p
    assert ((p > 0.5) == label).mean() > 0.9


# --- many small components ---


@pytest.fixture(scope="module")
def pairs() -> tuple[VoteTable, NDArray[np.bool_]]:
    """300 components of three items and two annotators who are right in 85 %."""
    rng = np.random.default_rng(0)
    label = rng.random(900) < 0.5
    items = np.repeat(np.arange(900), 2)
    who = items // 3 * 2 + np.tile([0, 1], 900)
    answers = label[items] ^ (rng.random(1800) >= 0.85)
    return VoteTable.from_codes(items, who, answers, map(str, range(900)), map(str, range(600))), label


@pytest.mark.parametrize("engine", ["coordinate", pytest.param("svi", marks=pytest.mark.slow)])
def test_small_components_learn_from_each_other(pairs: tuple[VoteTable, NDArray[np.bool_]], engine: str) -> None:
    votes, label = pairs
    found = fit(votes, engine=engine)
    p, share = found.posterior.soft_labels().p, votes.item_shares
    assert len(found.diagnostics.components) == 300
    assert roc_auc_score(label, p) > 0.92
    assert p[share == 1].min() > 0.8
    assert p[share == 0].max() < 0.2
    assert found.diagnostics.notices == ()
    assert found.diagnostics.learned is not None
    assert found.diagnostics.learned["ability_mean"] > 0.5


def test_an_upright_component_beside_a_divided_one() -> None:
    rng = np.random.default_rng(0)
    sound = [(f"i{k}", f"a{j}", int((k % 2) ^ (rng.random() < 0.1))) for k in range(30) for j in range(6)]
    torn = [(f"t{k}", who, (k % 2) ^ (who == "q")) for k in range(12) for who in "pq"]
    votes = read_votes(pd.DataFrame(sound + torn, columns=["item", "annotator", "vote"]))
    found = fit_with_doubt(votes, engine="coordinate")
    first, second = found.diagnostics.components
    assert (first.certainty, second.certainty < 1) == (1.0, True)
    assert found.diagnostics.warnings[0].startswith(f"1 of 2 connected components (12 items) have {CAMPS}")
    p = found.posterior.soft_labels().p
    assert np.array_equal(p[:30] > 0.5, np.arange(30) % 2 == 1)
    assert np.abs(p[30:] - 0.5).max() < 0.1


# --- few annotators ---


@pytest.mark.parametrize("engine", ["coordinate", pytest.param("svi", marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_three_readers_who_mostly_agree_are_certain(model: str, engine: str) -> None:
    rng = np.random.default_rng(4)
    label = rng.random(120) < 0.3
    answers = label[:, None] ^ (rng.random((120, 3)) < 0.1)
    items, readers = np.divmod(np.arange(360), 3)
    votes = VoteTable.from_codes(items, readers, answers.ravel(), map(str, range(120)), list("abc"))
    found = fit(votes, model=model, engine=engine)
    assert found.diagnostics.notices == ()
    assert found.diagnostics.components[0].certainty == 1
    p = found.posterior.soft_labels().p
    assert p[answers.all(axis=1)].min() > 0.8
    assert p[~answers.any(axis=1)].max() < 0.2


@pytest.mark.parametrize(("model", "n_items"), [("two-class", 3), ("two-class", 200), ("glad", 3)])
def test_a_single_annotator_gets_a_notice(model: str, n_items: int) -> None:
    answers = np.arange(n_items) % 3 == 0
    votes = VoteTable.from_codes(range(n_items), np.zeros(n_items), answers, map(str, range(n_items)), ["a"])
    found = fit_with_doubt(votes, model=model, engine="coordinate")
    assert found.diagnostics.warnings[0].startswith(f"1 of 1 connected components ({n_items} items) have {ALONE}")
    p = found.posterior.soft_labels().p
    assert p[answers].mean() >= p[~answers].mean()  # with the votes, never against


# --- turning ---


def last_state(votes: VoteTable, **options: Any) -> tuple[Fit, CoordinateState]:
    states: list[CoordinateState] = []
    found = fit(votes, engine="coordinate", on_progress=lambda progress: states.append(progress.snapshot()), **options)
    return found, states[-1]


@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_a_component_that_is_upside_down_is_turned(model: str, draw_crowd: Callable[..., Any]) -> None:
    """Two components, of which the smaller goes on from its mirror image, and comes back to where it was."""
    first = draw_crowd(1, n_items=120, n_annotators=16).votes.to_frame()
    second = draw_crowd(2, n_items=40, n_annotators=5, votes_per_item=4).votes.to_frame()
    frame = pd.concat([first, second.assign(item="other " + second["item"], annotator="other " + second["annotator"])])
    votes = read_votes(frame)
    assert votes.components.count == 2
    whole, state = last_state(votes, model=model)
    inverted = votes.components.annotators == 1
    upside_down = replace(
        state,
        skills=state.skills.reversed(inverted),
        history=History(),
        change=np.inf,
    )
    again = fit(votes, model=model, engine="coordinate", resume=upside_down)
    p, expected = again.posterior.soft_labels().p, whole.posterior.soft_labels().p
    assert np.abs(p - expected).max() < 1e-3
    ability = again.posterior.annotators()["ability_mean"]
    assert ability[inverted].mean() > 0
    assert ability[~inverted].mean() > 0


def test_a_reversed_factor_keeps_its_lean() -> None:
    skills = Skills(np.array([[1.0, 0.5], [2.0, -0.5]]), np.array([[0.3, 0.1, 0.2], [0.4, -0.1, 0.5]]))
    turned = skills.reversed(np.array([True, False]))
    assert turned.mean.tolist() == [[-1.0, 0.5], [2.0, -0.5]]
    assert turned.cov.tolist() == [[0.3, -0.1, 0.2], [0.4, -0.1, 0.5]]


# --- the rule, by hand ---


def two_parts() -> VoteTable:
    """Annotators a, b, c on items x, y; and d, e on item z."""
    rows = [("x", "a", 1), ("x", "b", 1), ("x", "c", 0), ("y", "a", 0), ("y", "b", 0), ("y", "c", 1)]
    return read_votes(pd.DataFrame([*rows, ("z", "d", 1), ("z", "e", 1)], columns=["item", "annotator", "vote"]))


def weighed(votes: VoteTable, skills: Skills) -> Images:
    """Weigh the images where every p is even, and so is the prevalence."""
    blocks = [(votes.components.items, np.full(votes.n_items, 0.5))]
    return weigh_images(VoteGraph.of(votes), skills, blocks, Population(1.0, 0.0, 1.0), TwoClassPrior())


def test_images_weigh_as_the_abilities_under_the_annotators_own_population() -> None:
    votes = two_parts()
    ability, variance = np.array([1.0, 0.8, -0.9, 0.3, -0.4]), 0.2
    skills = Skills(np.column_stack([ability, np.zeros(5)]), np.tile([variance, 0.0, variance], (5, 1)))
    found = weighed(votes, skills)
    helpful = ability * [1, 1, 1, -1, -1]  # every component the right way round, as its sum of abilities says
    count = votes.annotator_counts / votes.annotator_counts.mean()
    centre = np.average(helpful, weights=count)
    spread = np.sqrt(np.average(variance + (helpful - centre) ** 2, weights=count))
    gain = count * (norm.logpdf(ability, centre, spread) - norm.logpdf(-ability, centre, spread))
    weights = np.array([gain[:3].sum(), gain[3:].sum()])
    assert found.upright.tolist() == [True, False] == (weights > 0).tolist()
    assert found.certainty == pytest.approx(expit(np.abs(weights)))
    assert found.odds.tolist() == [0.0, 0.0]


def test_a_table_of_adversaries_alone_is_upside_down() -> None:
    """Annotators are helpful on the whole: if all of them come out adversarial, it is the image that is wrong."""
    skills = Skills(np.column_stack([np.full(5, -2.0), np.zeros(5)]), np.tile([0.1, 0.0, 0.1], (5, 1)))
    found = weighed(two_parts(), skills)
    assert found.upright.tolist() == [False, False]
    assert found.certainty.tolist() == [1.0, 1.0]


def test_a_negligible_image_is_left_out() -> None:
    skills = Skills(np.column_stack([np.full(5, 2.0), np.zeros(5)]), np.tile([0.1, 0.0, 0.1], (5, 1)))
    found = weighed(two_parts(), skills)
    assert found.certainty.tolist() == [1.0, 1.0]
    assert found.upright.all()


def test_mixing_by_hand() -> None:
    p = np.array([0.9, 0.9, 0.9, 0.2])
    mixed = mix(p, np.array([1.0, 0.6, 0.6, 0.5]), np.array([0.0, 0.0, logit(0.7), 0.0]))
    turned = expit(logit(0.7) - logit(0.9))
    assert mixed == pytest.approx([0.9, 0.6 * 0.9 + 0.4 * 0.1, 0.6 * 0.9 + 0.4 * turned, 0.5])
    assert p.tolist() == [0.9, 0.9, 0.9, 0.2]
