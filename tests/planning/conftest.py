"""Fits that the tests of planning share."""

from __future__ import annotations

import pytest

import softgold
from softgold.models.base import Fit
from softgold.simulation import Simulation


@pytest.fixture(scope="session")
def study() -> Simulation:
    return softgold.simulate(n_items=300, n_annotators=25, votes_per_item=3, seed=3)


@pytest.fixture(scope="session")
def fitted(study: Simulation) -> Fit:
    return softgold.fit(study.votes, engine="coordinate")
