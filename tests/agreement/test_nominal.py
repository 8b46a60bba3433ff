"""Alpha, kappa and their relatives: worked values, an independent library, invariances, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from softgold.agreement import (
    NominalLabels,
    agreement,
    alpha_interval,
    cohen_kappa,
    cohen_kappas,
    fleiss_kappa,
    krippendorff_alpha,
    krippendorff_wording,
    landis_koch,
    percent_agreement,
)
from softgold.agreement.labels import UnitCounts
from softgold.errors import DataWarning, InputError, UsageError
from softgold.tables.votes import VoteTable

MISSING = [
    [1, 0, 1, 1, 0, None, 0, 1],
    [1, 0, 0, 1, 0, 1, 0, None],
    [1, 1, 1, 1, 0, 1, None, None],
]


def three_raters(singles: int, doubles: int, triples: int, none: int) -> NominalLabels:
    columns = [[1, 0, 0]] * singles + [[1, 1, 0]] * doubles + [[1, 1, 1]] * triples + [[0, 0, 0]] * none
    return NominalLabels.from_matrix(np.array(columns).T.tolist())


def brute_force_alpha(rows: list[list[object]]) -> float:
    """The definition: a coincidence matrix filled pair by pair."""
    units = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
    values = sorted({value for unit in units for value in unit}, key=repr)
    coincidences = np.zeros((len(values), len(values)))
    for unit in units:
        for first, second in itertools.permutations(unit, 2):
            coincidences[values.index(first), values.index(second)] += 1 / (len(unit) - 1)
    totals = coincidences.sum(axis=0)
    n = totals.sum()
    observed = n - np.trace(coincidences)
    expected = (n**2 - (totals**2).sum()) / (n - 1)
    return float(1 - observed / expected)


def test_alpha_with_missing_labels_ignores_units_of_one_label() -> None:
    assert krippendorff_alpha(NominalLabels.from_matrix(MISSING)) == pytest.approx(0.5909090909090909, abs=1e-12)


def test_alpha_of_the_counts_implied_by_cleanpatrick_table_6() -> None:
    assert krippendorff_alpha(three_raters(75, 8, 25, 292)) == pytest.approx(0.42021276595744683, abs=1e-12)


def test_alpha_of_one_category_is_one_and_warns() -> None:
    with pytest.warns(DataWarning, match="by definition"):
        assert krippendorff_alpha(NominalLabels.from_matrix([[1, 1], [1, 1]])) == 1.0


def test_alpha_without_pairable_units_is_nan_and_warns() -> None:
    with pytest.warns(DataWarning, match="no unit has labels from two raters"):
        assert np.isnan(krippendorff_alpha(NominalLabels.from_matrix([[1, None], [None, 0]])))


def test_alpha_of_the_published_unit_test_with_a_filler_category() -> None:
    labels = NominalLabels.from_matrix([[1, 2, 3], [1, "*", 1]])
    assert krippendorff_alpha(labels) == pytest.approx(1 / 6, abs=1e-12)


label_rows = st.integers(1, 8).flatmap(
    lambda units: st.lists(
        st.lists(st.sampled_from(["a", "b", "c", None]), min_size=units, max_size=units), min_size=2, max_size=5
    )
)


@given(label_rows)
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_alpha_is_the_coincidence_definition(rows: list[list[object]]) -> None:
    pairable = [[v for v in column if v is not None] for column in zip(*rows, strict=True)]
    used = {v for unit in pairable if len(unit) > 1 for v in unit}
    value = krippendorff_alpha(NominalLabels.from_matrix(rows))
    if not used:
        assert np.isnan(value)
    elif len(used) == 1:
        assert value == 1.0
    else:
        assert value == pytest.approx(brute_force_alpha(rows), abs=1e-12)


@given(label_rows, st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_alpha_ignores_the_order_of_raters_and_units_and_the_names_of_categories(rows, random) -> None:
    names = {"a": "z", "b": 7, "c": "b", None: None}
    columns = list(zip(*rows, strict=True))
    random.shuffle(columns)
    shuffled = [[names[value] for value in row] for row in zip(*columns, strict=True)]
    random.shuffle(shuffled)
    before = krippendorff_alpha(NominalLabels.from_matrix(rows))
    after = krippendorff_alpha(NominalLabels.from_matrix(shuffled))
    np.testing.assert_allclose(before, after, atol=1e-12)


def test_many_categories_are_counted_without_a_table_of_zeros() -> None:
    rng = np.random.default_rng(3)
    units, values = np.repeat(np.arange(500), 2), rng.integers(0, 5000, 1000)
    table = UnitCounts.from_codes(units, values, 500, 5000)
    small = NominalLabels.from_long(units, np.tile([0, 1], 500), values)
    assert krippendorff_alpha(table) == pytest.approx(krippendorff_alpha(small), abs=1e-12)
    assert np.isfinite(alpha_interval(table, n_bootstrap=50).low)


def test_votes_are_labels_and_averaged_repeats_are_not() -> None:
    table = VoteTable.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1], ["x", "y"], ["a", "b"])
    expected = brute_force_alpha([[1, 0], [1, 1]])
    assert krippendorff_alpha(NominalLabels.from_votes(table)) == pytest.approx(expected, abs=1e-12)
    averaged = VoteTable.from_codes([0, 0], [0, 0], [1, 0], ["x"], ["a"], weights=[0.5, 0.5])
    with pytest.raises(InputError, match="averaged"):
        NominalLabels.from_votes(averaged)


@pytest.mark.parametrize(
    ("positives", "kappa"), [(30, 0.9483204134366925), (26, 0.8720526411990496), (27, 0.8919794761004591)]
)
def test_kappa_of_cleanpatrick_table_6(positives: int, kappa: float) -> None:
    full = [1] * 33 + [0] * 367
    fold = [1] * positives + [0] * (400 - positives)
    assert cohen_kappa(full, fold) == pytest.approx(kappa, abs=1e-12)


def test_kappa_of_one_shared_category_is_one_and_of_two_constant_raters_zero() -> None:
    assert cohen_kappa([1, 1, 1], [1, 1, 1]) == 1.0
    assert cohen_kappa([1, 1, 1], [0, 0, 0]) == 0.0
    assert np.isnan(cohen_kappa([], []))


def test_kappa_refuses_vectors_of_different_length() -> None:
    with pytest.raises(InputError, match="equal length"):
        cohen_kappa([1, 0], [1])


def test_all_pairs_match_scikit_learn_on_shared_units() -> None:
    rng = np.random.default_rng(11)
    matrix = rng.integers(0, 3, (5, 60)).astype(object)
    matrix[rng.random(matrix.shape) < 0.3] = None
    table = cohen_kappas(NominalLabels.from_matrix(matrix.tolist()))
    assert len(table) == 10
    for row in table.itertuples():
        first, second = matrix[row.rater_a], matrix[row.rater_b]
        both = np.array([a is not None and b is not None for a, b in zip(first, second, strict=True)])
        a, b = first[both].astype(int), second[both].astype(int)
        assert row.n_shared == both.sum()
        assert row.agreement == pytest.approx((a == b).mean())
        assert row.kappa == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


def test_kappa_interval_has_the_published_standard_error() -> None:
    """The worked example of Fleiss, Cohen and Everitt (1969); the error is checked by resampling."""
    joint = np.array([[106, 10, 4], [22, 28, 10], [2, 12, 6]])
    a = np.repeat(np.arange(3), joint.sum(axis=1))
    b = np.concatenate([np.repeat(np.arange(3), row) for row in joint])
    row = cohen_kappas(NominalLabels.from_matrix([a.tolist(), b.tolist()])).iloc[0]
    assert row["kappa"] == pytest.approx(0.429, abs=5e-4)
    half = (row["kappa_hi"] - row["kappa_lo"]) / 2
    n_bootstrap = np.random.default_rng(0).multinomial(200, joint.ravel() / 200, size=4000).reshape(-1, 3, 3) / 200
    by_chance = (n_bootstrap.sum(axis=1) * n_bootstrap.sum(axis=2)).sum(axis=1)
    observed = n_bootstrap.trace(axis1=1, axis2=2)
    bootstrap_error = ((observed - by_chance) / (1 - by_chance)).std()
    assert half / 1.959964 == pytest.approx(bootstrap_error, rel=0.05)


def test_pairs_with_too_few_shared_units_are_left_out() -> None:
    labels = NominalLabels.from_matrix([[1, 0, 1, None], [1, 0, 0, 1], [None, None, 1, 1]])
    assert cohen_kappas(labels, min_shared=2)[["rater_a", "rater_b"]].values.tolist() == [[0, 1], [1, 2]]
    assert cohen_kappas(labels, min_shared=9).empty


def test_kappa_refuses_a_rater_who_labelled_a_unit_twice() -> None:
    labels = NominalLabels.from_long(["x", "x", "x"], ["ann", "ann", "bob"], [1, 0, 1])
    with pytest.raises(InputError, match="'ann' labelled a unit more than once"):
        cohen_kappas(labels)


def test_percent_agreement_and_fleiss_by_hand() -> None:
    labels = NominalLabels.from_matrix([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]])
    assert percent_agreement(labels) == pytest.approx((1 + 1 / 3 + 1 + 1 / 3) / 4)
    by_chance = (5 / 12) ** 2 + (7 / 12) ** 2
    assert fleiss_kappa(labels) == pytest.approx((2 / 3 - by_chance) / (1 - by_chance))


def test_fleiss_needs_equal_numbers_of_labels() -> None:
    assert fleiss_kappa(NominalLabels.from_matrix(MISSING)) is None
    assert fleiss_kappa(NominalLabels.from_matrix([[1, 0]])) is None
    assert fleiss_kappa(NominalLabels.from_matrix([[1, 1], [1, 1]])) == 1.0


@pytest.mark.slow
def test_alpha_interval_agrees_with_a_loop_over_resampled_units() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random(150) < 0.3
    rows = np.where(rng.random((3, 150)) < 0.15, ~truth, truth).astype(int)
    interval = alpha_interval(NominalLabels.from_matrix(rows.tolist()), n_bootstrap=4000, seed=1)
    loop = []
    for _ in range(800):
        drawn = rows[:, rng.integers(0, 150, 150)]
        loop.append(krippendorff_alpha(NominalLabels.from_matrix(drawn.tolist())))
    np.testing.assert_allclose([interval.low, interval.high], np.percentile(loop, [2.5, 97.5]), atol=0.02)


def test_alpha_interval_counts_resamples_of_one_category() -> None:
    rows = [[1] + [0] * 99, [1] + [0] * 99]
    interval = alpha_interval(NominalLabels.from_matrix(rows), n_bootstrap=2000, seed=0)
    assert interval.one_category == pytest.approx(2000 * 0.99**100, rel=0.15)


def test_alpha_interval_is_seeded() -> None:
    labels = NominalLabels.from_matrix(MISSING)
    first, again, other = (alpha_interval(labels, n_bootstrap=64, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("options", [{"n_bootstrap": 1}, {"level": 1.0}, {"level": 0}, {"seed": -1}])
def test_alpha_interval_refuses_bad_settings(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        alpha_interval(NominalLabels.from_matrix(MISSING), **options)


def test_agreement_puts_everything_side_by_side() -> None:
    result = agreement(three_raters(75, 8, 25, 292), n_bootstrap=500)
    assert result.alpha == pytest.approx(0.4202, abs=1e-4)
    assert (result.landis_koch, result.reliability) == ("moderate", "not reliable")
    assert (result.n_units, result.n_pairable, result.n_raters, result.n_labels) == (400, 400, 3, 1200)
    assert result.interval.low < result.alpha < result.interval.high
    assert result.fleiss == pytest.approx(result.alpha, abs=2e-3)
    assert len(result.to_dict()["kappas"]) == 3


def test_long_labels_need_units_raters_and_equal_lengths() -> None:
    with pytest.raises(InputError, match="equal lengths"):
        NominalLabels.from_long(["x"], ["a", "b"], [1, 0])
    with pytest.raises(InputError, match="needs a rater, missing at position 1"):
        NominalLabels.from_long(["x", "y"], ["a", None], [1, 0])
    with pytest.raises(InputError, match="one entry per unit"):
        NominalLabels.from_matrix([[1, 0], [1]])


def test_missing_values_are_no_labels() -> None:
    labels = NominalLabels.from_long(["x", "x", "y"], ["a", "b", "a"], pd.Series([1, None, 0]))
    assert len(labels) == 2
    assert labels.n_units == 2


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (-0.01, "poor"),
        (0.2, "slight"),
        (0.21, "fair"),
        (0.6, "moderate"),
        (0.61, "substantial"),
        (1.0, "almost perfect"),
    ],
)
def test_landis_koch(value: float, name: str) -> None:
    assert landis_koch(value) == name


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.8, "reliable"), (0.667, "tentative conclusions only"), (0.6669, "not reliable"), (float("nan"), "undefined")],
)
def test_krippendorff_wording(value: float, words: str) -> None:
    assert krippendorff_wording(value) == words
