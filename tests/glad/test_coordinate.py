"""The coordinate engine: its bound, its invariances, its learned scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit
from scipy.stats import norm

from softgold.errors import ConvergenceWarning, InputError
from softgold.glad import chunks, coordinate
from softgold.glad.chunks import vote_chunks
from softgold.glad.coordinate import CoordinateState, Grids, ability_bound, item_factors, item_step
from softgold.glad.fitting import Fit, fit
from softgold.glad.priors import Prior, log_hyper_prior
from softgold.readers import read_votes
from softgold.simulation import simulate
from softgold.votes import VoteTable

STUDIES: dict[str, dict[str, Any]] = {
    "plain": {"n_items": 200, "n_annotators": 20, "votes_per_item": 6},
    "hard": {
        "n_items": 300,
        "n_annotators": 40,
        "votes_per_item": 4,
        "difficulty_scale": 1.0,
        "random_share": 0.2,
        "adversarial_share": 0.1,
    },
    "small": {"n_items": 40, "n_annotators": 8, "votes_per_item": 4},
    "three parts": {"n_items": 150, "n_annotators": 30, "votes_per_item": 5, "n_components": 3},
}


def drawn(name: str, seed: int = 0) -> VoteTable:
    return simulate(**STUDIES[name], seed=seed, expert_errors=(), model_aurocs=(), model_ambiguity=()).votes


def coordinate_fit(votes: VoteTable, **options: Any) -> Fit:
    return fit(votes, engine="coordinate", **options)


def soft_labels(votes: VoteTable, **options: Any) -> pd.Series[float]:
    found = coordinate_fit(votes, **options).posterior
    return pd.Series(found.items.positive, index=found.item_ids)


# --- the bound ---


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("prior", ["default", "paper"])
@pytest.mark.parametrize("family", ["free", "gaussian"])
def test_the_bound_never_falls(monkeypatch: pytest.MonkeyPatch, family: Any, prior: str, name: str, seed: int) -> None:
    monkeypatch.setattr(chunks, "MOST_VOTES_IN_SINGLE", 0)  # rounding is then far below any change
    found = coordinate_fit(drawn(name, seed), family=family, prior=prior)
    bound = np.array(found.diagnostics.elbo)
    assert found.diagnostics.converged
    assert len(bound) > 3
    assert np.diff(bound).min() > -1e-9 * abs(bound[-1])


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize(("prior", "rounding"), [("default", 1e-6), ("paper", 1e-5)])
def test_the_bound_does_not_fall_beyond_the_rounding_of_single_precision(
    prior: str, rounding: float, name: str
) -> None:
    """Under the vague prior the tables hold log likelihoods of some thousands, whose seventh digit is 1e-4."""
    bound = np.array(coordinate_fit(drawn(name, seed=2), prior=prior).diagnostics.elbo)
    assert np.diff(bound).min() > -rounding * abs(bound[-1])


def test_the_bound_is_its_monte_carlo_estimate() -> None:
    """Draw from the Normal factors, and average log p(votes, c, b) - log q(c, b), none of it with the engine's code."""
    votes = drawn("small")
    prior = Prior(difficulty_scale=4.0)
    found = coordinate_fit(votes, family="gaussian", prior=prior)
    abilities, items = found.posterior.abilities, found.posterior.items
    rng = np.random.default_rng(5)
    c = rng.normal(abilities.mean, abilities.sd, size=(20_000, votes.n_annotators))
    b = rng.normal(items.mean, items.sd, size=(20_000, votes.n_items))
    signs = 2.0 * votes.votes - 1
    log_joint = log_expit(signs * c[:, votes.annotator_codes] * b[:, votes.item_codes]).sum(axis=1)
    log_joint += norm.logpdf(c).sum(axis=1) + norm.logpdf(b, scale=4.0).sum(axis=1)
    log_q = norm.logpdf(c, abilities.mean, abilities.sd).sum(axis=1) + norm.logpdf(b, items.mean, items.sd).sum(axis=1)
    estimate = log_joint - log_q
    error = estimate.std() / np.sqrt(len(estimate))
    assert error < 0.1
    assert found.diagnostics.elbo[-1] == pytest.approx(estimate.mean(), abs=4 * error + 1e-3)


