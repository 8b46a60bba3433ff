"""Sampling items for experts: strata without split ties, allocation, weights, the sheet and the key."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgold.errors import DataWarning, InputError, UsageError
from softgold.experts import ExpertSample, assign_bins, expect, sample_for_experts
from softgold.experts.bins import BinTable
from softgold.experts.sampling import KEY_COLUMNS, allocate
from softgold.readers import read_soft_labels
from softgold.tables.soft_labels import SoftLabels

TIED = [0, 0, 0, 0.001, 0.01, 0.2, 0.3, 0.55, 0.9, 1, 1, 1]
SKEWED = np.random.default_rng(0).beta(0.2, 0.8, 3000)


def soft_labels(p: np.ndarray) -> SoftLabels:
    return read_soft_labels(pd.DataFrame({"item": [f"x{i:05d}" for i in range(len(p))], "p": p}))


def test_rank_bins_of_the_worked_example() -> None:
    index = assign_bins(TIED, 4)
    bins = [np.flatnonzero(index == number).tolist() for number in range(4)]
    assert bins == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    table = BinTable.from_items(np.array(TIED), index, "rank")
    np.testing.assert_allclose(table.p_mean, [0.0, 0.07033333333333334, 0.5833333333333334, 1.0], atol=1e-12)
    assert table.n_items.tolist() == [3, 3, 3, 3]


@given(st.floats(0, 1), st.integers(1, 50))
def test_the_mean_of_equal_soft_labels_is_that_soft_label(p: float, size: int) -> None:
    table = BinTable.from_items(np.full(size, p), np.zeros(size, dtype=int), "rank")
    assert table.p_mean.tolist() == [p]


@given(
    st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]) | st.floats(0, 1), min_size=1, max_size=40),
    st.integers(1, 8),
    st.sampled_from(["rank", "width", "neyman"]),
)
def test_bins_are_ordered_none_is_empty_and_ties_are_never_split(p: list[float], bins: int, scheme: str) -> None:
    values = np.array(p)
    index = assign_bins(values, bins, scheme=scheme)
    table = BinTable.from_items(values, index, scheme)
    assert len(table) <= bins
    assert (table.n_items > 0).all()
    assert (table.p_high[:-1] < table.p_low[1:]).all()  # strictly: an equal p would be on both sides


def test_distinct_soft_labels_make_equal_rank_bins() -> None:
    sizes = np.bincount(assign_bins(np.linspace(0, 1, 103), 10))
    assert len(sizes) == 10
    assert sizes.max() - sizes.min() <= 1


def test_width_bins_cut_the_scale() -> None:
    assert assign_bins([0, 0.049, 0.05, 0.5, 0.999, 1.0], 4, scheme="width").tolist() == [0, 0, 0, 1, 2, 2]


def test_neyman_bins_hold_equal_uncertainty() -> None:
    index = assign_bins(SKEWED, 10, scheme="neyman")
    mass = np.bincount(index, weights=np.sqrt(SKEWED * (1 - SKEWED)))
    assert mass.max() / mass.min() < 1.1
    assert np.bincount(index)[0] > 5 * np.bincount(index)[5]


@pytest.mark.parametrize("bins", [0, -3, True, 2.5])
def test_bad_numbers_of_bins_are_refused(bins: int) -> None:
    with pytest.raises(UsageError, match="bins must be a whole number of at least 1"):
        assign_bins(TIED, bins)


def test_unknown_schemes_are_refused() -> None:
    with pytest.raises(UsageError, match="scheme must be one of rank, width, neyman"):
        assign_bins(TIED, 2, scheme="quantile")
    with pytest.raises(UsageError, match="scheme must be one of neyman, paper"):
        sample_for_experts(soft_labels(SKEWED), 10, scheme="rank")


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(1e-3, 10)), min_size=1, max_size=12),
    st.integers(1, 400),
)
def test_allocation_spends_the_budget_within_the_strata(strata: list[tuple[int, float]], budget: int) -> None:
    sizes, scores = np.array([size for size, _ in strata]), np.array([score for _, score in strata])
    spend = min(budget, int(sizes.sum()))
    drawn = allocate(sizes, scores, spend)
    assert drawn.sum() == spend
    assert (drawn >= 0).all()
    assert (drawn <= sizes).all()
    if spend >= len(sizes):
        assert (drawn >= np.minimum(sizes, max(1, int(spend / 4 / len(sizes))))).all()


def test_allocation_is_proportional_to_the_scores_and_passes_on_what_small_strata_cannot_use() -> None:
    assert allocate(np.array([100, 100, 100]), np.array([1.0, 2.0, 7.0]), 50).tolist() == [5, 10, 35]
    assert allocate(np.array([100, 100, 3]), np.array([1.0, 2.0, 7.0]), 33).tolist() == [10, 20, 3]


def test_neyman_sample_asks_where_labels_are_doubtful() -> None:
    labels = soft_labels(SKEWED)
    ours = sample_for_experts(labels, 400, seed=3)
    paper = sample_for_experts(labels, 400, scheme="paper", seed=3)
    assert len(ours) == len(paper) == 400
    doubtful = [float(((sample.p > 0.1) & (sample.p < 0.9)).mean()) for sample in (ours, paper)]
    assert doubtful[0] > 1.5 * doubtful[1]
    assert (ours.sampled_per_bin >= 5).all()


@pytest.mark.parametrize("scheme", ["neyman", "paper"])
@pytest.mark.parametrize("budget", [1, 7, 25, 400])
def test_weights_are_stratum_sizes_over_drawn_items(scheme: str, budget: int) -> None:
    labels = soft_labels(SKEWED)
    sample = sample_for_experts(labels, budget, scheme=scheme)
    assert len(sample) == budget
    assert sample.item_ids.is_unique
    positions = labels.item_ids.get_indexer(sample.item_ids)
    np.testing.assert_array_equal(labels.p[positions], sample.p)
    np.testing.assert_allclose(sample.weight, (sample.bins.n_items / np.maximum(sample.sampled_per_bin, 1))[sample.bin])
    if budget >= 25:
        assert sample.weight.sum() == pytest.approx(len(labels))


def test_paper_sample_is_twenty_by_twenty_and_fills_up_where_ties_merge_bins() -> None:
    plain = sample_for_experts(soft_labels(SKEWED), scheme="paper")
    assert plain.sampled_per_bin.tolist() == [20] * 20
    tied = sample_for_experts(soft_labels(np.repeat([0.0, 0.2, 0.9], [1500, 300, 200])), scheme="paper")
    assert tied.sampled_per_bin.tolist() == [300, 60, 40]


@pytest.mark.parametrize("scheme", ["neyman", "paper"])
def test_weighted_answers_estimate_the_whole_data_set(scheme: str) -> None:
    rng = np.random.default_rng(1)
    labels, truth = soft_labels(SKEWED), rng.random(len(SKEWED)) < SKEWED
    estimates = []
    for seed in range(60):
        sample = sample_for_experts(labels, 200, scheme=scheme, seed=seed)
        answers = truth[labels.item_ids.get_indexer(sample.item_ids)]
        estimates.append(np.average(answers, weights=sample.weight))
    assert np.mean(estimates) == pytest.approx(truth.mean(), abs=0.006)


def test_a_budget_larger_than_the_data_takes_everything_and_says_so() -> None:
    with pytest.warns(DataWarning, match="budget of 400 labels is larger than the data set: all 12 items"):
        sample = sample_for_experts(soft_labels(np.array(TIED)))
    assert sorted(sample.item_ids) == [f"x{i:05d}" for i in range(12)]
    assert (sample.weight == 1).all()


def test_sample_is_seeded_in_draw_and_in_order() -> None:
    labels = soft_labels(np.linspace(0, 1, 200))
    first, again, other = (sample_for_experts(labels, 25, seed=seed) for seed in (1, 1, 2))
    assert first.item_ids.tolist() == again.item_ids.tolist()
    assert sorted(first.item_ids) != sorted(other.item_ids)


def test_sheet_hides_soft_labels_and_order() -> None:
    sheet = sample_for_experts(soft_labels(np.linspace(0, 1, 400)), 200, seed=0).sheet()
    assert sheet.columns.tolist() == ["item", "answer"]
    assert set(sheet["answer"]) == {""}
    # Items are numbered by p, so their order on the sheet must tell nothing of it.
    order = sheet["item"].str[1:].astype(int)
    assert abs(np.corrcoef(order, np.arange(200))[0, 1]) < 0.25


def test_key_rebuilds_the_sample() -> None:
    sample = sample_for_experts(soft_labels(SKEWED), 60, seed=4)
    key = sample.key()
    assert tuple(key.columns) == KEY_COLUMNS
    assert key["bin"].is_monotonic_increasing
    rebuilt = ExpertSample.from_key(key)
    order = rebuilt.item_ids.get_indexer(sample.item_ids)
    np.testing.assert_array_equal(rebuilt.bin[order], sample.bin)
    np.testing.assert_array_equal(rebuilt.weight[order], sample.weight)
    np.testing.assert_array_equal(rebuilt.bins.p_mean, sample.bins.p_mean)
    assert rebuilt.bins.scheme == "neyman"


def broken_keys() -> list[tuple[pd.DataFrame, str]]:
    key = sample_for_experts(soft_labels(np.linspace(0, 1, 40)), 4).key()
    text = key.astype({"p": object})
    text.loc[1, "p"] = "half"
    return [
        (key.drop(columns=["weight", "bin"]), "missing: bin, weight"),
        (key.iloc[:0], "rows of one sample"),
        (key.assign(bins=[2, 2, 2, 3]), "one value in 'bins'"),
        (key.assign(item="same"), "'same' is duplicated in the key"),
        (key.assign(bin=7), r"must lie in 0 \.\. 1"),
        (text, "column 'p' of the key must be a number, got 'half' in row 2"),
        (key.assign(p=2.0), r"p of the key must lie in \[0, 1\]"),
        (key.iloc[1:], "the key has 1 rows of bin 0 and says that 2 were drawn"),
    ]


@pytest.mark.parametrize(("key", "message"), broken_keys())
def test_broken_keys_are_refused(key: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExpertSample.from_key(key)


@pytest.mark.parametrize("budget", [0, -1, 2.5])
def test_nothing_to_draw_is_refused(budget: int) -> None:
    with pytest.raises(UsageError, match="budget"):
        sample_for_experts(soft_labels(SKEWED), budget)


@pytest.mark.slow
def test_expected_error_rate_is_what_simulated_experts_give() -> None:
    """If p is right, weighted error rates of sheets spread as much as `expect` says."""
    rng = np.random.default_rng(2)
    labels = soft_labels(SKEWED)
    estimates, expected = [], []
    for seed in range(150):
        sample = sample_for_experts(labels, 100, seed=seed)
        wrong = (rng.random(100) < sample.p) != (sample.p >= 0.5)
        estimates.append(np.average(wrong, weights=sample.weight))
        expected.append(expect(sample))
    half_width = np.mean([(one.error_high - one.error_low) / 2 for one in expected])
    assert half_width == pytest.approx(1.96 * np.std(estimates), rel=0.25)
    assert np.mean([one.error_rate for one in expected]) == pytest.approx(
        np.minimum(SKEWED, 1 - SKEWED).mean(), rel=0.05
    )


def test_expectation_narrows_with_the_budget_and_says_so() -> None:
    few, many = (expect(sample_for_experts(soft_labels(SKEWED), budget)) for budget in (25, 400))
    assert few.threshold_low < many.threshold_low < 0.5 < many.threshold_high < few.threshold_high
    assert many.error_high - many.error_low < (few.error_high - few.error_low) / 2
    assert "400 labels per expert" in many.sentence()
    assert many.n_effective < 400
