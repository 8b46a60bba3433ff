"""Invariances over a registry of all metrics: order, weights, transformations, reversal, range, hard labels."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from softgold import metrics as module
from softgold.errors import SoftgoldError
from softgold.metrics import (
    auc_pr,
    aurc,
    average_calibration_error,
    balanced_brier,
    best_f1_threshold,
    brier_score,
    excess_aurc,
    expected_calibration_error,
    log_loss,
    platt_scaling,
    precision_at_k,
    recall_at_k,
    soft_auroc,
    soft_average_precision,
    stratified_brier,
)


@dataclass(frozen=True)
class Entry:
    """A metric of (targets, values, sample_weight=...), its range, and whether only the order of the values matters."""

    metric: Callable[..., float]
    low: float = 0.0
    high: float = 1.0
    ranks: bool = False


RANKING = {
    **{
        f"soft_auroc[{rule}]": Entry(functools.partial(soft_auroc, diagonal=rule), ranks=True)
        for rule in ("half", "exclude", "include", "pairs")
    },
    "soft_average_precision": Entry(soft_average_precision, ranks=True),
    "auc_pr": Entry(auc_pr, ranks=True),
    "precision_at_3": Entry(functools.partial(precision_at_k, k=3), ranks=True),
    "recall_at_3": Entry(functools.partial(recall_at_k, k=3), ranks=True),
    "best_f1": Entry(
        lambda p, s, sample_weight=None: best_f1_threshold(p, s, sample_weight=sample_weight).f1, ranks=True
    ),
}
SELECTIVE = {
    f"{name}[{integral}]": Entry(functools.partial(metric, integral=integral), low=low, ranks=True)
    for integral in ("riemann", "trapezoid")
    for name, metric, low in (("aurc", aurc, 0.0), ("excess_aurc", excess_aurc, 0.0 if integral == "riemann" else -1.0))
}
PROBABILITY = {
    "brier_score": Entry(brier_score),
    "brier_score[exclude]": Entry(functools.partial(brier_score, label_noise="exclude")),
    "log_loss": Entry(log_loss, high=math.inf),
    "log_loss[exclude]": Entry(functools.partial(log_loss, label_noise="exclude"), high=math.inf),
    "balanced_brier": Entry(balanced_brier, high=2.0),
    "brier_positive": Entry(
        lambda p, q, sample_weight=None: stratified_brier(p, q, sample_weight=sample_weight).positive
    ),
    "expected_calibration_error": Entry(functools.partial(expected_calibration_error, n_bins=5)),
    "average_calibration_error": Entry(functools.partial(average_calibration_error, n_bins=5)),
    "expected_calibration_error[count]": Entry(
        functools.partial(expected_calibration_error, n_bins=5, binning="count")
    ),
    "average_calibration_error[count]": Entry(functools.partial(average_calibration_error, n_bins=5, binning="count")),
    "platt_slope": Entry(
        lambda p, q, sample_weight=None: platt_scaling(p, q, sample_weight=sample_weight).a,
        low=-math.inf,
        high=math.inf,
    ),
}
REGISTRY = {**RANKING, **SELECTIVE, **PROBABILITY}
ORDINAL = {name: entry for name, entry in REGISTRY.items() if entry.ranks}

# Few distinct values, so that ties abound; p includes binary and soft labels.
TABLES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.125, 0.3, 0.5, 0.75, 1.0]),
        st.sampled_from([0.05, 0.2, 0.4, 0.45, 0.6, 0.8, 0.95]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=25,
)


def columns(table):
    p, values, copies = (np.array(column) for column in zip(*table, strict=True))
    return p, values, copies


def close(a, b, name=""):
    assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=name)


# Every metric on each table: to draw tables takes longer than to judge them.


@pytest.mark.slow
@given(table=TABLES)
@settings(max_examples=60)
def test_weights_are_copies(table):
    p, values, copies = columns(table)
    assume(copies.sum() > 0)
    rows = np.repeat(np.arange(len(p)), copies)
    for name, entry in REGISTRY.items():
        close(entry.metric(p, values, sample_weight=copies), entry.metric(p[rows], values[rows]), name)


@given(table=TABLES, seed=st.integers(0, 100))
@settings(max_examples=60)
def test_order_of_the_rows_does_not_matter(table, seed):
    p, values, _ = columns(table)
    order = np.random.default_rng(seed).permutation(len(p))
    for name, entry in REGISTRY.items():
        close(entry.metric(p[order], values[order]), entry.metric(p, values), name)


@given(table=TABLES)
@settings(max_examples=60)
def test_values_stay_in_their_range(table):
    p, values, _ = columns(table)
    for name, entry in REGISTRY.items():
        value = entry.metric(p, values)
        if math.isnan(value):  # one class is missing, or it is in a single item with the other
            assert len(p) == 1 or p.sum() in (0, len(p)), name
        else:
            assert entry.low - 1e-12 <= value <= entry.high + 1e-12, name


@pytest.mark.slow
@given(table=TABLES)
@settings(max_examples=60)
def test_monotone_transformations_leave_rankings_alone(table):
    p, values, _ = columns(table)
    for transform in (np.exp, lambda x: 1000 * x**3 - 7, np.log):
        for name, entry in ORDINAL.items():
            close(entry.metric(p, transform(values)), entry.metric(p, values), name)


@pytest.mark.parametrize("diagonal", ["half", "pairs"])
@given(table=TABLES)
@settings(max_examples=100)
def test_reversed_scores_have_one_minus_the_area(diagonal, table):
    p, values, _ = columns(table)
    close(soft_auroc(p, -values, diagonal=diagonal), 1 - soft_auroc(p, values, diagonal=diagonal))


@given(table=TABLES)
@settings(max_examples=100)
def test_conventions_are_equal_for_binary_labels_and_ordered_for_soft_ones(table):
    p, values, _ = columns(table)
    exclude, half, include = (soft_auroc(p, values, diagonal=rule) for rule in ("exclude", "half", "include"))
    assert math.isnan(half) or exclude <= half + 1e-12 <= include + 2e-12
    hard = (p > 0.5).astype(float)
    areas = [soft_auroc(hard, values, diagonal=rule) for rule in ("half", "exclude", "include", "pairs")]
    close(areas, 4 * [areas[0]])


@pytest.mark.parametrize("name", ["soft_auroc[half]", "soft_average_precision", "brier_score", "log_loss", "best_f1"])
@given(table=TABLES)
@settings(max_examples=60)
def test_soft_labels_are_a_mixture_of_hard_ones(name, table):
    """An item of label p is a positive of weight p and a negative of weight 1 - p."""
    p, values, _ = columns(table)
    metric = REGISTRY[name].metric
    expanded = metric(np.repeat([1.0, 0.0], len(p)), np.tile(values, 2), sample_weight=np.append(p, 1 - p))
    close(metric(p, values), expanded)


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
@pytest.mark.parametrize(
    ("p", "values", "weights"),
    [
        ([0.5, math.nan], [0.1, 0.2], None),
        ([0.5, 0.5], [0.1, math.nan], None),
        ([0.5, 0.5], [math.inf, 0.2], None),
        ([0.5, 0.5], [0.1, 0.2, 0.3], None),
        ([0.5, 0.5], [0.1, 0.2], [1, math.nan]),
        ([0.5, 0.5], [0.1, 0.2], [1, -1]),
        ([0.5, 0.5], [0.1, 0.2], [0, 0]),
        (["a", "b"], [0.1, 0.2], None),
    ],
)
def test_bad_input_raises(entry, p, values, weights):
    with pytest.raises(SoftgoldError):
        entry.metric(p, values, sample_weight=weights)


def test_the_best_possible_ranking_beats_all_others():
    rng = np.random.default_rng(0)
    p = rng.random(30)
    for name in ("soft_auroc[half]", "soft_average_precision", "precision_at_3", "recall_at_3"):
        best = REGISTRY[name].metric(p, p)
        assert all(REGISTRY[name].metric(p, rng.random(30)) <= best + 1e-12 for _ in range(50))


def test_public_names_are_sorted_and_there():
    constants = [name for name in module.__all__ if name.isupper()]
    classes = [name for name in module.__all__ if name[0].isupper() and not name.isupper()]
    functions = [name for name in module.__all__ if name[0].islower()]
    assert module.__all__ == sorted(constants) + sorted(classes) + sorted(functions)
    assert all(hasattr(module, name) for name in module.__all__)
