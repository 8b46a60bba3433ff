"""Simulated studies with a known truth: calibration brings labels closer to it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from softgold.baselines import Mean
from softgold.calibration import Calibration, calibrate
from softgold.errors import DataWarning
from softgold.experts import sample_for_experts
from softgold.glad.fitting import fit
from softgold.simulation import Simulation, ask_experts, simulate
from softgold.simulation.presets import preset_settings


@pytest.mark.parametrize("issue", ["off_topic", "near_duplicates"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_calibrated_labels_are_closer_to_the_truth(issue: str, seed: int) -> None:
    study = simulate("cleanpatrick", issue=issue, scale=0.25, seed=seed)
    soft_labels = Mean().aggregate(study.votes)
    sample = sample_for_experts(soft_labels, seed=seed)
    experts = ask_experts(study.truth, sample.item_ids, errors=[0.01] * 3, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = calibrate(soft_labels, experts, sample=sample, replicates=100, seed=seed)
    truth = study.truth.label[study.truth.item_ids.get_indexer(soft_labels.item_ids)]
    at_half, at_t = np.mean((soft_labels.p >= 0.5) == truth), np.mean(result.labels.label == truth)
    assert at_t > at_half
    # The crowd is told to flag too much in this preset, and the experts take that back.
    assert result.threshold > 0.5
    assert abs(result.after.prevalence - truth.mean()) < abs(result.before.prevalence - truth.mean())
    assert result.after.agreement_weighted == pytest.approx(at_t, abs=0.04)


def calibrated_study(issue: str, seed: int) -> tuple[Simulation, Calibration]:
    """A whole study: votes, the model, 20 x 20 items for the three experts of the preset, a threshold."""
    study = simulate("cleanpatrick", issue=issue, seed=seed, expert_errors=())
    soft_labels = fit(study.votes, engine="coordinate").posterior.soft_labels()
    sample = sample_for_experts(soft_labels, seed=seed)
    panel = preset_settings("cleanpatrick", issue=issue)
    experts = ask_experts(
        study.truth, sample.item_ids, errors=panel.expert_errors, ability=panel.expert_ability, seed=seed
    )
    return study, calibrate(soft_labels, experts, sample=sample, replicates=100, seed=seed)


@pytest.mark.filterwarnings("ignore::softgold.errors.SoftgoldWarning")
@pytest.mark.parametrize(("issue", "sure"), [("off_topic", True), ("near_duplicates", True), ("label_errors", False)])
def test_the_panel_is_sure_of_the_easy_thresholds_alone(issue: str, sure: bool) -> None:
    as_expected = no_worse = 0
    for seed in range(4):
        study, result = calibrated_study(issue, seed)
        truth = study.truth.label[study.truth.item_ids.get_indexer(result.labels.item_ids)]
        no_worse += np.mean(result.labels.label == truth) >= np.mean((result.labels.p >= 0.5) == truth)
        as_expected += result.interval("panel").is_point == sure
    assert no_worse >= 3
    assert as_expected >= 3
