"""One factor of the mean-field posterior, updated for many rows at once: items given annotators, or the reverse.

With the other side held fixed, the optimal factor of a row (an item's b or an annotator's c) is

    log q*(x) = log N(x; prior) + eta x - S(|x|) + const,    S(x) = sum over its votes of E[h(x * other)],

a log-concave density, since h is convex. Two representations: on the shared grid (wide densities), and on local nodes
around the mode (densities narrower than the grid). `normals` has the factors that are restricted to a Normal.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softgold.glad.grid import SinhGrid, Stencil, exp_above_underflow

__all__ = [
    "Factor",
    "NormalPrior",
    "concatenate",
    "is_narrow",
    "local_factor",
    "shared_grid_factor",
]

FloatArray = NDArray[np.float64]

LOCAL_NODES = 31
LARGEST_SPACING, FINER = 0.3, 2  # in asinh(x / scale); wider nodes are divided
DROP = 24.0  # a density this far (in log) below its peak is left out: 4e-11 of the peak
ZOOMS = 12
GRID_BLOCK = 4096  # rows at a time: few enough for the cache, enough that threads do not queue for the interpreter


@dataclass(frozen=True)
class NormalPrior:
    """Normal prior of a side in whitened coordinates."""

    mean: float
    sd: float

    def log_density(self, x: FloatArray) -> FloatArray:
        """Log density at `x`."""
        density: FloatArray = -0.5 * ((x - self.mean) / self.sd) ** 2 - np.log(self.sd) - 0.5 * np.log(2 * np.pi)
        return density

    def expected_log_density(self, mean: FloatArray, second: FloatArray) -> FloatArray:
        """Expectation of the log density under factors with these first and second moments."""
        square = second - 2 * self.mean * mean + self.mean**2
        expected: FloatArray = -0.5 * square / self.sd**2 - np.log(self.sd) - 0.5 * np.log(2 * np.pi)
        return expected


class Points(NamedTuple):
    """Discrete representation of R rows: nodes and their probabilities, shape (R, N), and the entropies, shape (R,)."""

    nodes: FloatArray
    mass: FloatArray
    entropy: FloatArray


@dataclass(frozen=True, eq=False)
class Factor:
    """Mean-field factors of R rows.

    Attributes:
        table: Coefficients on the grid of |x|, shape (R, count): E[f(x)] = table @ f(nodes) for even f.
        mean: E[x], shape (R,).
        second: E[x^2], shape (R,).
        positive: P(x > 0), shape (R,).
        bound: The row's part of the evidence lower bound, shape (R,): E[log likelihood + log prior] + entropy.
        entropy: Differential entropy of each factor, shape (R,); None on the shared grid.
        nodes: Points of a discrete representation, shape (R, N); None on the shared grid.
        mass: Probabilities of these points, shape (R, N); None on the shared grid.
    """

    table: FloatArray
    mean: FloatArray
    second: FloatArray
    positive: FloatArray
    bound: FloatArray
    entropy: FloatArray | None = None
    nodes: FloatArray | None = None
    mass: FloatArray | None = None

    @property
    def sd(self) -> FloatArray:
        """Standard deviation, shape (R,)."""
        return np.sqrt(np.maximum(self.second - self.mean**2, 0.0))

    def stretched(self, by: float, grid: SinhGrid) -> Factor:
        """Return the factors of `by` times x, for a discrete representation; their part of the bound is not known."""
        points = self.points
        table = self.table @ grid.stretch(by)
        unknown = np.full_like(self.bound, np.nan)
        return Factor(
            table,
            by * self.mean,
            by**2 * self.second,
            self.positive,
            unknown,
            points.entropy + np.log(by),
            by * points.nodes,
            points.mass,
        )

    @property
    def points(self) -> Points:
        """The discrete representation, which every factor but those on the shared grid has."""
        if self.nodes is None or self.mass is None or self.entropy is None:
            raise AssertionError("a factor on the shared grid has no points of its own")
        return Points(self.nodes, self.mass, self.entropy)


def concatenate(parts: list[Factor]) -> Factor:
    """Return the factors of several blocks of rows as one."""
    if len(parts) == 1:
        return parts[0]
    columns = {
        field.name: [getattr(part, field.name) for part in parts]
        for field in fields(Factor)
        if getattr(parts[0], field.name) is not None
    }
    return Factor(**{name: np.concatenate(arrays) for name, arrays in columns.items()})


def shared_grid_factor(eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid) -> Factor:
    """Return the exact factors on the shared grid, for a prior with mean zero.

    Args:
        eta: Linear coefficient of each row, shape (R,).
        penalty: S on the grid, shape (R, count).
        prior: Prior; its mean must be 0, so that x and -x differ by eta alone.
        grid: Grid of |x|.

    Rows whose density is narrower than the grid are redone on local nodes.
    """
    blocks = [slice(start, start + GRID_BLOCK) for start in range(0, len(eta), GRID_BLOCK)]
    parts = [_grid_block(eta[rows], penalty[rows], prior, grid) for rows in blocks]
    return _redo_narrow_rows(concatenate(parts), eta, penalty, prior, grid)


def _grid_block(eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid) -> Factor:
    kind = penalty.dtype
    x = grid.nodes.astype(kind)
    powers = np.stack([np.ones_like(x), x, x**2], axis=1)
    tilt = np.abs(eta)[:, None].astype(kind) * x
    table = np.subtract((prior.log_density(grid.nodes) + np.log(grid.widths)).astype(kind), penalty)
    table += tilt
    peak = table.max(axis=1, keepdims=True)
    table -= peak
    away = np.subtract(table, np.multiply(tilt, 2.0, out=tilt), out=tilt)
    for log_mass in (table, away):  # the side of zero that eta leans to, and the other
        exp_above_underflow(log_mass)
    table += away
    total, first, second = (table @ powers).astype(np.float64).T
    lost, lost_first = (away @ powers[:, :2]).astype(np.float64).T
    table *= (1 / total[:, None]).astype(kind)
    sign = np.sign(eta) / total
    mean = sign * (first - 2 * lost_first)
    # P(b on the leaning side) - P(b on the other): its integrand has a kink at 0, which Euler-Maclaurin corrects.
    difference = sign * (total - 2 * lost) + table[:, 0] * eta * (grid.scale * grid.step / 6)
    positive = 0.5 + 0.5 * np.clip(difference, -1.0, 1.0)
    return Factor(table, mean, second / total, positive, np.log(total) + peak[:, 0])


def is_narrow(factor: Factor, grid: SinhGrid) -> NDArray[np.bool_]:
    """Whether each density is too narrow for the grid around its mean, shape (R,)."""
    spacing = grid.step * np.hypot(factor.mean, grid.scale)
    return factor.sd < 0.8 * spacing


def _redo_narrow_rows(
    factor: Factor, eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid
) -> Factor:
    narrow = np.flatnonzero(is_narrow(factor, grid))
    if not len(narrow):
        return factor
    local = local_factor(eta[narrow], penalty[narrow].astype(np.float64), prior, grid)
    return _with_rows(factor, narrow, local, ("table", "mean", "second", "positive", "bound"))


def local_factor(
    eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid, count: int = LOCAL_NODES
) -> Factor:
    """Return the exact factors on `count` local nodes around each row's mode (arguments as in `shared_grid_factor`).

    The nodes are evenly spaced in asinh(x / scale): a narrow density sees them as even, a skewed one, steep on the side
    of zero and long on the other, gets them where it bends. A density that reaches over several orders of magnitude,
    or far to both sides of zero, is integrated on more of them.
    """
    low, high = _coarse_support(eta, penalty, prior, grid)
    for _ in range(ZOOMS):
        found = _LocalDensity.between(low, high, count, eta, penalty, prior, grid)
        new_low, new_high, used = _support(found.position, found.values)
        if used >= 0.5:
            break
        low, high = new_low, new_high
    factor = found.factor(grid)
    coarse = np.flatnonzero(high - low > (count - 1) * LARGEST_SPACING)
    if not len(coarse):
        return factor
    finer = FINER * (count - 1) + 1
    fine = _LocalDensity.between(low[coarse], high[coarse], finer, eta[coarse], penalty[coarse], prior, grid)
    return _with_rows(factor, coarse, fine.factor(grid), ("table", "mean", "second", "positive", "bound", "entropy"))


@dataclass(frozen=True, eq=False)
class _LocalDensity:
    """Densities of R rows on N nodes each: log density by x, by position, and how the grid interpolates there."""

    position: FloatArray
    nodes: FloatArray
    log_density: FloatArray
    values: FloatArray
    stencil: Stencil

    @classmethod
    def between(
        cls,
        low: FloatArray,
        high: FloatArray,
        count: int,
        eta: FloatArray,
        penalty: FloatArray,
        prior: NormalPrior,
        grid: SinhGrid,
    ) -> _LocalDensity:
        position = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, count)
        nodes = grid.scale * np.sinh(position)
        stencil = grid.stencil(position)
        log_density = prior.log_density(nodes) + eta[:, None] * nodes - grid.interpolate(penalty, stencil)
        return cls(position, nodes, log_density, log_density + np.log(grid.scale * np.cosh(position)), stencil)

    def factor(self, grid: SinhGrid) -> Factor:
        spacing = (self.position[:, -1] - self.position[:, 0]) / (self.position.shape[1] - 1)
        peak = self.values.max(axis=1, keepdims=True)
        mass = np.exp(self.values - peak)
        total = mass.sum(axis=1, keepdims=True)
        log_normaliser = (np.log(total) + peak)[:, 0] + np.log(spacing)
        mass /= total
        mean = np.einsum("rn,rn->r", mass, self.nodes)
        second = np.einsum("rn,rn->r", mass, self.nodes**2)
        entropy = log_normaliser - np.einsum("rn,rn->r", mass, self.log_density)
        positive = _mass_above_zero(self.position, mass, spacing)
        table = grid.project(self.stencil, mass)
        return Factor(table, mean, second, positive, log_normaliser, entropy, self.nodes, mass)


def _with_rows(factor: Factor, rows: NDArray[np.intp], others: Factor, names: tuple[str, ...]) -> Factor:
    """Return the factors with these columns of some rows taken from `others`."""
    changed = {}
    for name in names:
        changed[name] = getattr(factor, name).copy()
        changed[name][rows] = getattr(others, name)
    return replace(factor, **changed)


def _coarse_support(
    eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid
) -> tuple[FloatArray, FloatArray]:
    """Return where each density matters, in asinh(x / scale), as far as the grid's own nodes can tell."""
    x, last = grid.nodes, grid.count - 1
    tilt = eta[:, None] * x
    up = prior.log_density(x) - penalty + tilt
    down = prior.log_density(-x) - penalty - tilt
    least = np.maximum(up.max(axis=1), down.max(axis=1))[:, None] - DROP
    up_used, down_used = up > least, down > least

    def ends(used: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return used.argmax(axis=1), last - used[:, ::-1].argmax(axis=1)

    (up_first, up_last), (down_first, down_last) = ends(up_used), ends(down_used)
    low = np.where(down_used.any(axis=1), -down_last, up_first) - 1
    high = np.where(up_used.any(axis=1), up_last, -down_first) + 1
    return grid.step * np.maximum(low, -last), grid.step * np.minimum(high, last)


def _support(nodes: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the ends of the nodes that matter, one node wider on each side, and the least share of them used."""
    last = nodes.shape[1] - 1
    above = values > values.max(axis=1, keepdims=True) - DROP
    first_above = above.argmax(axis=1)
    last_above = last - above[:, ::-1].argmax(axis=1)
    left, right = np.maximum(first_above - 1, 0), np.minimum(last_above + 1, last)
    rows = np.arange(len(nodes))
    return nodes[rows, left], nodes[rows, right], float(((right - left) / last).min(initial=1.0))


def _mass_above_zero(nodes: FloatArray, mass: FloatArray, spacing: FloatArray) -> FloatArray:
    """P(x > 0) from equidistant masses: exact for a density that is cubic between nodes."""
    density = np.pad(mass, ((0, 0), (1, 2)))
    position = -nodes[:, 0] / spacing
    cell = np.clip(np.floor(position).astype(np.intp), -1, nodes.shape[1] - 1)
    t = np.clip(position - cell, 0.0, 1.0)
    rows = np.arange(len(nodes))
    before, left, right, after = (density[rows, np.clip(cell + k, 0, density.shape[1] - 1)] for k in range(4))
    below = np.concatenate([np.zeros((len(nodes), 1)), np.cumsum(mass, axis=1)], axis=1)[rows, cell + 1]
    # The trapezoid sum up to node `cell`, its end correction, and the integral of the cubic from there to zero.
    slope, next_slope = (right - before) / 2, (after - left) / 2
    whole = below - left / 2 - slope / 12
    part = (
        left * t
        + slope * t**2 / 2
        + (3 * (right - left) - 2 * slope - next_slope) * t**3 / 3
        + (2 * (left - right) + slope + next_slope) * t**4 / 4
    )
    share = np.where(position <= 0, 0.0, np.where(position >= nodes.shape[1] - 1, 1.0, whole + part))
    return np.clip(1.0 - share, 0.0, 1.0)
