"""Simulated studies have the marginals that were asked for, and a truth that fits their votes."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from softgold.errors import UsageError
from softgold.readers import read_experts, read_scores, read_votes
from softgold.simulation import (
    CLEANPATRICK_ISSUES,
    Simulation,
    SimulationSettings,
    ask_experts,
    expert_error,
    simulate,
    simulate_cleanpatrick,
)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def cleanpatrick() -> dict[str, Simulation]:
    return simulate_cleanpatrick(seed=0)


def known_ability_posterior(study: Simulation) -> np.ndarray:
    """P(b > 0 | votes) with the abilities known and a symmetric normal prior, summed over a grid of b."""
    votes, truth = study.votes, study.truth
    scale = np.sqrt(np.mean(truth.difficulty**2))
    half = (np.arange(80) + 0.5) * 4 * scale / 80
    grid = np.concatenate([-half, half])
    signs = 2.0 * votes.votes - 1
    log_p = np.tile(-0.5 * (grid / scale) ** 2, (votes.n_items, 1))
    for column, b in enumerate(grid):
        chances = log_expit(signs * truth.ability[votes.annotator_codes] * b)
        log_p[:, column] += np.bincount(votes.item_codes, chances, minlength=votes.n_items)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return p[:, len(half) :].sum(axis=1) / p.sum(axis=1)


def alpha(labels: np.ndarray) -> float:
    """Krippendorff's nominal alpha of complete binary labels, items x raters."""
    n_raters = labels.shape[1]
    positives = labels.sum(axis=1)
    observed = np.mean(2 * positives * (n_raters - positives) / (n_raters * (n_raters - 1)))
    total, size = positives.sum(), labels.size
    return float(1 - observed / (2 * total * (size - total) / (size * (size - 1))))


def soft_auroc(p: np.ndarray, scores: np.ndarray) -> float:
    """AUROC with weight p as a positive and 1 - p as a negative; the scores have no ties."""
    p = p[np.argsort(scores)]
    below = np.cumsum(1 - p) - (1 - p) / 2
    return float(np.sum(p * below) / (p.sum() * (1 - p).sum()))


def expert_labels(study: Simulation) -> np.ndarray:
    assert study.experts is not None
    return study.experts.labels.reshape(-1, len(study.experts.expert_ids))


def pairs(study: Simulation) -> pd.DataFrame:
    """Every response, abstentions included."""
    return study.tables()["votes"][["item", "annotator"]]


# Marginals


@pytest.mark.parametrize("prevalence", [0.01, 0.3, 0.97])
def test_prevalence_is_met_and_is_the_sign_of_b(prevalence: float) -> None:
    truth = simulate(n_items=1000, prevalence=prevalence).truth
    assert truth.label.sum() == round(1000 * prevalence)
    np.testing.assert_array_equal(truth.label, truth.difficulty > 0)


def test_both_classes_are_there_however_rare_one_is() -> None:
    assert simulate(n_items=20, prevalence=0.001, n_annotators=12).truth.label.sum() == 1
    assert simulate(n_items=20, prevalence=0.999, n_annotators=12).truth.label.sum() == 19


def test_difficulty_is_half_normal_on_either_side() -> None:
    truth = simulate(n_items=40_000, prevalence=0.5, difficulty_scale=2.0, positive_ease=3.0, votes_per_item=2).truth
    positive = truth.label == 1
    # The mean square of 20,000 squared normals has a relative standard error of 1 %.
    assert np.mean(truth.difficulty[~positive] ** 2) == pytest.approx(4.0, rel=0.05)
    assert np.mean(truth.difficulty[positive] ** 2) == pytest.approx(36.0, rel=0.05)


def test_abilities_follow_kind_mean_and_spread() -> None:
    truth = simulate(n_annotators=4000, n_items=2000, ability_mean=3.0, ability_spread=0.5, adversarial_share=0.2,
                     random_share=0.1).truth  # fmt: skip
    assert (truth.kind == "adversarial").sum() == 800
    assert (truth.kind == "random").sum() == 400
    assert (truth.ability[truth.kind == "random"] == 0).all()
    assert (truth.ability[truth.kind == "adversarial"] < 0).all()
    helpful = truth.ability[truth.kind == "helpful"]
    assert helpful.mean() == pytest.approx(3.0, abs=0.05)
    assert helpful.std() == pytest.approx(0.5, abs=0.05)


