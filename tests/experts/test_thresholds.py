"""The rules that choose a bin: worked cases, ties, empty bins, many replicates at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy

from softgold.errors import UsageError
from softgold.experts import ThresholdRule, changepoint_bins, largest_jump_bins, onset_bins
from softgold.experts.bins import BinTable
from softgold.experts.evidence import Evidence
from softgold.experts.logit_map import NEVER
from softgold.experts.rules import choose, cut_of_cost
from softgold.experts.thresholds import bins_reaching, shrunken_rates

CASES = {
    "off topic": ([0] * 19 + [14], 19, 19, 19),
    "near duplicates": ([0] * 15 + [13, 20, 20, 20, 20], 15, 15, 15),
    "label errors": ([0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 4, 3, 4, 5, 4, 4, 5], 13, 13, 2),
    "flat": ([2] * 20, -1, -1, -1),
    "decreasing": (list(range(20, 0, -1)), -1, -1, -1),
}


@pytest.mark.parametrize("case", CASES)
def test_worked_cases(case: str) -> None:
    positives, changepoint, jump, onset = CASES[case]
    labelled = [20] * 20
    assert changepoint_bins(positives, labelled).tolist() == [changepoint]
    assert largest_jump_bins(positives, labelled).tolist() == [jump]
    assert onset_bins(positives, labelled).tolist() == [onset]


def test_many_replicates_at_once_are_each_alone() -> None:
    positives = np.array([case[0] for case in CASES.values()])
    labelled = np.full_like(positives, 20)
    assert changepoint_bins(positives, labelled).tolist() == [case[1] for case in CASES.values()]
    assert largest_jump_bins(positives, labelled).tolist() == [case[2] for case in CASES.values()]
    assert onset_bins(positives, labelled).tolist() == [case[3] for case in CASES.values()]


def brute_force_changepoint(positives: list[int], labelled: list[int]) -> int:
    """Straight from the definition, with whole numbers where they decide."""
    best, best_bin = -np.inf, -1
    for split in range(1, len(positives)):
        k0, n0, k1, n1 = sum(positives[:split]), sum(labelled[:split]), sum(positives[split:]), sum(labelled[split:])
        if labelled[split] == 0 or n0 == 0 or n1 == 0 or k1 * n0 <= k0 * n1:
            continue
        value = sum(xlogy(k, k / n) + xlogy(n - k, (n - k) / n) for k, n in ((k0, n0), (k1, n1)))
        if value > best + 1e-9:
            best, best_bin = value, split
    return best_bin


counts = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12).map(
    lambda pairs: ([min(k, n) for k, n in pairs], [n for _, n in pairs])
)


@given(counts)
def test_changepoint_is_the_definition(pair: tuple[list[int], list[int]]) -> None:
    assert changepoint_bins(*pair).tolist() == [brute_force_changepoint(*pair)]


@given(counts)
def test_rules_never_choose_a_bin_without_labels_nor_the_first_with_labels(pair: tuple[list[int], list[int]]) -> None:
    positives, labelled = pair
    for rule in (changepoint_bins, largest_jump_bins, onset_bins):
        chosen = int(rule(positives, labelled)[0])
        if chosen >= 0:
            assert labelled[chosen] > 0
            assert sum(labelled[:chosen]) > 0


@given(counts)
def test_empty_bins_change_nothing_but_the_numbering(pair: tuple[list[int], list[int]]) -> None:
    positives, labelled = pair
    spread_positives = [value for k in positives for value in (k, 0)]
    spread_labelled = [value for n in labelled for value in (n, 0)]
    for rule in (changepoint_bins, largest_jump_bins, onset_bins):
        chosen = int(rule(positives, labelled)[0])
        expected = 2 * chosen if chosen >= 0 else -1
        assert rule(spread_positives, spread_labelled).tolist() == [expected]


def test_a_tie_goes_to_the_lowest_bin() -> None:
    # 0, 1/2, 1: the splits before and after the middle bin are mirror images.
    assert changepoint_bins([0, 10, 20], [20, 20, 20]).tolist() == [1]
    assert largest_jump_bins([1, 4, 7], [20, 20, 20]).tolist() == [1]


def test_equal_rates_of_unequal_bins_are_no_increase() -> None:
    positives, labelled = [1, 3, 7], [10, 30, 70]
    for rule in (changepoint_bins, largest_jump_bins, onset_bins):
        assert rule(positives, labelled).tolist() == [-1]


def evidence(p: np.ndarray, sizes: list[int], bins: int) -> Evidence:
    index = np.repeat(np.arange(bins), len(p) // bins)
    means = np.array([p[index == number].mean() for number in range(bins)])
    lows = np.array([p[index == number].min() for number in range(bins)])
    highs = np.array([p[index == number].max() for number in range(bins)])
    return Evidence(p, index, BinTable("rank", np.array(sizes), means, lows, highs))


P = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
LABELS = np.array([[0, 0, 0, 1, 0, 1, 1, 1]], dtype=np.int8)


def test_cuts_by_hand_with_design_weights() -> None:
    cuts = evidence(P, [10, 20, 20, 10], 4).cuts(np.array([0.15, 0.35, 0.65, 0.85]), LABELS)
    weight = np.array([5, 5, 10, 10, 10, 10, 5, 5.0])
    positive = LABELS[0] == 1
    for place, threshold in enumerate([0.15, 0.35, 0.65, 0.85]):
        above = threshold <= P
        assert cuts.true_positive[0, place] == weight[above & positive].sum()
        assert cuts.predicted[0, place] == weight[above].sum()
        size = weight[above].sum() ** 2 / (weight[above] ** 2).sum()
        assert cuts.predicted_size[0, place] == pytest.approx(size)
    assert cuts.precision[0].tolist() == pytest.approx([30 / 55, 30 / 40, 1.0, 1.0])
    assert cuts.recall[0].tolist() == pytest.approx([1.0, 1.0, 20 / 30, 5 / 30])
    assert cuts.youden[0].tolist() == pytest.approx([1 - 25 / 30, 1 - 10 / 30, 20 / 30, 5 / 30])


@pytest.mark.parametrize("rule", ["f1", "youden"])
def test_cut_rules_take_the_best_candidate_and_the_lowest_at_a_tie(rule: str) -> None:
    choice = choose(evidence(P, [10, 20, 20, 10], 4), ThresholdRule(rule), LABELS)
    assert choice.threshold.tolist() == [pytest.approx(0.35)]


def test_target_precision_takes_the_lowest_threshold_whose_wilson_bound_reaches_it() -> None:
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(400))
    labels = (rng.random((1, 400)) < p).astype(np.int8)
    item_evidence = evidence(p, [100] * 20, 20)
    cuts = item_evidence.cuts(item_evidence.candidates("all"), labels)
    choice = choose(item_evidence, ThresholdRule("precision", target=0.8), labels)
    at = int(np.argmax(item_evidence.bins.p_mean == choice.threshold[0]))
    assert cuts.precision_bound[0, at] >= 0.8
    assert (cuts.precision_bound[0, :at] < 0.8).all()
    recall = choose(item_evidence, ThresholdRule("recall", target=0.9), labels)
    at = int(np.argmax(item_evidence.bins.p_mean == recall.threshold[0]))
    assert cuts.recall_bound[0, at] >= 0.9
    assert (cuts.recall_bound[0, at + 1 :] < 0.9).all()


def test_target_that_is_not_reached_has_no_threshold() -> None:
    choice = choose(evidence(P, [10, 20, 20, 10], 4), ThresholdRule("precision", target=0.9), LABELS)
    assert choice.found.tolist() == [False]
    assert np.isnan(choice.threshold).all()


def test_rules_without_positives_fall_back_to_one_half() -> None:
    nobody = np.zeros_like(LABELS)
    for rule in ("changepoint", "largest_jump", "onset", "f1", "youden"):
        choice = choose(evidence(P, [10, 20, 20, 10], 4), ThresholdRule(rule), nobody)
        assert choice.found.tolist() == [False]
        assert choice.threshold.tolist() == [0.5]


def test_threshold_of_the_sampled_items_is_their_mean() -> None:
    table = BinTable("rank", np.array([50, 50]), np.array([0.2, 0.8]), np.array([0.0, 0.5]), np.array([0.5, 1.0]))
    items = Evidence(np.array([0.1, 0.3, 0.6, 0.7]), np.array([0, 0, 1, 1]), table)
    labels = np.array([[0, 0, 1, 1]], dtype=np.int8)
    assert choose(items, ThresholdRule("changepoint", of="all"), labels).threshold.tolist() == [0.8]
    assert choose(items, ThresholdRule("changepoint", of="sampled"), labels).threshold.tolist() == [pytest.approx(0.65)]


def test_an_item_drawn_twice_counts_as_two_labels() -> None:
    doubled = evidence(np.repeat(P, 2), [10, 20, 20, 10], 4)
    candidates = np.array([0.35, 0.65])
    once = doubled.cuts(candidates, np.repeat(LABELS, 2, axis=1))
    twice = evidence(P, [10, 20, 20, 10], 4).cuts(candidates, LABELS, np.full((1, 8), 2))
    for name in ("true_positive", "predicted", "positive", "total", "predicted_size", "positive_size"):
        np.testing.assert_allclose(getattr(once, name), getattr(twice, name))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "elbow"}, "rule must be one of map, bins, paper"),
        ({"name": "precision"}, "rule 'precision' needs a target"),
        ({"name": "f1", "target": 0.9}, "rule 'f1' takes no target"),
        ({"name": "recall", "target": 1.0}, r"target must lie in \(0, 1\)"),
        ({"name": "f1", "cut": 0.2}, "rule 'f1' takes no cost"),
        ({"cut": 1.0}, r"cut must lie in \(0, 1\)"),
        ({"of": "some"}, "of must be one of all, sampled"),
    ],
)
def test_bad_rules_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ThresholdRule(**settings)


@pytest.mark.parametrize(("cost", "cut"), [((1, 1), 0.5), ((1, 4), 0.2), ((3, 1), 0.75)])
def test_costs_give_the_cut(cost: tuple[float, float], cut: float) -> None:
    assert cut_of_cost(cost) == pytest.approx(cut)


@pytest.mark.parametrize("cost", [(0, 1), (1, -1), (np.nan, 1), (np.inf, 1)])
def test_bad_costs_are_refused(cost: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="cost must be two positive numbers"):
        cut_of_cost(cost)


@given(counts, st.integers(0, 3))
def test_shrunken_rates_are_the_isotonic_fit(pair: tuple[list[int], list[int]], seed: int) -> None:
    from sklearn.isotonic import isotonic_regression

    positives, labelled = (np.array([values], dtype=float) for values in pair)
    mapped = np.sort(np.random.default_rng(seed).random(positives.shape))
    weight = labelled + 10
    expected = isotonic_regression(((positives + 10 * mapped) / weight)[0], sample_weight=weight[0])
    np.testing.assert_allclose(shrunken_rates(positives, labelled, mapped)[0], expected, atol=1e-12)


def test_the_bins_rule_takes_the_lowest_bin_that_reaches_the_cut() -> None:
    assert bins_reaching(np.array([[0.1, 0.4, 0.6], [0.1, 0.2, 0.3]]), 0.4).tolist() == [1, -1]
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(400))
    found = evidence(p, [100] * 20, 20)
    labels = (p > 0.72).astype(np.int8)[None, :]
    choice = choose(found, ThresholdRule("bins"), labels)
    at = int(np.argmax(found.bins.p_mean == choice.threshold[0]))
    assert found.bins.p_low[at - 1] < 0.72 < found.bins.p_high[at]
    assert choose(found, ThresholdRule("bins", cut=0.9), labels).threshold[0] >= choice.threshold[0]
    nobody = choose(found, ThresholdRule("bins"), np.zeros_like(labels))
    assert (nobody.threshold[0], nobody.found[0]) == (NEVER, False)


@pytest.mark.parametrize("kind", ["logit", "isotonic"])
def test_the_map_rule_is_where_the_map_reaches_the_cut(kind: str) -> None:
    rng = np.random.default_rng(1)
    p = np.sort(rng.random(1000))
    labels = (rng.random((1, 1000)) < p**2).astype(np.int8)
    low, high = (choose(evidence(p, [50] * 20, 20), ThresholdRule(cut=cut, map=kind), labels) for cut in (0.2, 0.5))
    assert low.threshold[0] == pytest.approx(np.sqrt(0.2), abs=0.12)
    assert high.threshold[0] == pytest.approx(np.sqrt(0.5), abs=0.06)
