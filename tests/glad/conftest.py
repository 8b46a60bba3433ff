"""Fixtures that the tests of the model share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from softgold.glad.posterior import Posterior


def arrays_of(posterior: Posterior) -> dict[str, Any]:
    found = {f"items.{name}": array for name, array in vars(posterior.items).items()}
    found |= {f"abilities.{name}": array for name, array in vars(posterior.abilities).items()}
    names = ("item_counts", "item_positives", "annotator_counts", "annotator_agreement")
    return found | {name: getattr(posterior, name) for name in names}


@pytest.fixture
def assert_same_posterior() -> Callable[[Posterior, Posterior], None]:
    """Compare two posteriors bit by bit."""

    def compare(first: Posterior, second: Posterior) -> None:
        for (name, here), there in zip(arrays_of(first).items(), arrays_of(second).values(), strict=True):
            assert np.array_equal(here, there, equal_nan=True), name
            assert here.dtype == there.dtype, name
        assert first.item_ids.equals(second.item_ids)
        assert first.annotator_ids.equals(second.annotator_ids)
        assert (first.prior, first.method, first.family) == (second.prior, second.method, second.family)

    return compare
