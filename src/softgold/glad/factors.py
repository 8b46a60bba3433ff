"""One factor of the mean-field posterior, updated for many rows at once: items given annotators, or the reverse.

With the other side held fixed, the optimal factor of a row (an item's b or an annotator's c) is

    log q*(x) = log N(x; prior) + eta x - S(|x|) + const,    S(x) = sum over its votes of E[h(x * other)],

a log-concave density, since h is convex. Three representations: on the shared grid (wide densities), on local nodes
around the mode (densities narrower than the grid), and restricted to a Normal (what SVI fits).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from softgold.glad.grid import SinhGrid

__all__ = [
    "Factor",
    "NormalPrior",
    "concatenate",
    "gaussian_factor",
    "is_narrow",
    "local_factor",
    "normal_factor",
    "shared_grid_factor",
]

FloatArray = NDArray[np.float64]

LOCAL_NODES = 31
DROP = 24.0  # a density this far (in log) below its peak is left out: 4e-11 of the peak
ZOOMS = 12
GRID_BLOCK = 1024  # rows at a time: their tables stay in the processor's cache
HERMITE_NODES, _HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
HERMITE_MASS = _HERMITE_WEIGHTS / _HERMITE_WEIGHTS.sum()
GAUSSIAN_ITERATIONS = 30
GAUSSIAN_TOLERANCE = 1e-5


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
        table = grid.project(grid.stencil_at(by * points.nodes), points.mass)
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
    np.exp(table, out=table)  # the side of zero that eta leans to
    away = np.exp(np.multiply(tilt, -2.0, out=tilt), out=tilt)
    away *= table
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
    changed = {}
    for name in ("table", "mean", "second", "positive", "bound"):
        changed[name] = getattr(factor, name).copy()
        changed[name][narrow] = getattr(local, name)
    return replace(factor, **changed)


def local_factor(
    eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid, count: int = LOCAL_NODES
) -> Factor:
    """Return the exact factors on `count` local nodes around each row's mode (arguments as in `shared_grid_factor`).

    The nodes are evenly spaced in asinh(x / scale): a narrow density sees them as even, a skewed one, steep on the side
    of zero and long on the other, gets them where it bends.
    """
    low, high = _coarse_support(eta, penalty, prior, grid)
    for _ in range(ZOOMS):
        position = np.linspace(low, high, count, axis=1)
        nodes = grid.scale * np.sinh(position)
        slope = grid.scale * np.cosh(position)
        stencil = grid.stencil(position)
        log_density = prior.log_density(nodes) + eta[:, None] * nodes - grid.interpolate(penalty, stencil)
        values = log_density + np.log(slope)
        new_low, new_high, used = _support(position, values)
        if used >= 0.5:
            break
        low, high = new_low, new_high
    spacing = (position[:, -1] - position[:, 0]) / (count - 1)
    peak = values.max(axis=1, keepdims=True)
    mass = np.exp(values - peak)
    total = mass.sum(axis=1, keepdims=True)
    log_normaliser = (np.log(total) + peak)[:, 0] + np.log(spacing)
    mass /= total
    mean = np.einsum("rn,rn->r", mass, nodes)
    second = np.einsum("rn,rn->r", mass, nodes**2)
    entropy = log_normaliser - np.einsum("rn,rn->r", mass, log_density)
    positive = _mass_above_zero(position, mass, spacing)
    return Factor(grid.project(stencil, mass), mean, second, positive, log_normaliser, entropy, nodes, mass)


def _coarse_support(
    eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid
) -> tuple[FloatArray, FloatArray]:
    """Return where each density matters, in asinh(x / scale), as far as the grid's own nodes can tell."""
    position = grid.step * np.arange(1 - grid.count, grid.count)
    x = grid.scale * np.sinh(position)
    even = np.concatenate([penalty[:, :0:-1], penalty], axis=1)
    values = prior.log_density(x) + eta[:, None] * x - even
    low, high, _ = _support(np.broadcast_to(position, even.shape), values)
    return low, high


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


