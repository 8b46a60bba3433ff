"""Control questions: what they tell about an annotator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import softgold
from softgold.errors import UsageError
from softgold.models.base import Fit
from softgold.planning import plan_controls
from softgold.planning.beliefs import Beliefs
from softgold.planning.controls import choose_greedily, fisher_information


@pytest.fixture(scope="module")
def many() -> Fit:
    votes = softgold.simulate(n_items=200, n_annotators=30, votes_per_item=10, seed=4).votes
    return softgold.fit(votes, engine="coordinate")


def test_controls_are_clear_new_to_the_annotator_and_of_both_classes(many: Fit) -> None:
    who = many.votes.annotator_ids[3]
    plan = plan_controls(many, who, 12)
    frame = plan.to_frame()
    assert list(frame.columns) == ["item", "annotator", "answer", "p", "n_votes", "gain"]
    assert frame["item"].is_unique
    assert (np.minimum(frame["p"], 1 - frame["p"]) < 0.1).all()
    assert set(frame["answer"]) == {0, 1}
    votes = many.votes.to_frame()
    assert not set(frame["item"]) & set(votes.loc[votes["annotator"] == who, "item"])
    assert frame["gain"].is_monotonic_decreasing


def test_a_newcomer_has_most_to_tell(many: Fit) -> None:
    stranger, known = (plan_controls(many, who, 10) for who in ("stranger", many.votes.annotator_ids[0]))
    assert stranger.gain.sum() > known.gain.sum()
    assert stranger.ability_sd[1] < 0.7 * stranger.ability_sd[0]


def test_chosen_questions_tell_more_than_random_ones(many: Fit) -> None:
    """Ask simulated newcomers the chosen and as many random items, and compare what is learned of their ability."""
    plan = plan_controls(many, "stranger", 15)
    beliefs, rng = Beliefs.of(many), np.random.default_rng(0)
    mass = beliefs.masses(np.arange(beliefs.n_items))
    chosen = many.posterior.item_ids.get_indexer(plan.item_ids)
    population, states = beliefs.posterior.population, beliefs.states
    c = population.ability_mean + population.ability_sd * rng.standard_normal(400)
    d = population.lean_mean + population.lean_sd * rng.standard_normal(400)
    chance = expit(c[:, None] * states.b + d[:, None] + states.u) @ mass.T  # newcomers x items

    def spread_left(items: np.ndarray) -> float:
        answers = rng.random((400, len(items))) < chance[:, items]
        logs = (
            answers.astype(float) @ np.log(chance[:, items]).T
            + (~answers).astype(float) @ np.log1p(-chance[:, items]).T
        )
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = weight @ c
        return float(np.mean(weight @ c**2 - mean**2))

    random = np.mean([spread_left(rng.choice(beliefs.n_items, 15, replace=False)) for _ in range(5)])
    assert spread_left(chosen) < random


def test_the_information_is_the_fisher_matrix_of_the_answer(many: Fit) -> None:
    beliefs = Beliefs.of(many)
    mean, cov = np.array([1.2, 0.3]), np.diag([1e-10, 1e-10])
    found = fisher_information(beliefs, mean, cov)
    mass, states = beliefs.masses(np.arange(5)), beliefs.states

    def chance(c: float, d: float) -> np.ndarray:
        return mass @ expit(c * states.b + d + states.u)

    step, p = 1e-5, chance(1.2, 0.3)
    by_c = (chance(1.2 + step, 0.3) - chance(1.2 - step, 0.3)) / (2 * step)
    by_d = (chance(1.2, 0.3 + step) - chance(1.2, 0.3 - step)) / (2 * step)
    expected = np.column_stack([by_c**2, by_c * by_d, by_d**2]) / (p * (1 - p))[:, None]
    assert found[:5] == pytest.approx(expected, rel=1e-5)


def test_the_greedy_choice_shrinks_the_determinant_most() -> None:
    information = np.array([[1.0, 0.0, 0.1], [0.1, 0.0, 1.0], [0.9, 0.0, 0.1]])
    chosen, gain, cov = choose_greedily(information, np.eye(2), 2)
    assert set(chosen.tolist()) == {0, 1}
    assert gain.sum() == pytest.approx(-0.5 * np.log(np.linalg.det(cov)))


def test_too_many_questions_are_refused(many: Fit) -> None:
    with pytest.raises(UsageError, match="could be control questions for 'x'"):
        plan_controls(many, "x", 10_000)
