"""Normal factors of the mean-field posterior: their tables on the grid, and the best of them for many rows at once.

E[S(x)] under a Normal is a sum over the grid where the Normal is wide, and a Gauss-Hermite sum of the interpolated S
where it is narrower than the grid. The grid has a node at zero and is fine around it, so that the kink which a vague
prior gives S there does no harm; between the Gauss-Hermite nodes of a wide Normal it would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from softgold.glad.factors import Factor, NormalPrior, local_factor, shared_grid_factor
from softgold.glad.grid import SinhGrid, exp_above_underflow

__all__ = ["HERMITE_MASS", "HERMITE_NODES", "Normals", "gaussian_factor", "normal_factor", "normal_table"]

FloatArray = NDArray[np.float64]

HERMITE_NODES, _HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
HERMITE_MASS = _HERMITE_WEIGHTS / _HERMITE_WEIGHTS.sum()
HERMITE_SUMS = HERMITE_MASS[:, None] * HERMITE_NODES[:, None] ** np.arange(5)
WIDE = 1.2  # grid spacings: the trapezoid rule is exact to 1e-12 for a Normal this wide
ROWS = 1024  # at a time: few enough for the cache, enough that threads do not queue for the interpreter
ITERATIONS = 30
# Of a Newton step, in standard deviations; what is left after a step is of the order of its square. From a start that
# the sweep before has found, and that the next will take up again, less is enough.
TOLERANCE, WARM_TOLERANCE = 1e-3, 0.05


@dataclass(frozen=True, eq=False)
class Normals:
    """Means and standard deviations of R Normals, each of shape (R,)."""

    mean: FloatArray
    sd: FloatArray

    @property
    def entropy(self) -> FloatArray:
        """Differential entropy, shape (R,)."""
        entropy: FloatArray = np.log(self.sd) + 0.5 * np.log(2 * np.pi * np.e)
        return entropy

    @classmethod
    def concatenate(cls, parts: list[Normals]) -> Normals:
        """Return the Normals of several blocks of rows as one."""
        return cls(np.concatenate([part.mean for part in parts]), np.concatenate([part.sd for part in parts]))

    def rows(self, chosen: slice | NDArray[np.intp]) -> Normals:
        """Return some of the rows."""
        return Normals(self.mean[chosen], self.sd[chosen])

    def are_wide(self, grid: SinhGrid) -> NDArray[np.bool_]:
        """Whether the grid resolves each of them around its mean, shape (R,)."""
        return self.sd > WIDE * grid.step * np.hypot(self.mean, grid.scale)

    def hermite_nodes(self) -> FloatArray:
        """Gauss-Hermite nodes, shape (R, 20); their masses are HERMITE_MASS."""
        return self.mean[:, None] + self.sd[:, None] * HERMITE_NODES


class _Expectations(NamedTuple):
    """E[S] under a Normal and the derivatives of E[S(mean + sd z)] by mean and sd, each of shape (R,)."""

    value: FloatArray
    by_mean: FloatArray
    by_sd: FloatArray
    by_mean_twice: FloatArray
    by_both: FloatArray
    by_sd_twice: FloatArray

    @classmethod
    def of(cls, powers: FloatArray, sd: FloatArray) -> _Expectations:
        """Return them from E[z^k S], k = 0 .. 4, shape (R, 5), by Stein's lemma: E[S'] = E[z S] / sd, and so on."""
        m0, m1, m2, m3, m4 = powers.T
        second, third, fourth = m2 - m0, m3 - 3 * m1, m4 - 6 * m2 + 3 * m0  # E[He_k(z) S]
        return cls(m0, m1 / sd, second / sd, second / sd**2, third / sd**2, (fourth + second) / sd**2)


def normal_factor(mean: FloatArray, sd: FloatArray, grid: SinhGrid, bound: FloatArray | None = None) -> Factor:
    """Return Normal factors with these moments; `bound` is their part of the evidence lower bound, where known."""
    normals = Normals(mean, sd)
    nodes = normals.hermite_nodes()
    return Factor(
        normal_table(normals, grid),
        mean,
        mean**2 + sd**2,
        ndtr(mean / sd),
        np.full(len(mean), np.nan) if bound is None else bound,
        normals.entropy,
        nodes,
        np.broadcast_to(HERMITE_MASS, nodes.shape),
    )


def normal_table(normals: Normals, grid: SinhGrid) -> FloatArray:
    """Return coefficients on the grid of |x|, shape (R, count): E[f(x)] = table @ f(nodes) for even f."""
    table = np.empty((len(normals.mean), grid.count))
    wide = normals.are_wide(grid)
    for rows in _blocks(np.flatnonzero(wide)):
        table[rows] = _grid_masses(normals.rows(rows), grid)
    for rows in _blocks(np.flatnonzero(~wide)):
        nodes = normals.rows(rows).hermite_nodes()
        table[rows] = grid.table(nodes, np.broadcast_to(HERMITE_MASS, nodes.shape))
    return table


def gaussian_factor(
    eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid, start: Normals | None = None
) -> Factor:
    """Return the best Normal factors (arguments as in `factors.shared_grid_factor`), never below `start`.

    S is convex, so the bound is concave in mean and standard deviation together. Each step is a Newton step in both,
    shortened where it overshoots; the derivatives come from sums of S itself.
    """
    begin = start or _moments_of_exact_factors(eta, penalty, prior, grid)
    tolerance = WARM_TOLERANCE if start else TOLERANCE
    blocks = _blocks(np.arange(len(eta)))
    parts = [_ascend(begin.rows(rows), eta[rows], penalty[rows], prior, grid, tolerance) for rows in blocks]
    found, bounds = zip(*parts, strict=True)
    best = Normals.concatenate(list(found))
    return normal_factor(best.mean, best.sd, grid, np.concatenate(bounds))


def _blocks(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)]


def _moments_of_exact_factors(eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid) -> Normals:
    exact = shared_grid_factor if prior.mean == 0 else local_factor
    factor = exact(eta, penalty, prior, grid)
    return Normals(factor.mean, factor.sd)


def _ascend(
    begin: Normals, eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid, tolerance: float
) -> tuple[Normals, FloatArray]:
    """Return the Normals and their bounds after Newton steps that each raise the bound of their row."""
    mean, sd = begin.mean.copy(), begin.sd.copy()
    found = _expectations(begin, penalty, grid)
    bound = _bound(begin, found, eta, prior)
    active, rate = np.arange(len(eta)), np.ones(len(eta))
    for _ in range(ITERATIONS):
        here = Normals(mean[active], sd[active])
        move, widen = _newton_step(here, found, eta[active], prior)
        there = Normals(here.mean + rate * move, np.maximum(here.sd + rate * widen, here.sd / 4))
        found_there = _expectations(there, penalty[active], grid)
        bound_there = _bound(there, found_there, eta[active], prior)
        better = bound_there > bound[active]
        raised = active[better]
        mean[raised], sd[raised], bound[raised] = there.mean[better], there.sd[better], bound_there[better]
        found = _Expectations(*(np.where(better, new, old) for new, old in zip(found_there, found, strict=True)))
        length = rate * (np.abs(move) + np.abs(widen)) / here.sd
        moving = length > np.where(better, tolerance, TOLERANCE)  # a step that failed is tried again, shorter
        rate = np.where(better, np.minimum(1.0, 2 * rate), rate / 4)
        active, rate = active[moving], rate[moving]
        found = _Expectations(*(values[moving] for values in found))
        if not len(active):
            break
    return Normals(mean, sd), bound


def _bound(normals: Normals, found: _Expectations, eta: FloatArray, prior: NormalPrior) -> FloatArray:
    second = normals.mean**2 + normals.sd**2
    expected = eta * normals.mean - found.value + prior.expected_log_density(normals.mean, second)
    return expected + normals.entropy


def _newton_step(
    normals: Normals, found: _Expectations, eta: FloatArray, prior: NormalPrior
) -> tuple[FloatArray, FloatArray]:
    """Return the changes of mean and standard deviation."""
    mean, sd, precision = normals.mean, normals.sd, 1 / prior.sd**2
    up = eta - found.by_mean - precision * (mean - prior.mean)
    out = 1 / sd - found.by_sd - precision * sd
    # Convexity makes these three a positive definite matrix; rounding must not undo that.
    steep, wide = np.maximum(found.by_mean_twice, 0.0), np.maximum(found.by_sd_twice, 0.0)
    both = np.clip(found.by_both, -np.sqrt(steep * wide), np.sqrt(steep * wide))
    steep, wide = steep + precision, wide + precision + 1 / sd**2
    determinant = steep * wide - both**2
    return (wide * up - both * out) / determinant, (steep * out - both * up) / determinant


def _expectations(normals: Normals, penalty: FloatArray, grid: SinhGrid) -> _Expectations:
    """Return what the bound and its Newton step need of S; row by row the same sums as `normal_table` stands for."""
    powers = np.empty((len(normals.mean), HERMITE_SUMS.shape[1]))
    wide = normals.are_wide(grid)
    for rows, sums in ((np.flatnonzero(wide), _grid_sums), (np.flatnonzero(~wide), _hermite_sums)):
        if len(rows):
            powers[rows] = sums(normals.rows(rows), penalty[rows], grid)
    return _Expectations.of(powers, normals.sd)


def _hermite_sums(normals: Normals, penalty: FloatArray, grid: SinhGrid) -> FloatArray:
    sums: FloatArray = grid.interpolate(penalty, grid.stencil_at(normals.hermite_nodes())) @ HERMITE_SUMS
    return sums


def _grid_sums(normals: Normals, penalty: FloatArray, grid: SinhGrid) -> FloatArray:
    even, odd = _grid_densities(normals, grid)
    total = even @ grid.widths
    even *= penalty
    odd *= penalty
    x, widths = grid.nodes[:, None], grid.widths[:, None]
    x0, x2, x4 = (even @ (widths * x ** np.array([0, 2, 4]))).T / total
    x1, x3 = (odd @ (widths * x ** np.array([1, 3]))).T / total
    mean, sd = normals.mean, normals.sd
    z1 = x1 - mean * x0
    z2 = x2 - 2 * mean * x1 + mean**2 * x0
    z3 = x3 - 3 * mean * x2 + 3 * mean**2 * x1 - mean**3 * x0
    z4 = x4 - 4 * mean * x3 + 6 * mean**2 * x2 - 4 * mean**3 * x1 + mean**4 * x0
    return np.stack([x0, z1 / sd, z2 / sd**2, z3 / sd**3, z4 / sd**4], axis=1)


def _grid_masses(normals: Normals, grid: SinhGrid) -> FloatArray:
    """Return the mass of x and -x together at each node, shape (R, count)."""
    masses, _ = _grid_densities(normals, grid)
    masses *= grid.widths / (masses @ grid.widths)[:, None]
    return masses


def _grid_densities(normals: Normals, grid: SinhGrid) -> tuple[FloatArray, FloatArray]:
    """Return the densities at x and -x, up to a factor, their sum and their difference, both of shape (R, count)."""
    mean, curvature = normals.mean[:, None], (-0.5 / normals.sd**2)[:, None]
    above = grid.nodes - mean
    above *= above
    above *= curvature
    below = grid.nodes * (4 * curvature * mean)  # (x + m)^2 is (x - m)^2 + 4 x m
    below += above
    exp_above_underflow(above)
    exp_above_underflow(below)
    even = above + below
    above -= below
    return even, above
