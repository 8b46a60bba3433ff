"""Scores of whole blocks of resamples are those of the plain functions, resample by resample."""

from __future__ import annotations

import numpy as np
import pytest

from softgold.errors import InputError, UsageError
from softgold.metrics import (
    balanced_brier,
    bootstrap,
    bootstrap_metrics,
    brier_score,
    expected_calibration_error,
    log_loss,
    precision_at_k,
    recall_at_k,
)
from softgold.metrics.bootstrap.engine import PROBABILITY
from softgold.metrics.bootstrap.plans import Draw, ItemPlan, VotePlan
from softgold.metrics.bootstrap.probabilities import predictions as prepared
from softgold.metrics.bootstrap.probabilities import score_sums

PLAIN = {
    "balanced_brier": balanced_brier,
    "brier_score": brier_score,
    "expected_calibration_error": expected_calibration_error,
    "log_loss": log_loss,
}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def predictions(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([0.0, 0.05, 0.3, 0.55, 0.999, 1.0], size=n)


def values(name: str, q: np.ndarray, draw: Draw) -> np.ndarray:
    return PROBABILITY[name](score_sums(prepared(np.stack([1 - q, q])), draw, 0)[1])


@pytest.mark.parametrize("name", sorted(PROBABILITY))
@pytest.mark.parametrize("hard", [False, True])
def test_items_drawn_anew(name: str, hard: bool, rng: np.random.Generator) -> None:
    p = rng.choice([0.0, 1.0], size=9) if hard else rng.choice([0.0, 0.2, 0.7, 1.0], size=9)
    q, draw = predictions(rng, 9), ItemPlan.of_items(p).draw(rng, 200)
    expected = [PLAIN[name](p, q, sample_weight=row) for row in draw.rows(0)[1]]
    np.testing.assert_allclose(values(name, q, draw), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", sorted(PROBABILITY))
def test_votes_drawn_anew(name: str, rng: np.random.Generator) -> None:
    draw = VotePlan(np.array([0, 1, 2, 3, 3, 1]), np.array([3, 3, 3, 3, 4, 1]), (">",)).draw(rng, 100)
    q = predictions(rng, 6)
    expected = [PLAIN[name](row, q) for row in draw.rows(0)[0]]
    np.testing.assert_allclose(values(name, q, draw), expected, rtol=1e-12, atol=1e-14)


def test_a_list_says_its_own_length(rng: np.random.Generator) -> None:
    p, scores = rng.random(60), rng.random((60, 3))
    names = ["precision_at_10", "precision_at_25", "recall_at_10"]
    results = bootstrap_metrics(names, p, scores, n_bootstrap=50, seed=4)
    for name, metric in (("precision_at_10", precision_at_k), ("recall_at_10", recall_at_k)):
        direct = bootstrap(name.replace("10", "k"), p, scores, k=10, n_bootstrap=50, seed=4)
        np.testing.assert_array_equal(results[name].replicates, direct.replicates)
        assert results[name].estimate[1] == pytest.approx(metric(p, scores[:, 1], 10), abs=1e-12)


@pytest.mark.parametrize("name", ["precision_at_0", "precision_at_", "precision_at_1.5", "f1_at_10"])
def test_what_is_no_length(name: str) -> None:
    with pytest.raises(UsageError, match="metric must be one of"):
        bootstrap(name, [0, 1], [0.1, 0.2])


@pytest.mark.parametrize("name", sorted(PROBABILITY))
def test_scores_outside_the_unit_interval_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"lie in \[0, 1\]"):
        bootstrap(name, [0, 1], [0.1, 2.0])
