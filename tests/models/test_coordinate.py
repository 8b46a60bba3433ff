"""The coordinate engine: exact items, a bound that does not fall, acceleration and compression that change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from scipy.stats import multivariate_normal

from fixtures.tables import small_tables
from softgold.errors import ConvergenceWarning
from softgold.models.base import fit
from softgold.models.crowd import coordinate
from softgold.models.crowd import sums as sums_module
from softgold.models.crowd.annotators import Skills, annotator_bound, respond
from softgold.models.crowd.chunks import part_chunks, vote_chunks
from softgold.models.crowd.classes import VoteClasses, vote_classes
from softgold.models.crowd.coordinate import CoordinateState, Problem, start_state, sweep
from softgold.models.crowd.drivers import ChunkDriver
from softgold.models.crowd.items import Tables, item_masses, item_rates, step
from softgold.models.crowd.packing import unpack
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import CrowdPrior, GladPrior, TwoClassPrior
from softgold.models.crowd.sums import FAN, sum_groups
from softgold.models.crowd.threads import worker_pool
from softgold.readers import read_votes
from softgold.simulation import simulate
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]

PRIORS: dict[str, CrowdPrior] = {
    "two-class": TwoClassPrior(),
    "two-class, prevalence given": TwoClassPrior(0.15),
    "glad": GladPrior(),
    "glad, helpful annotators": GladPrior(ability_mean=0.5, difficulty_scale=3.0),
    "glad, as published": GladPrior.named("paper"),
}
LEARNED = {name: prior for name, prior in PRIORS.items() if name != "glad, as published"}


def problem_of(votes: VoteTable, prior: CrowdPrior, size: int | None = None) -> Problem:
    """The votes as they are, without any taken together."""
    chunks = vote_chunks(votes) if size is None else vote_chunks(votes, size=size)
    return Problem(
        ChunkDriver(chunks, votes.n_items, np.ones(votes.n_annotators)), prior, prior.lattice(votes.item_counts)
    )


def together_of(kinds: VoteClasses, votes: VoteTable, prior: CrowdPrior) -> Problem:
    """The votes with those that are alike taken together."""
    chunks = tuple(part_chunks(kinds.votes.by_item(), kinds.annotator_weight, kinds.item_weight))
    driver = ChunkDriver(chunks, kinds.votes.n_items, kinds.annotator_weight)
    return Problem(driver, prior, prior.lattice(votes.item_counts))


def p_of(state: CoordinateState, problem: Problem) -> FloatArray:
    """p of the items as a state has them, computed again where the driver has not kept it."""
    with worker_pool() as pool:
        coordinate.recall(state, problem, pool)
    return problem.positive(state)


def settle(votes: VoteTable, prior: CrowdPrior, **options: Any) -> CoordinateState:
    problem = problem_of(votes, prior, **options)
    state = coordinate.run(start_state(votes.n_annotators, prior), problem)
    assert state.settled
    return state


def plain_start(n_annotators: int, prior: CrowdPrior) -> CoordinateState:
    """The start, with more plain sweeps to do than any test does."""
    return replace(start_state(n_annotators, prior), plain=1000)


def plain_sweeps(votes: VoteTable, prior: CrowdPrior, count: int) -> CoordinateState:
    problem, state = problem_of(votes, prior), plain_start(votes.n_annotators, prior)
    with worker_pool() as pool:
        for _ in range(count):
            state = sweep(state, problem, pool)
    return state


def unlearning(prior: CrowdPrior) -> CrowdPrior:
    """The prior with its hyper-parameters held where they start."""
    held = type("Held", (type(prior),), {"learn": lambda self, population, *seen: population})
    found: CrowdPrior = held(**vars(prior))
    return found


any_table = settings(max_examples=30, suppress_health_check=list(HealthCheck))


# --- items, exactly ---

SKILLS = [(2.0, -0.5), (0.8, 0.7), (-1.1, 0.2)]  # (ability, lean) in the model's unit, each known to the last digit
ROWS = [(0, 0, 1), (0, 1, 1), (0, 2, 0), (1, 0, 0), (1, 2, 1), (2, 1, 0)]  # item, annotator, vote
POPULATION = Population(np.sqrt(3.0), 0.5, 1.5, 0.1, 0.9, 0.7, log_odds=-0.8)


def tiny_table() -> VoteTable:
    items, annotators, answers = zip(*ROWS, strict=True)
    return VoteTable.from_codes(items, annotators, answers, list("xyz"), list("abc"))


def known(skills: list[tuple[float, float]], variance: float = 1e-14) -> Skills:
    return Skills(np.array(skills), np.tile([variance, 0.0, variance], (len(skills), 1)))


def item_posterior(votes: VoteTable, prior: CrowdPrior, skills: Skills, population: Population) -> Any:
    states = prior.states(population, prior.lattice(votes.item_counts))
    (chunk,) = vote_chunks(votes)
    return states, *item_masses(chunk, skills, respond(skills, states), states)


@pytest.mark.parametrize("name", ["two-class", "glad"])
def test_items_against_enumeration(name: str) -> None:
    """P(state and votes) of each item, written out vote by vote."""
    prior = PRIORS[name]
    population = POPULATION if name == "two-class" else Population(2.5, 0.0, 2.5)
    skills = SKILLS if name == "two-class" else [(c, 0.0) for c, _ in SKILLS]
    states, mass, evidence = item_posterior(tiny_table(), prior, known(skills), population)
    for item in range(3):
        joint = np.exp(states.log_prior)
        for where, who, vote in ROWS:
            if where == item:
                c, d = skills[who]
                joint = joint * np.array(
                    [expit((2 * vote - 1) * (c * b + d + u)) for b, u in zip(*(states.b, states.u), strict=True)]
                )
        assert mass[item] == pytest.approx(joint / joint.sum(), abs=1e-7)
        assert evidence[item] == pytest.approx(np.log(joint.sum()), abs=1e-7)


def test_soft_labels_against_an_integral_that_knows_no_lattice() -> None:
    """P(z = 1 | votes) of the two-class model, (z, b, u) summed over a fine grid of its own."""
    states, mass, _ = item_posterior(tiny_table(), TwoClassPrior(), known(SKILLS), POPULATION)
    b, u = np.meshgrid(np.linspace(-6, 6, 1201), np.linspace(-8, 8, 801), indexing="ij")
    prior = {z: np.exp(-0.5 * ((b - (2 * z - 1)) / 0.8) ** 2 - 0.5 * u**2) for z in (0, 1)}
    weight = {0: expit(0.8), 1: expit(-0.8)}
    for item in range(3):
        likelihood = np.ones_like(b)
        for where, who, vote in ROWS:
            if where == item:
                c, d = SKILLS[who]
                likelihood *= expit((2 * vote - 1) * (c * b + d + 0.7 * u))
        share = {z: weight[z] * (prior[z] * likelihood).sum() for z in (0, 1)}
        exact = share[1] / (share[0] + share[1])
        assert float(mass[item] @ states.positive) == pytest.approx(exact, abs=1e-3)


def test_expectations_over_annotators_against_many_nodes() -> None:
    """E[log P(vote)] and its derivatives at x ~ N, seven nodes against 150."""
    skills = Skills(np.array([[1.4, -0.3], [-0.6, 0.8]]), np.array([[0.3, 0.1, 0.2], [0.05, -0.02, 0.4]]))
    prior = TwoClassPrior()
    states = prior.states(POPULATION, prior.lattice(np.array([3])))
    found = respond(skills, states)
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights = weights / weights.sum()
    for who, ((c, d), (cc, cd, dd)) in enumerate(zip(skills.mean, skills.cov, strict=True)):
        centre = c * states.b + d + states.u
        spread = np.sqrt(cc * states.b**2 + 2 * cd * states.b + dd)
        x = centre[:, None] + spread[:, None] * nodes
        assert found.softplus[who] == pytest.approx(np.logaddexp(0, x) @ weights, abs=1e-3)
        assert found.sigmoid[who] == pytest.approx(expit(x) @ weights, abs=2e-3)
        assert found.slope[who] == pytest.approx((expit(x) * expit(-x)) @ weights, abs=1e-2)


def test_rates_that_the_prevalence_aims_at() -> None:
    """By hand: abilities 2, 0.8 and -1.1, of which the last is read the other way round."""
    (chunk,) = vote_chunks(tiny_table())
    ability = np.array([c for c, _ in SKILLS])
    able = [1.0, 0.0, 0.0]  # x: yes, yes, a reversed no; y: no, a reversed yes; z: no
    assert item_rates(chunk, ability, "able") == pytest.approx(able)
    assert item_rates(chunk, np.array([2.0, 0.8, 1.1]), "able") == pytest.approx([4.64 / 5.85, 1.21 / 5.21, 0.0])
    assert item_rates(chunk, ability, "share") == pytest.approx([2 / 3, 1 / 2, 0.0])
    assert item_rates(chunk, ability, "majority") == pytest.approx([1.0, 0.5, 0.0])


# --- the bound ---


@pytest.mark.slow
@any_table
@given(small_tables().map(read_votes), st.sampled_from(sorted(PRIORS)))
def test_the_bound_never_falls(votes: VoteTable, name: str) -> None:
    bound = np.array(plain_sweeps(votes, unlearning(PRIORS[name]), 25).elbo)
    assert len(bound) == 24
    assert np.diff(bound).min() > -1e-10 * max(1.0, abs(bound[-1]))
    assert bound[-1] <= 0  # a log probability


@pytest.mark.slow
@any_table
@given(small_tables().map(read_votes), st.sampled_from(["glad", "glad, as published"]))
def test_the_bound_never_falls_where_it_decides_the_scale(votes: VoteTable, name: str) -> None:
    bound = np.array(plain_sweeps(votes, PRIORS[name], 25).elbo)
    assert np.diff(bound).min() > -1e-10 * max(1.0, abs(bound[-1]))


@pytest.mark.parametrize("name", ["two-class", "glad"])
def test_the_bound_is_its_monte_carlo_estimate(crowd: Any, name: str) -> None:
    """Draw annotators, average log p(votes, skills, states) - log q, none of it with the engine's sums."""
    votes, prior = crowd.votes, PRIORS[name]
    state = settle(votes, prior)
    skills, population = state.skills, state.population
    states, mass, _ = item_posterior(votes, prior, skills, population)
    size = 2 if population.has_lean else 1
    rng = np.random.default_rng(5)
    seen = {vote: np.zeros((votes.n_annotators, len(states.b))) for vote in (0, 1)}
    for item, who, vote in zip(votes.item_codes, votes.annotator_codes, votes.votes, strict=True):
        seen[vote][who] += mass[item]
    centre = np.array([population.ability_mean, population.lean_mean])[:size]
    spread = np.array([population.ability_sd, population.lean_sd])[:size]
    total, error = 0.0, 0.0
    for who in range(votes.n_annotators):
        cc, cd, dd = skills.cov[who]
        q = multivariate_normal(skills.mean[who, :size], np.array([[cc, cd], [cd, dd]])[:size, :size])
        draws = np.reshape(q.rvs(4000, random_state=rng), (4000, size))
        x = draws[:, :1] * states.b + (draws[:, 1:] if size > 1 else 0.0) + states.u
        value = log_expit(x) @ seen[1][who] + log_expit(-x) @ seen[0][who]
        value += multivariate_normal(centre, np.diag(spread**2)).logpdf(draws) - q.logpdf(draws)
        total, error = total + value.mean(), error + value.var() / 4000
    items = float((mass * (states.log_prior - np.log(np.maximum(mass, 1e-300)))).sum())
    estimate = total + items + prior.log_density(population)
    assert np.sqrt(error) < 0.2
    assert state.elbo[-1] == pytest.approx(estimate, abs=4 * np.sqrt(error) + 0.02)