def test_abilities_stay_above_zero_where_the_normal_does_not() -> None:
    truth = simulate(n_annotators=4000, n_items=2000, ability_mean=0.0, ability_spread=2.0).truth
    assert (truth.ability > 0).all()
    # A half-normal has the mean 2 sqrt(2 / pi).
    assert truth.ability.mean() == pytest.approx(2 * np.sqrt(2 / np.pi), rel=0.05)


def test_equal_abilities_without_spread() -> None:
    assert set(simulate(ability_mean=1.5, ability_spread=0.0).truth.ability) == {1.5}


@pytest.mark.parametrize("distribution", ["fixed", "poisson", "long_tail"])
def test_votes_per_item_are_met_on_average(distribution: str) -> None:
    votes = simulate(n_items=3000, votes_per_item=7.5, vote_distribution=distribution).votes
    assert votes.n_votes == 22_500
    assert votes.item_counts.min() >= 1


def test_distributions_of_votes_per_item() -> None:
    counts = {
        name: simulate(n_items=20_000, n_annotators=300, votes_per_item=9, vote_distribution=name).votes.item_counts
        for name in ("fixed", "poisson", "long_tail")
    }
    assert set(counts["fixed"]) == {9}
    assert counts["poisson"].var() == pytest.approx(8.0, rel=0.1)
    tail = counts["long_tail"]
    assert tail.max() > 100
    assert np.mean((tail >= 4) & (tail <= 20)) > 0.9
    assert 1 <= (tail == 1).sum() <= 0.002 * len(tail)


def test_fixed_counts_differ_by_one_where_the_mean_is_not_whole() -> None:
    counts = simulate(n_items=1000, votes_per_item=3.3, vote_distribution="fixed").votes.item_counts
    assert sorted(set(counts)) == [3, 4]


def test_activity_is_long_tailed_only_if_asked() -> None:
    even = simulate(n_items=5000, activity_spread=0.0).votes.annotator_counts
    tailed = simulate(n_items=5000, activity_spread=1.5).votes.annotator_counts
    assert even.std() / even.mean() < 0.1
    assert tailed.max() > 8 * np.median(tailed)


def test_every_annotator_votes_and_no_pair_occurs_twice() -> None:
    study = simulate(n_items=400, n_annotators=150, votes_per_item=9, activity_spread=2.0, abstention_rate=0.1)
    assert study.votes.n_annotators == 150
    assert not pairs(study).duplicated().any()


def test_everyone_can_vote_on_everything() -> None:
    votes = simulate(n_items=60, n_annotators=25, votes_per_item=25, activity_spread=3.0).votes
    assert votes.n_votes == 60 * 25
    assert not votes.to_frame().duplicated(["item", "annotator"]).any()


def test_abstentions_are_apart_from_the_votes() -> None:
    study = simulate(n_items=500, votes_per_item=8, abstention_rate=0.25)
    assert study.votes.n_abstentions == len(study.abstentions) == 1000
    assert study.votes.n_votes == 3000
    assert study.votes.components.count == 1
    table = study.tables()["votes"]
    assert table["vote"].isna().sum() == 1000
    assert table["item"].is_monotonic_increasing


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("votes_per_item", [2.0, 5.5])
def test_number_of_components_is_exact(count: int, votes_per_item: float) -> None:
    study = simulate(n_items=407, n_annotators=241, n_components=count, votes_per_item=votes_per_item, seed=count)
    assert study.votes.components.count == count
    assert study.votes.n_annotators == 241
    sizes = np.bincount(study.votes.components.items)
    assert sizes.max() - sizes.min() <= 1


def test_as_few_votes_as_hold_the_table_together() -> None:
    votes = simulate(n_items=200, n_annotators=101, votes_per_item=1.5).votes
    assert (votes.n_votes, votes.components.count) == (300, 1)


def test_one_annotator_per_component() -> None:
    votes = simulate(n_items=50, n_annotators=10, votes_per_item=1, n_components=10).votes
    assert (votes.n_votes, votes.components.count) == (50, 10)


# The votes fit the truth


def test_votes_have_the_chances_of_the_model() -> None:
    study = simulate(n_items=5000, votes_per_item=20, adversarial_share=0.2, random_share=0.2, difficulty_scale=1.5)
    votes, truth = study.votes, study.truth
    chance = expit(truth.ability[votes.annotator_codes] * truth.difficulty[votes.item_codes])
    for low, high in itertools.pairwise([0.0, 0.05, 0.2, 0.4, 0.499, 0.501, 0.6, 0.8, 0.95, 1.0]):
        inside = (chance >= low) & (chance <= high)
        deviation = (votes.votes[inside] - chance[inside]).sum()
        assert abs(deviation) < 4 * np.sqrt(np.sum(chance[inside] * (1 - chance[inside])))


