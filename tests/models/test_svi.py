"""The svi engine: the Pyro program by hand, batches, agreement with the coordinate engine, the published recipe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import pytest
import torch
from numpy.typing import NDArray
from pyro import poutine
from scipy.special import log_expit, logsumexp
from scipy.stats import multivariate_normal, norm

from softgold.errors import ConvergenceWarning, UsageError
from softgold.models.base import Fit, FitState, Progress, find_model, fit
from softgold.models.crowd import svi
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.optimise import Optimiser
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import CrowdPrior, GladPrior, TwoClassPrior
from softgold.models.crowd.program import Model, SkillNormal, guide, item_batches, model, skills_of
from softgold.models.crowd.states import States
from softgold.readers import read_votes
from softgold.tables.votes import VoteTable

pytestmark = pytest.mark.slow

FloatArray = NDArray[np.float64]

MODELS = ("two-class", "glad")
POPULATIONS: dict[str, tuple[CrowdPrior, Population]] = {
    "two-class": (TwoClassPrior(), Population(np.sqrt(3.0), 0.9, 1.2, 0.1, 0.8, 0.5, log_odds=-0.4)),
    "glad": (GladPrior(), Population(2.5, 0.0, 2.5)),
}


@pytest.fixture(scope="module", params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def fitted(name: str, crowd: Any) -> Fit:
    return fit(crowd.votes, model=name)


def p_of(found: Fit) -> FloatArray:
    return found.posterior.soft_labels().p


def setting(name: str, votes: VoteTable) -> tuple[States, Model, Population]:
    prior, population = POPULATIONS[name]
    states = prior.states(population, prior.lattice(votes.item_counts))
    return states, Model.of(population, states, dtype=torch.float64), population


def some_skills(votes: VoteTable, seed: int = 0) -> Skills:
    rng = np.random.default_rng(seed)
    mean = rng.normal([1.2, 0.1], [0.8, 0.5], (votes.n_annotators, 2))
    cov = np.column_stack([rng.uniform(0.1, 0.5, votes.n_annotators), np.full(votes.n_annotators, 0.05)])
    return Skills(mean, np.column_stack([cov, rng.uniform(0.1, 0.5, votes.n_annotators)]))


# --- the program ---


def log_joint(votes: VoteTable, skill: FloatArray, states: States, population: Population) -> float:
    """log p(skills, votes), item by item and vote by vote."""
    weights = np.ones(votes.n_votes) if votes.weights is None else votes.weights
    scores = np.tile(states.log_prior, (votes.n_items, 1))
    for item, who, vote, weight in zip(votes.item_codes, votes.annotator_codes, votes.votes, weights, strict=True):
        lean = skill[who, 1] if population.has_lean else 0.0
        scores[item] += weight * log_expit((2 * vote - 1) * (skill[who, 0] * states.b + lean + states.u))
    centre, spread = (population.ability_mean, population.lean_mean), (population.ability_sd, population.lean_sd or 1.0)
    return float(logsumexp(scores, axis=1).sum() + norm.logpdf(skill, centre, spread).sum())


def traced(votes: VoteTable, task: Model, skill: FloatArray) -> float:
    batch = next(item_batches(votes.by_item().select, votes.n_items, votes.n_items, 0, dtype=torch.float64))
    fixed = poutine.condition(model, {"skill": torch.tensor(skill)})
    return float(poutine.trace(fixed).get_trace(batch, task, some_skills(votes)).log_prob_sum())


def test_the_log_joint_by_hand(name: str, crowd: Any) -> None:
    votes = crowd.votes
    states, task, population = setting(name, votes)
    skill = some_skills(votes, seed=3).mean
    assert traced(votes, task, skill) == pytest.approx(log_joint(votes, skill, states, population), rel=1e-12)


def test_weights_multiply_the_log_likelihood(crowd: Any) -> None:
    plain = crowd.votes
    weights = np.random.default_rng(0).uniform(0.2, 1.0, plain.n_votes)
    codes = plain.item_codes, plain.annotator_codes, plain.votes
    votes = VoteTable.from_codes(*codes, plain.item_ids, plain.annotator_ids, weights=weights)
    states, task, population = setting("two-class", votes)
    skill = some_skills(votes).mean
    assert traced(votes, task, skill) == pytest.approx(log_joint(votes, skill, states, population), rel=1e-12)


def test_the_plates_are_named_after_the_domain(crowd: Any) -> None:
    votes = crowd.votes
    _, task, _ = setting("two-class", votes)
    batch = next(item_batches(votes.by_item().select, votes.n_items, votes.n_items, 0, dtype=torch.float64))
    trace = poutine.trace(model).get_trace(batch, task, some_skills(votes))
    plates = {site: [frame.name for frame in trace.nodes[site]["cond_indep_stack"]] for site in ("skill", "votes")}
    assert plates == {"skill": ["annotator"], "votes": ["item"]}


def test_the_guide_starts_where_it_is_told(name: str, crowd: Any) -> None:
    votes = crowd.votes
    _, task, _ = setting(name, votes)
    start = some_skills(votes)
    batch = next(item_batches(votes.by_item().select, votes.n_items, votes.n_items, 0, dtype=torch.float64))
    with pyro.get_param_store().scope():
        trace = poutine.trace(guide).get_trace(batch, task, start)
        begun = skills_of(start, Optimiser.parameters())
    assert trace.nodes["skill"]["fn"].loc.detach().numpy() == pytest.approx(start.mean)
    assert begun.mean == pytest.approx(start.mean)
    assert begun.cov == pytest.approx(start.cov)


def test_the_normals_of_the_guide() -> None:
    """Density and draws against SciPy's Normal with the same covariance."""
    loc, root = (
        torch.tensor([[0.5, -1.0], [2.0, 0.3]]).double(),
        torch.tensor([[0.8, 0.3, 0.5], [0.2, -0.4, 1.1]]).double(),
    )
    found = SkillNormal(loc, root)
    at = torch.tensor([[0.1, -0.2], [2.5, 1.0]]).double()
    torch.manual_seed(0)
    draws = found.rsample((20_000,)).numpy()
    for row in range(2):
        factor = np.array([[root[row, 0], 0.0], [root[row, 1], root[row, 2]]])
        exact = multivariate_normal(loc[row].numpy(), factor @ factor.T)
        assert float(found.log_prob(at)[row]) == pytest.approx(exact.logpdf(at[row].numpy()))
        assert draws[:, row].mean(axis=0) == pytest.approx(loc[row].numpy(), abs=0.05)
        assert np.cov(draws[:, row].T) == pytest.approx(factor @ factor.T, abs=0.05)


