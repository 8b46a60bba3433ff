"""The bootstrap: exact limits, fast path against plain metrics, reproducibility, bounded memory, bad input."""

import functools
import itertools
import math
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softgold.errors import InputError, UsageError
from softgold.metrics import (
    METRIC_NAMES,
    annotation_bootstrap,
    auc_pr,
    average_calibration_error,
    balanced_brier,
    bootstrap,
    bootstrap_metrics,
    brier_score,
    expected_calibration_error,
    log_loss,
    precision_at_k,
    recall_at_k,
    soft_auroc,
    soft_average_precision,
)
from softgold.metrics.bootstrap import engine, plans, rankings
from softgold.metrics.bootstrap.plans import ItemPlan, PanelPlan, VotePlan

VOTES = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]])
MODELS = np.array([[0.9, 0.8, 0.2, 0.7], [0.2, 0.9, 0.8, 0.3]]).T
EXPERTS = [[0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 1, 0]]
EXPERT_SCORES = [0.1, 0.4, 0.9, 0.6]

FUNCTIONS = {
    "auc_pr": auc_pr,
    "average_calibration_error": average_calibration_error,
    "balanced_brier": balanced_brier,
    "brier_score": brier_score,
    "expected_calibration_error": expected_calibration_error,
    "log_loss": log_loss,
    "precision_at_k": functools.partial(precision_at_k, k=7),
    "recall_at_k": functools.partial(recall_at_k, k=7),
    "soft_auroc": soft_auroc,
    "soft_average_precision": soft_average_precision,
}


def make_data(n=60, models=3, ties=True, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 9, n) / 8
    scores = np.clip(p[:, None] + rng.normal(0, 0.4, (n, models)), 0.01, 0.99)
    return p, np.round(scores, 1) if ties else scores


# --- exact limits ---------------------------------------------------------------------------------------------------


