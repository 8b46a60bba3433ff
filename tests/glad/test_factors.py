"""Factors against brute-force integration on a fine, even grid that knows nothing of the engine's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from softgold.glad.factors import (
    Factor,
    NormalPrior,
    concatenate,
    is_narrow,
    local_factor,
    shared_grid_factor,
)
from softgold.glad.grid import SinhGrid, log_two_cosh_half
from softgold.glad.normals import Normals, gaussian_factor, normal_factor

FloatArray = NDArray[np.float64]

UNIT = NormalPrior(0.0, 1.0)


@dataclass(frozen=True)
class Row:
    """One factor: votes y on (or by) others of known size, and the prior."""

    votes: FloatArray
    others: FloatArray
    prior: NormalPrior = UNIT

    @property
    def eta(self) -> float:
        return float(((self.votes - 0.5) * self.others).sum())

    def penalty(self, x: FloatArray) -> FloatArray:
        total = np.zeros_like(x)
        for other in np.unique(self.others):
            total += (self.others == other).sum() * log_two_cosh_half(x * other)
        return total

    def grid(self, scale: float = 0.1) -> SinhGrid:
        reach = np.sqrt(2 * (len(self.votes) * np.log(2) + 20))
        return SinhGrid.reaching(abs(self.prior.mean) + self.prior.sd * reach, scale=scale, step=0.1)


@dataclass(frozen=True)
class Exact:
    """What a density is, by brute force."""

    log_normaliser: float
    mean: float
    sd: float
    positive: float
    entropy: float
    expected_h: float


def brute_force(row: Row) -> Exact:
    """Integrate over the support, found by two rounds of narrowing, with 40,001 even nodes from below zero to above."""
    reach = abs(row.prior.mean) + row.prior.sd * np.sqrt(2 * (len(row.votes) * np.log(2) + 40))
    low, high = -reach, reach

    def log_density(x: FloatArray) -> FloatArray:
        prior = -0.5 * ((x - row.prior.mean) / row.prior.sd) ** 2 - np.log(row.prior.sd) - 0.5 * np.log(2 * np.pi)
        return prior + row.eta * x - row.penalty(x)

    for _ in range(3):
        x = np.linspace(low, high, 4_001)
        used = np.flatnonzero(log_density(x) > log_density(x).max() - 40)
        low, high = x[max(used[0] - 1, 0)], x[min(used[-1] + 1, len(x) - 1)]
    x = np.linspace(low, high, 40_001)
    values = log_density(x)
    peak = values.max()
    weights = np.exp(values - peak) * (x[1] - x[0])
    total = weights.sum()
    weights /= total
    mean = float(weights @ x)
    log_normaliser = float(np.log(total) + peak)
    # A node whose cell holds zero counts with the part of the cell that lies above.
    above = np.clip(x / (x[1] - x[0]) + 0.5, 0, 1)
    return Exact(
        log_normaliser,
        mean,
        float(np.sqrt(weights @ (x - mean) ** 2)),
        float(weights @ above),
        float(log_normaliser - weights @ values),
        float(weights @ log_two_cosh_half(0.7 * x)),
    )


def votes_on(others: FloatArray, share: float, prior: NormalPrior = UNIT) -> Row:
    """Votes of which the first `share` are positive."""
    votes = (np.arange(len(others)) < share * len(others)).astype(float)
    return Row(votes, others, prior)


ROWS: dict[str, Row] = {
    "no information": votes_on(np.zeros(3), 1.0),
    "one vote": votes_on(np.array([1.5]), 1.0),
    "five agree": votes_on(np.full(5, 2.0), 1.0),
    "split": votes_on(np.full(6, 2.0), 0.5),
    "skewed: one against nine": votes_on(np.full(10, 3.0), 0.9),
    "half-normal: very able others": votes_on(np.full(3, 100.0), 1.0),
    "torn between very able others": votes_on(np.array([100.0, 99.0]), 0.5),
    "mixed others": votes_on(np.array([0.01, 0.3, -2.0, 5.0, 20.0]), 0.6),
    "narrow: 3000 votes": votes_on(np.full(3000, 2.0), 0.8),
    "narrow near zero: 3000 votes": votes_on(np.full(3000, 2.0), 0.501),
    "3000 votes, all alike": votes_on(np.full(3000, 1.0), 1.0),
}
EDGES = ("half-normal: very able others", "3000 votes, all alike")
PRIORS: dict[str, NormalPrior] = {
    "unit": UNIT,
    "wide": NormalPrior(0.0, 10.0),
    "tight": NormalPrior(0.0, 0.05),
    "off centre": NormalPrior(3.0, 1.5),
    "vague": NormalPrior(0.0, 1000.0),
    "far off centre": NormalPrior(-40.0, 4.0),
}


def columns(row: Row, grid: SinhGrid) -> tuple[FloatArray, FloatArray]:
    return np.array([row.eta]), row.penalty(grid.nodes)[None]


def compare(found: Factor, exact: Exact, *, tolerance: float) -> None:
    """Compare in the units that matter: moments in posterior standard deviations, the rest as it is."""
    assert found.bound[0] == pytest.approx(exact.log_normaliser, abs=max(tolerance, 1e-9 * abs(exact.log_normaliser)))
    assert found.mean[0] == pytest.approx(exact.mean, abs=tolerance * exact.sd)
    assert found.sd[0] == pytest.approx(exact.sd, rel=tolerance)
    assert found.positive[0] == pytest.approx(exact.positive, abs=tolerance)


def expected_h(found: Factor, grid: SinhGrid) -> float:
    return float((found.table @ log_two_cosh_half(0.7 * grid.nodes))[0])


@pytest.mark.parametrize("name", ROWS)
def test_shared_grid(name: str) -> None:
    row = ROWS[name]
    grid = row.grid(scale=min(0.1, 3 / np.abs(row.others).max(initial=1.0)))
    exact = brute_force(row)
    found = shared_grid_factor(*columns(row, grid), row.prior, grid)
    compare(found, exact, tolerance=2e-4)
    assert expected_h(found, grid) == pytest.approx(exact.expected_h, rel=1e-5)


def test_shared_grid_in_single_precision() -> None:
    row = ROWS["skewed: one against nine"]
    grid = row.grid()
    eta, penalty = columns(row, grid)
    found = shared_grid_factor(eta, penalty.astype(np.float32), row.prior, grid)
    assert found.table.dtype == np.float32
    compare(found, brute_force(row), tolerance=1e-4)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", ROWS)
def test_local_nodes(name: str, prior: str) -> None:
    row = Row(ROWS[name].votes, ROWS[name].others, PRIORS[prior])
    grid = row.grid(scale=min(0.1, 3 / np.abs(row.others).max(initial=1.0)))
    exact = brute_force(row)
    found = local_factor(*columns(row, grid), row.prior, grid)
    # A density with an edge at 8 that reaches to 1000s: the nodes, even in asinh(x / 0.1), do not resolve the edge.
    tolerance = 0.02 if prior == "vague" and name in EDGES else 1e-3
    compare(found, exact, tolerance=tolerance)
    assert found.bound[0] == pytest.approx(exact.log_normaliser, abs=tolerance / 4 + 1e-9 * abs(exact.log_normaliser))
    assert found.points.entropy[0] == pytest.approx(exact.entropy, abs=tolerance)
    assert expected_h(found, grid) == pytest.approx(exact.expected_h, rel=tolerance, abs=1e-9)
    assert found.points.mass.sum() == pytest.approx(1.0, rel=1e-12)


def test_narrow_rows_are_redone_and_the_others_are_not() -> None:
    names = ["five agree", "narrow: 3000 votes", "split"]
    rows = [ROWS[name] for name in names]
    grid = ROWS["narrow: 3000 votes"].grid()
    eta, penalty = (np.concatenate(column) for column in zip(*(columns(row, grid) for row in rows), strict=True))
    found = shared_grid_factor(eta, penalty, UNIT, grid)
    assert is_narrow(found, grid).tolist() == [False, True, False]
    for number, row in enumerate(rows):
        exact = brute_force(row)
        assert found.mean[number] == pytest.approx(exact.mean, abs=1e-4 * exact.sd)
        assert found.sd[number] == pytest.approx(exact.sd, rel=1e-4)
        assert found.bound[number] == pytest.approx(exact.log_normaliser, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(-4, 4)), min_size=1, max_size=25),
    st.floats(-3, 3),
    st.floats(0.2, 5),
)
def test_local_nodes_anywhere(votes: list[tuple[bool, float]], mean: float, sd: float) -> None:
    answers, others = (np.array(column, dtype=float) for column in zip(*votes, strict=True))
    row = Row(answers, others, NormalPrior(mean, sd))
    grid = row.grid()
    compare(local_factor(*columns(row, grid), row.prior, grid), brute_force(row), tolerance=5e-3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(-10, 10)), min_size=1, max_size=25))
def test_shared_grid_anywhere_and_mirrored(votes: list[tuple[bool, float]]) -> None:
    answers, others = (np.array(column, dtype=float) for column in zip(*votes, strict=True))
    row = Row(answers, others)
    grid = row.grid()
    eta, penalty = columns(row, grid)
    found, mirrored = (shared_grid_factor(sign * eta, penalty, UNIT, grid) for sign in (1.0, -1.0))
    compare(found, brute_force(row), tolerance=5e-4)
    assert mirrored.positive[0] == pytest.approx(1 - found.positive[0], abs=1e-12)
    assert mirrored.mean[0] == pytest.approx(-found.mean[0], abs=1e-12)
    assert mirrored.bound[0] == pytest.approx(found.bound[0], abs=1e-12)


def exact_gaussian_bound(row: Row, mean: float, sd: float) -> float:
    """The bound of a Normal factor, the expectation of S by even nodes over ten standard deviations."""
    z = np.linspace(-10, 10, 8_001)
    weights = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    expected_penalty = float(weights @ row.penalty(mean + sd * z))
    prior = -0.5 * ((mean - row.prior.mean) ** 2 + sd**2) / row.prior.sd**2 - np.log(row.prior.sd)
    return row.eta * mean - expected_penalty + prior + np.log(sd) + 0.5


@pytest.mark.parametrize("prior", ["unit", "wide", "tight", "off centre"])
@pytest.mark.parametrize(
    "name",
    [
        "no information",
        "one vote",
        "five agree",
        "split",
        "skewed: one against nine",
        "narrow: 3000 votes",
        "mixed others",
    ],
)
def test_gaussian_factors_maximise_the_bound(name: str, prior: str) -> None:
    row = Row(ROWS[name].votes, ROWS[name].others, PRIORS[prior])
    grid = row.grid()
    found = gaussian_factor(*columns(row, grid), row.prior, grid)
    start = brute_force(row)
    best = minimize(
        lambda at: -exact_gaussian_bound(row, start.mean + start.sd * at[0], start.sd * np.exp(at[1])),
        [0.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-9},
    )
    here = exact_gaussian_bound(row, float(found.mean[0]), float(found.sd[0]))
    assert here == pytest.approx(-best.fun, abs=2e-3)
    assert found.bound[0] == pytest.approx(here, abs=2e-3 + 1e-8 * abs(here))
    assert found.bound[0] <= start.log_normaliser + 2e-3  # no Normal beats the exact factor
    assert found.positive[0] == pytest.approx(ndtr(found.mean[0] / found.sd[0]), abs=1e-12)


@pytest.mark.parametrize("prior", ["unit", "wide"])
def test_gaussian_factors_never_fall_below_their_start(prior: str) -> None:
    row = Row(ROWS["mixed others"].votes, ROWS["mixed others"].others, PRIORS[prior])
    grid = row.grid()
    eta, penalty = columns(row, grid)
    best = gaussian_factor(eta, penalty, row.prior, grid)
    for mean, sd in [(0.0, 1e-3), (-3.0, 0.5), (2.0, 4.0), (float(best.mean[0]), float(best.sd[0]))]:
        start = Normals(np.array([mean]), np.array([sd]))
        found = gaussian_factor(eta, penalty, row.prior, grid, start)
        begun = exact_gaussian_bound(row, mean, sd)
        assert found.bound[0] >= begun - 1e-9 * abs(begun)
        assert found.bound[0] == pytest.approx(best.bound[0], abs=1e-6)


def test_normal_factors_have_the_moments_of_a_normal() -> None:
    grid = SinhGrid.reaching(40.0, scale=0.1, step=0.1)
    mean, sd = np.array([0.0, 2.0, -5.0]), np.array([1.0, 0.01, 3.0])
    factor = normal_factor(mean, sd, grid)
    assert factor.mean == pytest.approx(mean)
    assert factor.sd == pytest.approx(sd, rel=1e-6)
    assert factor.table @ grid.nodes**2 == pytest.approx(mean**2 + sd**2, rel=1e-5)
    assert factor.points.entropy == pytest.approx(0.5 * np.log(2 * np.pi * np.e * sd**2))


def test_stretching_scales_moments_and_entropy() -> None:
    grid = SinhGrid.reaching(40.0, scale=0.1, step=0.1)
    factor = local_factor(np.array([1.0, -2.0]), np.zeros((2, grid.count)), NormalPrior(0.0, 0.8), grid)
    stretched = factor.stretched(1.7, grid)
    for even in (np.ones_like, np.square, log_two_cosh_half):
        assert stretched.table @ even(grid.nodes) == pytest.approx(factor.table @ even(1.7 * grid.nodes), rel=1e-5)
    assert stretched.mean == pytest.approx(1.7 * factor.mean)
    assert stretched.sd == pytest.approx(1.7 * factor.sd)
    assert stretched.points.entropy == pytest.approx(factor.points.entropy + np.log(1.7))


def test_concatenated_blocks_are_the_whole() -> None:
    grid = SinhGrid.reaching(40.0, scale=0.1, step=0.1)
    mean, sd = np.linspace(-2, 2, 5), np.linspace(0.1, 2, 5)
    whole = normal_factor(mean, sd, grid)
    parts = concatenate([normal_factor(mean[:2], sd[:2], grid), normal_factor(mean[2:], sd[2:], grid)])
    assert parts.table == pytest.approx(whole.table, abs=1e-15)
    assert np.array_equal(parts.points.nodes, whole.points.nodes)
    exact = shared_grid_factor(np.ones(1), np.zeros((1, grid.count)), UNIT, grid)
    assert concatenate([exact, exact]).nodes is None