def test_the_hyper_prior_is_part_of_the_bound_of_a_learned_scale() -> None:
    votes = drawn("small")
    learned = coordinate_fit(votes)
    scale = learned.diagnostics.difficulty_scale
    fixed = coordinate_fit(votes, difficulty_scale=scale)
    expected = fixed.diagnostics.elbo[-1] + log_hyper_prior(scale, 1.0)
    assert learned.diagnostics.elbo[-1] == pytest.approx(expected, abs=0.01)


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_the_bound_is_below_the_evidence_and_above_that_of_normals() -> None:
    """Two votes on one item: the evidence is the mean over b of the squared mean over c."""
    votes = read_votes(pd.DataFrame({"item": ["x", "x"], "annotator": ["a", "b"], "vote": [1, 1]}))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    chance = weights @ expit(3.0 * np.multiply.outer(nodes, nodes))  # P(vote = 1 | b) for each b
    evidence = float(np.log(weights @ chance**2))
    free, gaussian = (coordinate_fit(votes, difficulty_scale=3.0, family=family) for family in ("free", "gaussian"))
    assert gaussian.diagnostics.elbo[-1] < free.diagnostics.elbo[-1] < evidence + 1e-4


@pytest.mark.parametrize("name", STUDIES)
def test_free_factors_reach_a_higher_bound_than_normals(name: str) -> None:
    votes = drawn(name)
    free, gaussian = (coordinate_fit(votes, family=family, difficulty_scale=3.0) for family in ("free", "gaussian"))
    assert free.diagnostics.elbo[-1] > gaussian.diagnostics.elbo[-1]


# --- sweeps ---


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = drawn("plain")
    whole = soft_labels(votes)
    monkeypatch.setattr(chunks, "CHUNK_VOTES", 7)
    assert len(vote_chunks(votes)) > 10
    assert soft_labels(votes).to_numpy() == pytest.approx(whole.to_numpy(), abs=1e-5)


def test_chunks_hold_every_vote_once_in_the_order_of_the_items() -> None:
    frame = drawn("three parts").to_frame().sample(frac=1, random_state=2)
    votes = read_votes(frame)
    parts = vote_chunks(votes)
    weights = np.vstack([part.weights.toarray() for part in parts])
    signed = np.vstack([part.signed.toarray() for part in parts])
    expected = np.zeros((votes.n_items, votes.n_annotators))
    expected[votes.item_codes, votes.annotator_codes] = votes.votes - 0.5
    assert np.array_equal(signed, expected)
    assert np.array_equal(weights, expected != 0)
    assert [part.first_item for part in parts] == sorted(part.first_item for part in parts)


def test_an_item_step_is_a_pure_function() -> None:
    votes = drawn("plain")
    prior = Prior(difficulty_scale=3.0)
    grids = Grids.for_votes(votes, prior)
    state = coordinate.start_state(votes, prior, grids)
    coupled = state.abilities.table @ grids.coupling
    (chunk,) = vote_chunks(votes)
    results = [item_step(chunk, item_factors(chunk, state.abilities.mean, coupled, grids, "free")) for _ in range(2)]
    for name in ("positive", "eta", "tables"):
        assert np.array_equal(getattr(results[0], name), getattr(results[1], name))
    assert results[0].tables.sum(axis=1) == pytest.approx(votes.annotator_counts, rel=1e-5)


