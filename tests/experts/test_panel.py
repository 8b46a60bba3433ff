"""Majorities, panels and their intervals: the worked example, enumeration against drawing, missing labels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from softgold.errors import InputError
from softgold.experts import ExpertPanel, ThresholdRule
from softgold.experts.bins import BinTable, assign_bins
from softgold.experts.evidence import Evidence
from softgold.experts.intervals import SOURCES, Resampling, prevalence_sensitivity, threshold_interval
from softgold.experts.panel import NO_LABEL, draw_panels
from softgold.readers import read_experts
from softgold.tables.experts import ExpertLabels
from softgold.tables.votes import VoteTable

ANSWERS = [[0, 0, 1, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 0, 0, 1, 1, 1]]
CHANGE = ThresholdRule("changepoint")
P = np.array([0.02, 0.1, 0.3, 0.45, 0.62, 0.77, 0.9, 0.99])


def worked_evidence() -> Evidence:
    index = assign_bins(P, 4)
    return Evidence(P, index, BinTable.from_items(P, index, "rank"))


def test_panel_bootstrap_of_the_worked_example() -> None:
    interval = threshold_interval("panel", worked_evidence(), ExpertPanel.from_matrix(ANSWERS), CHANGE, P)
    np.testing.assert_allclose(interval.thresholds, [0.695, 0.945], atol=1e-12)
    np.testing.assert_allclose(interval.probability, [20 / 27, 7 / 27], atol=1e-12)
    assert (interval.low, interval.high) == (pytest.approx(0.695), pytest.approx(0.945))
    assert (interval.positives_low, interval.positives_high) == (1, 3)
    assert interval.exact
    assert not interval.is_point


def test_panels_are_all_ordered_panels_counted_together() -> None:
    for experts in (1, 2, 3, 4):
        draws = draw_panels(experts)
        expected: dict[tuple[int, ...], float] = {}
        for ordered in product(range(experts), repeat=experts):
            seats = tuple(np.bincount(ordered, minlength=experts).tolist())
            expected[seats] = expected.get(seats, 0) + 1 / experts**experts
        found = dict(zip(map(tuple, draws.seats.tolist()), draws.probability, strict=True))
        assert found == pytest.approx(expected)


def test_large_panels_are_drawn_and_small_ones_enumerated() -> None:
    assert draw_panels(8).exact
    large = draw_panels(9, n_bootstrap=500, seed=1)
    assert not large.exact
    assert large.seats.shape == (500, 9)
    assert (large.seats.sum(axis=1) == 9).all()
    assert large.probability.sum() == pytest.approx(1)


def test_drawing_panels_converges_to_enumerating_them(monkeypatch: pytest.MonkeyPatch) -> None:
    panel, evidence = ExpertPanel.from_matrix(ANSWERS), worked_evidence()
    monkeypatch.setattr("softgold.experts.panel.EXACT_PANELS", 0)
    drawn = threshold_interval("panel", evidence, panel, CHANGE, P, Resampling(n_bootstrap=20_000))
    assert not drawn.exact
    np.testing.assert_allclose(drawn.probability, [20 / 27, 7 / 27], atol=0.01)


def test_majority_counts_those_who_labelled() -> None:
    panel = ExpertPanel.from_matrix([[1, 1, None, 1], [0, None, None, 1], [None, None, 0, 0]])
    assert panel.majority().tolist() == [0, 1, 0, 1]
    assert panel.majority("positive").tolist() == [1, 1, 0, 1]
    assert panel.others()[0].tolist() == [0, NO_LABEL, 0, 0]


def test_unanimous_experts_have_a_point_interval() -> None:
    panel = ExpertPanel.from_matrix([[0, 0, 0, 0, 1, 1, 1, 1]] * 3)
    interval = threshold_interval("panel", worked_evidence(), panel, CHANGE, P)
    assert interval.is_point
    assert interval.positives_low == interval.positives_high


def test_item_bootstrap_stays_within_bins() -> None:
    """With every bin pure, no resample within bins can change the rule's answer; across bins it would."""
    panel = ExpertPanel.from_matrix([[0, 0, 0, 0, 1, 1, 1, 1]])
    assert threshold_interval("items", worked_evidence(), panel, CHANGE, P, Resampling(n_bootstrap=300)).is_point


def test_item_and_joint_intervals_widen_with_noise_and_are_seeded() -> None:
    rng = np.random.default_rng(2)
    p = np.sort(rng.random(400))
    index = assign_bins(p, 20)
    evidence = Evidence(p, index, BinTable.from_items(p, index, "rank"))
    answers = (rng.random((3, 400)) < p).astype(int)
    panel = ExpertPanel.from_matrix(answers.tolist())
    first, again, other = (
        threshold_interval("items", evidence, panel, CHANGE, p, Resampling(seed=s)) for s in (1, 1, 2)
    )
    assert not first.is_point
    np.testing.assert_array_equal(first.probability, again.probability)
    assert first.probability.tolist() != other.probability.tolist()
    joint = threshold_interval("both", evidence, panel, CHANGE, p, Resampling(seed=1))
    only_panel = threshold_interval("panel", evidence, panel, CHANGE, p)
    assert joint.high - joint.low >= only_panel.high - only_panel.low
    assert joint.probability.sum() == pytest.approx(1)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rule", ["changepoint", "map"])