# --- batches ---


def test_batches_hold_all_votes_of_their_items(crowd: Any) -> None:
    votes = read_votes(crowd.votes.to_frame().sample(frac=1, random_state=4))
    batches = item_batches(votes.by_item().select, votes.n_items, 40, seed=0, dtype=torch.float64)
    first, second = next(batches), next(batches)
    assert not torch.equal(first.items, second.items)
    for batch in (first, second):
        assert len(set(batch.items.tolist())) == 40
        assert batch.n_items == votes.n_items
        ends = [*batch.offsets.tolist()[1:], len(batch.columns)]
        found = []
        for item, begin, end in zip(batch.items.tolist(), batch.offsets.tolist(), ends, strict=True):
            for column in batch.columns[begin:end].tolist():
                vote, place = divmod(column, len(batch.annotators))
                found.append((item, int(batch.annotators[place]), vote))
        inside = np.isin(votes.item_codes, batch.items.numpy())
        codes = votes.item_codes[inside], votes.annotator_codes[inside], votes.votes[inside]
        assert sorted(found) == sorted(zip(*(column.tolist() for column in codes), strict=True))


def test_a_run_that_goes_on_gets_the_batches_that_follow(crowd: Any) -> None:
    batches = item_batches(crowd.votes.by_item().select, crowd.votes.n_items, 10, seed=3, dtype=torch.float64)
    drawn = [next(batches).items.tolist() for _ in range(5)]
    onward = item_batches(crowd.votes.by_item().select, crowd.votes.n_items, 10, seed=3, first=3, dtype=torch.float64)
    assert [next(onward).items.tolist() for _ in range(2)] == drawn[3:]


