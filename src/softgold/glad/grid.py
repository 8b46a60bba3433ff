"""A sinh-spaced grid for even functions: tables, integration and interpolation for the coordinate engine.

The likelihood of a vote needs only h(x) = log(2 cosh(x/2)), which is even. So every table of this engine is an even
function, kept on |x| alone. Sinh spacing is fine near zero, where annotators at chance and undecided items live, and
grows by a constant factor further out, so that a wide range costs few nodes. The trapezoid rule in u = asinh(x / scale)
converges geometrically for the smooth, log-concave densities that occur here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SinhGrid", "Stencil", "exp_above_underflow", "log_two_cosh_half"]

FloatArray = NDArray[np.float64]

Stencil = tuple[NDArray[np.intp], FloatArray]
FLOOR = -75.0  # single precision holds its exponential, and sums of products with it
STENCIL = 6  # points of the Lagrange interpolation: an error of order step^6


LAGRANGE_DENOMINATORS = [float(np.prod([j - m for m in range(STENCIL) if m != j])) for j in range(STENCIL)]


def log_two_cosh_half(x: FloatArray) -> FloatArray:
    """h(x) = log(2 cosh(x/2)) without overflow; softplus(x) = x/2 + h(x).

    >>> float(log_two_cosh_half(np.array(0.0)).round(6))
    0.693147
    """
    size = np.abs(x)
    return 0.5 * size + np.log1p(np.exp(-size))


def exp_above_underflow(log_values: NDArray[Any]) -> None:
    """Replace the values by their exponentials, in place, none of them close to underflow, where processors are slow.

    >>> values = np.array([0.0, -800.0])
    >>> exp_above_underflow(values)
    >>> float(values[0]), bool(0 < values[1] < 1e-32)
    (1.0, True)
    """
    np.maximum(log_values, FLOOR, out=log_values)
    np.exp(log_values, out=log_values)


@dataclass(frozen=True)
class SinhGrid:
    """Nodes x_k = scale * sinh(k * step), k = 0 .. count - 1, for even functions of x.

    Attributes:
        scale: Where the spacing turns from even to geometric.
        step: Spacing in asinh(x / scale).
        count: Number of nodes.
    """

    scale: float
    step: float
    count: int

    @classmethod
    def reaching(cls, largest: float, *, scale: float, step: float) -> SinhGrid:
        """Return the grid with this scale and step that covers [0, largest]."""
        return cls(scale, step, max(STENCIL, int(np.ceil(np.arcsinh(largest / scale) / step)) + 1))

    @cached_property
    def nodes(self) -> FloatArray:
        """Nodes, shape (count,)."""
        nodes: FloatArray = self.scale * np.sinh(self.step * np.arange(self.count))
        return nodes

    @cached_property
    def widths(self) -> FloatArray:
        """Trapezoid weights of the half line, shape (count,): sum(widths * f) is the integral of f over x > 0."""
        widths: FloatArray = self.step * self.scale * np.cosh(self.step * np.arange(self.count))
        widths[0] /= 2
        return widths

    def stencil_at(self, x: FloatArray) -> Stencil:
        """Return the stencil of points x; see `stencil`."""
        return self.stencil(np.arcsinh(x / self.scale))

    def stencil(self, position: FloatArray) -> Stencil:
        """Return node numbers and Lagrange weights of x = scale * sinh(position), both of shape (STENCIL, *x.shape).

        An even function f has f(x) = sum(weights * f(nodes)); below zero the nodes are mirrored.
        """
        place = np.abs(position) / self.step
        first = np.minimum(np.floor(place) - STENCIL // 2 + 1, self.count - STENCIL)
        offset = place - first
        distances = [offset - j for j in range(STENCIL)]
        below, above = [np.ones_like(offset)], [np.ones_like(offset)]  # running products from both ends
        for j in range(STENCIL - 1):
            below.append(below[-1] * distances[j])
            above.append(above[-1] * distances[STENCIL - 1 - j])
        weights = np.empty((STENCIL, *offset.shape))
        for j in range(STENCIL):
            np.multiply(below[j], above[STENCIL - 1 - j], out=weights[j])
            weights[j] /= LAGRANGE_DENOMINATORS[j]
        numbers = np.abs(first.astype(np.intp) + np.arange(STENCIL).reshape(-1, *[1] * first.ndim))
        return numbers, weights

    def interpolate(self, table: FloatArray, stencil: Stencil) -> FloatArray:
        """Evaluate row r of `table`, shape (R, count), at the points of row r, shape (R, N); gives shape (R, N)."""
        found = np.zeros(stencil[1].shape[1:])
        for numbers, weights in zip(*stencil, strict=True):
            found += weights * np.take_along_axis(table, numbers, axis=1)
        return found

    def project(self, stencil: Stencil, mass: FloatArray) -> FloatArray:
        """Spread point masses, shape (R, N), over the nodes: the transpose of `interpolate`.

        With W the result, of shape (R, count), W @ f(nodes) is the sum of mass * f(x) for any even f. Using the
        transpose keeps the bound that both half-steps compute one and the same number.
        """
        numbers, weights = stencil
        rows = len(mass)
        flat = numbers + (np.arange(rows) * self.count)[:, None]
        spread = np.bincount(flat.ravel(), weights=(weights * mass).ravel(), minlength=rows * self.count)
        return spread.astype(np.float64, copy=False).reshape(rows, self.count)

    def table(self, nodes: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the coefficients of point masses at `nodes`, both of shape (R, N); see `project`."""
        return self.project(self.stencil_at(nodes), mass)

    def stretch(self, by: float) -> FloatArray:
        """Return M of shape (count, count) such that table @ M has E[f(by * x)] where `table` has E[f(x)]."""
        return self.table(by * self.nodes[:, None], np.ones((self.count, 1)))
