"""Simulated expert panels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from softgold.checks import check_positive_int
from softgold.errors import UsageError
from softgold.simulation.result import Truth
from softgold.tables.experts import ExpertLabels
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]


def expert_error(clarity: FloatArray, errors: Sequence[float], ability: float | None) -> FloatArray:
    """Return the probability that each expert labels each item wrongly, shape (items, experts).

    P(expert j is wrong on item i) = e_j + (1 - 2 e_j) sigmoid(-k v_i): a flat error rate e_j (slips), plus the error
    of an annotator of ability k without lean on an item of clarity v_i. The second part vanishes for clear items, is
    1/2 at v = 0 and above 1/2 for v < 0. Without an ability, the probability is e_j.

    Args:
        clarity: Clarity v of each item to experts, shape (items,); see `Truth.expert_clarity`.
        errors: Flat error rate e_j of each expert.
        ability: Common ability k of the experts, or None.

    Example:
        >>> expert_error(np.array([0.0, 2.0]), [0.0, 0.1], ability=1.0).round(3).tolist()
        [[0.5, 0.5], [0.119, 0.195]]
    """
    flat = np.asarray(errors, dtype=np.float64)
    unsure = np.zeros(len(clarity)) if ability is None else expit(-ability * clarity)
    return flat + (1 - 2 * flat) * unsure[:, None]


def ask_experts(
    truth: Truth,
    items: Sequence[str] | pd.Index[str] | None = None,
    *,
    errors: Sequence[float],
    ability: float | None = None,
    seed: int | np.random.Generator = 0,
) -> ExpertLabels:
    """Simulate a panel of experts who label items independently of each other.

    Args:
        truth: Truth of the simulation.
        items: Ids of the items to label; None for all.
        errors: Flat error rate of each expert.
        ability: Common ability of the experts; see `expert_error`.
        seed: Seed, or random generator.

    Returns:
        Labels by `expert_1`, `expert_2`, ..., with items in the order of `truth`.

    Example:
        >>> from softgold.simulation import simulate
        >>> truth = simulate(n_items=200, n_annotators=20, seed=1).truth
        >>> panel = ask_experts(truth, truth.item_ids[:40], errors=[0.0, 0.1], seed=1)
        >>> len(panel.item_ids), panel.expert_ids.tolist(), len(panel)
        (40, ['expert_1', 'expert_2'], 80)
    """
    if not len(errors):
        raise UsageError("errors must have at least one error rate")
    if not isinstance(seed, np.random.Generator):
        check_positive_int(seed, "seed", minimum=0)
    rng = np.random.default_rng(seed)  # returns a generator unchanged
    chosen = np.arange(len(truth.item_ids)) if items is None else _positions(truth.item_ids, items)
    wrong = rng.random((len(chosen), len(errors))) < expert_error(truth.expert_clarity[chosen], errors, ability)
    labels = truth.label[chosen][:, None] ^ wrong
    item_codes, expert_codes = np.divmod(np.arange(labels.size), len(errors))
    expert_ids = [f"expert_{number}" for number in range(1, len(errors) + 1)]
    return ExpertLabels(
        VoteTable.from_codes(item_codes, expert_codes, labels.ravel(), truth.item_ids[chosen], expert_ids)
    )


def _positions(item_ids: pd.Index[str], items: Sequence[str] | pd.Index[str]) -> NDArray[np.intp]:
    positions = item_ids.get_indexer(pd.Index(list(items), dtype="str"))
    if (positions < 0).any():
        raise UsageError(f"the simulation has no item {items[int(np.argmin(positions))]!r}")
    if not len(positions):
        raise UsageError("items must name at least one item")
    return np.unique(positions)