def test_the_divergence_of_annotators_by_hand() -> None:
    """-KL(N((1, 0.5), diag(0.25, 0.04)) || N((0, 0), diag(4, 1))), term by term."""
    skills = Skills(np.array([[1.0, 0.5]]), np.array([[0.25, 0.0, 0.04]]))
    ability = 0.5 * (np.log(0.25 / 4) + 1 - (0.25 + 1) / 4)
    lean = 0.5 * (np.log(0.04) + 1 - (0.04 + 0.25))
    assert annotator_bound(skills, Population(1.0, 0.0, 2.0, 0.0, 1.0, 0.5)) == pytest.approx([ability + lean])
    untold = Skills(np.array([[1.0, 0.0]]), np.array([[0.25, 0.0, 1.0]]))  # a lean that no vote depends on
    assert annotator_bound(untold, Population(1.0, 0.0, 2.0)) == pytest.approx([ability])


# --- acceleration ---


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNED)
def test_accelerated_and_plain_sweeps_end_at_the_same_labels(crowd: Any, name: str) -> None:
    votes, prior = crowd.votes, PRIORS[name]
    plain = plain_sweeps(votes, prior, 400)
    assert plain.change < 1e-12
    fast = settle(votes, prior)
    assert fast.sweep < 40
    problem = problem_of(votes, prior)
    assert (
        np.abs(p_of(fast, problem) - p_of(plain, problem)).max() < 5e-4
    )  # within what stopping at a change of 1e-4 leaves
    with worker_pool() as pool:
        for _ in range(60):
            fast = sweep(fast, problem, pool)
    assert np.abs(p_of(fast, problem) - p_of(plain, problem)).max() < 1e-9