def test_the_cap_is_kept_and_said() -> None:
    with pytest.warns(
        ConvergenceWarning, match="not converged: the cap on sweeps was reached \\(3\\); raise max_steps"
    ):
        found = coordinate_fit(drawn("plain"), max_steps=3)
    assert (found.diagnostics.steps, found.diagnostics.sweeps, found.diagnostics.converged) == (3, 3, False)
    assert found.diagnostics.warnings[-1].startswith("not converged")


def test_a_settled_fit_moves_no_further() -> None:
    votes = drawn("plain")
    states: list[CoordinateState] = []
    found = coordinate_fit(votes, on_progress=lambda progress: states.append(progress.snapshot()))
    assert [state.sweep for state in states] == list(range(1, found.diagnostics.steps + 1))
    prior = Prior()
    onward, _ = coordinate.run(
        coordinate.replace(states[-1], change=np.inf),
        vote_chunks(votes),
        prior,
        Grids.for_votes(votes, prior),
        max_sweeps=states[-1].sweep + 20,
    )
    assert onward.sweep > states[-1].sweep
    assert np.abs(onward.positive - states[-1].positive).max() < 3e-3
    assert onward.elbo[-1] == pytest.approx(states[-1].elbo[-1], rel=1e-5)


# --- the learned scale ---


@pytest.mark.parametrize("name", STUDIES)
def test_the_learned_scale_is_the_maximiser(name: str) -> None:
    votes = drawn(name)
    last: list[CoordinateState] = []
    coordinate_fit(votes, on_progress=lambda progress: last.append(progress.snapshot()))
    state, prior = last[-1], Prior()

    def bound(scale: float) -> float:
        return ability_bound(state.abilities, prior.whitened_abilities(scale), prior, scale)

    here = bound(state.scale)
    assert all(bound(state.scale * factor) < here for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))


def test_the_learned_scale_beats_other_scales_on_the_whole_bound() -> None:
    votes = drawn("plain")
    scale = coordinate_fit(votes).diagnostics.difficulty_scale

    def profile(at: float) -> float:
        return coordinate_fit(votes, difficulty_scale=at).diagnostics.elbo[-1] + log_hyper_prior(at, 1.0)

    assert profile(scale) > max(profile(0.7 * scale), profile(1.4 * scale))


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
@pytest.mark.parametrize(
    ("n_items", "n_annotators"), [(1, 1), (1, 30), (30, 1), (20, 20)], ids=["one", "column", "row", "square"]
)
def test_the_learned_scale_of_unanimous_and_tiny_tables_is_finite(n_items: int, n_annotators: int) -> None:
    items, annotators = np.divmod(np.arange(n_items * n_annotators), n_annotators)
    votes = VoteTable.from_codes(
        items, annotators, np.ones(len(items)), map(str, range(n_items)), map(str, range(n_annotators))
    )
    found = coordinate_fit(votes)
    assert found.diagnostics.converged
    assert 0.3 < found.diagnostics.difficulty_scale <= 100
    assert ((found.posterior.items.positive > 0.4) & (found.posterior.items.positive <= 1)).all()


# --- invariances ---


@st.composite
def tables(draw: st.DrawFn, largest: int = 8) -> pd.DataFrame:
    """Any small table: up to 8 items and 6 annotators, each pair voted on or not."""
    n_items, n_annotators = draw(st.integers(1, largest)), draw(st.integers(1, 6))
    cells = draw(
        st.lists(st.sampled_from([None, 0, 1]), min_size=n_items * n_annotators, max_size=n_items * n_annotators)
    )
    rows = [
        (f"i{cell // n_annotators}", f"a{cell % n_annotators}", vote)
        for cell, vote in enumerate(cells)
        if vote is not None
    ]
    assume(rows)
    return pd.DataFrame(rows, columns=["item", "annotator", "vote"])


lenient = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
quiet = pytest.mark.filterwarnings("ignore::softgold.errors.SoftgoldWarning")


