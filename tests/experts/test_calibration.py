"""`calibrate` as a whole: what it says, what it warns of, what it refuses."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import DataWarning, InputError, UsageError
from softgold.experts import Calibration, ExpertSample, calibrate, fit_soft_map, sample_for_experts
from softgold.experts.bins import BinTable
from softgold.experts.evidence import Design, Evidence
from softgold.experts.intervals import draw_items
from softgold.models.baselines import Mean
from softgold.output import json_text
from softgold.readers import read_experts, read_scores, read_soft_labels
from softgold.runs.results import RESULTS, plain_result, read_result, write_result
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
        return calibrate(*arguments, **{"n_bootstrap": 50, **settings})


def kinds(result: Calibration) -> list[str]:
    return [notice.kind for notice in result.notices]


P = np.linspace(0, 1, 2000)
SHARP = P > 0.72
FEW = slice(None, None, 5)  # enough labels where their number does not matter: the time grows with them


def test_sharp_experts_move_the_threshold_to_their_step() -> None:
    result = calibrate(crowd(P), panel_of(ITEMS, SHARP, SHARP, SHARP), n_bootstrap=50)
    assert result.threshold == pytest.approx(0.72, abs=4e-3)
    assert result.bin == 14
    assert result.bins["positives"].tolist() == [0] * 14 + [60] + [100] * 5
    assert result.interval("panel").is_point
    assert result.after.agreement > 0.99 > result.before.agreement
    assert result.notices == ()
    assert not result.comparison.is_worse
    np.testing.assert_array_equal(result.labels.label, (result.threshold <= P).astype(int))
    np.testing.assert_array_equal(result.labels.label, (result.labels.p_calibrated >= 0.5).astype(int))


@pytest.mark.parametrize("rule", ["bins", "paper", "changepoint", "largest_jump"])
def test_rules_that_choose_a_bin_take_its_mean(rule: str) -> None:
    result = quietly(crowd(P), panel_of(ITEMS[FEW], SHARP[FEW], SHARP[FEW]), rule=rule)
    assert result.bin == 14
    assert result.threshold == result.bins["p_mean"][14]


@pytest.mark.slow
def test_labels_are_where_p_calibrated_reaches_the_cut() -> None:
    rng = np.random.default_rng(0)
    answers = rng.random(2000) < P**2
    for soft_map in ("logit", "isotonic"):
        half, costly = (
            quietly(crowd(P), panel_of(ITEMS[FEW], answers[FEW]), cost=cost, soft_map=soft_map)
            for cost in (None, (1, 4))
        )
        for result, cut in ((half, 0.5), (costly, 0.2)):
            assert result.rule.cut == cut
            np.testing.assert_array_equal(result.labels.label, (result.labels.p_calibrated >= cut - 1e-12).astype(int))
        assert costly.threshold < half.threshold


def test_figures_of_the_labels_by_hand() -> None:
    result = quietly(crowd(P), panel_of(ITEMS, SHARP, SHARP), rule="changepoint")
    label = result.threshold <= P
    assert result.after.positives == label.sum()
    assert result.after.prevalence == label.mean()
    assert result.after.expected_wrong == pytest.approx(np.where(label, 1 - P, P).mean())
    assert result.before.expected_wrong == pytest.approx(np.minimum(P, 1 - P).mean())
    mapped = result.labels.p_calibrated
    assert result.after.expected_wrong_calibrated == pytest.approx(np.where(label, 1 - mapped, mapped).mean())
    # The change point does not hang on any fold, so that the cross-validated labels are the released ones.
    assert result.after.agreement == pytest.approx((label == SHARP).mean())
    assert result.before.agreement == pytest.approx(((P >= 0.5) == SHARP).mean())
    assert result.error_rates.accuracy.value == pytest.approx(result.after.agreement)
    assert result.error_rates.sensitivity.value == pytest.approx(label[SHARP].mean())
    assert result.error_rates.specificity.value == pytest.approx((~label[~SHARP]).mean())


def test_agreement_is_weighted_back_to_the_data_set() -> None:
    """Nine tenths of the items have p = 0.1; experts agree with the crowd there alone."""
    labels = crowd(np.concatenate([np.full(1800, 0.1), np.full(200, 0.9)]))
    sample = sample_for_experts(labels, 100)
    chosen = sample.item_ids.tolist()
    result = quietly(labels, panel_of(chosen, np.zeros(100), np.zeros(100)), sample=sample)
    assert (sample.p > 0.5).mean() < 0.15
    assert result.before.agreement == pytest.approx(0.9)


@pytest.mark.slow
def test_a_threshold_that_makes_labels_worse_is_said_first() -> None:
    """A rate of 2 % that becomes 30 %: the change is plain, and yet most items after it are negative."""
    rng = np.random.default_rng(0)
    answers = rng.random(2000) < np.where(P < 0.2, 0.02, 0.3)
    with pytest.warns(DataWarning) as caught:
        result = calibrate(crowd(P), panel_of(ITEMS, answers, answers), rule="changepoint", n_bootstrap=50)
    assert result.comparison.is_worse
    assert result.comparison.z < -1.96
    assert kinds(result)[0] == "worse"
    shown = f"{result.after.agreement:.1%} against {result.before.agreement:.1%}"
    assert shown in result.warnings[0]
    assert [str(warning.message) for warning in caught] == list(result.warnings)
    assert not quietly(crowd(P), panel_of(ITEMS, answers, answers)).comparison.is_worse
    table = result.rules.set_index("rule")
    assert table.loc["changepoint", "agreement"] == pytest.approx(result.after.agreement)
    assert table.loc["map", "agreement"] > table.loc["changepoint", "agreement"]
    assert (table["agreement_at_half"] == result.before.agreement).all()


@pytest.mark.slow
def test_agreement_is_cross_validated() -> None:
    """Labels by coin: the best cut in the sample looks better than chance, and a held-out one does not."""
    gains = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        answers = rng.random(60) < 0.5
        result = quietly(crowd(P[::34][:59]), panel_of(ITEMS[:59], answers[:59]), rule="f1", seed=seed, n_bootstrap=2)
        gains.append(result.after.agreement)
    assert np.mean(gains) < 0.53


def test_no_labels_leave_soft_labels_as_they_are() -> None:
    frame = pd.DataFrame({"item": ITEMS[:5], "expert": ["ann", "ann", "bob", "bob", "bob"], "answer": "unsure"})
    result = quietly(crowd(P), frame)
    np.testing.assert_array_equal(result.labels.p_calibrated, P)
    assert result.threshold == 0.5
    assert result.experts["n_unsure"].tolist() == [2, 3]
    assert result.experts["n_labels"].tolist() == [0, 0]
    assert np.isnan(result.after.agreement)
    assert kinds(result) == ["labels", "unsure"]
    assert result.interval("both").high - result.interval("both").low > 0.7
    assert "no expert labels" in result.error_rates.sentence


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_few_labels_move_the_threshold_a_little(n: int) -> None:
    chosen = np.linspace(300, 1700, n).astype(int)
    result = quietly(crowd(P), panel_of([ITEMS[at] for at in chosen], SHARP[chosen]))
    assert 0.3 < result.threshold < 0.85
    assert (result.labels.p_calibrated_lo < result.labels.p_calibrated).all()
    assert (result.labels.p_calibrated < result.labels.p_calibrated_hi).all()


@pytest.mark.slow
def test_unsure_counts_as_no_label_and_is_reported() -> None:
    said = np.where(SHARP, "yes", "no").astype(object)
    said[::4] = "unsure"
    frame = pd.DataFrame({"item": ITEMS * 2, "expert": ["ann"] * 2000 + ["bob"] * 2000})
    both = quietly(crowd(P), frame.assign(answer=np.concatenate([said, np.where(SHARP, "yes", "no")])))
    assert both.experts["n_unsure"].tolist() == [500, 0]
    assert both.experts["n_labels"].tolist() == [1500, 2000]
    assert any("500 answers are unsure and count as no label: ann 500" in text for text in both.warnings)
    alone = quietly(crowd(P), frame[:2000].assign(answer=said))
    assert alone.n_labelled == 1500
    assert alone.threshold == pytest.approx(0.72, abs=4e-3)


def test_soft_labels_and_experts_may_be_frames_and_soft_labels_a_baselines() -> None:
    study = softgold.simulate(n_items=400, n_annotators=30, seed=3)
    truth = pd.Series(study.truth.label, index=study.truth.item_ids)
    labels = Mean().aggregate(study.votes)
    answers = truth.reindex(labels.item_ids[:150]).to_numpy()
    experts = pd.DataFrame({"item": labels.item_ids[:150], "answer": np.where(answers, "yes", "no")})
    result = quietly(labels.to_frame(), experts)
    assert result.threshold == quietly(labels, experts).threshold
    assert result.n_labelled == 150
    assert isinstance(softgold.calibrate, type(calibrate))


@pytest.mark.slow
def test_results_are_stored_and_read_back_as_the_same_values(tmp_path: object) -> None:
    rng = np.random.default_rng(0)
    answers = rng.random((3, 300)) < P[:300] * 2
    for settings in ({}, {"soft_map": "isotonic", "rule": "bins"}, {"rule": "f1"}):
        result = quietly(crowd(P), panel_of(ITEMS[:300], *answers), **settings)
        write_result(result, tmp_path, force=True)
        back = read_result(tmp_path, RESULTS["calibration"])
        assert plain_result(back) == plain_result(result)
        assert back.notices == result.notices
        assert back.rule == result.rule
        assert back.settings == result.settings
        pd.testing.assert_frame_equal(back.labels.to_frame(), result.labels.to_frame())
        np.testing.assert_array_equal(back.soft_map.apply(P), result.soft_map.apply(P))


@pytest.mark.slow
def test_ties_are_never_split_by_a_bin_or_a_threshold() -> None:
    rng = np.random.default_rng(1)
    p = rng.choice([0.05, 0.3, 0.31, 0.8], 1000)
    answers = rng.random(1000) < p
    for rule in ("map", "bins", "paper", "changepoint", "f1"):
        result = quietly(crowd(p), panel_of(ITEMS[:1000], answers), rule=rule)
        assert result.bins["p_low"].tolist() == result.bins["p_high"].tolist() == [0.05, 0.3, 0.31, 0.8]
        per_value = pd.Series(result.labels.label).groupby(p).nunique()
        assert (per_value == 1).all()


def test_key_and_bins_over_all_items_agree_when_the_sample_was_the_papers() -> None:
    rng = np.random.default_rng(0)
    labels = crowd(rng.beta(0.3, 0.9, 2000))
    sample = sample_for_experts(labels, scheme="paper", seed=7)
    answers = rng.random((3, 400)) < sample.p
    experts = panel_of(sample.item_ids.tolist(), *answers)
    with_key = quietly(labels, experts, sample=ExpertSample.from_key(sample.key()), rule="paper")
    without = quietly(labels, experts, rule="paper")
    assert with_key.threshold == without.threshold
    pd.testing.assert_frame_equal(with_key.bins, without.bins, check_exact=False)


@pytest.mark.slow
def test_error_rates_cover_the_truth() -> None:
    """Sheets of 80 labels from 2,000 items with a known error rate: 95 % intervals hold it about as often."""
    rng = np.random.default_rng(4)
    p = rng.beta(0.4, 0.8, 2000)
    truth = rng.random(2000) < p
    labels = crowd(p)
    covered, at_half = [], float(((p >= 0.5) == truth).mean())
    for seed in range(40):
        sample = sample_for_experts(labels, 80, seed=seed)
        answers = truth[labels.item_ids.get_indexer(sample.item_ids)]
        result = quietly(labels, panel_of(sample.item_ids.tolist(), answers), sample=sample, n_bootstrap=200)
        true = float((result.labels.label == truth).mean())
        covered.append(result.error_rates.accuracy.low <= true <= result.error_rates.accuracy.high)
        assert abs(true - at_half) < 0.06
    assert np.mean(covered) >= 0.9


def test_of_sampled_takes_the_mean_of_the_labelled_items() -> None:
    few = ITEMS[::7]
    everything, sampled = (
        quietly(crowd(P), panel_of(few, SHARP[::7], SHARP[::7]), rule="changepoint", bins=20, of=of)
        for of in ("all", "sampled")
    )
    assert sampled.bin == everything.bin
    assert everything.threshold == everything.bins["p_mean"][everything.bin]
    assert sampled.threshold == sampled.bins["p_mean_sampled"][sampled.bin]
    assert sampled.threshold != everything.threshold


@pytest.mark.slow
def test_even_ties_are_negative_unless_asked() -> None:
    yes, no, sharp = np.ones(400), np.zeros(400), SHARP[FEW]
    negative = quietly(crowd(P), panel_of(ITEMS[FEW], yes, sharp, no, sharp), bins=10)
    positive = quietly(crowd(P), panel_of(ITEMS[FEW], yes, no), bins=10, tie="positive")
    assert negative.bins["positives"].sum() == sharp.sum()
    assert positive.bins["positives"].sum() == 400


def test_no_increase_falls_back_to_one_half_and_warns() -> None:
    falling = P[FEW] < 0.4
    with pytest.warns(DataWarning) as caught:
        result = calibrate(crowd(P), panel_of(ITEMS[FEW], falling, falling), rule="changepoint", n_bootstrap=50)
    assert result.threshold == 0.5
    assert result.bin is None
    messages = " | ".join(str(warning.message) for warning in caught)
    assert "does not increase" in messages
    assert "threshold is 0.5" in messages
    assert [str(warning.message) for warning in caught] == list(result.warnings)


def test_rate_that_falls_is_named() -> None:
    bumpy = SHARP | ((P > 0.2) & (P < 0.3))
    with pytest.warns(
        DataWarning, match=r"rate of positives falls from 1.00 in bin 2 to 0.00 in bin 3, more than noise"
    ):
        calibrate(crowd(P), panel_of(ITEMS, bumpy, bumpy), bins=10, n_bootstrap=50)


def test_one_expert_is_warned_of() -> None:
    with pytest.warns(DataWarning, match="one expert: how far experts agree is unknown"):
        result = calibrate(crowd(P), panel_of(ITEMS[FEW], SHARP[FEW]), bins=10, n_bootstrap=50)
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
        result = calibrate(crowd(P), panel_of(some, step, step), bins=10, n_bootstrap=50)
    assert result.bin == 7


@pytest.mark.slow
def test_isotonic_with_too_few_labels_is_said() -> None:
    rare = np.arange(2000) >= 1995
    result = quietly(crowd(P), panel_of(ITEMS, rare, rare), soft_map="isotonic")
    assert result.soft_map.name == "logit"
    assert any("needs 10 positive and 10 negative labels, and there are 5 and 1995" in text for text in result.warnings)


@pytest.mark.slow
def test_a_map_that_is_worse_than_p_beyond_noise_is_warned_of() -> None:
    """Perfectly calibrated soft labels: the map adds a little noise, which is rarely a reason for a warning."""
    worse = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = rng.random(400)
        losses = fit_soft_map(p, rng.random(400) < p, seed=seed).log_loss
        assert abs(losses.logit - losses.p) < 0.03
        assert losses.is_worse("logit") == (losses.logit_z > 1.96)
        worse.append(losses.is_worse("logit"))
    assert np.mean(worse) < 0.3
    rng = np.random.default_rng(2)
    p = rng.random(400)
    answers = rng.random(400) < p
    result = quietly(crowd(p), panel_of(ITEMS[:400], answers, answers))
    assert ("map" in kinds(result)) == result.soft_map.log_loss.is_worse("logit")


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


@pytest.mark.slow
def test_experts_may_label_different_items() -> None:
    frame = pd.DataFrame(
        {
            "item": ITEMS[:1200] + ITEMS[800:],
            "expert": ["ann"] * 1200 + ["bob"] * 1200,
            "label": np.concatenate([SHARP[:1200], SHARP[800:]]).astype(int),
        }
    )
    result = quietly(crowd(P), read_experts(frame), bins=20)
    assert result.threshold == pytest.approx(0.72, abs=4e-3)
    assert result.experts["n_labels"].tolist() == [1200, 1200]
    assert result.agreement.n_pairable == 400


@pytest.mark.slow
def test_target_precision_is_reached_on_the_experts() -> None:
    rng = np.random.default_rng(4)
    answers = rng.random(2000) < P**2
    result = quietly(crowd(P), panel_of(ITEMS, answers, answers), rule="precision", target=0.8)
    above = result.threshold <= P
    assert answers[above].mean() > 0.8
    with pytest.raises(InputError, match=r"no threshold reaches a precision of 0.999: the best lower end"):
        calibrate(crowd(P), panel_of(ITEMS, answers, answers), rule="precision", target=0.999, n_bootstrap=50)


def test_detectors_are_judged_beside_the_soft_label() -> None:
    rng = np.random.default_rng(5)
    labels = crowd(P, n_votes=rng.integers(1, 20, 2000), n_positive=0)
    scores = read_scores(pd.DataFrame({"item": ITEMS, "good": P + rng.normal(0, 0.1, 2000), "bad": rng.random(2000)}))
    few = ITEMS[::5]
    result = quietly(labels, panel_of(few, SHARP[::5], SHARP[::5]), scores=scores, bins=10, n_bootstrap=200)
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
    with pytest.raises(InputError, match="the scores lack 398 expert-labelled items: 'x0010'"):
        calibrate(crowd(P), panel_of(ITEMS[FEW], SHARP[FEW], SHARP[FEW]), scores=scores, n_bootstrap=50)


def test_unknown_numbers_of_votes_leave_the_table_of_votes_empty() -> None:
    assert quietly(crowd(P), panel_of(ITEMS[FEW], SHARP[FEW]), bins=10).detectors.min_votes.empty


def test_unknown_items_are_listed_or_ignored() -> None:
    experts = panel_of([*ITEMS[FEW], "who", "what"], *[np.append(SHARP[FEW], [True, True])] * 2)
    with pytest.raises(
        InputError, match=r"answered 2 items that are not in the soft labels: 'who', 'what'; .*--ignore-unknown"
    ):
        calibrate(crowd(P), experts, n_bootstrap=50)
    with pytest.warns(DataWarning, match="2 items that experts answered are unknown and were left out"):
        result = calibrate(crowd(P), experts, ignore_unknown=True, n_bootstrap=50)
    assert result.bins["labelled"].sum() == 400


def test_empty_intersection_is_refused_even_when_unknown_items_are_ignored() -> None:
    experts = panel_of(["who", "what"], np.array([0, 1]))
    for ignore in (False, True):
        with pytest.raises(InputError, match="none of the 2 items that experts answered is in the soft labels"):
            calibrate(crowd(P), experts, ignore_unknown=ignore, n_bootstrap=50)


def test_experts_without_labels_are_listed_and_do_not_count() -> None:
    frame = pd.DataFrame({"item": ["x0001", "x0002", "who"], "expert": ["ann", "bob", "cem"], "label": ["1", "", "0"]})
    result = quietly(crowd(P), frame, ignore_unknown=True)
    assert result.experts["expert"].tolist() == ["ann", "bob", "cem"]
    assert result.experts["n_labels"].tolist() == [1, 0, 0]
    assert result.agreement is None


def test_key_of_another_run_is_refused() -> None:
    sample = sample_for_experts(crowd(P), 50)
    experts = panel_of(sample.item_ids.tolist(), sample.p > 0.5)
    with pytest.raises(InputError, match=r"not made from these soft labels: item .* has p"):
        calibrate(crowd(np.sqrt(P)), experts, sample=sample, n_bootstrap=50)
    with pytest.raises(InputError, match="not made from these soft labels: they lack"):
        calibrate(crowd(P[:100]), experts, sample=sample, n_bootstrap=50)
    strangers = panel_of(ITEMS, SHARP)
    with pytest.raises(InputError, match="not in the key of the sample"):
        calibrate(crowd(P), strangers, sample=sample, n_bootstrap=50)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"bins": 1}, UsageError),
        ({"rule": "paper", "bins": 10}, UsageError),
        ({"rule": "f1", "cost": (1, 2)}, UsageError),
        ({"cost": (0, 2)}, UsageError),
        ({"rule": "guess"}, UsageError),
        ({"level": 1.5}, UsageError),
        ({"n_bootstrap": 0}, UsageError),
        ({"seed": -1}, UsageError),
        ({"tie": "random"}, UsageError),
        ({"soft_map": "spline"}, UsageError),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        calibrate(crowd(P), panel_of(ITEMS, SHARP, SHARP), **settings)


@pytest.mark.slow
def test_result_is_plain_json_and_seeded() -> None:
    rng = np.random.default_rng(6)
    labels = crowd(rng.beta(0.4, 0.8, 1000))
    answers = rng.random((3, 1000)) < labels.p
    experts = panel_of(ITEMS[:1000], *answers)
    texts = [json_text(plain_result(quietly(labels, experts, seed=seed))) for seed in (1, 1, 2)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    document = json.loads(texts[0])
    assert {"threshold", "bins", "before", "after", "comparison", "error_rates", "intervals", "notices"} <= set(
        document
    )
    assert [interval["source"] for interval in document["intervals"]] == ["panel", "items", "both"]


def test_constant_experts_have_alpha_one_by_definition_and_one_warning_of_it() -> None:
    nobody = np.zeros(2000)
    with pytest.warns(DataWarning) as caught:
        result = calibrate(crowd(P), panel_of(ITEMS, nobody, nobody), bins=10, n_bootstrap=50)
    messages = [str(warning.message) for warning in caught]
    assert sum("by definition" in message for message in messages) == 1
    assert sorted(messages) == sorted(result.warnings)


def test_a_bin_without_labels_may_hold_the_threshold_of_the_bins_rule() -> None:
    result = quietly(crowd(np.array([0.0, 0.2])), panel_of(ITEMS[:1], np.array([1])), rule="bins", of="sampled")
    assert np.isfinite(result.threshold)


# --- groups and strata ----------------------------------------------------------------------------------------------


def test_weights_follow_the_strata_and_not_the_bins() -> None:
    bins = BinTable("rank", np.array([5, 5]), np.array([0.2, 0.8]), np.array([0.0, 0.5]), np.array([0.4, 1.0]))
    strata = Design(np.array([0, 0, 1]), np.array([6, 4]))
    evidence = Evidence(np.array([0.1, 0.7, 0.9]), np.array([0, 1, 1]), bins, strata)
    assert evidence.design_weight(np.array([[1, 0, 1]])).tolist() == [[3, 3, 4]]
    assert replace(evidence, strata=None).design_weight(np.array([[1, 0, 1]])).tolist() == [[5, 2.5, 2.5]]


def test_items_of_a_group_are_drawn_together() -> None:
    bins = BinTable("rank", np.array([4]), np.array([0.5]), np.array([0.0]), np.array([1.0]))
    evidence = Evidence(np.full(4, 0.5), np.zeros(4, dtype=np.intp), bins, groups=np.array([0, 1, 0, 1]))
    copies = draw_items(evidence, 4000, np.random.default_rng(0))
    assert (copies[:, 0] == copies[:, 2]).all()
    assert (copies[:, 1] == copies[:, 3]).all()
    assert (copies[:, 0] + copies[:, 1] == 2).all()
    assert (copies[:, 0] == 1).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_groups_widen_the_interval_and_are_said() -> None:
    """Items in tens of the same p and answer are as good as one item: intervals must be wider."""
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(40), 10)
    items = [f"i{at}" for at in range(400)]
    soft = pd.DataFrame({"item": items, "p": p})
    answers = pd.DataFrame({"item": items, "answer": np.repeat(rng.random(40) < p[::10], 10).astype(int)})
    groups = pd.Series(np.repeat(np.arange(40), 10), index=items, name="patient")
    alone, whole = (calibrate(soft, answers, groups=given, n_bootstrap=400) for given in (None, groups))
    widths = [result.interval("items").high - result.interval("items").low for result in (alone, whole)]
    assert widths[1] > 2 * widths[0]
    assert (whole.settings.group_name, whole.settings.n_groups, alone.settings.n_groups) == ("patient", 40, 0)
    # Ten equal items count as one: the standard error is that of 40 items.
    assert alone.comparison.z == pytest.approx(np.sqrt(10) * whole.comparison.z)
    assert "intervals over 40 groups (patient) and experts" in whole.error_rates.sentence
    assert plain_result(whole)["settings"]["group_name"] == "patient"
    with pytest.raises(InputError, match="1 of 400 labelled items have no group"):
        calibrate(soft, answers, groups=groups.iloc[1:], n_bootstrap=10)
    with pytest.raises(InputError, match="belong to one group"):
        calibrate(soft, answers, groups=groups * 0, n_bootstrap=10)
