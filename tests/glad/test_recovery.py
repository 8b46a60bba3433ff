"""Recovery of what a simulator put in: the ranking of abilities and difficulties, and soft labels that are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import log_loss, roc_auc_score

from softgold.glad.fitting import Fit, fit
from softgold.simulation import Simulation, simulate

ENGINES: dict[str, dict[str, Any]] = {"svi": {}, "coordinate": {"engine": "coordinate"}}


@pytest.fixture(scope="module")
def study() -> Simulation:
    return simulate(
        n_items=1500,
        n_annotators=60,
        votes_per_item=7,
        prevalence=0.5,
        ability_mean=0.5,
        ability_spread=1.0,
        adversarial_share=0.08,
        random_share=0.08,
        difficulty_scale=2.5,
        seed=12,
    )


@pytest.fixture(scope="module", params=ENGINES)
def fitted(request: pytest.FixtureRequest, study: Simulation) -> Fit:
    return fit(study.votes, **ENGINES[request.param])


def test_abilities_and_difficulties_are_ranked(study: Simulation, fitted: Fit) -> None:
    found = spearmanr(fitted.posterior.abilities.mean, study.truth.ability).statistic
    naive = spearmanr(fitted.posterior.annotator_agreement, study.truth.ability).statistic
    assert found > 0.9
    assert found > naive
    assert spearmanr(fitted.posterior.items.mean, study.truth.difficulty).statistic > 0.9


def test_adversaries_are_recognised(study: Simulation, fitted: Fit) -> None:
    clear = np.abs(study.truth.ability) > 0.3
    p_adversarial = fitted.posterior.abilities.p_adversarial
    assert p_adversarial[clear & (study.truth.kind == "adversarial")].min() > 0.9
    assert p_adversarial[clear & (study.truth.kind == "helpful")].max() < 0.1


def test_soft_labels_are_calibrated(study: Simulation, fitted: Fit) -> None:
    """In every bin of p the share of positives is within 3.5 standard errors of the mean p, and 0.02 for Normals."""
    p, truth = fitted.posterior.items.positive, study.truth.label
    bins = np.digitize(p, [0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    for number in np.unique(bins):
        inside = bins == number
        error = np.sqrt((p[inside] * (1 - p[inside])).sum()) / inside.sum()
        assert abs(truth[inside].mean() - p[inside].mean()) < 3.5 * error + 0.02, number
    assert (np.bincount(bins) > 30).all()


def test_soft_labels_beat_the_mean_vote(study: Simulation, fitted: Fit) -> None:
    p, truth, shares = fitted.posterior.items.positive, study.truth.label, study.votes.item_shares
    assert roc_auc_score(truth, p) > roc_auc_score(truth, shares) + 0.01
    assert ((p >= 0.5) == truth).mean() > ((shares >= 0.5) == truth).mean() + 0.01
    smoothed = (study.votes.item_positives + 1) / (study.votes.item_counts + 2)
    assert log_loss(truth, p) < 0.7 * log_loss(truth, smoothed)


def test_the_scale_is_learned_in_the_units_of_the_prior(study: Simulation, fitted: Fit) -> None:
    """Only the product of the scales is in the votes: root mean square ability times that of the difficulty."""
    product = np.sqrt((study.truth.ability**2).mean()) * np.sqrt((study.truth.difficulty**2).mean())
    assert fitted.diagnostics.difficulty_scale == pytest.approx(product, rel=0.3)
