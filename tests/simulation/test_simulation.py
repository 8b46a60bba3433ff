"""Simulated studies have the marginals that were asked for, and a truth that fits their votes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit
from scipy.stats import norm
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from softgold.errors import UsageError
from softgold.readers import read_experts, read_scores, read_votes
from softgold.simulation import (
    CLEANPATRICK_ISSUES,
    Simulation,
    SimulationSettings,
    Truth,
    ask_experts,
    expert_error,
    simulate,
    simulate_cleanpatrick,
)

ROOT = Path(__file__).parents[2]
M = np.sqrt(3)
MODELS = ("two-class", "glad")


@pytest.fixture(scope="module")
def cleanpatrick() -> dict[str, Simulation]:
    return simulate_cleanpatrick(seed=0)


def known_annotator_posterior(study: Simulation) -> np.ndarray:
    """P(z = 1 | votes) of the two-class model with annotators and prevalence known, summed over a grid of b and u."""
    votes, truth, chosen = study.votes, study.truth, study.settings
    assert chosen.tricky_spread is not None
    assert chosen.pull_sd is not None
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(5)
    grid = np.linspace(-5, 5, 41) * M
    b, u = (part.ravel() for part in np.meshgrid(grid, chosen.pull_sd * nodes))
    weights = np.repeat(node_weights, len(grid))
    signs = 2.0 * votes.votes - 1
    ability, lean = truth.ability[votes.annotator_codes], truth.lean[votes.annotator_codes]
    log_p = np.empty((votes.n_items, len(b)))
    for column in range(len(b)):
        chances = log_expit(signs * (ability * b[column] + lean + u[column]))
        log_p[:, column] = np.bincount(votes.item_codes, chances, minlength=votes.n_items)
    likelihood = np.exp(log_p - log_p.max(axis=1, keepdims=True)) * weights
    positive = chosen.prevalence * likelihood @ norm.pdf(b, M, chosen.tricky_spread * M)
    negative = (1 - chosen.prevalence) * likelihood @ norm.pdf(b, -M, chosen.tricky_spread * M)
    return positive / (positive + negative)


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


def chances(study: Simulation) -> np.ndarray:
    """Chance of a yes for each vote."""
    truth, item, annotator = study.truth, study.votes.item_codes, study.votes.annotator_codes
    return expit(truth.ability[annotator] * truth.difficulty[item] + truth.lean[annotator] + truth.pull[item])


def pairs(study: Simulation) -> pd.DataFrame:
    """Every response, abstentions included."""
    return study.tables()["votes"][["item", "annotator"]]


# Marginals


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prevalence", [0.01, 0.3, 0.97])
def test_prevalence_is_met(prevalence: float, model: str) -> None:
    assert simulate(n_items=1000, prevalence=prevalence, model=model).truth.label.sum() == round(1000 * prevalence)


def test_in_glad_the_class_is_the_sign_of_b_and_nothing_leans_or_pulls() -> None:
    truth = simulate(model="glad").truth
    np.testing.assert_array_equal(truth.label, truth.difficulty > 0)
    assert not truth.lean.any()
    assert not truth.pull.any()


@pytest.fixture(scope="module")
def many_items() -> Truth:
    """40,000 items, half of them positive: a mean has a standard error of 0.7 % of the standard deviation."""
    return simulate(n_items=40_000, prevalence=0.5, votes_per_item=2, n_expert_items=10).truth


@pytest.mark.parametrize(("label", "mean"), [(1, M), (0, -M)])
def test_b_is_normal_around_its_class(many_items: Truth, label: int, mean: float) -> None:
    b = many_items.difficulty[many_items.label == label]
    assert b.mean() == pytest.approx(mean, abs=0.04)
    assert b.std() == pytest.approx(0.8 * M, rel=0.02)
    # Quartiles of a Normal: shape, not moments alone.
    quartiles = mean + 0.8 * M * norm.ppf([0.25, 0.5, 0.75])
    np.testing.assert_allclose(np.quantile(b, [0.25, 0.5, 0.75]), quartiles, atol=0.05)


def test_pull_is_normal_and_has_nothing_to_do_with_the_class_or_b(many_items: Truth) -> None:
    pull = many_items.pull
    assert pull.std() == pytest.approx(0.6, rel=0.02)
    for label in (0, 1):
        assert pull[many_items.label == label].mean() == pytest.approx(0, abs=0.02)
    assert abs(np.corrcoef(pull, many_items.difficulty)[0, 1]) < 0.02


@pytest.mark.parametrize("spread", [0.5, 0.8, 1.5])
def test_the_share_of_tricky_items_is_that_of_the_normal(spread: float) -> None:
    truth = simulate(n_items=40_000, tricky_spread=spread, votes_per_item=2, n_expert_items=10).truth
    share = norm.cdf(-1 / spread)
    for label in (0, 1):
        tricky = truth.clarity[truth.label == label] < 0
        assert abs(tricky.mean() - share) < 4 * np.sqrt(share * (1 - share) / len(tricky))
    np.testing.assert_array_equal(truth.clarity < 0, (truth.difficulty > 0) != (truth.label == 1))


def test_no_item_is_tricky_without_spread() -> None:
    truth = simulate(tricky_spread=0, pull_sd=0).truth
    np.testing.assert_array_equal(truth.difficulty, np.where(truth.label == 1, M, -M))
    assert not truth.pull.any()


def test_leans_follow_mean_and_spread_whatever_the_kind() -> None:
    truth = simulate(n_annotators=9000, n_items=3000, lean_mean=-0.4, lean_sd=0.7, adversarial_share=1 / 3,
                     random_share=1 / 3).truth  # fmt: skip
    for kind in ("helpful", "random", "adversarial"):
        lean = truth.lean[truth.kind == kind]
        assert len(lean) == 3000
        assert lean.mean() == pytest.approx(-0.4, abs=0.05)
        assert lean.std() == pytest.approx(0.7, rel=0.05)
    assert abs(np.corrcoef(truth.lean, truth.ability)[0, 1]) < 0.05


def test_default_annotators_of_the_two_class_model() -> None:
    truth = simulate(n_annotators=9000, n_items=3000).truth
    # The mean and standard deviation of N(1, 0.7^2) above 0.
    cut = -1 / 0.7
    hazard = norm.pdf(cut) / norm.sf(cut)
    assert (truth.ability > 0).all()
    assert truth.ability.mean() == pytest.approx(1 + 0.7 * hazard, abs=0.03)
    assert truth.ability.std() == pytest.approx(0.7 * np.sqrt(1 + cut * hazard - hazard**2), abs=0.03)
    assert truth.lean.mean() == pytest.approx(0, abs=0.03)
    assert truth.lean.std() == pytest.approx(0.5, abs=0.03)


def test_both_classes_are_there_however_rare_one_is() -> None:
    assert simulate(n_items=20, prevalence=0.001, n_annotators=12).truth.label.sum() == 1
    assert simulate(n_items=20, prevalence=0.999, n_annotators=12).truth.label.sum() == 19


def test_difficulty_is_half_normal_on_either_side() -> None:
    truth = simulate(model="glad", n_items=40_000, prevalence=0.5, difficulty_scale=2.0, positive_ease=3.0,
                     votes_per_item=2).truth  # fmt: skip
    positive = truth.label == 1
    # The mean square of 20,000 squared normals has a relative standard error of 1 %.
    assert np.mean(truth.difficulty[~positive] ** 2) == pytest.approx(4.0, rel=0.05)
    assert np.mean(truth.difficulty[positive] ** 2) == pytest.approx(36.0, rel=0.05)


def test_abilities_follow_kind_mean_and_spread() -> None:
    truth = simulate(n_annotators=4000, n_items=2000, ability_mean=3.0, ability_sd=0.5, adversarial_share=0.2,
                     random_share=0.1).truth  # fmt: skip
    assert (truth.kind == "adversarial").sum() == 800
    assert (truth.kind == "random").sum() == 400
    assert (truth.ability[truth.kind == "random"] == 0).all()
    assert (truth.ability[truth.kind == "adversarial"] < 0).all()
    helpful = truth.ability[truth.kind == "helpful"]
    assert helpful.mean() == pytest.approx(3.0, abs=0.05)
    assert helpful.std() == pytest.approx(0.5, abs=0.05)


def test_abilities_stay_above_zero_where_the_normal_does_not() -> None:
    truth = simulate(n_annotators=4000, n_items=2000, ability_mean=0.0, ability_sd=2.0).truth
    assert (truth.ability > 0).all()
    # A half-normal has the mean 2 sqrt(2 / pi).
    assert truth.ability.mean() == pytest.approx(2 * np.sqrt(2 / np.pi), rel=0.05)


def test_equal_abilities_without_spread() -> None:
    assert set(simulate(ability_mean=1.5, ability_sd=0.0).truth.ability) == {1.5}


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


def assert_votes_have(study: Simulation, chance: np.ndarray, inside: np.ndarray) -> None:
    deviation = (study.votes.votes[inside] - chance[inside]).sum()
    assert abs(deviation) < 4 * np.sqrt(np.sum(chance[inside] * (1 - chance[inside])))


@pytest.mark.parametrize("own", [{"model": "glad", "difficulty_scale": 1.5}, {"model": "two-class", "lean_mean": 0.3}])
def test_votes_have_the_chances_of_the_model(own: dict[str, object]) -> None:
    study = simulate(n_items=5000, votes_per_item=20, adversarial_share=0.2, random_share=0.2, **own)
    chance = chances(study)
    for low, high in itertools.pairwise([0.0, 0.05, 0.2, 0.4, 0.499, 0.501, 0.6, 0.8, 0.95, 1.0]):
        assert_votes_have(study, chance, (chance >= low) & (chance <= high))


def test_votes_follow_lean_pull_and_class_apart() -> None:
    """The chances fit within every part of the table too, so that no term is missing or has the wrong sign."""
    study = simulate(n_items=5000, votes_per_item=20, lean_sd=1.0, pull_sd=1.0)
    chance, truth = chances(study), study.truth
    lean, pull = truth.lean[study.votes.annotator_codes], truth.pull[study.votes.item_codes]
    clarity = truth.clarity[study.votes.item_codes]
    for value in (lean, pull, clarity):
        for inside in (value < -1, (value >= -1) & (value < 0), (value >= 0) & (value < 1), value >= 1):
            assert inside.sum() > 1000
            assert_votes_have(study, chance, inside)


def test_most_votes_on_tricky_items_are_wrong() -> None:
    study = simulate(n_items=4000)
    right = study.votes.votes == study.truth.label[study.votes.item_codes]
    tricky = study.truth.clarity[study.votes.item_codes] < 0
    assert right[tricky].mean() < 0.4
    assert right[~tricky].mean() > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_sensitivity_and_specificity_are_the_shares_of_right_votes(model: str) -> None:
    study = simulate(model=model, n_items=8000, n_annotators=30, votes_per_item=30, prevalence=0.5,
                     adversarial_share=0.1, random_share=0.1)  # fmt: skip
    votes, truth = study.votes, study.truth
    label = truth.label[votes.item_codes]
    for value, rate in ((1, truth.sensitivity), (0, truth.specificity)):
        asked = np.bincount(votes.annotator_codes[label == value], minlength=30)
        right = np.bincount(votes.annotator_codes[(label == value) & (votes.votes == value)], minlength=30)
        assert (asked == 4000).all()
        # The items are drawn anew for each class, so an annotator's right votes are binomial.
        deviation = (right / asked - rate) / np.sqrt(rate * (1 - rate) / asked)
        assert np.abs(deviation).max() < 4


def test_sensitivity_and_specificity_where_they_are_known() -> None:
    plain = simulate(tricky_spread=0, pull_sd=0, random_share=0.3, adversarial_share=0.3).truth
    np.testing.assert_allclose(plain.sensitivity, expit(plain.ability * M + plain.lean), atol=1e-7)
    np.testing.assert_allclose(plain.specificity, expit(plain.ability * M - plain.lean), atol=1e-7)
    # Whoever cannot tell says yes as often to both classes.
    random = simulate(random_share=1.0).truth
    np.testing.assert_allclose(random.sensitivity, 1 - random.specificity, atol=1e-7)
    coins = simulate(model="glad", random_share=1.0).truth
    np.testing.assert_allclose([coins.sensitivity, coins.specificity], 0.5, atol=1e-7)
    # Someone who can tell perfectly is wrong on the tricky items alone.
    perfect = simulate(ability_mean=1e5, ability_sd=0.0).truth
    np.testing.assert_allclose(perfect.sensitivity, norm.cdf(1 / 0.8), atol=1e-4)


def test_sensitivity_is_the_mean_over_the_quantiles_of_the_items() -> None:
    """An independent integral: the mean over a fine lattice of equally likely values."""
    quantiles, pulls = (norm.ppf((np.arange(size) + 0.5) / size) for size in (4000, 400))
    two = simulate(n_annotators=10, n_items=50, votes_per_item=3, lean_mean=0.5).truth
    glad = simulate(model="glad", n_annotators=10, n_items=50, votes_per_item=3, positive_ease=2.0).truth
    for a in range(10):
        logits = two.ability[a] * (M + 0.8 * M * quantiles[:, None]) + two.lean[a] + 0.6 * pulls
        assert two.sensitivity[a] == pytest.approx(expit(logits).mean(), abs=2e-4)
        seen = glad.ability[a] * 3 * np.abs(quantiles)
        assert glad.sensitivity[a] == pytest.approx(expit(2 * seen).mean(), abs=2e-4)
        assert glad.specificity[a] == pytest.approx(expit(seen).mean(), abs=2e-4)


@pytest.mark.parametrize("model", MODELS)
def test_the_tables_of_the_truth_name_everything(model: str) -> None:
    study = simulate(model=model, n_items=60, n_annotators=12)
    tables = study.tables(decimals=15)
    assert tables["truth"].columns.tolist() == ["item", "label", "b", "pull"]
    columns = ["annotator", "ability", "kind", "lean", "sensitivity", "specificity"]
    assert tables["annotators_truth"].columns.tolist() == columns
    np.testing.assert_allclose(tables["truth"]["pull"], study.truth.pull)
    for name in ("lean", "sensitivity", "specificity"):
        np.testing.assert_allclose(tables["annotators_truth"][name], getattr(study.truth, name))


def test_adversarial_annotators_are_worse_than_chance_and_random_ones_at_chance() -> None:
    study = simulate(model="glad", n_items=4000, n_annotators=60, adversarial_share=0.2, random_share=0.2,
                     ability_mean=2.0)  # fmt: skip
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


@pytest.mark.parametrize("model", MODELS)
def test_a_seed_gives_one_study(model: str) -> None:
    one, other = (simulate(seed=5, abstention_rate=0.1, model=model) for _ in range(2))
    assert_same(one, other)


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
    annotators = [study.truth.annotators_frame().set_index("annotator").sort_index() for study in (one, other)]
    assert annotators[0]["lean"].nunique() == 100
    pd.testing.assert_frame_equal(*annotators)
    assert not np.array_equal(one.truth.difficulty, other.truth.difficulty)
    assert not np.array_equal(one.truth.pull, other.truth.pull)


# Experts


def test_flat_expert_errors_are_met() -> None:
    study = simulate(n_items=20_000, votes_per_item=2, expert_errors=(0.0, 0.05, 0.3), expert_ability=None)
    wrong = (expert_labels(study) != study.truth.label[:, None]).mean(axis=0)
    assert wrong[0] == 0
    np.testing.assert_allclose(wrong[1:], [0.05, 0.3], atol=0.012)


def test_expert_errors_keep_to_ambiguous_items() -> None:
    study = simulate(model="glad", n_items=20_000, votes_per_item=2, expert_errors=(0.01, 0.02), expert_ability=3.0)
    wrong = expert_labels(study) != study.truth.label[:, None]
    chance = expert_error(np.abs(study.truth.difficulty), (0.01, 0.02), 3.0)
    size = np.abs(study.truth.difficulty)
    for inside in (size < 0.3, (size >= 0.3) & (size < 1), size >= 3):
        spread = np.sqrt(np.sum(chance[inside] * (1 - chance[inside]), axis=0))
        assert (np.abs((wrong - chance)[inside].sum(axis=0)) < 4 * spread).all()
    np.testing.assert_allclose(wrong[size >= 3].mean(axis=0), [0.01, 0.02], atol=0.008)
    assert (wrong[size < 0.1].mean(axis=0) > 0.4).all()


def test_experts_err_more_on_tricky_items_but_less_than_the_crowd() -> None:
    study = simulate(n_items=20_000, expert_errors=(0.0, 0.02), expert_ability=1.0)
    clarity = study.truth.clarity
    wrong = expert_labels(study) != study.truth.label[:, None]
    crowd_wrong = study.votes.votes != study.truth.label[study.votes.item_codes]
    tricky, tricky_votes = clarity < 0, clarity[study.votes.item_codes] < 0
    assert (wrong[tricky].mean(axis=0) > 3 * wrong[~tricky].mean(axis=0)).all()
    assert (wrong[tricky].mean(axis=0) < crowd_wrong[tricky_votes].mean() - 0.2).all()
    assert (wrong[~tricky].mean(axis=0) < crowd_wrong[~tricky_votes].mean() - 0.1).all()
    # By hand: an item of clarity v looks like v + sqrt(3) to an expert.
    flat = np.array([0.0, 0.02])
    chance = flat + (1 - 2 * flat) * expit(-(clarity + M))[:, None]
    for inside in (clarity < -1, (clarity >= -1) & (clarity < 0), (clarity >= 0) & (clarity < M), clarity >= M):
        spread = np.sqrt(np.sum(chance[inside] * (1 - chance[inside]), axis=0))
        assert (np.abs((wrong - chance)[inside].sum(axis=0)) < 4 * spread).all()


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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("ambiguity", [0.0, 0.5, 1.0])
def test_models_have_the_auroc_they_were_given(ambiguity: float, model: str) -> None:
    targets = (0.5, 0.65, 0.8, 0.95, 0.999)
    study = simulate(model=model, n_items=3000, model_aurocs=targets, model_ambiguity=(ambiguity,) * 5,
                     votes_per_item=2)  # fmt: skip
    assert study.scores is not None
    reached = [roc_auc_score(study.truth.label, study.scores.of(model)) for model in study.scores.models]
    assert reached[0] == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(reached[1:], targets[1:], atol=2e-4)
    assert ((study.scores.values > 0) & (study.scores.values < 1)).all()


def test_ambiguity_moves_errors_to_tricky_items() -> None:
    study = simulate(n_items=20_000, model_aurocs=(0.85, 0.85), model_ambiguity=(0.0, 1.0), votes_per_item=2)
    assert study.scores is not None
    tricky, label = study.truth.clarity < 0, study.truth.label
    blind, seeing = (roc_auc_score(label[tricky], study.scores.values[tricky, model]) for model in (0, 1))
    assert blind == pytest.approx(0.85, abs=0.04)
    assert seeing == pytest.approx(0.5, abs=0.05)


def test_ambiguity_moves_errors_to_ambiguous_items() -> None:
    study = simulate(model="glad", n_items=8000, model_aurocs=(0.85, 0.85), model_ambiguity=(0.0, 1.0),
                     votes_per_item=2)  # fmt: skip
    assert study.scores is not None
    clear = np.abs(study.truth.difficulty) > np.median(np.abs(study.truth.difficulty))
    blind, seeing = (roc_auc_score(study.truth.label[clear], study.scores.values[clear, model]) for model in (0, 1))
    assert blind == pytest.approx(0.85, abs=0.02)
    assert seeing > 0.93


# Presets


def test_cleanpatrick_has_the_size_of_the_study(cleanpatrick: dict[str, Simulation]) -> None:
    assert sum(study.votes.n_votes for study in cleanpatrick.values()) == 496_377
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


def test_cleanpatrick_experts_agree_as_the_study_s_did(cleanpatrick: dict[str, Simulation]) -> None:
    agreement = {issue: alpha(expert_labels(study)) for issue, study in cleanpatrick.items()}
    # Section 3.4 of the paper.
    assert agreement == pytest.approx({"off_topic": 0.60, "near_duplicates": 0.91, "label_errors": 0.42}, abs=0.03)


def test_cleanpatrick_is_the_two_class_default_but_for_what_the_paper_reports(
    cleanpatrick: dict[str, Simulation],
) -> None:
    reported = {"n_items", "n_annotators", "votes_per_item", "vote_distribution", "activity_spread", "prevalence",
                "expert_ability", "issue"}  # fmt: skip
    default = asdict(SimulationSettings())
    for study in cleanpatrick.values():
        assert study.settings.model == "two-class"
        assert {name for name, value in asdict(study.settings).items() if value != default[name]} == reported


def test_cleanpatrick_issues_share_their_annotators(cleanpatrick: dict[str, Simulation]) -> None:
    first, *others = (study.truth.annotators_frame().set_index("annotator") for study in cleanpatrick.values())
    for other in others:
        pd.testing.assert_frame_equal(first.sort_index(), other.sort_index())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_knowing_the_annotators_pays(seed: int) -> None:
    """The gap between the mean vote and a model of the annotators, without which nobody would need the model."""
    study = simulate("cleanpatrick", issue="near_duplicates", seed=seed)
    label, share, p = study.truth.label, study.votes.item_shares, known_annotator_posterior(study)
    assert roc_auc_score(label, p) > roc_auc_score(label, share) + 0.01
    assert accuracy_score(label, p > 0.5) > accuracy_score(label, share > 0.5) + 0.02
    assert log_loss(label, p) < 0.75 * log_loss(label, share.clip(0.01, 0.99))
    for low, high in itertools.pairwise([0.0, 0.05, 0.2, 0.5, 0.8, 1.0]):
        inside = (p >= low) & (p < high)
        assert inside.sum() > 100
        assert abs((label - p)[inside].sum()) < 4 * np.sqrt(np.sum((p * (1 - p))[inside]))


def test_presets_serve_the_published_model_too() -> None:
    truth = simulate("small", model="glad", difficulty_scale=2.0).truth
    np.testing.assert_array_equal(truth.label, truth.difficulty > 0)


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
        ({"model": "glad", "difficulty_scale": 0}, r"difficulty_scale must lie in \(0"),
        ({"model": "glad", "difficulty_scale": float("inf")}, "difficulty_scale must lie in"),
        ({"model": "glad", "positive_ease": -1}, "positive_ease must lie in"),
        ({"tricky_spread": -0.1}, "tricky_spread must lie in"),
        ({"pull_sd": float("nan")}, "pull_sd must lie in"),
        ({"lean_sd": -1}, "lean_sd must lie in"),
        ({"lean_mean": float("inf")}, "lean_mean must lie in"),
        ({"lean_mean": "low"}, "lean_mean must be a number, got 'low'"),
        ({"model": "irt"}, "model must be one of two-class, glad; got 'irt'"),
        ({"ability_mean": -1}, "ability_mean"),
        ({"ability_mean": 0, "ability_sd": 0}, "must not both be 0"),
        ({"adversarial_share": 0.7, "random_share": 0.4}, "must be at most 1, got 0.7 [+] 0.4"),
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
        ({"model_aurocs": (0.9,)}, "one entry per model, got 1 and 2"),
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


@pytest.mark.parametrize(
    ("name", "owner", "other"),
    [
        ("difficulty_scale", "glad", "two-class"),
        ("positive_ease", "glad", "two-class"),
        ("tricky_spread", "two-class", "glad"),
        ("pull_sd", "two-class", "glad"),
        ("lean_mean", "two-class", "glad"),
        ("lean_sd", "two-class", "glad"),
    ],
)
def test_settings_of_the_other_model_are_refused(name: str, owner: str, other: str) -> None:
    own = simulate(model=owner, n_items=30, n_annotators=10, **{name: 0.25})
    assert getattr(own.settings, name) == 0.25
    words = (
        f"^{name} is a setting of the model '{owner}', but the model is '{other}'; leave {name} out or use the model"
    )
    with pytest.raises(UsageError, match=words):
        simulate(model=other, **{name: 0.25})
    with pytest.raises(UsageError, match=words):
        simulate("small", model=other, **{name: 0.25})


def test_settings_state_the_defaults_of_their_model() -> None:
    names = ("tricky_spread", "pull_sd", "lean_mean", "lean_sd", "difficulty_scale", "positive_ease",
             "ability_mean", "ability_sd")  # fmt: skip
    two, glad = SimulationSettings(), SimulationSettings(model="glad")
    assert two.model == "two-class"
    assert [getattr(two, name) for name in names] == [0.8, 0.6, 0.0, 0.5, None, None, 1.0, 0.7]
    assert [getattr(glad, name) for name in names] == [None, None, None, None, 3.0, 1.0, 1.0, 1.0]


@st.composite
def own_settings(draw: st.DrawFn) -> dict[str, object]:
    """Settings that belong to one of the models."""
    if draw(st.booleans()):
        ranges = {"difficulty_scale": (0.01, 50), "positive_ease": (0.1, 10)}
        model = "glad"
    else:
        ranges = {"tricky_spread": (0, 10), "pull_sd": (0, 10), "lean_mean": (-5, 5), "lean_sd": (0, 5)}
        model = "two-class"
    return {"model": model, **{name: draw(st.none() | st.floats(*ends)) for name, ends in ranges.items()}}


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
        **draw(own_settings()),
        "ability_mean": draw(st.floats(0, 5)),
        "ability_sd": draw(st.floats(0.01, 5)),
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


@pytest.mark.slow
@settings(max_examples=150)
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
    for rate in (study.truth.sensitivity, study.truth.specificity):
        assert ((rate >= 0) & (rate <= 1)).all()
    assert study.votes.item_counts.max() <= -(-chosen.n_annotators // chosen.n_components)


# The sample data


def test_samples_are_remade_byte_for_byte(load_script: Callable[[str], ModuleType], tmp_path: Path) -> None:
    load_script("make_samples").main(tmp_path)
    remade = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_bytes() for path in (ROOT / "data_samples").iterdir() if path.is_file()}
    assert remade.keys() == kept.keys()
    assert [name for name in kept if remade[name] != kept[name]] == []
    assert sum(map(len, kept.values())) < 1_000_000