def test_batches_give_the_log_joint_on_average(crowd: Any) -> None:
    votes = crowd.votes
    states, task, population = setting("two-class", votes)
    start = some_skills(votes)
    skill = torch.tensor(start.mean)
    batches = item_batches(votes.by_item().select, votes.n_items, 20, seed=1, dtype=torch.float64)
    fixed = poutine.condition(model, {"skill": skill})
    estimates = np.array(
        [float(poutine.trace(fixed).get_trace(next(batches), task, start).log_prob_sum()) for _ in range(150)]
    )
    exact = log_joint(votes, start.mean, states, population)
    error = estimates.std() / np.sqrt(len(estimates))
    assert error < 0.02 * abs(exact)
    assert estimates.mean() == pytest.approx(exact, abs=4 * error)


def test_batches_come_near_the_whole_table(name: str, crowd: Any, fitted: Fit) -> None:
    apart = np.abs(p_of(fit(crowd.votes, model=name, batch_items=40)) - p_of(fitted))
    assert apart.max() > 0
    assert np.quantile(apart, 0.99) < 0.03


def test_a_batch_larger_than_the_table_is_the_table(crowd: Any) -> None:
    with pytest.warns(ConvergenceWarning):
        whole, larger = (fit(crowd.votes, max_steps=20, batch_items=size) for size in (None, 10_000))
    assert np.array_equal(p_of(whole), p_of(larger))


# --- the engine ---


def test_svi_comes_near_the_coordinate_engine(name: str, crowd: Any, fitted: Fit) -> None:
    exact = fit(crowd.votes, model=name, engine="coordinate")
    apart = np.abs(p_of(fitted) - p_of(exact))
    assert apart.max() > 0
    assert np.quantile(apart, 0.99) < 0.04
    assert fitted.diagnostics.sweeps == exact.diagnostics.sweeps
    assert fitted.diagnostics.learned == pytest.approx(exact.diagnostics.learned, rel=0.15, abs=0.05)


def test_items_integrated_out_make_the_bound_tighter(name: str, crowd: Any, fitted: Fit) -> None:
    """At svi's hyper-parameters, the last steps' bound is above that of factors that know nothing of each other."""
    exact = fit(crowd.votes, model=name, engine="coordinate")
    prior = find_model(name).settings().crowd_prior
    constant = prior.log_density(exact.posterior.population)
    assert np.mean(fitted.diagnostics.elbo[-100:]) > exact.diagnostics.elbo[-1] - constant


def test_svi_widens_the_annotators(name: str, crowd: Any, fitted: Fit) -> None:
    """Mean-field factors are too narrow; with the items integrated out they are wider for nearly everybody."""
    exact = fit(crowd.votes, model=name, engine="coordinate").posterior.annotators()
    wider = fitted.posterior.annotators()["ability_sd"] > exact["ability_sd"]
    assert wider.mean() > 0.9


def test_svi_reports_what_it_did(fitted: Fit) -> None:
    diagnostics = fitted.diagnostics
    assert diagnostics.converged
    assert diagnostics.reason == "the smoothed bound has settled"
    assert len(diagnostics.elbo) == diagnostics.steps >= 300
    assert diagnostics.sweeps > 3
    assert np.isfinite(diagnostics.elbo).all()
    assert diagnostics.warnings == ()


def test_the_cap_is_kept_and_said(name: str, crowd: Any) -> None:
    with pytest.warns(ConvergenceWarning, match=r"not converged: the cap on steps was reached \(3\); raise max_steps"):
        found = fit(crowd.votes, model=name, max_steps=3)
    assert (found.diagnostics.steps, found.diagnostics.converged) == (3, False)
    assert found.diagnostics.sweeps > 3  # the cap is that of svi


def test_seeds_of_any_size(crowd: Any) -> None:
    with pytest.warns(ConvergenceWarning):
        assert fit(crowd.votes, seed=2**70, max_steps=2).settings.seed == 2**70


