"""Fixtures that the tests of the models share: a simulator of its own, and the comparison of two posteriors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from softgold.models.base import Posterior
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Crowd:
    """Votes drawn from the two-class model, and what they were drawn from.

    Attributes:
        votes: The votes, items and annotators in the order of the arrays below.
        label: What each item is, z.
        look: What it looks like, b.
        ability: Ability of each annotator, c.
        lean: Lean of each annotator, d.
    """

    votes: VoteTable
    label: NDArray[np.bool_]
    look: FloatArray
    ability: FloatArray
    lean: FloatArray


def draw_from_the_model(
    seed: int = 0,
    *,
    n_items: int = 120,
    n_annotators: int = 15,
    votes_per_item: int = 5,
    prevalence: float = 0.4,
    ability: tuple[float, float] = (1.0, 0.6),
    lean_sd: float = 0.8,
    pull_sd: float = 0.6,
) -> Crowd:
    """Draw z, b, u, c, d and the votes as MODEL.md, section 2, says."""
    rng = np.random.default_rng(seed)
    m, rho = np.sqrt(3.0), 0.8
    label = rng.random(n_items) < prevalence
    look = rng.normal(np.where(label, m, -m), rho * m)
    pull = rng.normal(0.0, pull_sd, n_items)
    c, d = rng.normal(*ability, n_annotators), rng.normal(0.0, lean_sd, n_annotators)
    items = np.repeat(np.arange(n_items), votes_per_item)
    who = np.concatenate([rng.choice(n_annotators, votes_per_item, replace=False) for _ in range(n_items)])
    yes = rng.random(len(items)) < expit(c[who] * look[items] + d[who] + pull[items])
    ids = [f"i{item}" for item in range(n_items)], [f"a{annotator}" for annotator in range(n_annotators)]
    return Crowd(VoteTable.from_codes(items, who, yes, *ids), label, look, c, d)


@pytest.fixture(scope="session")
def draw_crowd() -> Callable[..., Crowd]:
    """Draw votes from the two-class model: `draw_crowd(seed, n_items=...)`."""
    return draw_from_the_model


@pytest.fixture(scope="session")
def crowd() -> Crowd:
    """The table that most tests fit."""
    return draw_from_the_model()


@pytest.fixture(scope="session")
def assert_same_posterior() -> Callable[[Posterior, Posterior], None]:
    """Compare two posteriors bit by bit."""

    def compare(first: Posterior, second: Posterior) -> None:
        there = second.to_arrays()
        assert set(first.to_arrays()) == set(there)
        for name, here in first.to_arrays().items():
            assert np.array_equal(here, there[name], equal_nan=True), name
            assert here.dtype == there[name].dtype, name
        assert first.item_ids.equals(second.item_ids)
        assert first.annotator_ids.equals(second.annotator_ids)
        assert first.soft_labels().to_frame().equals(second.soft_labels().to_frame())
        assert first.annotators().equals(second.annotators())

    return compare
