"""What intervals of annotators allow for because the prevalence is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import softgold
from softgold.models.base import Fit
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.prevalence import PrevalenceDoubt

RATES = ("sensitivity", "specificity")


def fitted(study: Any, **options: Any) -> CrowdPosterior:
    found: Fit = softgold.fit(study.votes, engine="coordinate", **options)
    assert isinstance(found.posterior, CrowdPosterior)
    return found.posterior


def held(posterior: CrowdPosterior, truth: Any) -> list[float]:
    """Return the share of annotators whose true sensitivity and specificity lie in their intervals."""
    people = posterior.annotators()
    pairs = [(people[f"{name}_lo"], getattr(truth, name), people[f"{name}_hi"]) for name in RATES]
    return [float(np.mean((low <= true) & (true <= high))) for low, true, high in pairs]


def without_doubt(posterior: CrowdPosterior) -> CrowdPosterior:
    return replace(posterior, doubt=PrevalenceDoubt.none(len(posterior.annotator_ids)))


@pytest.fixture(scope="module")
def rare() -> Any:
    return softgold.simulate(n_items=600, n_annotators=40, votes_per_item=8, prevalence=0.15, seed=11)


@pytest.mark.slow
@pytest.mark.parametrize("positives", [0.15, 0.5, 0.8])
@pytest.mark.parametrize("lean", [-0.3, 0.0, 0.3])
def test_intervals_hold_the_true_rates_at_any_prevalence(positives: float, lean: float) -> None:
    sizes: dict[str, Any] = {"n_items": 600, "n_annotators": 40, "votes_per_item": 8}
    drawn = [softgold.simulate(**sizes, prevalence=positives, lean_mean=lean, seed=seed) for seed in range(3)]
    shares = [held(fitted(study), study.truth) for study in drawn]
    assert np.mean(shares, axis=0).min() >= 0.9


def test_intervals_that_take_the_prevalence_as_known_miss(rare: Any) -> None:
    posterior = fitted(rare)
    assert held(without_doubt(posterior), rare.truth)[0] < 0.8 < held(posterior, rare.truth)[0]


def test_a_plausible_prevalence_is_the_true_one(rare: Any) -> None:
    posterior = fitted(rare)
    odds = np.log(0.15 / 0.85)
    mean = posterior.items.positive.mean()
    low, high = np.log(mean / (1 - mean)) + posterior.doubt.reach
    assert low <= odds <= high


def test_annotators_are_moved_to_where_a_fit_at_the_other_prevalence_has_them(rare: Any) -> None:
    posterior = fitted(rare)
    mean = float(posterior.items.positive.mean())
    there = mean / (mean + (1 - mean) * np.exp(-posterior.doubt.reach[0]))
    exact, moved = fitted(rare, prevalence=there).skills, posterior.doubt.ends(posterior.skills)[0]
    before, after = (
        float(np.abs((exact.mean - skills.mean) / np.sqrt(exact.variance)).mean())
        for skills in (posterior.skills, moved)
    )
    assert after < 0.25 * before


@pytest.mark.parametrize("rule", ["able", "share", "majority"])
def test_every_rule_is_doubted(rare: Any, rule: str) -> None:
    assert fitted(rare, prevalence=rule).doubt.reach[0] < 0


@pytest.mark.parametrize("options", [{"prevalence": 0.15}, {"model": "glad"}])
def test_a_given_prevalence_and_a_model_without_one_are_not_doubted(rare: Any, options: Any) -> None:
    posterior = fitted(rare, **options)
    assert not posterior.doubt.shift.any()
    assert not posterior.doubt.reach.any()


def test_the_point_estimates_and_soft_labels_stay(rare: Any) -> None:
    posterior = fitted(rare)
    certain = without_doubt(posterior)
    names = [*RATES, "ability_mean", "lean_mean"]
    assert posterior.annotators()[names].equals(certain.annotators()[names])
    assert (posterior.soft_labels().p == certain.soft_labels().p).all()


def test_a_stored_posterior_without_doubt_is_read(rare: Any) -> None:
    posterior = fitted(rare)
    arrays = {name: array for name, array in posterior.to_arrays().items() if not name.startswith("doubt_")}
    parts = (posterior.item_ids, posterior.annotator_ids, posterior.method, posterior.prior)
    assert not CrowdPosterior.from_arrays(arrays, *parts).doubt.reach.any()


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_annotators_at_chance_leave_finite_intervals() -> None:
    study = softgold.simulate(n_items=60, n_annotators=10, votes_per_item=5, random_share=1.0, seed=3)
    people = fitted(study).annotators()
    assert np.isfinite(people[[f"{name}_lo" for name in RATES]]).all(axis=None)
    assert (people["sensitivity_lo"] <= people["sensitivity"]).all()
