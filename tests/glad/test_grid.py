"""The sinh grid against quadrature and direct evaluation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad

from softgold.glad.grid import STENCIL, SinhGrid, log_two_cosh_half

FloatArray = NDArray[np.float64]

GRID = SinhGrid.reaching(12.0, scale=0.1, step=0.1)

EVEN_FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "standard normal": lambda x: np.exp(-0.5 * x**2),
    "narrow normal": lambda x: np.exp(-0.5 * (x / 0.1) ** 2),
    "logistic": lambda x: 1 / np.cosh(x) ** 2,
    "vote penalty": lambda x: log_two_cosh_half(3 * x) * np.exp(-0.5 * x**2),
}


def test_h_has_the_values_of_its_definition() -> None:
    x = np.array([-30.0, -2.0, -1e-3, 0.0, 0.5, 1.0, 30.0])
    assert log_two_cosh_half(x) == pytest.approx(np.log(2 * np.cosh(x / 2)), rel=1e-14)
    assert log_two_cosh_half(np.array(1.0)) == pytest.approx(0.8132616875182228, rel=1e-15)  # log(e^0.5 + e^-0.5)


def test_h_does_not_overflow() -> None:
    assert log_two_cosh_half(np.array([1e5, -1e5, 1e300])).tolist() == [5e4, 5e4, 5e299]


@given(st.floats(-700, 700))
def test_softplus_is_half_x_plus_h(x: float) -> None:
    assert x / 2 + float(log_two_cosh_half(np.array(x))) == pytest.approx(np.logaddexp(0, x), rel=1e-12, abs=1e-12)


def test_the_nodes_cover_the_range_from_zero() -> None:
    assert GRID.nodes[0] == 0
    assert GRID.nodes[-2] < 12 <= GRID.nodes[-1]
    assert (np.diff(GRID.nodes, 2) > 0).all()  # ever wider apart
    assert SinhGrid.reaching(1e-9, scale=0.1, step=0.1).count == STENCIL


@pytest.mark.parametrize("name", EVEN_FUNCTIONS)
def test_integration(name: str) -> None:
    f = EVEN_FUNCTIONS[name]
    exact = quad(lambda x: float(f(np.array(x))), 0, 12, epsabs=1e-13, epsrel=1e-13, limit=200, points=[0.1, 0.5, 1])[0]
    assert float(GRID.widths @ f(GRID.nodes)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("name", EVEN_FUNCTIONS)
def test_interpolation_of_even_functions(name: str) -> None:
    f = EVEN_FUNCTIONS[name]
    points = np.random.default_rng(0).uniform(-12, 12, size=(1, 2000))
    points[0, :4] = [0.0, 1e-9, -1e-9, 12.0]
    found = GRID.interpolate(f(GRID.nodes)[None], GRID.stencil_at(points))
    assert found == pytest.approx(f(points), abs=2e-5)


def test_interpolation_is_exact_at_the_nodes_and_for_each_row_its_own_table() -> None:
    tables = np.stack([GRID.nodes**2, np.cos(GRID.nodes)])
    points = np.stack([GRID.nodes, -GRID.nodes])
    assert GRID.interpolate(tables, GRID.stencil_at(points)) == pytest.approx(tables, rel=1e-9, abs=1e-9)


def test_interpolation_has_the_order_of_its_stencil() -> None:
    x = np.random.default_rng(1).uniform(0, 5, size=(1, 500))

    def worst(step: float) -> float:
        grid = SinhGrid.reaching(12.0, scale=0.5, step=step)
        return float(np.abs(grid.interpolate(np.cos(grid.nodes)[None], grid.stencil_at(x)) - np.cos(x)).max())

    assert worst(0.1) / worst(0.05) > 2 ** (STENCIL - 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 7), st.floats(1e-4, 40))
def test_project_is_the_transpose_of_interpolate(seed: int, rows: int, points: int, reach: float) -> None:
    rng = np.random.default_rng(seed)
    grid = SinhGrid.reaching(reach, scale=0.1, step=0.1)
    stencil = grid.stencil_at(rng.uniform(-reach, reach, size=(rows, points)))
    mass, tables = rng.normal(size=(rows, points)), rng.normal(size=(rows, grid.count))
    there = (mass * grid.interpolate(tables, stencil)).sum(axis=1)
    back = (grid.project(stencil, mass) * tables).sum(axis=1)
    assert back == pytest.approx(there, rel=1e-10, abs=1e-10)


def test_projected_mass_gives_expectations_of_even_functions() -> None:
    points, mass = np.array([[-2.0, 0.3, 5.0]]), np.array([[0.2, 0.5, 0.3]])
    table = GRID.project(GRID.stencil_at(points), mass)
    assert table.sum() == pytest.approx(1.0, rel=1e-12)
    expected = float((mass * log_two_cosh_half(1.7 * points)).sum())
    assert float((table @ log_two_cosh_half(1.7 * GRID.nodes))[0]) == pytest.approx(expected, rel=1e-6)
