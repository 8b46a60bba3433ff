"""The svi engine: the Pyro program, its starts and batches, and its agreement with the coordinate engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyro
import pytest
import torch
from numpy.typing import NDArray
from pyro import poutine
from scipy.special import log_expit
from scipy.stats import norm

from softgold.errors import ConvergenceWarning, UsageError
from softgold.glad import svi
from softgold.glad.fitting import Fit, fit
from softgold.glad.grid import SinhGrid
from softgold.glad.model import Start, VoteTensors, guide, model
from softgold.glad.posterior import Posterior
from softgold.glad.priors import HYPER_MEDIAN, HYPER_SIGMA, Prior
from softgold.glad.summary import Pool, summarise_normal
from softgold.glad.svi import consensus_start, has_settled, item_batches, paper_start
from softgold.readers import read_votes
from softgold.simulation import simulate
from softgold.votes import VoteTable

FloatArray = NDArray[np.float64]

# Three annotators, three items, six votes (annotator, item, vote), difficulty scale 1000.
ABILITIES, DIFFICULTIES = [1.2, 0.5, -0.3], [2.0, -1.0, 0.4]
VOTES = [(0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 2, 1), (2, 1, 1), (2, 2, 0)]
LOG_JOINT, LOG_LIKELIHOOD = -29.577720138630383, -2.4508205224559365


@pytest.fixture(scope="module")
def votes() -> VoteTable:
    return simulate(n_items=150, n_annotators=20, votes_per_item=6, seed=3).votes


@pytest.fixture(scope="module")
def alone(votes: VoteTable) -> Fit:
    return fit(votes)


def tiny_table() -> VoteTable:
    annotators, items, answers = zip(*VOTES, strict=True)
    return VoteTable.from_codes(items, annotators, answers, ["x", "y", "z"], ["a", "b", "c"])


def no_start(table: VoteTable) -> Start:
    """A start for calls of the model alone, which does not look at it."""
    nothing = torch.zeros(0)
    return Start(nothing, nothing, nothing, nothing, 0.0)


def traced(table: VoteTable, prior: Prior, values: dict[str, Any], *, whitened: bool) -> Any:
    tensors = VoteTensors.of(table, dtype=torch.float64)
    fixed = {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}
    trace = poutine.trace(poutine.condition(model, fixed)).get_trace(tensors, prior, no_start(table), whitened)
    trace.compute_log_prob()
    return trace


# --- the model ---


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_log_joint_of_the_plain_model(sign: float) -> None:
    values = {"c": sign * np.array(ABILITIES), "b": sign * np.array(DIFFICULTIES)}
    trace = traced(tiny_table(), Prior(difficulty_scale=1000.0), values, whitened=False)
    assert float(trace.log_prob_sum()) == pytest.approx(LOG_JOINT, rel=1e-12)
    assert float(trace.nodes["y"]["log_prob_sum"]) == pytest.approx(LOG_LIKELIHOOD, rel=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_log_joint_of_the_whitened_model_differs_by_the_jacobian(sign: float) -> None:
    values = {"c": sign * np.array(ABILITIES), "b": sign * np.array(DIFFICULTIES) / 1000}
    trace = traced(tiny_table(), Prior(difficulty_scale=1000.0), values, whitened=True)
    assert float(trace.log_prob_sum()) - 3 * np.log(1000.0) == pytest.approx(LOG_JOINT, rel=1e-12)
    assert float(trace.nodes["y"]["log_prob_sum"]) == pytest.approx(LOG_LIKELIHOOD, rel=1e-12)


def test_a_learned_scale_adds_its_hyper_prior() -> None:
    prior = Prior(ability_scale=0.5)
    values = {"c": ABILITIES, "b": DIFFICULTIES, "log_scale": np.log(7.0)}
    fixed = traced(tiny_table(), replace(prior, difficulty_scale=7.0), values, whitened=False)
    learned = traced(tiny_table(), prior, values, whitened=False)
    hyper = norm.logpdf(np.log(7.0), np.log(HYPER_MEDIAN / 0.5), HYPER_SIGMA)
    assert float(learned.log_prob_sum()) == pytest.approx(float(fixed.log_prob_sum()) + hyper, rel=1e-12)


def test_weights_multiply_the_log_likelihood() -> None:
    table = tiny_table()
    weights = np.array([1.0, 0.5, 1.0, 0.25, 1.0, 0.5])
    weighted = VoteTable.from_codes(
        table.item_codes, table.annotator_codes, table.votes, table.item_ids, table.annotator_ids, weights=weights
    )
    values = {"c": ABILITIES, "b": DIFFICULTIES}
    trace = traced(weighted, Prior(difficulty_scale=1000.0), values, whitened=False)
    products = np.array([ABILITIES[a] * DIFFICULTIES[i] * (2 * y - 1) for a, i, y in VOTES])
    assert float(trace.nodes["y"]["log_prob_sum"]) == pytest.approx(float(weights @ log_expit(products)), rel=1e-12)


def test_the_plates_are_named_after_the_domain() -> None:
    trace = traced(tiny_table(), Prior(difficulty_scale=3.0), {}, whitened=True)
    plates = {name: [frame.name for frame in trace.nodes[name]["cond_indep_stack"]] for name in ("c", "b", "y")}
    assert plates == {"c": ["annotator"], "b": ["item"], "y": ["vote"]}


def test_p_bar_of_normal_factors() -> None:
    pool = Pool.of(np.ones((1, 1)), np.ones((1, 1)), np.ones(1, dtype=np.int64), SinhGrid(0.1, 0.1, 60))
    mean, sd = np.array([3.0, -0.5, 0.0, 2.0]), np.array([1.0, 2.0, 5.0, 4.0])
    p = summarise_normal(mean, sd, pool).positive
    assert p == pytest.approx([0.9986501019683699, 0.4012936743170763, 0.5, 0.6914624612740131], rel=1e-12)
    assert np.minimum(p, 1 - p).mean() == pytest.approx(0.3027952777686733, rel=1e-9)
    error_at_threshold = np.where(p >= 0.72, 1 - p, p).mean()
    assert error_at_threshold == pytest.approx(0.3985265084056799, rel=1e-9)


# --- agreement of the engines ---


def monte_carlo_bound(posterior: Posterior, votes: VoteTable, draws: int = 400) -> float:
    """One estimator for every Normal posterior: E[log p(votes, c, b) - log q(c, b)], in the units reported."""
    abilities, items, prior = posterior.abilities, posterior.items, posterior.prior
    rng = np.random.default_rng(11)
    signs = 2.0 * votes.votes - 1
    total = np.empty(draws)
    for draw in range(draws):
        z_c, z_b = rng.normal(size=votes.n_annotators), rng.normal(size=votes.n_items)
        c, b = abilities.mean + abilities.sd * z_c, items.mean + items.sd * z_b
        total[draw] = log_expit(signs * c[votes.annotator_codes] * b[votes.item_codes]).sum()
        total[draw] += norm.logpdf(c).sum() + norm.logpdf(b, scale=prior.difficulty_scale).sum()
        total[draw] -= (norm.logpdf(z_c) - np.log(abilities.sd)).sum() + (norm.logpdf(z_b) - np.log(items.sd)).sum()
    return float(total.mean())


@pytest.mark.parametrize(
    "study",
    [
        {"preset": "small"},
        # Few votes, many of them at random: the moments of the free factors are far from the best Normals.
        {
            "n_items": 1500,
            "n_annotators": 60,
            "votes_per_item": 3,
            "activity_spread": 1.5,
            "random_share": 0.4,
            "difficulty_scale": 6.0,
            "prevalence": 0.1,
        },
    ],
    ids=["small", "few votes"],
)
def test_svi_agrees_with_the_coordinate_engine_on_normal_factors(study: dict[str, Any]) -> None:
    votes = simulate(**study, seed=0).votes
    stochastic, exact = fit(votes), fit(votes, engine="coordinate", family="gaussian")
    assert stochastic.diagnostics.converged
    bounds = [monte_carlo_bound(found.posterior, votes) for found in (stochastic, exact)]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-3)
    assert exact.diagnostics.elbo[-1] == pytest.approx(bounds[1], rel=1e-3)
    assert np.mean(stochastic.diagnostics.elbo[-50:]) == pytest.approx(exact.diagnostics.elbo[-1], rel=1e-3)
    apart = np.abs(stochastic.posterior.items.positive - exact.posterior.items.positive)
    assert np.quantile(apart, 0.99) < 0.02
    assert stochastic.diagnostics.difficulty_scale == pytest.approx(exact.diagnostics.difficulty_scale, rel=0.1)


def test_svi_reports_what_it_did(alone: Fit) -> None:
    diagnostics = alone.diagnostics
    assert diagnostics.engine == "svi"
    assert diagnostics.converged
    assert diagnostics.reason == "the smoothed bound has settled"
    assert len(diagnostics.elbo) == diagnostics.steps >= 100
    assert diagnostics.sweeps > 3
    assert np.isfinite(diagnostics.elbo).all()
    assert diagnostics.warnings == ()
    assert alone.posterior.family == "gaussian"


@pytest.mark.parametrize(("init", "steps"), [("consensus", 150), ("paper", 300)])
def test_other_starts(votes: VoteTable, alone: Fit, init: Any, steps: int) -> None:
    with pytest.warns(ConvergenceWarning, match=f"not converged: the cap on steps was reached \\({steps}\\)"):
        found = fit(votes, init=init, max_steps=steps)
    assert (found.diagnostics.steps, found.diagnostics.sweeps, found.diagnostics.converged) == (steps, 0, False)
    trace = np.array(found.diagnostics.elbo)
    assert trace[-20:].mean() > trace[:20].mean()
    assert np.isfinite(found.posterior.items.positive).all()
    assert np.corrcoef(found.posterior.items.positive, alone.posterior.items.positive)[0, 1] > 0.9


def test_the_consensus_start_ends_where_the_coordinate_start_does(votes: VoteTable, alone: Fit) -> None:
    found = fit(votes, init="consensus")
    assert found.diagnostics.converged
    assert np.abs(found.posterior.items.positive - alone.posterior.items.positive).max() < 0.05


def test_starts_in_whitened_coordinates(votes: VoteTable) -> None:
    paper = paper_start(votes, Prior(difficulty_scale=1000.0))
    assert set(paper.c_mean) == set(paper.b_mean) == {0.0}
    assert set(paper.c_sd / 1000.0) == set(paper.b_sd * 1000.0) == {1.0}  # unit spread before whitening
    consensus = consensus_start(votes, Prior())
    assert set(consensus.c_mean) == {1.0}
    assert np.array_equal(consensus.b_mean > 0, votes.item_shares > 0.5)
    turned = consensus_start(votes, Prior(ability_mean=-0.5))
    assert set(turned.c_mean) == {-1.0}
    assert np.array_equal(turned.b_mean, -consensus.b_mean)


def test_the_result_is_the_mean_of_the_last_steps(votes: VoteTable) -> None:
    prior = Prior(difficulty_scale=3.0)
    start = consensus_start(votes, prior)
    shifts: list[FloatArray] = []

    def watch(step: int, elbo: float, snapshot: svi.Snapshot) -> None:
        shifts.append(pyro.get_param_store()["b_shift"].detach().numpy().astype(float))

    schedule = replace(svi.SCHEDULES["consensus"], max_steps=60)
    found = svi.run_svi(votes, prior, start, schedule, seed=0, on_step=watch)
    last = np.mean(shifts[50:], axis=0)  # a window is fifty steps, and ten of the next have been taken
    assert found.b_mean == pytest.approx(start.b_mean + start.b_sd * last, abs=1e-4)
    published = replace(svi.SCHEDULES["paper"], max_steps=60)
    shifts.clear()
    found = svi.run_svi(votes, prior, start, published, seed=0, on_step=watch)
    assert found.b_mean == pytest.approx(start.b_mean + start.b_sd * shifts[-1], abs=1e-4)  # the last step, as it is


def test_a_cap_is_said() -> None:
    table = tiny_table()
    with pytest.warns(ConvergenceWarning, match="raise max_steps"), pytest.warns(match="connected components"):
        found = fit(table, max_steps=3)
    assert (found.diagnostics.steps, found.diagnostics.converged) == (3, False)


def test_when_the_bound_has_settled() -> None:
    rng = np.random.default_rng(0)
    flat = list(-1000 + rng.normal(size=100))
    rising = list(-1000 + 2.0 * np.arange(100) + rng.normal(size=100))
    assert has_settled(flat)
    assert not has_settled(rising)
    assert not has_settled(flat[:99])  # only whole windows are compared
    assert not has_settled(flat[:50])


def test_the_guide_starts_where_it_is_told(votes: VoteTable) -> None:
    start = consensus_start(votes, Prior(difficulty_scale=3.0))
    begin = svi._guide_start(start, torch.zeros(1), whitened=True)
    with pyro.get_param_store().scope():
        trace = poutine.trace(guide).get_trace(VoteTensors.of(votes), Prior(difficulty_scale=3.0), begin)
    assert trace.nodes["b"]["fn"].loc.detach().numpy() == pytest.approx(start.b_mean, rel=1e-6)
    assert trace.nodes["c"]["fn"].loc.detach().numpy() * 3.0 == pytest.approx(start.c_mean, rel=1e-6)
    assert trace.nodes["c"]["fn"].scale.detach().numpy() * 3.0 == pytest.approx(start.c_sd, rel=1e-6)


# --- batches ---


def test_batches_hold_all_votes_of_their_items(votes: VoteTable) -> None:
    shuffled = read_votes(votes.to_frame().sample(frac=1, random_state=4))
    whole = VoteTensors.of(shuffled)
    batches = item_batches(whole, 40, seed=0)
    for batch in (next(batches), next(batches)):
        assert batch.items is not None
        assert len(set(batch.items.tolist())) == 40
        found = sorted(
            zip(batch.items[batch.item].tolist(), batch.annotator.tolist(), batch.vote.tolist(), strict=True)
        )
        inside = np.isin(shuffled.item_codes, batch.items.numpy())
        codes = shuffled.item_codes[inside], shuffled.annotator_codes[inside], shuffled.votes[inside].astype(float)
        assert found == sorted(zip(*(column.tolist() for column in codes), strict=True))
        assert batch.vote_scale == pytest.approx(shuffled.n_items / 40)
    assert next(item_batches(whole, None, seed=0)) is next(item_batches(whole, 10_000, seed=0)) is whole


def test_batches_give_the_log_joint_on_average(votes: VoteTable) -> None:
    prior = Prior(difficulty_scale=3.0)
    rng = np.random.default_rng(0)
    c, b = (torch.tensor(rng.normal(size=size)) for size in (votes.n_annotators, votes.n_items))
    whole = VoteTensors.of(votes, dtype=torch.float64)

    def log_joint(tensors: VoteTensors) -> float:
        chosen = {"c": c, "b": b if tensors.items is None else b[tensors.items]}
        trace = poutine.trace(poutine.condition(model, chosen)).get_trace(tensors, prior, no_start(votes))
        return float(trace.log_prob_sum())

    batches = item_batches(whole, 15, seed=1)
    estimates = np.array([log_joint(next(batches)) for _ in range(400)])
    error = estimates.std() / np.sqrt(len(estimates))
    assert estimates.mean() == pytest.approx(log_joint(whole), abs=4 * error)
    assert error < 0.02 * abs(log_joint(whole))


def test_batches_come_near_the_full_table(votes: VoteTable, alone: Fit) -> None:
    found = fit(votes, batch_items=50)
    apart = np.abs(found.posterior.items.positive - alone.posterior.items.positive)
    assert apart.mean() < 0.02
    assert apart.max() < 0.1


# --- devices ---


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_said(votes: VoteTable) -> None:
    with pytest.raises(UsageError, match="device 'cuda' is not there: this PyTorch sees no GPU"):
        fit(votes, device="cuda")


@pytest.mark.parametrize("device", ["banana", "meta"])
def test_a_device_must_be_cpu_or_cuda(votes: VoteTable, device: str) -> None:
    with pytest.raises(UsageError, match=f"device must be cpu or cuda, got '{device}'"):
        fit(votes, device=device)
