"""What is computed in another way for millions of items has the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from softgold.metrics import bootstrap_metrics
from softgold.metrics.bootstrap import plans, probabilities, rankings
from softgold.metrics.bootstrap.plans import ItemPlan, VotePlan
from softgold.metrics.bootstrap.rankings import rank_items, ranking_sums

METRICS = ["soft_auroc", "soft_average_precision", "precision_at_50", "brier_score", "log_loss"]


@pytest.mark.parametrize("decimals", [1, 2, 3, 16])
def test_nothing_is_kept_between_blocks(decimals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    p, scores = rng.random(5000), rng.random((5000, 2)).round(decimals)
    metrics = [*METRICS, "expected_calibration_error", "balanced_brier"]
    kept = bootstrap_metrics(metrics, p, scores, n_bootstrap=70)
    monkeypatch.setattr(rankings, "MOST_KEPT", 0)
    monkeypatch.setattr(probabilities, "MOST_KEPT", 0)
    made_again = bootstrap_metrics(metrics, p, scores, n_bootstrap=70)
    for name in metrics:
        np.testing.assert_array_equal(made_again[name].replicates, kept[name].replicates)


@pytest.mark.parametrize("decimals", [0, 1, 16])
def test_lists_longer_than_the_first_groups(decimals: int) -> None:
    """Resamples that leave out the best items look further down the ranking, to its end where need be."""
    rng = np.random.default_rng(4)
    p, scores = rng.random(40), rng.random(40).round(decimals)
    sums = ranking_sums(rank_items(scores), ItemPlan.of_items(p).draw(rng, 30), (0,), 39)[0]
    assert (sums.precision_at(39) <= 1).all()
    assert sums.top.weight.shape[1] == len(np.unique(scores))


@pytest.mark.parametrize("equal", [False, True])
def test_votes_of_some_items_at_a_time(equal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    n_votes = np.full(500, 7) if equal else rng.integers(1, 9, size=500)
    plan = VotePlan(rng.integers(0, n_votes + 1), n_votes, ("share", ">"))
    whole = plan.draw(np.random.default_rng(6), 5)
    monkeypatch.setattr(plans, "UNIFORMS_AT_ONCE", 64)
    monkeypatch.setattr(plans, "UNIFORMS_KEPT", 0)
    in_pieces = plan.draw(np.random.default_rng(6), 5)
    for which in (0, 1):
        for one, other in zip(whole.rows(which), in_pieces.rows(which), strict=True):
            np.testing.assert_array_equal(one, other)