def test_progress_is_reported_stage_by_stage(crowd: Any) -> None:
    seen: list[tuple[str, int, int]] = []
    with pytest.warns(ConvergenceWarning):
        found = fit(crowd.votes, max_steps=5, on_progress=lambda one: seen.append((one.stage, one.step, one.cap)))
    sweeps = [step for stage, step, _ in seen if stage == "coordinate"]
    assert sweeps == list(range(1, found.diagnostics.sweeps + 1))
    assert seen[len(sweeps) :] == [("svi", step, 5) for step in range(1, 6)]


def test_the_result_is_the_mean_of_the_steps_after_the_burn_in() -> None:
    """A guide of one parameter, stepped by hand."""

    def target() -> None:
        pyro.sample("x", pyro.distributions.Normal(3.0, 1.0))

    def point() -> None:
        pyro.sample("x", pyro.distributions.Delta(pyro.param("x0", torch.tensor(0.0))))

    with pyro.get_param_store().scope():
        optimiser = Optimiser(target, point, lambda name: 0.1, burn_in=8)
        values = []
        for _ in range(12):
            optimiser.step()
            values.append(pyro.param("x0").item())
        assert float(optimiser.means()["x0"]) == pytest.approx(np.mean(values[8:]))
        assert optimiser.trace == sorted(optimiser.trace)


def test_when_the_bound_has_settled() -> None:
    optimiser = Optimiser(lambda: None, lambda: None, lambda name: 0.1, burn_in=300)
    rng = np.random.default_rng(0)
    flat, rising = -1000 + rng.normal(size=500), -1000 + 2.0 * np.arange(500) + rng.normal(size=500)
    for trace, settled in ((flat, True), (rising, False), (flat[:400], False), (flat[:499], False)):
        optimiser.trace = trace.tolist()
        assert optimiser.has_settled(svi.TOLERANCE) is settled


# --- interruptions ---


def fit_with_states(
    votes: VoteTable, wanted: tuple[int, ...], stage: str = "svi", **options: Any
) -> tuple[Fit, list[FitState]]:
    """Fit, and take the state after some steps as an interruption would."""
    states: list[FitState] = []

    def see(progress: Progress) -> None:
        if progress.stage == stage and progress.step in wanted:
            states.append(progress.snapshot())

    found = fit(votes, on_progress=see, **options)
    assert len(states) == len(wanted)
    return found, states


@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("options", "steps"),
    [
        # Hyper-parameters are learned after every hundredth step, and the steps after the two hundredth averaged.
        ({"max_steps": svi.BURN_IN + 10}, (1, 100, 101, svi.BURN_IN, svi.BURN_IN + 1)),
        ({"batch_items": 30, "max_steps": 120}, (7, 100)),
        ({"model": "glad", "max_steps": 120}, (50, 100)),
        ({"model": "glad", "init": "paper", "max_steps": 60}, (1, 30, 59)),
    ],
    ids=str,
)
def test_a_fit_resumed_at_a_step_is_the_uninterrupted_one(
    draw_crowd: Callable[..., Any], options: dict[str, Any], steps: tuple[int, ...], assert_same_posterior: Any
) -> None:
    votes = draw_crowd(2, n_items=40, n_annotators=8, votes_per_item=4).votes
    whole, states = fit_with_states(votes, steps, **options)
    for state in states:
        stored = find_model(whole.model).state({key: value.copy() for key, value in state.to_arrays().items()})
        again = fit(votes, resume=stored, **options)
        assert_same_posterior(again.posterior, whole.posterior)
        assert again.diagnostics.elbo == whole.diagnostics.elbo
        assert again.diagnostics.steps == whole.diagnostics.steps
        assert again.diagnostics.sweeps == whole.diagnostics.sweeps


@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
def test_a_fit_resumed_at_a_sweep_is_the_uninterrupted_one(name: str, crowd: Any, assert_same_posterior: Any) -> None:
    _, (state,) = fit_with_states(crowd.votes, (4,), "coordinate", model=name, engine="coordinate")
    whole, again = (fit(crowd.votes, model=name, max_steps=110, resume=start) for start in (None, state))
    assert_same_posterior(again.posterior, whole.posterior)
    assert again.diagnostics.elbo == whole.diagnostics.elbo


