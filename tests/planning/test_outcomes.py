"""What further votes would do: exact sums against brute force, and what must hold for any posterior."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import DataWarning, UsageError
from softgold.models.base import Fit
from softgold.planning.beliefs import Beliefs, VoterPool
from softgold.planning.crew import Crew
from softgold.planning.outcomes import look_ahead, vote_values


@pytest.fixture(scope="module")
def beliefs(fitted: Fit) -> Beliefs:
    return Beliefs.of(fitted)


def brute_force(beliefs: Beliefs, pool: VoterPool, item: int, depth: int) -> tuple[float, float]:
    """Go through every sequence of types and answers, updating by Bayes' rule."""
    mass = beliefs.masses(np.array([item]))[0]
    error = brier = 0.0
    for sequence in product(range(len(pool.share)), (0, 1), repeat=depth):
        chance, now = 1.0, mass
        for kind, answer in zip(sequence[::2], sequence[1::2], strict=True):
            likelihood = pool.yes[kind] if answer else 1 - pool.yes[kind]
            chance *= pool.share[kind] * (now @ likelihood)
            now = now * likelihood / (now @ likelihood)
        p = now @ beliefs.states.positive
        error += chance * min(p, 1 - p)
        brier += chance * p * (1 - p)
    return error, brier


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_the_outlook_is_the_sum_over_all_sequences_of_votes(beliefs: Beliefs, depth: int) -> None:
    pool = Crew.of(beliefs).pool(beliefs)
    outlook = look_ahead(beliefs, pool, 3)
    for item in (0, 17, 123):
        error, brier = brute_force(beliefs, pool, item, depth)
        assert outlook.error[item, depth] == pytest.approx(error, abs=1e-12)
        assert outlook.brier[item, depth] == pytest.approx(brier, abs=1e-12)


def test_the_outlook_starts_at_the_soft_labels_and_never_rises(beliefs: Beliefs, fitted: Fit) -> None:
    outlook = look_ahead(beliefs, Crew.of(beliefs).pool(beliefs), 4)
    p = fitted.posterior.soft_labels().p
    assert outlook.brier[:, 0] == pytest.approx(p * (1 - p), abs=1e-12)
    assert outlook.error[:, 0] == pytest.approx(np.minimum(p, 1 - p), abs=1e-12)
    assert (np.diff(outlook.brier, axis=1) <= 1e-12).all()
    assert (np.diff(outlook.error, axis=1) <= 1e-12).all()


def test_the_value_of_a_vote_is_the_expected_squared_change_of_p(beliefs: Beliefs) -> None:
    pool, items = Crew.of(beliefs).pool(beliefs), np.arange(20)
    mass, positive = beliefs.masses(items), beliefs.states.positive
    values = vote_values(mass, positive, pool.yes, np.ones(20))
    for item in items:
        p = mass[item] @ positive
        for kind, yes in enumerate(pool.yes):
            expected = 0.0
            for likelihood in (yes, 1 - yes):
                chance = mass[item] @ likelihood
                expected += chance * (mass[item] @ (likelihood * positive) / chance - p) ** 2
            assert values[item, kind] == pytest.approx(expected, abs=1e-14)


def test_the_values_of_types_add_up_to_the_fall_of_the_brier_score(beliefs: Beliefs) -> None:
    pool = Crew.of(beliefs).pool(beliefs)
    outlook = look_ahead(beliefs, pool, 1)
    mass = beliefs.masses(np.arange(beliefs.n_items))
    values = vote_values(mass, beliefs.states.positive, pool.yes, np.ones(beliefs.n_items)) @ pool.share
    assert outlook.brier[:, 0] - outlook.brier[:, 1] == pytest.approx(values, abs=1e-12)


def test_a_component_in_doubt_is_worth_less_and_starts_at_its_own_p() -> None:
    rows = [(f"i{item}", who, item % 2) for item in range(6) for who in ("ann", "bob")]
    rows += [(f"j{item}", "cy", item % 2) for item in range(4)] + [
        (f"j{item}", "di", 1 - item % 2) for item in range(4)
    ]
    with pytest.warns(DataWarning, match="divide into camps"):
        fit = softgold.fit(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), engine="coordinate")
    beliefs = Beliefs.of(fit)
    assert (beliefs.certainty < 1).any()
    pool = Crew.of(beliefs).pool(beliefs)
    outlook = look_ahead(beliefs, pool, 1)
    doubted = beliefs.certainty < 1
    p = fit.posterior.soft_labels().p
    assert outlook.error[doubted, 0] == pytest.approx(np.minimum(p, 1 - p)[doubted], abs=0.02)
    mass, states = beliefs.masses(np.arange(beliefs.n_items)), beliefs.states
    sure = vote_values(mass, states.positive, pool.yes, np.ones(beliefs.n_items)) @ pool.share
    assert (outlook.brier[:, 0] - outlook.brier[:, 1] <= sure + 1e-12).all()


def test_types_share_the_votes_evenly(beliefs: Beliefs) -> None:
    pool = Crew.of(beliefs).pool(beliefs)
    assert pool.share.sum() == pytest.approx(1)
    assert pool.share.min() > 0.2
    sharp = pool.yes @ (beliefs.states.given_class(1) - beliefs.states.given_class(0))
    assert (np.diff(sharp) > 0).all()
    whole = beliefs.chances(beliefs.posterior.skills)
    counts = beliefs.posterior.annotator_counts
    assert pool.share @ pool.yes == pytest.approx(counts @ whole / counts.sum())


def test_only_a_crowd_model_with_its_own_votes_can_plan(fitted: Fit) -> None:
    with pytest.raises(UsageError, match="planning needs a crowd model"):
        Beliefs.of(softgold.fit(fitted.votes, model="mean"))
    with pytest.raises(UsageError, match="a posterior needs the votes"):
        Beliefs.of(fitted.posterior)
    other = softgold.simulate(n_items=50, n_annotators=12, seed=1).votes
    with pytest.raises(UsageError, match="votes must be those that the posterior was fitted to"):
        Beliefs.of(fitted.posterior, other)
    assert Beliefs.of(fitted.posterior, fitted.votes).n_items == fitted.votes.n_items


def test_the_published_model_can_plan_too(fitted: Fit) -> None:
    fit = softgold.fit(fitted.votes, model="glad", engine="coordinate")
    beliefs = Beliefs.of(fit)
    outlook = look_ahead(beliefs, Crew.of(beliefs).pool(beliefs), 2)
    p = fit.posterior.soft_labels().p
    assert outlook.error[:, 0] == pytest.approx(np.minimum(p, 1 - p), abs=1e-9)