def test_worked_annotation_bootstrap():
    result = annotation_bootstrap(VOTES.sum(axis=1), [3, 3, 3, 3], MODELS, metrics=["soft_auroc"])
    soft, hard = result.soft["soft_auroc"], result.hard["soft_auroc"]
    assert soft.exact
    assert_allclose(soft.mean, [0.5467158423956391, 0.27352383427669325], rtol=0, atol=1e-12)
    assert_allclose(hard.mean, [0.5965174927373506, 0.18364255288812847], rtol=0, atol=1e-12)
    versus = soft.compare(0, 1), hard.compare(0, 1)
    assert_allclose([c.p_better for c in versus], [0.7912579415501906, 0.7271560712185211], rtol=0, atol=1e-12)
    assert_allclose([c.p_tie for c in versus], [0.07644218551461245, 0.1497086028979308], rtol=0, atol=1e-12)
    assert_allclose([c.defined for c in versus], [0.9995935578925976, 0.9502108418432149], rtol=0, atol=1e-12)
    assert_allclose(soft.defined, 0.9995935578925976, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_sampled_annotation_bootstrap_tends_to_the_exact_one():
    drawn = annotation_bootstrap(
        VOTES.sum(axis=1), [3, 3, 3, 3], MODELS, metrics=["soft_auroc"], n_bootstrap=50_000, method="sample", seed=3
    )
    for result, means, defined in (
        (drawn.soft["soft_auroc"], [0.5467158423956391, 0.27352383427669325], 0.9995935578925976),
        (drawn.hard["soft_auroc"], [0.5965174927373506, 0.18364255288812847], 0.9502108418432149),
    ):
        assert not result.exact
        error = np.nanstd(result.replicates, axis=0) / math.sqrt(50_000)
        assert (np.abs(result.mean - means) < 4 * error).all()
        assert abs(result.defined[0] - defined) < 4 * math.sqrt(defined * (1 - defined) / 50_000)


@pytest.mark.parametrize(
    ("metric", "mean", "defined"),
    [
        ("soft_auroc", 0.7954070981210856, 0.8315972222222222),
        ("soft_average_precision", 0.8954022988505748, 0.8810763888888888),
    ],
)
def test_worked_hierarchical_bootstrap(metric, mean, defined):
    exact = bootstrap(metric, EXPERTS, EXPERT_SCORES, unit="hierarchical")
    assert exact.exact
    assert len(exact.replicates) == 10 * 35
    assert_allclose(exact.mean, mean, rtol=0, atol=1e-12)
    assert_allclose(exact.defined, defined, rtol=0, atol=1e-12)
    drawn = bootstrap(metric, EXPERTS, EXPERT_SCORES, unit="hierarchical", n_bootstrap=40_000, method="sample")
    assert abs(drawn.mean - mean) < 4 * np.nanstd(drawn.replicates) / math.sqrt(40_000)
    assert abs(drawn.defined - defined) < 4 * math.sqrt(defined * (1 - defined) / 40_000)


def test_item_bootstrap_of_few_items_is_every_resample():
    p, scores = np.array([0.1, 0.8, 0.6, 0.3]), np.array([0.2, 0.7, 0.4, 0.5])
    result = bootstrap("soft_auroc", p, scores)
    resampled = [soft_auroc(p[list(rows)], scores[list(rows)]) for rows in itertools.product(range(4), repeat=4)]
    assert result.exact
    assert_allclose(result.mean, np.mean(resampled), rtol=1e-12)
    low, high = np.quantile(resampled, [0.025, 0.975], method="inverted_cdf")
    assert_allclose([result.low, result.high], [low, high], rtol=1e-12)


def test_expert_bootstrap_of_three_has_ten_panels():
    result = bootstrap("soft_auroc", EXPERTS, EXPERT_SCORES, unit="experts")
    labelings = [np.sum([EXPERTS[e] for e in panel], axis=0) > 1.5 for panel in itertools.product(range(3), repeat=3)]
    values = [soft_auroc(labels, EXPERT_SCORES) for labels in labelings]
    assert len(result.replicates) == 10
    assert_allclose(result.mean, np.nanmean(values), rtol=1e-12)
    assert_allclose(result.estimate, soft_auroc([0, 0, 1, 0], EXPERT_SCORES))


def test_even_panels_that_split_are_negative():
    majority, _ = PanelPlan(np.array([[1.0, 1.0], [0.0, 1.0]]), resample_items=False).observed().rows(0)
    assert majority.tolist() == [[0, 1]]


# --- the fast path is the plain metric ------------------------------------------------------------------------------


def test_names_are_the_functions():
    assert sorted(FUNCTIONS) == list(METRIC_NAMES)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("unit", ["items", "annotations", "experts", "hierarchical"])
@pytest.mark.parametrize("name", METRIC_NAMES)
def test_every_replicate_is_the_plain_metric_of_its_resample(name, unit, ties):
    p, scores = make_data(ties=ties)
    n_votes = np.full(len(p), 8) if unit == "annotations" else None
    labels = (np.random.default_rng(1).random((5, len(p))) < p).astype(float)
    plan = {
        "items": ItemPlan.of_items(p),
        "annotations": VotePlan(np.rint(8 * p).astype(int), np.full(len(p), 8)),
        "experts": PanelPlan(labels, resample_items=False),
        "hierarchical": PanelPlan(labels, resample_items=True),
    }[unit]
    given = labels if unit in {"experts", "hierarchical"} else p
    result = bootstrap(name, given, scores, unit=unit, n_votes=n_votes, k=7, n_bootstrap=40, seed=5, method="sample")
    draw = plan.draw(np.random.default_rng(np.random.SeedSequence(5, spawn_key=(0,))), 40)
    targets, weight = draw.rows(0)
    expected = [
        [FUNCTIONS[name](targets[b], scores[:, m], sample_weight=weight[b]) for m in range(3)] for b in range(40)
    ]
    assert_allclose(result.replicates, expected, rtol=1e-10, atol=1e-12)
    observed = plan.observed().rows(0)[0][0]
    assert_allclose(result.estimate, [FUNCTIONS[name](observed, scores[:, m]) for m in range(3)], rtol=1e-10)
    assert_array_equal(result.n_undefined, np.isnan(expected).sum(axis=0))


def test_any_function_can_be_resampled():
    p, scores = make_data()
    pairs = functools.partial(soft_auroc, diagonal="half")
    plain = bootstrap(pairs, p, scores[:, 0], n_bootstrap=70)
    named = bootstrap("soft_auroc", p, scores[:, 0], n_bootstrap=70)
    assert_allclose(plain.replicates, named.replicates, rtol=1e-12)
    assert_allclose([plain.low, plain.high], [named.low, named.high])
    assert plain.replicates.shape == (70,)
    assert plain.estimate.shape == ()


def test_metrics_of_one_name_are_refused():
    with pytest.raises(UsageError, match="metrics must have different names"):
        bootstrap_metrics([soft_auroc, "soft_auroc"], [0, 1], [0.1, 0.2])


def test_interval_is_the_percentiles_and_leaves_out_what_is_undefined():
    p, scores = np.array([1, 0, 0, 0, 0, 0, 0, 0.0]), np.arange(8.0)
    result = bootstrap("soft_auroc", p, scores, n_bootstrap=500, method="sample")
    undefined = np.isnan(result.replicates)
    assert result.n_undefined == undefined.sum() > 100
    low, high = np.quantile(result.replicates[~undefined], [0.025, 0.975])
    assert_allclose([result.low, result.high], [low, high])
    nothing = bootstrap("soft_auroc", [1, 1], [0.1, 0.2])
    assert math.isnan(nothing.low)
    assert math.isnan(nothing.mean)


def test_infinite_losses_stay_infinite():
    result = bootstrap("log_loss", [1, 1, 0, 1], np.array([[0.0, 0.5, 0.5, 0.5], [0.0, 0.5, 0.5, 0.4]]).T)
    assert result.high.tolist() == [math.inf, math.inf]
    assert (result.low < math.inf).all()
    assert result.mean.tolist() == [math.inf, math.inf]
    versus = result.compare(0, 1)
    assert math.isnan(versus.difference)
    assert_allclose(versus.defined, (3 / 4) ** 4)


@pytest.mark.parametrize("most", [8, 200])
def test_resampled_votes_are_binomial(most):
    """Both ways of drawing: by table for few votes, by NumPy for many."""
    n_votes = np.array([most, most, 3, 1, most])
    n_positive = np.array([most // 4, most, 2, 0, most // 2])
    assert (most > plans.MAX_TABULATED_VOTES) == (most == 200)
    shares, _ = VotePlan(n_positive, n_votes).draw(np.random.default_rng(0), 40_000).rows(0)
    p = n_positive / n_votes
    assert (np.abs(shares.mean(axis=0) - p) <= 4.5 * np.sqrt(p * (1 - p) / n_votes / 40_000)).all()
    assert_allclose(shares.var(axis=0), p * (1 - p) / n_votes, rtol=0.05)
    assert np.isin(np.round(shares[:, 2] * 3, 9), [0, 1, 2, 3]).all()


def test_hard_rule_decides_an_even_split():
    for rule, label in ((">", 0.0), (">=", 1.0)):
        for n_votes, n_positive, expected in ((8, 4, label), (8, 5, 1.0), (8, 3, 0.0), (7, 4, 1.0), (7, 3, 0.0)):
            labels, _ = VotePlan(np.array([n_positive]), np.array([n_votes]), (rule,)).observed().rows(0)
            assert labels.item() == expected


# --- reproducible, however the work is cut --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["items", "annotations", "hierarchical"])
def test_replicates_do_not_depend_on_pieces_processes_or_their_number(unit, monkeypatch):
    p, scores = make_data()
    given = (np.random.default_rng(1).random((5, len(p))) < p).astype(float) if unit == "hierarchical" else p
    options = {
        "unit": unit,
        "n_votes": np.full(len(p), 8) if unit == "annotations" else None,
        "k": 5,
        "seed": 11,
        "method": "sample",
    }
    names = ["soft_auroc", "soft_average_precision", "precision_at_k", "brier_score"]
    whole = bootstrap_metrics(names, given, scores, n_bootstrap=200, **options)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "WORTH_PROCESSES", 0.0)
        processes = bootstrap_metrics(names, given, scores, n_bootstrap=200, workers=2, **options)
    fewer = bootstrap_metrics(names, given, scores, n_bootstrap=130, **options)
    monkeypatch.setattr(engine, "MAX_ELEMENTS", 5 * len(p))
    pieces = bootstrap_metrics(names, given, scores, n_bootstrap=200, **options)
    alone = bootstrap_metrics(names, given, scores[:, 1], n_bootstrap=200, **options)
    other = bootstrap_metrics(names, given, scores, n_bootstrap=200, **{**options, "seed": 12})
    for name in names:
        assert_array_equal(whole[name].replicates, processes[name].replicates)
        assert_array_equal(whole[name].replicates[:130], fewer[name].replicates)
        # Matrix products of another shape may round differently.
        assert_allclose(pieces[name].replicates, whole[name].replicates, rtol=1e-13)
        assert_array_equal(pieces[name].replicates[:, 1], alone[name].replicates)
        assert not np.array_equal(whole[name].replicates, other[name].replicates)


def test_memory_does_not_grow_with_the_number_of_replicates():
    p, scores = np.random.default_rng(0).random((2, 20_000))
    peaks = []
    for n_bootstrap in (100, 800):
        tracemalloc.start()
        bootstrap_metrics(["soft_auroc", "soft_average_precision"], p, scores, n_bootstrap=n_bootstrap)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 50e6
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.slow
def test_coverage_of_the_interval():
    """The 90 % interval of the Brier score covers the truth about nine times in ten."""
    rng = np.random.default_rng(8)
    covered = 0
    for trial in range(200):
        q = rng.random(150)
        y = (rng.random(150) < q).astype(float)
        result = bootstrap("brier_score", y, q, n_bootstrap=200, level=0.9, seed=trial)
        covered += result.low <= 1 / 6 <= result.high
    assert 0.82 <= covered / 200 <= 0.97


def test_models_are_compared_on_the_same_resamples():
    p, scores = make_data(n=200, ties=False)
    result = bootstrap("soft_auroc", p, np.column_stack([scores[:, 0], scores[:, 0] ** 3, -scores[:, 0]]))
    same, opposite = result.compare(0, 1), result.compare(0, 2)
    assert (same.difference, same.low, same.high, same.p_better, same.p_tie) == (0, 0, 0, 0, 1)
    assert opposite.p_better == 1
    assert opposite.low < opposite.difference < opposite.high
    assert_allclose(opposite.difference, 2 * result.estimate[0] - 1)
    with pytest.raises(UsageError, match="bootstrap them together"):
        bootstrap("soft_auroc", p, scores[:, 0]).compare(0, 1)


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "auroc"}, "metric must be one of auc_pr"),
        ({"metric": "precision_at_k"}, "precision_at_k needs k"),
        ({"unit": "votes"}, "unit must be one of items"),
        ({"unit": "annotations"}, "n_votes must be given"),
        ({"n_votes": [1, 1, 1]}, "n_votes must be given with unit='annotations', and only then"),
        ({"n_bootstrap": 0}, "n_bootstrap must be a whole number"),
        ({"level": 1.0}, "level must lie in"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"workers": 0}, "workers must be a whole number"),
        ({"method": "exact"}, "method must be one of"),
    ],
)
def test_bad_options_are_named(change, message):
    arguments = {"metric": "soft_auroc", "p": [0, 0.5, 1], "scores": [1, 2, 3], **change}
    with pytest.raises(UsageError, match=message):
        bootstrap(arguments.pop("metric"), arguments.pop("p"), arguments.pop("scores"), **arguments)