# --- the published recipe ---


@pytest.fixture(scope="module")
def published(crowd: Any) -> Fit:
    with pytest.warns(ConvergenceWarning, match=r"the cap on steps was reached \(400\)"):
        return fit(crowd.votes, model="glad", init="paper", difficulty_scale=3.0, max_steps=400)


def test_the_published_recipe_runs(crowd: Any, published: Fit) -> None:
    assert (published.diagnostics.steps, published.diagnostics.sweeps) == (400, 0)
    trace = np.array(published.diagnostics.elbo)
    assert trace[-50:].mean() > trace[:50].mean()
    labels = published.posterior.soft_labels()
    assert labels.difficulty is not None
    assert labels.p == pytest.approx(norm.cdf(labels.difficulty.mean / labels.difficulty.sd))  # the sign of b
    assert np.corrcoef(labels.p, crowd.votes.item_shares)[0, 1] > 0.9
    assert published.posterior.annotators()["ability_mean"].mean() > 0


def test_the_published_recipe_is_deterministic_per_seed(crowd: Any, assert_same_posterior: Any) -> None:
    options = {"model": "glad", "init": "paper", "prior": "paper", "max_steps": 30}
    with pytest.warns(ConvergenceWarning):
        first, again, other = (fit(crowd.votes, seed=seed, **options) for seed in (4, 4, 5))
    assert_same_posterior(again.posterior, first.posterior)
    assert not np.array_equal(p_of(other), p_of(first))


def test_the_published_recipe_ends_upright_whatever_the_noise_chose(draw_crowd: Callable[..., Any]) -> None:
    """From zeros the sign is the toss of a coin: over seeds both occur, and each ends with helpful annotators."""
    drawn = draw_crowd(5, n_items=60, n_annotators=8)
    for seed in range(4):
        with pytest.warns(ConvergenceWarning):
            found = fit(drawn.votes, model="glad", init="paper", difficulty_scale=3.0, seed=seed, max_steps=300)
        assert np.corrcoef(p_of(found), drawn.votes.item_shares)[0, 1] > 0.6, seed
        assert found.posterior.annotators()["ability_mean"].mean() > 0


def test_the_published_recipe_is_that_of_glad_alone(crowd: Any) -> None:
    with pytest.raises(UsageError, match="init has no meaning for the model two-class"):
        fit(crowd.votes, init="paper")
    with pytest.raises(UsageError, match="init='paper' has no meaning for the coordinate engine"):
        fit(crowd.votes, model="glad", init="paper", engine="coordinate")


# --- devices, and no torch at all ---


def test_a_missing_gpu_is_said(crowd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="device 'cuda' is not there: this PyTorch sees no GPU"):
        fit(crowd.votes, device="cuda", on_progress=lambda progress: pytest.fail("it is said before any sweep"))


@pytest.mark.parametrize("device", ["banana", "meta", "cuda:", "cuda:x"])
def test_a_device_must_be_cpu_or_cuda(crowd: Any, device: str) -> None:
    with pytest.raises(UsageError, match=f"device must be cpu or cuda, got '{device}'"):
        fit(crowd.votes, device=device)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = sys.modules["pyro"] = None  # importing them raises ImportError
from softgold.cli import main
for line in sys.stdin:
    print("exit", main(line.split()), file=sys.stderr)
"""


def test_without_torch(crowd: Any, tmp_path: Path) -> None:
    """svi says what to install and what to use instead; everything else works."""
    crowd.votes.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    commands = [
        "fit votes.csv -o svi",
        "fit votes.csv -o published --model glad --init paper",
        "fit votes.csv -o run --engine coordinate --quiet",
        "predict run votes.csv -o labels.csv --quiet",
    ]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], input="\n".join(commands), capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "")
    first, code, second, other_code, *rest = done.stderr.splitlines()
    assert (code, other_code, rest) == ("exit 2", "exit 2", ["exit 0", "exit 0"])
    for sentence in (first, second):
        assert sentence.startswith("error: ")
        assert "install torch" in sentence
        assert "--engine coordinate" in sentence
        assert "fault of softgold" not in sentence
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "run", "votes.csv"]