def test_adversarial_annotators_are_worse_than_chance_and_random_ones_at_chance() -> None:
    study = simulate(n_items=4000, n_annotators=60, adversarial_share=0.2, random_share=0.2, ability_mean=2.0)
    votes, truth = study.votes, study.truth
    right = votes.votes == truth.label[votes.item_codes]
    share = {
        kind: right[(truth.kind == kind)[votes.annotator_codes]].mean() for kind in ("helpful", "random", "adversarial")
    }
    assert share["adversarial"] < 0.3
    assert share["helpful"] > 0.7
    assert share["random"] == pytest.approx(0.5, abs=0.03)


def test_truth_is_in_the_order_of_the_vote_table() -> None:
    study = simulate(n_items=300, n_annotators=40, abstention_rate=0.1)
    assert study.truth.item_ids.equals(study.votes.item_ids)
    assert study.truth.annotator_ids.equals(study.votes.annotator_ids)
    first_seen = study.votes.to_frame()["annotator"].drop_duplicates()
    assert first_seen.tolist() == study.votes.annotator_ids.tolist()


def test_tables_read_back_as_the_same_study() -> None:
    study = simulate(n_items=300, n_annotators=40, n_expert_items=50)
    tables = study.tables(decimals=12)
    votes = read_votes(tables["votes"])
    assert votes.item_ids.equals(study.votes.item_ids)
    assert votes.annotator_ids.equals(study.votes.annotator_ids)
    np.testing.assert_array_equal(votes.votes, study.votes.votes)
    assert study.experts is not None
    np.testing.assert_array_equal(read_experts(tables["experts"]).labels, study.experts.labels)
    assert study.scores is not None
    np.testing.assert_allclose(read_scores(tables["scores"]).values, study.scores.values, atol=1e-11)


# Seeds


def assert_same(one: Simulation, other: Simulation) -> None:
    for name, table in one.tables(decimals=15).items():
        pd.testing.assert_frame_equal(table, other.tables(decimals=15)[name])


def test_a_seed_gives_one_study() -> None:
    assert_same(simulate(seed=5, abstention_rate=0.1), simulate(seed=5, abstention_rate=0.1))


def test_another_seed_gives_another_study() -> None:
    one, other = simulate(seed=5), simulate(seed=6)
    assert not np.array_equal(one.votes.annotator_codes, other.votes.annotator_codes)
    assert not np.array_equal(one.truth.difficulty, other.truth.difficulty)


def test_the_number_of_experts_and_models_does_not_change_the_votes() -> None:
    one = simulate(seed=1)
    other = simulate(seed=1, expert_errors=[0.1], model_aurocs=[], model_ambiguity=[])
    assert other.scores is None
    pd.testing.assert_frame_equal(one.votes.to_frame(), other.votes.to_frame())


def test_issues_of_one_seed_share_their_annotators_only() -> None:
    one, other = (simulate(issue=issue, seed=2) for issue in ("colour", "shape"))
    abilities = [study.truth.annotators_frame().sort_values("annotator")["ability"] for study in (one, other)]
    np.testing.assert_array_equal(*abilities)
    assert not np.array_equal(one.truth.difficulty, other.truth.difficulty)


# Experts


def test_flat_expert_errors_are_met() -> None:
    study = simulate(n_items=20_000, votes_per_item=2, expert_errors=(0.0, 0.05, 0.3), expert_ability=None)
    wrong = (expert_labels(study) != study.truth.label[:, None]).mean(axis=0)
    assert wrong[0] == 0
    np.testing.assert_allclose(wrong[1:], [0.05, 0.3], atol=0.012)


def test_expert_errors_keep_to_ambiguous_items() -> None:
    study = simulate(n_items=20_000, votes_per_item=2, expert_errors=(0.01, 0.02), expert_ability=3.0)
    wrong = expert_labels(study) != study.truth.label[:, None]
    chance = expert_error(study.truth.difficulty, (0.01, 0.02), 3.0)
    size = np.abs(study.truth.difficulty)
    for inside in (size < 0.3, (size >= 0.3) & (size < 1), size >= 3):
        spread = np.sqrt(np.sum(chance[inside] * (1 - chance[inside]), axis=0))
        assert (np.abs((wrong - chance)[inside].sum(axis=0)) < 4 * spread).all()
    np.testing.assert_allclose(wrong[size >= 3].mean(axis=0), [0.01, 0.02], atol=0.008)
    assert (wrong[size < 0.1].mean(axis=0) > 0.4).all()