def normal_factor(mean: FloatArray, sd: FloatArray, grid: SinhGrid, bound: FloatArray | None = None) -> Factor:
    """Return Normal factors with these moments, represented on Gauss-Hermite nodes."""
    nodes = mean[:, None] + sd[:, None] * HERMITE_NODES
    mass = np.broadcast_to(HERMITE_MASS, nodes.shape)
    entropy = np.log(sd) + 0.5 * np.log(2 * np.pi * np.e)
    second = mean**2 + sd**2
    bound = np.full(len(mean), np.nan) if bound is None else bound
    return Factor(
        grid.project(grid.stencil_at(nodes), mass), mean, second, ndtr(mean / sd), bound, entropy, nodes, mass
    )


def gaussian_factor(eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid) -> Factor:
    """Return the best Normal factors (arguments as in `shared_grid_factor`).

    The stationary point has precision 1/prior.sd^2 + E[S''] and mean such that eta - E[S'] - (mean - prior.mean) /
    prior.sd^2 = 0; both expectations come from Gauss-Hermite sums of S itself (Bonnet's and Price's theorems). S is
    convex, so the bound is concave in the mean and each step is a Newton step, shortened where it overshoots.
    """
    penalty = penalty.astype(np.float64, copy=False)
    start = (
        shared_grid_factor(eta, penalty, prior, grid) if prior.mean == 0 else local_factor(eta, penalty, prior, grid)
    )
    mean, log_sd = start.mean.copy(), np.log(start.sd)
    active = np.arange(len(eta))
    rate = np.ones(len(eta))
    values, bound = _gaussian_bound(mean, log_sd, eta, penalty, prior, grid)
    for _ in range(GAUSSIAN_ITERATIONS):
        move, log_ratio = _newton_step(mean[active], log_sd[active], values, eta[active], prior)
        move, log_ratio = rate * move, rate * log_ratio
        new_mean, new_log_sd = mean[active] + move, log_sd[active] + log_ratio
        new_values, new_bound = _gaussian_bound(new_mean, new_log_sd, eta[active], penalty[active], prior, grid)
        better = new_bound >= bound[active]
        change = np.abs(move) * np.exp(-log_sd[active]) + np.abs(log_ratio)
        accepted = active[better]
        mean[accepted], log_sd[accepted], bound[accepted] = new_mean[better], new_log_sd[better], new_bound[better]
        values = np.where(better[:, None], new_values, values)
        rate = np.where(better, np.minimum(1.0, 2 * rate), rate / 4)
        moving = change > GAUSSIAN_TOLERANCE
        active, values, rate = active[moving], values[moving], rate[moving]
        if not len(active):
            break
    return normal_factor(mean, np.exp(log_sd), grid, bound)


def _gaussian_bound(
    mean: FloatArray, log_sd: FloatArray, eta: FloatArray, penalty: FloatArray, prior: NormalPrior, grid: SinhGrid
) -> tuple[FloatArray, FloatArray]:
    """Return S at the Hermite nodes of each Normal, shape (R, nodes), and the row's part of the bound, shape (R,)."""
    sd = np.exp(log_sd)
    values = grid.interpolate(penalty, grid.stencil_at(mean[:, None] + sd[:, None] * HERMITE_NODES))
    expected = eta * mean - values @ HERMITE_MASS + prior.expected_log_density(mean, mean**2 + sd**2)
    return values, expected + log_sd + 0.5 * np.log(2 * np.pi * np.e)


def _newton_step(
    mean: FloatArray, log_sd: FloatArray, values: FloatArray, eta: FloatArray, prior: NormalPrior
) -> tuple[FloatArray, FloatArray]:
    sd = np.exp(log_sd)
    slope = values @ (HERMITE_MASS * HERMITE_NODES) / sd
    curvature = values @ (HERMITE_MASS * (HERMITE_NODES**2 - 1)) / sd**2
    new_variance = 1 / (1 / prior.sd**2 + np.maximum(curvature, 0.0))
    move = new_variance * (eta - slope - (mean - prior.mean) / prior.sd**2)
    return move, 0.5 * np.log(new_variance) - log_sd