def test_what_cannot_be_enumerated_is_refused():
    p, scores = make_data()
    with pytest.raises(UsageError, match="too many distinct resamples"):
        bootstrap("soft_auroc", p, scores, method="enumerate")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 2], [1, 2]), {}, r"p must lie in \[0, 1\]"),
        (([0, 1], [1, math.nan]), {}, "scores must be finite"),
        (([0, 1], [1, 2, 3]), {}, "scores must have 2 rows"),
        (([0, 1], np.zeros((2, 1, 1))), {}, "scores must have 1 or 2 dimensions"),
        (([], []), {}, "at least one item"),
        (([0, 0.3], [1, 2]), {"unit": "annotations", "n_votes": [2, 2]}, "p must be the share of positive votes"),
        (([0, 1], [1, 2]), {"unit": "annotations", "n_votes": [2, 0]}, "at least one vote, got 0 at position 1"),
        (([[0, 0.5]], [1, 2]), {"unit": "experts"}, "labels of experts must be 0 or 1"),
        (([0, 1], [1, 2]), {"unit": "hierarchical"}, "p must have 2 dimension"),
    ],
)
def test_bad_data_is_named(arguments, options, message):
    with pytest.raises(InputError, match=message):
        bootstrap("soft_auroc", *arguments, **options)


