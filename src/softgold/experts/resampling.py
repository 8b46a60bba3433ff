"""A plan for the bootstrap engine: panels of experts and items drawn together, labels missing or not."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf

import numpy as np
from numpy.typing import NDArray

from softgold.checks import FloatArray
from softgold.experts.panel import NO_LABEL, ExpertPanel, LabelArray, Tie, all_panels
from softgold.metrics.bootstrap.draws import Draw


@dataclass(frozen=True, eq=False)
class PanelAndItems:
    """Experts and items are each drawn with replacement; an item that nobody of a panel labelled has no weight in it.

    Attributes:
        panel: The experts' answers.
        tie: Label of an even split.
        groups: Number of the group of each item from 0, shape (N,), where whole groups are drawn in place of items.
    """

    panel: ExpertPanel
    tie: Tie
    groups: NDArray[np.intp] | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.panel.item_ids)

    @property
    def n_units(self) -> int:
        """Number of items or groups that are drawn."""
        return self.n_items if self.groups is None else int(self.groups.max(initial=-1)) + 1

    @property
    def n_distinct(self) -> float:
        """Number of compositions of the panel times that of the items or groups."""
        sizes = (self.panel.n_experts, self.n_units)
        return inf if max(sizes) > 20 else float(np.prod([comb(2 * size - 1, size) for size in sizes]))

    def observed(self) -> Draw:
        """Return the majority of all experts on every item once."""
        return self._draw_of(self.panel.majority(self.tie)[None, :], np.ones((1, self.n_units)))

    def draw(self, rng: np.random.Generator, count: int) -> Draw:
        """Draw panels and items."""
        # One row of uniforms per replicate, so that the draws do not depend on how many are asked for at once.
        experts = self.panel.n_experts
        uniform = rng.random((count, experts + self.n_units))
        seats = _counted(uniform[:, :experts])
        return self._draw_of(self.panel.majorities(seats, self.tie), _counted(uniform[:, experts:]))

    def enumerate(self) -> tuple[Draw, FloatArray]:
        """Return every panel with every composition of the items."""
        panels, items = all_panels(self.panel.n_experts), all_panels(self.n_units)
        labels = np.repeat(self.panel.majorities(panels.seats, self.tie), len(items.seats), axis=0)
        probability = np.outer(panels.probability, items.probability).ravel()
        return self._draw_of(labels, np.tile(items.seats, (len(panels.seats), 1))), probability

    def _draw_of(self, labels: LabelArray, copies: NDArray[np.generic]) -> Draw:
        of_items = copies if self.groups is None else copies[:, self.groups]
        weight = np.where(labels == NO_LABEL, 0.0, of_items)
        return Draw.from_rows(weight, labels == 1)


def _counted(uniform: FloatArray) -> NDArray[np.int64]:
    """Take each row of n uniforms for n draws of n, and count how often each was drawn; shape kept."""
    rows, n = uniform.shape
    picks = (uniform * n).astype(np.int64) + np.arange(rows)[:, None] * n
    return np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n)
