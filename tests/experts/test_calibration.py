"""`calibrate` as a whole: what it says, what it warns of, what it refuses."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.experts import Calibration, calibrate
from softgold.experts.sampling import ExpertSample, sample_for_experts
from softgold.output import json_text
from softgold.readers import read_experts, read_scores, read_soft_labels
from softgold.tables.experts import ExpertLabels
from softgold.tables.soft_labels import SoftLabels

ITEMS = [f"x{i:04d}" for i in range(2000)]


def crowd(p: np.ndarray, **columns: object) -> SoftLabels:
    return read_soft_labels(pd.DataFrame({"item": ITEMS[: len(p)], "p": p, **columns}))


def panel_of(items: list[str], *answers: np.ndarray) -> ExpertLabels:
    names = np.repeat([f"e{number}" for number in range(len(answers))], len(items))
    frame = {"item": items * len(answers), "expert": names, "label": np.concatenate(answers).astype(int)}
    return read_experts(pd.DataFrame(frame))


def quietly(*arguments: object, **settings: object) -> Calibration:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return calibrate(*arguments, **{"replicates": 50, **settings})


P = np.linspace(0, 1, 2000)
SHARP = P > 0.72


def test_sharp_experts_move_the_threshold_to_their_step() -> None:
    result = calibrate(crowd(P), panel_of(ITEMS, SHARP, SHARP, SHARP), bins=20, replicates=50)
    assert result.threshold == pytest.approx(0.725, abs=1e-3)
    assert result.bin == 14
    assert result.bins["positives"].tolist() == [0] * 14 + [60] + [100] * 5
    assert result.interval("panel").is_point
    assert result.after.agreement > 0.99 > result.before.agreement
    assert result.warnings == ()
    np.testing.assert_array_equal(result.labels.label, (result.threshold <= P).astype(int))


def test_figures_of_the_labels_by_hand() -> None:
    result = quietly(crowd(P), panel_of(ITEMS, SHARP, SHARP), bins=20)
    label = result.threshold <= P
    assert result.after.positives == label.sum()
    assert result.after.prevalence == label.mean()
    assert result.after.expected_wrong == pytest.approx(np.where(label, 1 - P, P).mean())
    assert result.before.expected_wrong == pytest.approx(np.minimum(P, 1 - P).mean())
    mapped = result.labels.p_calibrated
    assert result.after.expected_wrong_calibrated == pytest.approx(np.where(label, 1 - mapped, mapped).mean())
    assert result.after.agreement == pytest.approx((label == SHARP).mean())


def test_agreement_is_weighted_back_to_the_data_set() -> None:
    """Nine tenths of the items have p = 0 and half of the sample; experts agree with the crowd there alone."""
    labels = crowd(np.concatenate([np.zeros(1800), np.full(200, 0.9)]))
    sample = sample_for_experts(labels, bins=2, per_bin=50, scheme="width")
    chosen = sample.item_ids.tolist()
    nobody = np.zeros(len(chosen))
    result = quietly(labels, panel_of(chosen, nobody, nobody), sample=sample)
    assert result.before.agreement == pytest.approx(0.5)
    assert result.before.agreement_weighted == pytest.approx(0.9)


def test_key_and_bins_over_all_items_agree_when_the_sample_was_ours() -> None:
    rng = np.random.default_rng(0)
    labels = crowd(rng.beta(0.3, 0.9, 2000))
    sample = sample_for_experts(labels, bins=20, per_bin=20, seed=7)
    answers = rng.random((3, 400)) < sample.p
    experts = panel_of(sample.item_ids.tolist(), *answers)
    with_key = quietly(labels, experts, sample=ExpertSample.from_key(sample.key()), seed=7)
    without = quietly(labels, experts, bins=20, seed=7)
    assert with_key.threshold == without.threshold
    pd.testing.assert_frame_equal(with_key.bins, without.bins, check_exact=False)


def test_of_sampled_takes_the_mean_of_the_labelled_items() -> None:
    few = ITEMS[::7]
    everything = quietly(crowd(P), panel_of(few, SHARP[::7], SHARP[::7]), bins=20)
    sampled = quietly(crowd(P), panel_of(few, SHARP[::7], SHARP[::7]), bins=20, of="sampled")
    assert sampled.bin == everything.bin
    assert everything.threshold == everything.bins["p_mean"][everything.bin]
    assert sampled.threshold == sampled.bins["p_mean_sampled"][sampled.bin]
    assert sampled.threshold != everything.threshold


def test_even_ties_are_negative_unless_asked() -> None:
    yes, no = np.ones(2000), np.zeros(2000)
    negative = quietly(crowd(P), panel_of(ITEMS, yes, SHARP, no, SHARP), bins=10)
    positive = quietly(crowd(P), panel_of(ITEMS, yes, no), bins=10, tie="positive")
    assert negative.bins["positives"].sum() == SHARP.sum()
    assert positive.bins["positives"].sum() == 2000


def test_no_increase_falls_back_to_one_half_and_warns() -> None:
    falling = P < 0.4
    with pytest.warns(DataWarning) as caught:
        result = calibrate(crowd(P), panel_of(ITEMS, falling, falling), bins=10, replicates=50)
    assert result.threshold == 0.5
    assert result.bin is None
    messages = " | ".join(str(warning.message) for warning in caught)
    assert "does not increase" in messages
    assert "threshold is 0.5" in messages
    assert [str(warning.message) for warning in caught] == list(result.warnings)


def test_labels_that_agree_less_than_at_one_half_are_warned_of() -> None:
    """A rate of 5 % that becomes 40 %: the change is plain, and yet most items after it are negative."""
    rng = np.random.default_rng(0)
    answers = rng.random(2000) < np.where(P < 0.2, 0.02, 0.3)
    result = quietly(crowd(P), panel_of(ITEMS, answers, answers), bins=10)
    assert result.after.agreement_weighted < result.before.agreement_weighted
    assert any("agree less with the experts" in sentence for sentence in result.warnings)


def test_an_edge_among_equal_soft_labels_is_warned_of() -> None:
    """Every item has the same soft label, so that a change between bins is chance, whatever the experts say."""
    answers = np.random.default_rng(0).random(2000) < 0.3
    result = quietly(crowd(np.full(2000, 0.5)), panel_of(ITEMS, answers, answers), bins=8)
    assert result.bin is not None
    assert any("items of the same soft label, 0.5, are in the chosen bin" in sentence for sentence in result.warnings)


def test_rate_that_falls_is_named() -> None:
    bumpy = SHARP | ((P > 0.2) & (P < 0.3))
    with pytest.warns(DataWarning, match=r"not monotone: it falls most from 1.00 in bin 2 to 0.00 in bin 3, more than"):
        calibrate(crowd(P), panel_of(ITEMS, bumpy, bumpy), bins=10, replicates=50)


def test_one_expert_is_warned_of() -> None:
    with pytest.warns(DataWarning, match="fewer than two experts"):
        result = calibrate(crowd(P), panel_of(ITEMS, SHARP), bins=10, replicates=50)
    assert result.agreement is None
    assert result.interval("panel").is_point
    assert len(result.detectors.leave_one_out) == 1
    assert np.isnan(result.experts["kappa_with_others"].iloc[0])
    assert np.isnan(result.experts["threshold_without"].iloc[0])


def test_experts_who_disagree_are_warned_of() -> None:
    rng = np.random.default_rng(1)
    answers = rng.random((3, 2000)) < P
    result = quietly(crowd(P), panel_of(ITEMS, *answers), bins=10)
    assert result.agreement.alpha < 0.667
    sentence = f"the experts disagree: alpha {result.agreement.alpha:.2f} is below 0.667"
    assert any(warning.startswith(sentence) for warning in result.warnings)
    assert len(result.agreement.kappas) == 3


def test_bins_without_labels_are_warned_of_and_passed_over() -> None:
    some = [item for item, p in zip(ITEMS, P, strict=True) if p < 0.2 or p > 0.6]
    step = P[[int(item[1:]) for item in some]] > 0.72
    with pytest.warns(DataWarning, match="4 of 10 bins have no expert label"):
        result = calibrate(crowd(P), panel_of(some, step, step), bins=10, replicates=50)
    assert result.bin == 7


def test_too_few_labels_leave_p_calibrated_empty_and_say_why() -> None:
    rare = np.arange(2000) >= 1995
    with pytest.warns(DataWarning, match="p_calibrated is left empty: too few expert labels .*: 5 positive"):
        result = calibrate(crowd(P), panel_of(ITEMS, rare, rare), bins=10, replicates=50)
    assert np.isnan(result.labels.p_calibrated).all()
    assert result.to_dict()["soft_map"] == {"refused": result.soft_map.refused}


def test_map_that_does_not_help_is_warned_of() -> None:
    """Perfectly calibrated soft labels: a map can only add noise."""
    rng = np.random.default_rng(2)
    p = rng.random(60)
    answers = rng.random(60) < p
    result = quietly(crowd(p), panel_of(ITEMS[:60], answers, answers), bins=5, soft_map="isotonic")
    assert not result.soft_map.fit.improves
    assert any("does no better than p" in sentence for sentence in result.warnings)


def test_experts_table_by_hand() -> None:
    first, second, third = SHARP.copy(), SHARP.copy(), SHARP.copy()
    first[1600:] = False
    result = quietly(crowd(P), panel_of(ITEMS, first, second, third), bins=10)
    table = result.experts.set_index("expert")
    assert table["n_positive"].tolist() == [first.sum(), second.sum(), third.sum()]
    assert table.loc["e0", "agreement_with_others"] == pytest.approx((first == SHARP).mean())
    assert table.loc["e0", "kappa_without"] == 1.0
    assert table.loc["e1", "kappa_without"] < 1.0
    assert table.loc["e0", "threshold_without"] == pytest.approx(result.threshold)


def test_experts_may_label_different_items() -> None:
    frame = pd.DataFrame(
        {
            "item": ITEMS[:1200] + ITEMS[800:],
            "expert": ["ann"] * 1200 + ["bob"] * 1200,
            "label": np.concatenate([SHARP[:1200], SHARP[800:]]).astype(int),
        }
    )
    result = quietly(crowd(P), read_experts(frame), bins=20)
    assert result.threshold == pytest.approx(0.725, abs=1e-3)
    assert result.experts["n_labels"].tolist() == [1200, 1200]
    assert result.agreement.n_pairable == 400


def test_target_precision_is_reached_on_the_experts() -> None:
    rng = np.random.default_rng(4)
    answers = rng.random(2000) < P**2
    result = quietly(crowd(P), panel_of(ITEMS, answers, answers), rule="precision", target=0.8)
    above = result.threshold <= P
    assert answers[above].mean() > 0.8
    with pytest.raises(InputError, match=r"no threshold reaches a precision of 0.999: the best lower end"):
        calibrate(crowd(P), panel_of(ITEMS, answers, answers), rule="precision", target=0.999, replicates=50)


def test_detectors_are_judged_beside_the_soft_label() -> None:
    rng = np.random.default_rng(5)
    labels = crowd(P, n_votes=rng.integers(1, 20, 2000), n_positive=0)
    scores = read_scores(pd.DataFrame({"item": ITEMS, "good": P + rng.normal(0, 0.1, 2000), "bad": rng.random(2000)}))
    few = ITEMS[::5]
    result = quietly(labels, panel_of(few, SHARP[::5], SHARP[::5]), scores=scores, bins=10, replicates=200)
    folds = result.detectors.leave_one_out
    assert folds["detector"].tolist() == ["soft label", "good", "bad"] * 3
    assert folds["threshold"].notna().all()
    bootstrap = result.detectors.bootstrap.set_index(["detector", "metric"])
    assert bootstrap.loc[("good", "auroc"), "low"] > bootstrap.loc[("bad", "auroc"), "high"]
    votes = result.detectors.min_votes
    assert set(votes["against"]) == {"experts", "labels"}
    assert votes[votes["against"] == "labels"]["kept"].iloc[0] == 2000
    assert votes[votes["against"] == "experts"]["kept"].iloc[0] == 400
    np.testing.assert_allclose(votes["coverage"], [(labels.n_votes >= k).mean() for k in votes["min_votes"]])


def test_detectors_without_scores_of_labelled_items_are_refused() -> None:
    scores = read_scores(pd.DataFrame({"item": ITEMS[:10], "net": np.arange(10.0)}))
    with pytest.raises(InputError, match="the scores lack 1990 expert-labelled items: 'x0010'"):
        calibrate(crowd(P), panel_of(ITEMS, SHARP, SHARP), scores=scores, replicates=50)


def test_unknown_numbers_of_votes_leave_the_table_of_votes_empty() -> None:
    assert quietly(crowd(P), panel_of(ITEMS, SHARP), bins=10).detectors.min_votes.empty


def test_unknown_items_are_listed_or_ignored() -> None:
    experts = panel_of([*ITEMS, "who", "what"], *[np.append(SHARP, [True, True])] * 2)
    with pytest.raises(InputError, match=r"2 items that are not in the soft labels: 'who', 'what'; .*--ignore-unknown"):
        calibrate(crowd(P), experts, replicates=50)
    with pytest.warns(DataWarning, match="2 items that experts labelled are unknown and were left out"):
        result = calibrate(crowd(P), experts, ignore_unknown=True, replicates=50)
    assert result.bins["labelled"].sum() == 2000


def test_empty_intersection_is_refused_even_when_unknown_items_are_ignored() -> None:
    experts = panel_of(["who", "what"], np.array([0, 1]))
    for ignore in (False, True):
        with pytest.raises(InputError, match="none of the 2 items that experts labelled is in the soft labels"):
            calibrate(crowd(P), experts, ignore_unknown=ignore, replicates=50)


def test_expert_without_labels_is_refused() -> None:
    frame = pd.DataFrame({"item": ["x0001", "x0002"], "expert": ["ann", "bob"], "label": ["1", ""]})
    with pytest.warns(DataWarning):
        experts = read_experts(frame)
    with pytest.raises(InputError, match="expert 'bob' has no labels"):
        calibrate(crowd(P), experts, replicates=50)


def test_expert_left_without_known_items_is_refused() -> None:
    frame = pd.DataFrame({"item": ["x0001", "who"], "expert": ["ann", "bob"], "label": [1, 1]})
    with pytest.raises(InputError, match="expert 'bob' labelled no item that is in the soft labels"):
        calibrate(crowd(P), read_experts(frame), ignore_unknown=True, replicates=50)


def test_key_of_another_run_is_refused() -> None:
    sample = sample_for_experts(crowd(P), bins=10, per_bin=5)
    experts = panel_of(sample.item_ids.tolist(), sample.p > 0.5)
    with pytest.raises(InputError, match=r"not made from these soft labels: item .* has p"):
        calibrate(crowd(np.sqrt(P)), experts, sample=sample, replicates=50)
    with pytest.raises(InputError, match="not made from these soft labels: they lack"):
        calibrate(crowd(P[:100]), experts, sample=sample, replicates=50)
    strangers = panel_of(ITEMS, SHARP)
    with pytest.raises(InputError, match="not in the key of the sample"):
        calibrate(crowd(P), strangers, sample=sample, replicates=50)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"bins": 1}, UsageError),
        ({"bins": 2001}, InputError),
        ({"rule": "guess"}, UsageError),
        ({"level": 1.5}, UsageError),
        ({"replicates": 0}, UsageError),
        ({"seed": -1}, UsageError),
        ({"tie": "random"}, UsageError),
        ({"soft_map": "spline"}, UsageError),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        calibrate(crowd(P), panel_of(ITEMS, SHARP, SHARP), **settings)


def test_result_is_plain_json_and_seeded() -> None:
    rng = np.random.default_rng(6)
    labels = crowd(rng.beta(0.4, 0.8, 1000))
    answers = rng.random((3, 1000)) < labels.p
    experts = panel_of(ITEMS[:1000], *answers)
    texts = [json_text(quietly(labels, experts, seed=seed).to_dict()) for seed in (1, 1, 2)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    document = json.loads(texts[0])
    assert {"threshold", "bins", "before", "after", "intervals", "soft_map", "warnings"} <= set(document)
    assert set(document["intervals"]) == {"panel", "items", "both"}


def test_constant_experts_have_alpha_one_by_definition_and_one_warning_of_it() -> None:
    nobody = np.zeros(2000)
    with pytest.warns(DataWarning) as caught:
        result = calibrate(crowd(P), panel_of(ITEMS, nobody, nobody), bins=10, replicates=50)
    messages = [str(warning.message) for warning in caught]
    assert sum("by definition" in message for message in messages) == 1
    assert sorted(messages) == sorted(result.warnings)