def test_experts_see_some_items_or_those_they_are_given() -> None:
    study = simulate(n_items=500, n_expert_items=80)
    assert study.experts is not None
    assert len(study.experts.item_ids) == 80
    chosen = ["i007", "i003"]
    panel = ask_experts(study.truth, chosen, errors=[0.0], seed=0)
    assert panel.item_ids.tolist() == ["i003", "i007"]
    np.testing.assert_array_equal(panel.labels, study.truth.label[[2, 6]])


def test_no_experts() -> None:
    study = simulate(expert_errors=())
    assert study.experts is None
    assert "experts" not in study.tables()


@pytest.mark.parametrize(("items", "errors"), [(["nobody"], [0.1]), ([], [0.1]), (None, [])])
def test_experts_cannot_be_asked_about_nothing(items: list[str] | None, errors: list[float]) -> None:
    truth = simulate(n_items=50).truth
    with pytest.raises(UsageError):
        ask_experts(truth, items, errors=errors)


# Models


@pytest.mark.parametrize("ambiguity", [0.0, 0.5, 1.0])
def test_models_have_the_auroc_they_were_given(ambiguity: float) -> None:
    targets = (0.5, 0.65, 0.8, 0.95, 0.999)
    study = simulate(n_items=3000, model_aurocs=targets, model_ambiguity=(ambiguity,) * 5, votes_per_item=2)
    assert study.scores is not None
    reached = [roc_auc_score(study.truth.label, study.scores.of(model)) for model in study.scores.models]
    assert reached[0] == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(reached[1:], targets[1:], atol=2e-4)
    assert ((study.scores.values > 0) & (study.scores.values < 1)).all()


def test_ambiguity_moves_errors_to_ambiguous_items() -> None:
    study = simulate(n_items=8000, model_aurocs=(0.85, 0.85), model_ambiguity=(0.0, 1.0), votes_per_item=2)
    assert study.scores is not None
    clear = np.abs(study.truth.difficulty) > np.median(np.abs(study.truth.difficulty))
    blind, seeing = (roc_auc_score(study.truth.label[clear], study.scores.values[clear, model]) for model in (0, 1))
    assert blind == pytest.approx(0.85, abs=0.02)
    assert seeing > 0.93


# Presets


def test_cleanpatrick_has_the_size_of_the_study(cleanpatrick: dict[str, Simulation]) -> None:
    assert sum(study.votes.n_votes for study in cleanpatrick.values()) == pytest.approx(496_377, rel=0.02)
    for study in cleanpatrick.values():
        assert (study.votes.n_items, study.votes.n_annotators) == (16_577, 933)
        assert study.votes.components.count == 1
        assert not study.votes.to_frame().duplicated(["item", "annotator"]).any()


def test_cleanpatrick_has_the_prevalences_of_the_study(cleanpatrick: dict[str, Simulation]) -> None:
    shares = {issue: study.truth.label.mean() for issue, study in cleanpatrick.items()}
    assert shares == pytest.approx({"off_topic": 0.04, "near_duplicates": 0.21, "label_errors": 0.32}, abs=1e-4)


def test_cleanpatrick_has_the_vote_counts_of_the_study(cleanpatrick: dict[str, Simulation]) -> None:
    for study in cleanpatrick.values():
        counts = study.votes.item_counts
        assert counts.mean() == pytest.approx(10, abs=0.2)
        assert np.mean((counts >= 5) & (counts <= 20)) > 0.9
        assert counts.max() > 100
        assert 1 <= (counts == 1).sum() <= 30


def test_cleanpatrick_has_the_activity_of_the_study(cleanpatrick: dict[str, Simulation]) -> None:
    votes = pd.concat([study.votes.to_frame() for study in cleanpatrick.values()])
    activity = votes["annotator"].value_counts()
    assert len(activity) == 933
    assert activity.max() == pytest.approx(15_630, rel=0.1)
    assert activity.min() < 10
    assert min(study.votes.annotator_counts.min() for study in cleanpatrick.values()) == 1


