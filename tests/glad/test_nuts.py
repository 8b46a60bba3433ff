"""Both engines against NUTS on the same Pyro program: a small table, signs oriented the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pyro.infer import MCMC, NUTS

from softgold.glad.fitting import fit
from softgold.glad.model import Start, VoteTensors, model
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
def sampled(votes: VoteTable) -> FloatArray:
    """P(b > 0) of each item by NUTS, the scale of the difficulties sampled too."""
    nothing = torch.zeros(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            kernel = NUTS(model)
            chain = MCMC(kernel, num_samples=300, warmup_steps=200, disable_progbar=True)
            tensors = VoteTensors.of(votes, dtype=torch.float64)
            chain.run(tensors, Prior(), Start(nothing, nothing, nothing, nothing, 0.0), True)
    finally:
        torch.set_num_threads(threads)
    draws = {name: values.numpy() for name, values in chain.get_samples().items()}
    assert float(chain.diagnostics()["b"]["r_hat"].max()) < 1.1
    # Each draw is oriented as a fit is: by the mean ability, annotators counted by their votes.
    upright = np.sign(draws["c"] @ votes.annotator_counts)
    share: FloatArray = (draws["b"] * upright[:, None] > 0).mean(axis=0)
    return share


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