def test_a_settled_fit_moves_no_further(crowd: Any) -> None:
    states: list[CoordinateState] = []
    found = fit(crowd.votes, engine="coordinate", on_progress=lambda progress: states.append(progress.snapshot()))
    assert [state.sweep for state in states] == list(range(1, found.diagnostics.steps + 1))
    assert found.diagnostics.sweeps == found.diagnostics.steps
    assert states[-1].settled
    assert not any(state.settled for state in states[:-1])
    assert found.diagnostics.elbo == states[-1].elbo
    unsettled = replace(states[-1], change=np.inf)
    problem = problem_of(vote_classes(crowd.votes).votes, TwoClassPrior())  # the engine's order
    onward = coordinate.run(unsettled, problem, max_sweeps=unsettled.sweep + 20)
    assert onward.sweep > unsettled.sweep
    assert np.abs(p_of(onward, problem) - p_of(unsettled, problem)).max() < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_a_fit_does_not_stop_where_votes_tell_little_of_the_pull(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spread of the pulls moves little per sweep there, which must not pass for its end."""
    votes = simulate(n_items=20_000, n_annotators=150, votes_per_item=3, seed=seed).votes
    found = fit(votes, engine="coordinate").posterior.soft_labels().p
    monkeypatch.setattr(coordinate, "P_TOLERANCE", 1e-7)
    monkeypatch.setattr(coordinate, "BOUND_TOLERANCE", 1e-10)
    end = fit(votes, engine="coordinate").posterior.soft_labels().p
    assert np.abs(found - end).max() < 1e-3


@pytest.mark.parametrize("model", ["two-class", "glad"])
def test_the_cap_is_kept_and_said(crowd: Any, model: str) -> None:
    message = r"not converged: the cap on sweeps was reached \(3\); raise max_steps \(--max-steps\)"
    with pytest.warns(ConvergenceWarning, match=message):
        found = fit(crowd.votes, model=model, engine="coordinate", max_steps=3)
    assert (found.diagnostics.steps, found.diagnostics.sweeps, found.diagnostics.converged) == (3, 3, False)
    assert found.diagnostics.notices[-1].kind == "convergence"


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_a_run_resumed_after_any_sweep_is_the_uninterrupted_one(crowd: Any, name: str) -> None:
    prior, votes = PRIORS[name], crowd.votes
    problem, states = problem_of(votes, prior), []
    whole = coordinate.run(start_state(votes.n_annotators, prior), problem, max_sweeps=25, on_sweep=states.append)
    for state in states[:-1]:
        stored = unpack(CoordinateState, {key: value.copy() for key, value in state.to_arrays().items()})
        again = coordinate.run(stored, problem, max_sweeps=25)
        assert again.sweep == whole.sweep
        assert again.elbo == whole.elbo
        for key, value in whole.to_arrays().items():
            assert np.array_equal(again.to_arrays()[key], value), (key, state.sweep)


# --- votes taken together ---


def three_readers(n_items: int = 400) -> VoteTable:
    rng = np.random.default_rng(0)
    answers = (rng.random(n_items) < 0.3)[:, None] ^ (rng.random((n_items, 3)) < [0.08, 0.12, 0.16])
    items, readers = np.divmod(np.arange(3 * n_items), 3)
    return VoteTable.from_codes(items, readers, answers.ravel(), map(str, range(n_items)), list("abc"))


def single_votes() -> VoteTable:
    """Sixty annotators with one vote each, on items of eight to eleven votes, and two who voted on everything."""
    rng = np.random.default_rng(1)
    items = np.concatenate([rng.integers(6, size=60), np.arange(6), np.arange(6)])
    annotators = np.concatenate([np.arange(60), np.full(6, 60), np.full(6, 61)])
    answers = (items % 2 == 0) ^ (rng.random(72) < 0.2)
    return VoteTable.from_codes(items, annotators, answers, list("uvwxyz"), map(str, range(62)))


def averaged_repeats() -> VoteTable:
    """Three readers of whom one read some items twice, and gave two answers."""
    table = three_readers(40)
    again = table.item_codes < 10
    return VoteTable.from_codes(
        np.concatenate([table.item_codes, np.arange(10)]),
        np.concatenate([table.annotator_codes, np.zeros(10)]),
        np.concatenate([table.votes, 1 - table.votes[again & (table.annotator_codes == 0)]]),
        table.item_ids,
        table.annotator_ids,
        weights=np.concatenate([np.where(again & (table.annotator_codes == 0), 0.5, 1.0), np.full(10, 0.5)]),
    )


TABLES = {"three readers": three_readers, "single votes": single_votes, "averaged repeats": averaged_repeats}


def test_three_readers_are_eight_kinds_of_items() -> None:
    votes = three_readers()
    kinds = vote_classes(votes)
    pattern = np.zeros((400, 3), dtype=int)
    pattern[votes.item_codes, votes.annotator_codes] = votes.votes
    pattern = pattern @ [4, 2, 1]
    assert (kinds.votes.n_items, kinds.votes.n_annotators, kinds.votes.n_votes) == (8, 3, 24)
    assert all(len(set(kinds.item[pattern == one])) == 1 for one in range(8))
    assert sorted(kinds.item_weight) == sorted(np.bincount(pattern))
    assert kinds.annotator_weight.tolist() == [1, 1, 1]


def test_single_votes_are_two_kinds_of_annotators_per_item() -> None:
    votes = single_votes()
    kinds = vote_classes(votes)
    assert kinds.votes.n_items == 6
    assert kinds.votes.n_annotators <= 14
    assert kinds.annotator_weight.sum() == 62
    assert kinds.item_weight.tolist() == [1.0] * 6
    given = {annotator: (item, vote) for item, annotator, vote in zip(*votes_of(votes), strict=True) if annotator < 60}
    for one, other in product(range(60), repeat=2):
        assert (kinds.annotator[one] == kinds.annotator[other]) == (given[one] == given[other])


def votes_of(votes: VoteTable) -> Iterator[list[int]]:
    return (column.tolist() for column in (votes.item_codes, votes.annotator_codes, votes.votes))


@pytest.mark.parametrize("name", ["two-class", "glad"])
@pytest.mark.parametrize("kind", TABLES)
def test_votes_taken_together_give_the_same_fit(kind: str, name: str) -> None:
    votes, prior = TABLES[kind](), PRIORS[name]
    kinds = vote_classes(votes)
    assert kinds.votes.n_items + kinds.votes.n_annotators < 0.8 * (votes.n_items + votes.n_annotators)
    together = together_of(kinds, votes, prior)
    start = start_state(kinds.votes.n_annotators, prior)
    small = coordinate.run(start, together)
    whole = settle(votes, prior)
    assert small.sweep == whole.sweep
    assert p_of(small, together)[kinds.item] == pytest.approx(p_of(whole, problem_of(votes, prior)), abs=1e-9)
    assert small.skills.take(kinds.annotator).mean == pytest.approx(whole.skills.mean, abs=1e-7)
    assert small.elbo[-1] == pytest.approx(whole.elbo[-1], rel=1e-10)


@pytest.mark.slow
@any_table
@given(small_tables().map(read_votes))
def test_sweeps_of_any_table_are_those_of_its_single_votes(votes: VoteTable) -> None:
    """Whatever is taken together, each sweep gives the labels of the whole table in the same canonical order.

    The end would not do: where annotators contradict each other, roundings grow up to tenfold from sweep to sweep.
    """
    kinds, single, prior = vote_classes(votes), vote_classes(votes, merge=False), TwoClassPrior()
    together, apart = together_of(kinds, votes, prior), problem_of(single.votes, prior)
    small, whole = plain_start(kinds.votes.n_annotators, prior), plain_start(votes.n_annotators, prior)
    with worker_pool() as pool:
        for _ in range(5):
            small, whole = sweep(small, together, pool), sweep(whole, apart, pool)
            assert p_of(small, together)[kinds.item] == pytest.approx(p_of(whole, apart)[single.item], abs=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::softgold.errors.SoftgoldWarning")
@any_table
@given(
    small_tables().map(read_votes),
    st.randoms(use_true_random=False),
    st.sampled_from([{}, {"model": "glad", "prior": "paper", "max_steps": 60}]),
)
def test_the_order_of_the_rows_of_any_table_does_not_matter(votes: VoteTable, random: Any, options: Any) -> None:
    """It must not matter wherever a fit stops; under the published prior hundreds of sweeps may follow."""
    rows = list(range(votes.n_votes))
    random.shuffle(rows)
    shuffled = read_votes(votes.to_frame().iloc[rows])
    here, there = (fit(table, engine="coordinate", **options).posterior.soft_labels() for table in (votes, shuffled))
    assert here.p == pytest.approx(there.p[shuffled.item_ids.get_indexer(votes.item_ids)], abs=1e-9)


def test_a_table_without_twins_is_only_put_in_order(crowd: Any) -> None:
    votes, kinds = crowd.votes, vote_classes(crowd.votes)
    assert set(kinds.item_weight) == set(kinds.annotator_weight) == {1.0}
    moved = zip(kinds.item[votes.item_codes], kinds.annotator[votes.annotator_codes], votes.votes, strict=True)
    found = zip(kinds.votes.item_codes, kinds.votes.annotator_codes, kinds.votes.votes, strict=True)
    assert sorted(moved) == sorted(found)


def test_the_order_of_kinds_depends_neither_on_rows_nor_on_ids(crowd: Any) -> None:
    frame = crowd.votes.to_frame().sample(frac=1, random_state=8)
    renamed = read_votes(frame.assign(annotator="other " + frame["annotator"]))
    for merge in (True, False):
        first, second = (vote_classes(votes, merge=merge).votes for votes in (crowd.votes, renamed))
        for name in ("item_codes", "annotator_codes", "votes"):
            assert np.array_equal(getattr(first, name), getattr(second, name)), name


# --- chunks ---


def test_chunks_hold_every_vote_once_in_the_order_of_the_items(crowd: Any) -> None:
    votes = read_votes(crowd.votes.to_frame().sample(frac=1, random_state=2))
    chunks = vote_chunks(votes, size=40)
    assert len(chunks) > 10
    found = []
    for chunk in chunks:
        cells = chunk.by_item.tocoo()
        found += list(
            zip(cells.row + chunk.first_item, chunk.annotators[cells.col], cells.col >= chunk.n_no, strict=True)
        )
        assert np.array_equal(chunk.by_column.toarray(), chunk.by_item.toarray().T)
        assert len(set(chunk.annotators[chunk.no])) == chunk.n_no
    assert sorted(found) == sorted(zip(votes.item_codes, votes.annotator_codes, votes.votes, strict=True))
    assert [chunk.first_item for chunk in chunks] == sorted(chunk.first_item for chunk in chunks)
    assert sum(len(chunk.item_weight) for chunk in chunks) == votes.n_items


@pytest.mark.parametrize("name", ["two-class", "glad"])
def test_the_size_of_chunks_does_not_matter(crowd: Any, name: str) -> None:
    whole, parts = settle(crowd.votes, PRIORS[name]), settle(crowd.votes, PRIORS[name], size=7)
    problem = problem_of(crowd.votes, PRIORS[name])
    assert p_of(parts, problem) == pytest.approx(p_of(whole, problem), abs=1e-10)
    assert parts.elbo == pytest.approx(whole.elbo, rel=1e-10)


@pytest.mark.parametrize("share", [1, 3, 4, 9, 20])
def test_groups_summed_elsewhere_give_the_same_bits(crowd: Any, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_module, "GROUP_CHUNKS", 1)
    votes, prior = crowd.votes, PRIORS["two-class"]
    problem, count = problem_of(votes, prior, size=7), votes.n_annotators
    chunks = vote_chunks(votes, size=7)
    assert len(chunks) > FAN**3 + FAN**2  # four levels of sums
    state = plain_sweeps(votes, prior, 3)
    with worker_pool() as pool:
        tables: Tables = problem.tables(state.skills, state.population, pool)
        here = problem.driver.sweep(tables, pool, number=1, since=None)
    groups = [[(chunk, step(chunk, tables))] for chunk in chunks]
    firsts = range(0, len(groups), share)
    trees = [sum_groups(groups[first : first + share], count, tables.states, first) for first in firsts]
    while len(trees) > 1:  # from the right: the order in which neighbours are joined does not matter
        trees[-2:] = [trees[-2].join(trees[-1])]
    sums, totals = trees[0].total(count)
    assert sums.mass.tobytes() == here.sums.mass.tobytes()
    assert sums.yes.tobytes() == here.sums.yes.tobytes()
    assert totals == here.totals