def test_cleanpatrick_experts_agree_where_the_study_s_did(cleanpatrick: dict[str, Simulation]) -> None:
    agreement = {issue: alpha(expert_labels(study)) for issue, study in cleanpatrick.items()}
    # The paper (section 3.4) has 0.91, 0.42, and 0.60 with an interval from 0.20 to 0.85.
    assert agreement["near_duplicates"] == pytest.approx(0.91, abs=0.04)
    assert agreement["label_errors"] == pytest.approx(0.42, abs=0.04)
    assert 0.6 < agreement["off_topic"] < 0.85


def test_cleanpatrick_crowd_is_unsure_of_label_errors(cleanpatrick: dict[str, Simulation]) -> None:
    split = {issue: np.mean(np.abs(study.votes.item_shares - 0.5) < 0.2) for issue, study in cleanpatrick.items()}
    assert split["label_errors"] > 1.3 * max(split["off_topic"], split["near_duplicates"])


@pytest.mark.parametrize("seed", [0, 1])
def test_knowing_the_abilities_pays(seed: int) -> None:
    """The gap between the mean vote and a model of the annotators, without which nobody would need the model."""
    study = simulate("cleanpatrick", issue="near_duplicates", seed=seed)
    label, share, p = study.truth.label, study.votes.item_shares, known_ability_posterior(study)
    assert 0.97 < roc_auc_score(label, share) < 0.99
    assert roc_auc_score(label, p) > 0.99
    assert accuracy_score(label, p > 0.5) > accuracy_score(label, share > 0.5) + 0.005
    assert log_loss(label, p) < 0.6 * log_loss(label, share.clip(0.01, 0.99))


def test_scale_multiplies_items_and_votes() -> None:
    small, large = (simulate("small", scale=scale) for scale in (1, 3))
    assert (large.votes.n_items, large.votes.n_votes) == (6000, 3 * small.votes.n_votes)
    assert large.votes.n_annotators == small.votes.n_annotators


def test_cleanpatrick_without_an_issue_is_near_duplicates() -> None:
    assert simulate("cleanpatrick", scale=0.05).settings.issue == "near_duplicates"
    assert tuple(CLEANPATRICK_ISSUES) == ("off_topic", "near_duplicates", "label_errors")


def test_settings_take_the_place_of_the_preset_s() -> None:
    study = simulate("small", n_items=300, prevalence=0.5, seed=4)
    assert (study.votes.n_items, study.settings.prevalence, study.settings.seed) == (300, 0.5, 4)


