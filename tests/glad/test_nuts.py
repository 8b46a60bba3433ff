"""Both engines against NUTS on the same Pyro program: a small table, signs oriented the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from softgold.glad.fitting import fit
from softgold.glad.nuts import PosteriorDraws, draw_posterior
from softgold.glad.priors import Prior
from softgold.simulation import simulate
from softgold.votes import VoteTable

FloatArray = NDArray[np.float64]

ENGINES: dict[str, dict[str, Any]] = {
    "svi": {},
    "coordinate": {"engine": "coordinate"},
    "coordinate with Normal factors": {"engine": "coordinate", "family": "gaussian"},
}


@pytest.fixture(scope="module")
def votes() -> VoteTable:
    return simulate(n_items=60, n_annotators=12, votes_per_item=5, seed=0).votes


@pytest.fixture(scope="module")
def draws(votes: VoteTable) -> PosteriorDraws:
    """The exact posterior, the scale of the difficulties included."""
    return draw_posterior(votes, draws=300, warmup=200)


@pytest.fixture(scope="module")
def sampled(draws: PosteriorDraws) -> FloatArray:
    return draws.positive


def test_the_draws_are_a_posterior(votes: VoteTable, draws: PosteriorDraws) -> None:
    assert draws.c.shape == (300, votes.n_annotators)
    assert draws.b.shape == (300, votes.n_items)
    assert draws.r_hat < 1.1
    assert (draws.c @ votes.annotator_counts > 0).all()
    found = fit(votes, engine="coordinate")
    assert np.median(draws.scale) == pytest.approx(found.diagnostics.difficulty_scale, rel=0.5)
    assert np.corrcoef(draws.c.mean(axis=0), found.posterior.abilities.mean)[0, 1] > 0.98
    assert np.corrcoef(draws.b.mean(axis=0), found.posterior.items.mean)[0, 1] > 0.98


def test_a_fixed_scale_is_not_sampled(votes: VoteTable) -> None:
    found = draw_posterior(votes, Prior(difficulty_scale=2.0), draws=5, warmup=5)
    assert set(found.scale) == {2.0}
    assert np.isfinite(found.b).all()


@pytest.mark.parametrize("name", ENGINES)
def test_engines_are_near_the_exact_posterior(
    votes: VoteTable, sampled: FloatArray, name: str, record_property: Any
) -> None:
    """A share of 300 correlated draws has a standard error of up to 0.06 itself."""
    apart = np.abs(fit(votes, **ENGINES[name]).posterior.items.positive - sampled)
    record_property("largest", float(apart.max()))
    record_property("mean", float(apart.mean()))
    print(f"{name}: |p - p_NUTS| largest {apart.max():.3f}, mean {apart.mean():.3f}")
    assert apart.mean() < 0.03
    assert apart.max() < 0.15


def test_the_mean_vote_is_much_further_off(votes: VoteTable, sampled: FloatArray) -> None:
    apart = np.abs(votes.item_shares - sampled)
    assert apart.mean() > 0.1


def test_the_vague_prior_is_much_further_off(votes: VoteTable, sampled: FloatArray) -> None:
    """A mean-field fit under the published prior is over-confident; the learned scale is why ours is not."""
    vague = fit(votes, engine="coordinate", prior="paper").posterior.items.positive
    ours = fit(votes, engine="coordinate").posterior.items.positive
    assert np.abs(vague - sampled).mean() > 3 * np.abs(ours - sampled).mean()