def test_bad_votes_are_named():
    with pytest.raises(InputError, match="n_positive must lie between 0 and n_votes"):
        annotation_bootstrap([3], [2], [[0.5]])
    with pytest.raises(InputError, match="n_positive must be whole numbers of votes"):
        annotation_bootstrap([0.5], [2], [[0.5]])
    with pytest.raises(InputError, match="scores must have 2 dimension"):
        annotation_bootstrap([1], [2], [0.5])
    with pytest.raises(UsageError, match="hard_rule must be one of >, >="):
        annotation_bootstrap([1], [2], [[0.5]], hard_rule="=")
    with pytest.raises(InputError, match=r"scores must lie in \[0, 1\]"):
        bootstrap("brier_score", [0, 1], [1, 2])


# --- long rankings, and groups of items -----------------------------------------------------------------------------

LONG = 3 * rankings.SEGMENTS * rankings.MOST_STEPS + 17


@pytest.mark.parametrize("digits", [None, 4, 3, 0])
def test_rankings_longer_than_a_slab_with_few_and_many_ties(digits):
    rng = np.random.default_rng(2)
    p = rng.integers(0, 4, LONG) / 3
    scores = rng.normal(p, 1.0) if digits is None else np.round(rng.normal(p, 1.0) / 5, digits)
    names = ["soft_auroc", "soft_average_precision", "precision_at_900", "recall_at_900"]
    results = bootstrap_metrics(names, p, scores, n_bootstrap=5, seed=9)
    _, weights = ItemPlan.of_items(p).draw(np.random.default_rng(np.random.SeedSequence(9, spawn_key=(0,))), 5).rows(0)
    for name in names:
        function = {
            "precision_at_900": functools.partial(precision_at_k, k=900),
            "recall_at_900": functools.partial(recall_at_k, k=900),
        }.get(name) or FUNCTIONS[name]
        expected = [function(p, scores, sample_weight=row) for row in weights]
        assert_allclose(results[name].replicates, expected, rtol=1e-11)


