"""Simulated studies with a known truth: calibration brings labels closer to it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from softgold.errors import DataWarning
from softgold.experts import calibrate
from softgold.experts.sampling import sample_for_experts
from softgold.models.baselines import Mean
from softgold.simulation import ask_experts, simulate


@pytest.mark.parametrize("issue", ["off_topic", "near_duplicates"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_calibrated_labels_are_closer_to_the_truth(issue: str, seed: int) -> None:
    study = simulate("cleanpatrick", issue=issue, scale=0.25, seed=seed)
    soft_labels = Mean().aggregate(study.votes)
    sample = sample_for_experts(soft_labels, 400, seed=seed)
    experts = ask_experts(study.truth, sample.item_ids, errors=[0.01] * 3, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = calibrate(soft_labels, experts, sample=sample, n_bootstrap=100, seed=seed)
    truth = study.truth.label[study.truth.item_ids.get_indexer(soft_labels.item_ids)]
    at_half, at_t = np.mean((soft_labels.p >= 0.5) == truth), np.mean(result.labels.label == truth)
    assert at_t > at_half
    # Positives are the smaller class, so that mistaken votes flag too much; the experts take that back.
    assert result.threshold > 0.5
    assert result.after.agreement == pytest.approx(at_t, abs=0.04)