# Arguments that cannot be


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prevalence": 0.0}, r"prevalence must lie in \(0, 1\), got 0.0"),
        ({"prevalence": 1.0}, "prevalence"),
        ({"prevalence": float("nan")}, "prevalence"),
        ({"n_items": 1}, "n_items must be a whole number of at least 2, got 1"),
        ({"n_items": 10.5}, "n_items"),
        ({"n_annotators": -3}, "n_annotators"),
        ({"difficulty_scale": 0}, "difficulty_scale"),
        ({"difficulty_scale": float("inf")}, "difficulty_scale"),
        ({"positive_ease": -1}, "positive_ease"),
        ({"ability_mean": -1}, "ability_mean"),
        ({"ability_mean": 0, "ability_spread": 0}, "must not both be 0"),
        ({"adversarial_share": 0.7, "random_share": 0.4}, "must not sum above 1, got 0.7 [+] 0.4"),
        ({"adversarial_share": -0.1}, "adversarial_share"),
        ({"votes_per_item": 0.5}, "votes_per_item"),
        ({"votes_per_item": 101}, "at most the number of annotators, 100, got 101"),
        ({"votes_per_item": 30, "n_components": 4}, "in each of 4 components, 25, got 30"),
        ({"votes_per_item": 1e6, "n_items": 10**6, "n_annotators": 10**6}, "at most 1,000,000,000"),
        ({"vote_distribution": "normal"}, "vote_distribution must be one of fixed, poisson, long_tail"),
        ({"activity_spread": -1}, "activity_spread"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 101}, "n_components must be at most 100"),
        ({"votes_per_item": 1}, "1000 votes are too few to link 1000 items and 100 annotators"),
        ({"votes_per_item": 2, "abstention_rate": 0.5}, "abstention_rate 0.5 leaves 1000 votes, and 1099 are needed"),
        ({"abstention_rate": 1}, "abstention_rate"),
        ({"expert_errors": (0.1, 1.1)}, "expert_errors"),
        ({"expert_errors": 0.1}, "expert_errors must be a list of numbers, got 0.1"),
        ({"expert_ability": 0}, "expert_ability"),
        ({"n_expert_items": 0}, "n_expert_items"),
        ({"n_expert_items": 1001}, "n_expert_items must be at most n_items, 1000, got 1001"),
        ({"model_aurocs": (0.9,)}, "one entry a model, got 1 and 2"),
        ({"model_aurocs": (0.4, 0.9)}, "model_aurocs"),
        ({"model_aurocs": (1.0, 0.9)}, "model_aurocs must be below 1"),
        ({"model_ambiguity": (0.5, 2.0)}, "model_ambiguity"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"scale": 0}, "scale"),
        ({"preset": "large"}, "preset must be one of cleanpatrick, small; got 'large'"),
        ({"preset": "cleanpatrick", "issue": "colour"}, "issue must be one of off_topic"),
        ({"colour": "red"}, "no setting 'colour'"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        simulate(**arguments)


@st.composite
def possible_settings(draw: st.DrawFn) -> SimulationSettings:
    components = draw(st.integers(1, 5))
    items_each, annotators_each = draw(st.integers(3, 15)), draw(st.integers(1, 10))
    n_annotators = components * annotators_each
    if annotators_each > 1:
        n_annotators += draw(st.integers(0, components - 1))
    fewest = min(1 + -(-n_annotators // components) / items_each, annotators_each)
    models = draw(st.integers(0, 3))
    arguments = {
        "n_items": components * items_each + draw(st.integers(0, components - 1)),
        "n_annotators": n_annotators,
        "prevalence": draw(st.floats(0.01, 0.99)),
        "difficulty_scale": draw(st.floats(0.01, 50)),
        "positive_ease": draw(st.floats(0.1, 10)),
        "ability_mean": draw(st.floats(0, 5)),
        "ability_spread": draw(st.floats(0.01, 5)),
        "adversarial_share": draw(st.floats(0, 0.5)),
        "random_share": draw(st.floats(0, 0.5)),
        "votes_per_item": draw(st.floats(fewest, annotators_each)),
        "vote_distribution": draw(st.sampled_from(["fixed", "poisson", "long_tail"])),
        "activity_spread": draw(st.floats(0, 5)),
        "n_components": components,
        "expert_errors": draw(st.lists(st.floats(0, 1), max_size=3)),
        "expert_ability": draw(st.none() | st.floats(0.1, 100)),
        "model_aurocs": draw(st.lists(st.floats(0.5, 0.99), min_size=models, max_size=models)),
        "model_ambiguity": draw(st.lists(st.floats(0, 1), min_size=models, max_size=models)),
        "seed": draw(st.integers(0, 2**40)),
    }
    without = SimulationSettings(**arguments)
    spare = 1 - without.component_links.sum() / without.component_responses.sum()
    return replace(without, abstention_rate=draw(st.floats(0, 0.9)) * spare)


@settings(max_examples=150, deadline=None)
@given(chosen=possible_settings())
def test_whatever_is_possible_gives_a_valid_study(chosen: SimulationSettings) -> None:
    study = simulate(**asdict(chosen))
    votes = study.votes
    assert votes.components.count == chosen.n_components
    assert (votes.n_items, votes.n_annotators) == (chosen.n_items, chosen.n_annotators)
    assert votes.n_votes + votes.n_abstentions == pytest.approx(
        chosen.votes_per_item * chosen.n_items, abs=chosen.n_components
    )
    assert not pairs(study).duplicated().any()
    assert set(np.unique(votes.votes)) <= {0, 1}
    assert np.isfinite(study.truth.difficulty).all()
    assert np.isfinite(study.truth.ability).all()
    assert study.votes.item_counts.max() <= -(-chosen.n_annotators // chosen.n_components)


# The sample data


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_samples", ROOT / "scripts" / "make_samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_samples_are_remade_byte_for_byte(tmp_path: Path) -> None:
    load_script().main(tmp_path)
    remade = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_bytes() for path in (ROOT / "data_samples").iterdir()}
    assert remade.keys() == kept.keys()
    assert [name for name in kept if remade[name] != kept[name]] == []
    assert sum(map(len, kept.values())) < 1_000_000


def test_samples_rank_models_differently_by_hard_and_by_soft_labels() -> None:
    study = simulate("small", seed=load_script().SEED)
    assert study.scores is not None
    p = known_ability_posterior(study)
    hard = [roc_auc_score(p > 0.5, study.scores.of(model)) for model in study.scores.models]
    soft = [soft_auroc(p, study.scores.of(model)) for model in study.scores.models]
    assert hard[0] > hard[2]
    assert soft[0] < soft[2]
