"""Detectors judged against other panels, other items, and items with more votes: the worked examples."""

from __future__ import annotations

import numpy as np
import pytest

from softgold.errors import InputError, UsageError
from softgold.experts import ExpertPanel, hierarchical_bootstrap, leave_one_expert_out, min_vote_cutoffs
from softgold.experts.resampling import PanelAndItems
from softgold.metrics.bootstrap.engine import Settings, resample

ANSWERS = [[0, 0, 1, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 0, 0, 1, 1, 1]]
SCORES = [0.1, 0.5, 0.2, 0.3, 0.6, 0.4, 0.9, 0.8]


def test_leave_one_expert_out_of_the_worked_example() -> None:
    table = leave_one_expert_out(ExpertPanel.from_matrix(ANSWERS, experts=["0", "1", "2"]), {"net": SCORES})
    assert table["held_out"].isna().tolist() == [True, False, False, False]
    assert table["held_out"].tolist()[1:] == ["0", "1", "2"]
    assert table["n_positive"].tolist() == [4, 3, 3, 4]
    np.testing.assert_allclose(table["kappa"], [1.0, 0.75, 0.75, 1.0], atol=1e-12)
    np.testing.assert_allclose(table["auroc"], [0.9375, 0.8666666666666667, 0.8666666666666667, 0.9375], atol=1e-12)
    np.testing.assert_allclose(
        table["average_precision"], [0.95, 0.8666666666666667, 0.8666666666666667, 0.95], atol=1e-12
    )


def test_cleanpatrick_table_6_follows_from_its_counts() -> None:
    """25 unanimous positives and 8 with two votes: 33 in all, and 30, 26, 27 without one of the experts."""
    two_votes = [(1, 2)] * 5 + [(0, 2)] * 1 + [(0, 1)] * 2
    columns = [[1, 1, 1]] * 25
    columns += [[int(expert in pair) for expert in range(3)] for pair in two_votes]
    columns += [[0, 0, 0]] * (400 - len(columns))
    table = leave_one_expert_out(ExpertPanel.from_matrix(np.array(columns).T.tolist()), {"none": np.zeros(400)})
    assert table["n_positive"].tolist() == [33, 30, 26, 27]
    expected = [1.0, 0.9483204134366925, 0.8720526411990496, 0.8919794761004591]
    np.testing.assert_allclose(table["kappa"], expected, atol=1e-12)


def test_single_expert_cannot_be_left_out() -> None:
    table = leave_one_expert_out(ExpertPanel.from_matrix([ANSWERS[0]]), {"net": SCORES})
    assert len(table) == 1


SMALL = [[0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 1, 0]]
SMALL_SCORES = [0.1, 0.4, 0.9, 0.6]


@pytest.mark.parametrize(("replicates", "error"), [(1000, 1e-12), (300, 0.06)], ids=["enumerated", "drawn"])
def test_hierarchical_bootstrap_of_the_worked_example(replicates: int, error: float) -> None:
    """27 panels x 256 draws of items are 350 compositions: enumerated when asked for at least so many replicates."""
    table = hierarchical_bootstrap(ExpertPanel.from_matrix(SMALL), {"net": SMALL_SCORES}, n_bootstrap=replicates)
    auroc, precision = table.itertuples(index=False)
    assert (auroc.metric, precision.metric) == ("auroc", "average_precision")
    assert auroc.mean == pytest.approx(0.7954070981210856, abs=error)
    assert auroc.defined == pytest.approx(0.8315972222222222, abs=error)
    assert precision.mean == pytest.approx(0.8954022988505748, abs=error)
    assert precision.defined == pytest.approx(0.8810763888888888, abs=error)


@pytest.mark.slow
def test_drawing_converges_to_enumerating() -> None:
    plan = PanelAndItems(ExpertPanel.from_matrix(SMALL), "negative")
    settings = Settings(60_000, 0.95, 0, method="sample", workers=1)
    drawn = resample(plan, [["soft_auroc"]], np.array(SMALL_SCORES), settings)[0]["soft_auroc"]
    assert not drawn.exact
    assert float(drawn.mean) == pytest.approx(0.7954070981210856, abs=0.004)
    assert float(drawn.defined) == pytest.approx(0.8315972222222222, abs=0.005)