@quiet
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.sampled_from(["free", "gaussian"]), st.sampled_from(["default", "paper"]))
def test_the_bound_never_falls_on_any_table(frame: pd.DataFrame, family: Any, prior: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "MOST_VOTES_IN_SINGLE", 0)
        bound = np.array(coordinate_fit(read_votes(frame), family=family, prior=prior).diagnostics.elbo)
    assert np.diff(bound).min() > -1e-8 * max(1.0, abs(bound[-1]))


@quiet
@lenient
@given(tables(), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(frame: pd.DataFrame, seed: int) -> None:
    here = soft_labels(read_votes(frame))
    there = soft_labels(read_votes(frame.sample(frac=1, random_state=seed)))
    assert there[here.index].to_numpy() == pytest.approx(here.to_numpy(), abs=2e-3)


@quiet
@lenient
@given(tables())
def test_names_do_not_matter(frame: pd.DataFrame) -> None:
    renamed = frame.assign(item="ü/" + frame["item"], annotator=frame["annotator"].str.replace("a", "9"))
    assert soft_labels(read_votes(renamed)).tolist() == soft_labels(read_votes(frame)).tolist()


@quiet
@lenient
@given(tables(), st.sampled_from(["default", "paper"]))
def test_swapping_the_votes_swaps_the_labels(frame: pd.DataFrame, prior: str) -> None:
    here = soft_labels(read_votes(frame), prior=prior)
    there = soft_labels(read_votes(frame.assign(vote=1 - frame["vote"])), prior=prior)
    assert there.to_numpy() == pytest.approx(1 - here.to_numpy(), abs=1e-6)


@quiet
@lenient
@given(tables(5), tables(5))
def test_a_component_alone_or_with_others(first: pd.DataFrame, second: pd.DataFrame) -> None:
    second = second.assign(item="other " + second["item"], annotator="other " + second["annotator"])
    together = soft_labels(read_votes(pd.concat([first, second])), difficulty_scale=3.0)
    for part in (first, second):
        alone = soft_labels(read_votes(part), difficulty_scale=3.0)
        assert together[alone.index].to_numpy() == pytest.approx(alone.to_numpy(), abs=5e-3)


@quiet
@lenient
@given(tables(), st.sampled_from([1e-3, 0.1, 20.0]))
def test_the_unit_of_ability_does_not_matter(frame: pd.DataFrame, unit: float) -> None:
    votes = read_votes(frame)
    here, there = coordinate_fit(votes), coordinate_fit(votes, ability_scale=unit)
    assert there.posterior.items.positive == pytest.approx(here.posterior.items.positive, abs=1e-6)
    assert there.diagnostics.difficulty_scale * unit == pytest.approx(here.diagnostics.difficulty_scale, rel=1e-6)
    assert there.posterior.abilities.mean / unit == pytest.approx(here.posterior.abilities.mean, abs=1e-6)


@quiet
@lenient
@given(tables(), st.floats(0.1, 2.0))
def test_a_prior_that_expects_adversaries_turns_the_labels(frame: pd.DataFrame, level: float) -> None:
    votes = read_votes(frame)
    helpful = coordinate_fit(votes, ability_mean=level, difficulty_scale=3.0).posterior
    adverse = coordinate_fit(votes, ability_mean=-level, difficulty_scale=3.0).posterior
    assert adverse.items.positive == pytest.approx(1 - helpful.items.positive, abs=1e-6)
    assert adverse.abilities.mean == pytest.approx(-helpful.abilities.mean, abs=1e-6)


def test_an_item_without_votes_is_an_error() -> None:
    with pytest.raises(InputError, match="every item of a vote table needs a vote"):
        VoteTable.from_codes([0, 0], [0, 1], [1, 1], ["x", "nobody voted on this"], ["a", "b"])


def test_a_table_without_votes_is_an_error() -> None:
    with pytest.raises(InputError, match="no votes to fit"):
        coordinate_fit(VoteTable.from_codes([], [], [], [], []))