def test_chunks_do_not_change_the_answer(source: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    panel, evidence, how = ExpertPanel.from_matrix(ANSWERS), worked_evidence(), Resampling(n_bootstrap=50)
    whole = threshold_interval(source, evidence, panel, ThresholdRule(rule), P, how)
    monkeypatch.setattr("softgold.experts.rules._CHUNK_CELLS", 24)
    parts = threshold_interval(source, evidence, panel, ThresholdRule(rule), P, how)
    assert parts.probability.sum() == pytest.approx(1)
    if source == "panel":
        np.testing.assert_allclose(whole.probability, parts.probability)
    else:
        assert parts.n_resamples == 50


@pytest.mark.slow
def test_intervals_of_the_map_are_wide_with_few_labels_and_narrow_with_many() -> None:
    rng = np.random.default_rng(3)
    widths = []
    for n in (0, 4, 40, 1000):
        p = np.sort(rng.random(n))
        index = assign_bins(p, 10) if n else np.zeros(0, dtype=np.intp)
        table = BinTable.from_items(p, index, "rank") if n else BinTable("rank", *[np.zeros(1)] * 4)
        panel = ExpertPanel.from_matrix([(rng.random(n) < p).astype(int).tolist()])
        found = threshold_interval("items", Evidence(p, index, table), panel, ThresholdRule(), p)
        assert found.low < 0.5 < found.high
        widths.append(found.high - found.low)
    assert widths[0] > 0.8
    assert widths[1] > widths[2] > 2 * widths[3]


@pytest.mark.slow
def test_map_intervals_cover_the_true_threshold() -> None:
    """Truths drawn from the prior, labels from them: 95 % intervals over items hold about 95 % of the thresholds."""
    covered = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        intercept, slope = rng.normal(), np.exp(rng.normal(0, 0.5))
        p = rng.random(60)
        index = assign_bins(p, 6)
        labels = rng.random(60) < 1 / (1 + np.exp(-intercept) * (1 / p - 1) ** slope)
        panel = ExpertPanel.from_matrix([labels.astype(int).tolist()])
        evidence = Evidence(p, index, BinTable.from_items(p, index, "rank"))
        found = threshold_interval("items", evidence, panel, ThresholdRule(), p, Resampling(n_bootstrap=300))
        true = 1 / (1 + np.exp(intercept / slope))
        covered.append(found.low <= true <= found.high)
    assert 0.88 < np.mean(covered) <= 1


def test_no_increase_is_counted_in_the_interval() -> None:
    panel = ExpertPanel.from_matrix([[1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]])
    interval = threshold_interval("panel", worked_evidence(), panel, CHANGE, P)
    # Alone, the first expert's rate falls; an even panel is negative throughout: no increase in 3 of 4 panels.
    assert interval.no_choice == pytest.approx(3 / 4)
    np.testing.assert_allclose(interval.thresholds, [0.5, 0.945])


def test_unreached_targets_are_dropped_from_the_interval() -> None:
    panel = ExpertPanel.from_matrix(ANSWERS)
    interval = threshold_interval("panel", worked_evidence(), panel, ThresholdRule("precision", target=0.99), P)
    assert np.isnan(interval.low)
    assert interval.no_choice == pytest.approx(1)
    assert len(interval.thresholds) == 0


def test_sensitivity_counts_items_at_or_above() -> None:
    table = prevalence_sensitivity(np.array([0.5, 0.6, 0.65, 0.8]), 0.65)
    assert len(table) == 13
    assert table["threshold"].iloc[0] == pytest.approx(0.5)
    assert table["positives"].iloc[0] == 4
    assert table.loc[table["offset"].abs() < 1e-12, "positives"].tolist() == [2]
    assert table["positives"].is_monotonic_decreasing


def test_sensitivity_stays_on_the_scale() -> None:
    thresholds = prevalence_sensitivity(np.array([0.5]), 0.95)["threshold"]
    assert thresholds.max() == 1.0


def test_panel_from_long_labels_where_experts_saw_different_items() -> None:
    frame = pd.DataFrame({"item": ["x", "y", "y", "z"], "expert": ["a", "a", "b", "b"], "label": [1, 0, 1, 1]})
    panel = ExpertPanel.from_labels(read_experts(frame))
    assert panel.answers.tolist() == [[1, 0, NO_LABEL], [NO_LABEL, 1, 1]]
    assert panel.majority().tolist() == [1, 0, 1]


def test_repeated_expert_labels_are_refused() -> None:
    repeated = VoteTable.from_codes([0, 0], [0, 0], [1, 0], ["x"], ["ann"])
    with pytest.raises(InputError, match="labelled an item more than once"):
        ExpertPanel.from_labels(ExpertLabels(repeated))


@pytest.mark.parametrize("rows", [[], [[1, 0], [1]], [[2, 0]]])
def test_bad_matrices_are_refused(rows: list[list[int]]) -> None:
    with pytest.raises(InputError):
        ExpertPanel.from_matrix(rows)