def test_groups_are_drawn_whole():
    """Two patients with images (a, b) and (c): the resamples are {1,1}, {1,2} twice, {2,2}."""
    p, scores = np.array([1.0, 0.0, 0.0]), np.array([0.9, 0.5, 0.7])
    result = bootstrap("brier_score", p, scores, groups=["x", "x", "y"])
    losses = np.array([0.01, 0.25, 0.49])
    first, second = losses[:2].mean(), losses[2]
    assert result.exact
    assert_allclose(result.mean, (first + 2 * losses.mean() + second) / 4, rtol=1e-12)


def test_drawn_groups_keep_their_items_together():
    found, codes = np.unique([3, 0, 3, 1, 0, 3], return_inverse=True)
    weight = ItemPlan((np.zeros(6),), codes, len(found)).draw(np.random.default_rng(0), 50).weight
    assert (weight[[0, 2, 5]] == weight[0]).all()
    assert (weight[[1, 4]] == weight[1]).all()
    assert (weight[[0, 1, 3]].sum(axis=0) == 3).all()


def test_one_item_per_group_is_the_item_bootstrap():
    p, scores = make_data()
    alone = bootstrap("soft_auroc", p, scores, n_bootstrap=50)
    assert_array_equal(
        bootstrap("soft_auroc", p, scores, n_bootstrap=50, groups=range(60)).replicates, alone.replicates
    )


def test_intervals_over_groups_are_wider_where_items_of_a_group_are_alike():
    rng = np.random.default_rng(3)
    p = np.repeat(rng.random(40), 10)
    scores = p + np.repeat(rng.normal(0, 0.3, 40), 10)
    items = bootstrap("soft_auroc", p, scores, n_bootstrap=400)
    groups = bootstrap("soft_auroc", p, scores, n_bootstrap=400, groups=np.repeat(np.arange(40), 10))
    assert groups.high - groups.low > 2 * (items.high - items.low)


def test_bad_groups_are_named():
    with pytest.raises(InputError, match="groups must have 2 rows"):
        bootstrap("soft_auroc", [0, 1], [1, 2], groups=["a"])
    with pytest.raises(InputError, match="every item needs a group, but position 1 has none"):
        bootstrap("soft_auroc", [0, 1], [1, 2], groups=["a", None])
    with pytest.raises(UsageError, match="groups can be redrawn with unit='items' only"):
        bootstrap("soft_auroc", [[0, 1]], [1, 2], unit="experts", groups=["a", "b"])


def test_progress_counts_every_resample():
    p, scores = make_data()
    told = []
    annotation_bootstrap(np.rint(8 * p), np.full(60, 8), scores, n_bootstrap=150, workers=2, on_resamples=told.append)
    assert sum(told) == 150