def test_hierarchical_bootstrap_judges_all_detectors_on_the_same_replicates() -> None:
    panel = ExpertPanel.from_matrix(ANSWERS)
    monotone = np.exp(np.array(SCORES))
    table = hierarchical_bootstrap(panel, {"net": SCORES, "same": monotone}, n_bootstrap=200, seed=5)
    first, second = table[table["detector"] == "net"], table[table["detector"] == "same"]
    np.testing.assert_allclose(first[["mean", "low", "high"]], second[["mean", "low", "high"]])
    assert (first["low"] <= first["mean"]).all()
    assert (first["value"] <= first["high"]).all()


def test_hierarchical_bootstrap_copes_with_missing_labels() -> None:
    panel = ExpertPanel.from_matrix([[0, None, 1, 0, 1], [None, 0, 1, 1, None]])
    table = hierarchical_bootstrap(panel, {"net": [0.1, 0.2, 0.9, 0.6, 0.8]}, n_bootstrap=500)
    assert table["mean"].between(0.5, 1).all()
    assert table["defined"].between(0, 1, inclusive="right").all()


def test_min_vote_cutoffs_of_the_worked_example() -> None:
    table = min_vote_cutoffs(
        [1, 3, 5, 5, 7, 10, 12, 15], [0, 1, 0, 1, 0, 1, 1, 0], {"net": [0.2, 0.7, 0.6, 0.5, 0.4, 0.9, 0.3, 0.1]}
    )
    assert table["min_votes"].tolist() == [1, 3, 5, 7, 10, 15]
    assert table["kept"].tolist() == [8, 7, 6, 4, 3, 1]
    assert table["fraction"].tolist() == [1.0, 0.875, 0.75, 0.5, 0.375, 0.125]
    auroc = [0.8125, 0.75, 0.6666666666666666, 0.75, 1.0, np.nan]
    precision = [0.8541666666666666, 0.8541666666666666, 0.7555555555555555, 0.8333333333333334, 1.0, np.nan]
    np.testing.assert_allclose(table["auroc"], auroc, atol=1e-12)
    np.testing.assert_allclose(table["average_precision"], precision, atol=1e-12)


def test_min_vote_cutoffs_of_one_class_are_undefined_for_both_metrics() -> None:
    table = min_vote_cutoffs([5, 5], [1, 1], {"net": [0.2, 0.7]}, cutoffs=[1])
    assert np.isnan(table["auroc"].iloc[0])
    assert np.isnan(table["average_precision"].iloc[0])


def test_scores_must_fit() -> None:
    panel = ExpertPanel.from_matrix(ANSWERS)
    with pytest.raises(InputError, match="scores of 'net' must have 8 rows"):
        leave_one_expert_out(panel, {"net": [0.1]})
    with pytest.raises(InputError, match="scores of 'net' must be finite"):
        hierarchical_bootstrap(panel, {"net": [np.nan] * 8})
    with pytest.raises(UsageError, match="minimum number of votes"):
        min_vote_cutoffs([1], [1], {"net": [0.1]}, cutoffs=[0])


def test_groups_are_drawn_whole_by_hand() -> None:
    """Two groups of two items: (2, 0) and (0, 2) have AUROC 1, (1, 1) has 3/4; probabilities 1/4, 1/4, 1/2."""
    panel = ExpertPanel.from_matrix([[1, 0, 0, 1]])
    scores = {"net": [0.9, 0.8, 0.2, 0.6]}
    table = hierarchical_bootstrap(panel, scores, groups=np.array([0, 0, 1, 1]))
    row = table[table["metric"] == "auroc"].iloc[0]
    assert (row["value"], row["mean"], row["defined"]) == pytest.approx((0.75, 0.875, 1.0))
