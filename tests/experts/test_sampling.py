"""Sampling items for experts: bins, weights, the sheet that hides and the key that keeps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgold.errors import DataWarning, InputError, UsageError
from softgold.experts.sampling import KEY_COLUMNS, BinTable, ExpertSample, assign_bins, sample_for_experts
from softgold.readers import read_soft_labels
from softgold.tables.soft_labels import SoftLabels

TIED = [0, 0, 0, 0.001, 0.01, 0.2, 0.3, 0.55, 0.9, 1, 1, 1]


def soft_labels(p: np.ndarray) -> SoftLabels:
    return read_soft_labels(pd.DataFrame({"item": [f"x{i:05d}" for i in range(len(p))], "p": p}))


def test_rank_bins_of_the_worked_example() -> None:
    index = assign_bins(TIED, 4, seed=None)
    bins = [np.flatnonzero(index == number).tolist() for number in range(4)]
    assert bins == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    table = BinTable.of(np.array(TIED), index, 4, "rank")
    np.testing.assert_allclose(table.p_mean, [0.0, 0.07033333333333334, 0.5833333333333334, 1.0], atol=1e-12)
    assert table.n_items.tolist() == [3, 3, 3, 3]


@given(st.floats(0, 1), st.integers(1, 50))
def test_the_mean_of_equal_soft_labels_is_that_soft_label(p: float, size: int) -> None:
    table = BinTable.of(np.full(size, p), np.zeros(size, dtype=int), 1, "rank")
    assert table.p_mean.tolist() == [p]


@given(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=6, max_size=40), st.integers(2, 6), st.integers(0, 9))
def test_rank_bins_are_equal_in_size_and_ordered_whatever_the_ties(p: list[float], bins: int, seed: int) -> None:
    index = assign_bins(p, bins, seed=seed)
    sizes = np.bincount(index, minlength=bins)
    assert sizes.max() - sizes.min() <= 1
    table = BinTable.of(np.array(p), index, bins, "rank")
    assert (table.p_high[:-1] <= table.p_low[1:]).all()


def test_equal_soft_labels_are_cut_at_random_by_seed() -> None:
    p = np.zeros(100)
    first, again, other = (assign_bins(p, 2, seed=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_width_bins_cut_the_scale() -> None:
    assert assign_bins([0, 0.049, 0.05, 0.5, 0.999, 1.0], 4, scheme="width").tolist() == [0, 0, 0, 2, 3, 3]


@pytest.mark.parametrize("bins", [1, 0, -3, True, 2.5])
def test_fewer_than_two_bins_are_refused(bins: int) -> None:
    with pytest.raises(UsageError, match="bins must be a whole number of at least 2"):
        assign_bins(TIED, bins)


@pytest.mark.parametrize("scheme", ["rank", "width"])
def test_more_bins_than_items_are_refused(scheme: str) -> None:
    with pytest.raises(InputError, match="13 bins need at least 13 items, and there are 12"):
        assign_bins(TIED, 13, scheme=scheme)


def test_unknown_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="scheme must be one of rank, width"):
        assign_bins(TIED, 2, scheme="quantile")


def test_sample_takes_the_same_number_from_each_bin_and_weights_add_up() -> None:
    labels = soft_labels(np.random.default_rng(0).beta(0.2, 0.6, 1003))
    sample = sample_for_experts(labels, bins=20, per_bin=20, seed=3)
    assert sample.sampled_per_bin.tolist() == [20] * 20
    assert sample.weight.sum() == pytest.approx(1003)
    assert sample.item_ids.is_unique
    positions = labels.item_ids.get_indexer(sample.item_ids)
    np.testing.assert_array_equal(labels.p[positions], sample.p)
    np.testing.assert_array_equal(assign_bins(labels.p, 20, seed=3)[positions], sample.bin)


def test_weighted_answers_estimate_the_whole_data_set() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(0.3, 0.9, 5000)
    truth = rng.random(5000) < p
    labels = soft_labels(p)
    estimates = []
    for seed in range(40):
        with pytest.warns(DataWarning, match="fewer items"):
            sample = sample_for_experts(labels, bins=10, per_bin=350, scheme="width", seed=seed)
        answers = truth[labels.item_ids.get_indexer(sample.item_ids)]
        estimates.append(np.average(answers, weights=sample.weight))
    assert np.mean(estimates) == pytest.approx(truth.mean(), abs=0.003)


def test_short_bins_give_all_and_say_so() -> None:
    labels = soft_labels(np.array([0.05, 0.06, 0.07, 0.95]))
    with pytest.warns(DataWarning, match=r"fewer items than the 2 asked for.*bin 1 has 0, bin 2 has 0, bin 3 has 1"):
        sample = sample_for_experts(labels, bins=4, per_bin=2, scheme="width")
    assert sample.sampled_per_bin.tolist() == [2, 0, 0, 1]
    assert sample.weight.tolist().count(1.5) == 2


def test_sample_is_seeded_in_draw_and_in_order() -> None:
    labels = soft_labels(np.linspace(0, 1, 200))
    first, again, other = (sample_for_experts(labels, bins=5, per_bin=5, seed=seed) for seed in (1, 1, 2))
    assert first.item_ids.tolist() == again.item_ids.tolist()
    assert sorted(first.item_ids) != sorted(other.item_ids)


def test_sheet_hides_soft_labels_and_order() -> None:
    sample = sample_for_experts(soft_labels(np.linspace(0, 1, 400)), bins=20, per_bin=10, seed=0)
    sheet = sample.sheet()
    assert sheet.columns.tolist() == ["item", "label"]
    assert set(sheet["label"]) == {""}
    # Items are numbered by p, so their order on the sheet must tell nothing of it.
    order = sheet["item"].str[1:].astype(int)
    assert abs(np.corrcoef(order, np.arange(200))[0, 1]) < 0.25


def test_key_rebuilds_the_sample() -> None:
    labels = soft_labels(np.concatenate([np.linspace(0, 0.2, 50), np.linspace(0.9, 1, 50)]))
    with pytest.warns(DataWarning, match="fewer items"):
        sample = sample_for_experts(labels, bins=10, per_bin=6, scheme="width", seed=4)
    key = sample.key()
    assert tuple(key.columns) == KEY_COLUMNS
    assert key["bin"].is_monotonic_increasing
    rebuilt = ExpertSample.from_key(key)
    order = rebuilt.item_ids.get_indexer(sample.item_ids)
    np.testing.assert_array_equal(rebuilt.bin[order], sample.bin)
    np.testing.assert_allclose(rebuilt.weight[order], sample.weight)
    np.testing.assert_array_equal(rebuilt.sampled_per_bin, sample.sampled_per_bin)
    occupied = sample.sampled_per_bin > 0
    np.testing.assert_allclose(rebuilt.bins.p_mean[occupied], sample.bins.p_mean[occupied])
    assert rebuilt.bins.scheme == "width"


def broken_keys() -> list[tuple[pd.DataFrame, str]]:
    key = sample_for_experts(soft_labels(np.linspace(0, 1, 40)), bins=2, per_bin=2).key()
    text = key.astype({"p": object})
    text.loc[1, "p"] = "half"
    return [
        (key.drop(columns=["weight", "bin"]), "missing: bin, weight"),
        (key.iloc[:0], "rows of one sample"),
        (key.assign(bins=[2, 2, 2, 3]), "one value in 'bins'"),
        (key.assign(item="same"), "'same' is in the key twice"),
        (key.assign(bin=7), r"must lie in 0 \.\. 1"),
        (text, "column 'p' of the key must be a number, got 'half' in row 2"),
        (key.assign(p=2.0), r"p of the key must lie in \[0, 1\]"),
    ]


@pytest.mark.parametrize(("key", "message"), broken_keys())
def test_broken_keys_are_refused(key: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExpertSample.from_key(key)


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(UsageError, match="per_bin"):
        sample_for_experts(soft_labels(np.linspace(0, 1, 40)), bins=2, per_bin=0)
