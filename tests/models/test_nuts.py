"""Both engines against NUTS on the same Pyro program: a small table, the hyper-parameters of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softgold.models.base import Fit, fit
from softgold.models.crowd.nuts import PosteriorDraws, draw_posterior
from softgold.tables.votes import VoteTable

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def votes(draw_crowd: Callable[..., Any]) -> VoteTable:
    return draw_crowd(0, n_items=60, n_annotators=10).votes


@pytest.fixture(scope="module", params=["two-class", "glad"])
def fitted(request: pytest.FixtureRequest, votes: VoteTable) -> Fit:
    return fit(votes, model=request.param)


@pytest.fixture(scope="module")
def draws(votes: VoteTable, fitted: Fit) -> PosteriorDraws:
    return draw_posterior(votes, fitted.posterior, draws=150, warmup=80)


def test_the_draws_are_a_posterior(votes: VoteTable, fitted: Fit, draws: PosteriorDraws) -> None:
    """Means as fitted; the exact spread is wider than svi's Normals, and they wider than the mean-field ones."""
    assert draws.ability.shape == draws.lean.shape == (150, votes.n_annotators)
    assert draws.positive.shape == (votes.n_items,)
    assert draws.r_hat < 1.1
    narrow = fit(votes, model=fitted.model, engine="coordinate").posterior.skills
    skills = fitted.posterior.skills
    for place, sampled in enumerate((draws.ability, draws.lean) if fitted.model == "two-class" else (draws.ability,)):
        assert np.corrcoef(sampled.mean(axis=0), skills.mean[:, place])[0, 1] > 0.95
        exact = sampled.std(axis=0).mean()
        own, field = (np.sqrt(found.variance[:, place]).mean() for found in (skills, narrow))
        assert field < own < 1.1 * exact
        assert own > 0.7 * exact
    assert (draws.lean == 0).all() == (fitted.model == "glad")


def test_engines_are_near_the_exact_posterior(votes: VoteTable, fitted: Fit, draws: PosteriorDraws) -> None:
    exact = fit(votes, model=fitted.model, engine="coordinate").posterior.soft_labels().p
    for name, p in (("svi", fitted.posterior.soft_labels().p), ("coordinate", exact)):
        apart = np.abs(p - draws.positive)
        print(f"{fitted.model}, {name}: |p - p_NUTS| largest {apart.max():.3f}, mean {apart.mean():.3f}")
        assert apart.mean() <= 0.02, name
        assert apart.max() < 0.1, name
    assert np.abs(votes.item_shares - draws.positive).mean() > 0.04  # what is easily had is further off


def test_draws_are_reproducible(votes: VoteTable, fitted: Fit) -> None:
    first, again, other = (draw_posterior(votes, fitted.posterior, draws=5, warmup=5, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.ability, again.ability)
    assert not np.array_equal(first.ability, other.ability)
