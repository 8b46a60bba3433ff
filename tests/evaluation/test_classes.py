"""Soft labels and scores with one column per class: per class, macro, over all classes, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from softgold.errors import InputError
from softgold.evaluation import ClassEvaluation, evaluate_classes
from softgold.metrics import soft_auroc

CLASSES = ("cat", "dog", "cow")
N = 150


def frame(values: np.ndarray, items: list[str] | None = None) -> pd.DataFrame:
    table = pd.DataFrame(values, columns=[f"p_{name}" for name in CLASSES])
    table.insert(0, "item", items or [f"i{i}" for i in range(len(values))])
    return table


@pytest.fixture(scope="module")
def p() -> np.ndarray:
    return np.random.default_rng(0).dirichlet([0.6, 0.5, 0.3], N)


@pytest.fixture(scope="module")
def q(p: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: 0.7 * p + 0.3 * rng.dirichlet([a, a, a], N) for name, a in (("sharp", 5.0), ("loose", 0.3))}


@pytest.fixture(scope="module")
def result(p: np.ndarray, q: dict[str, np.ndarray]) -> ClassEvaluation:
    return evaluate_classes(frame(p), {name: frame(values) for name, values in q.items()}, n_bootstrap=60)


def overall(found: ClassEvaluation, metric: str, model: str) -> float:
    return float(found.overall.set_index(["metric", "model"]).loc[(metric, model), "value"])


def test_each_class_is_one_against_the_rest(result: ClassEvaluation, p: np.ndarray, q: dict[str, np.ndarray]) -> None:
    assert result.classes == CLASSES
    assert [task.task for task in result.per_class.tasks] == list(CLASSES)
    hard = p.argmax(axis=1)
    for at, task in enumerate(result.per_class.tasks):
        wide = task.wide().loc["sharp"]
        assert wide["soft_auroc"] == pytest.approx(soft_auroc(p[:, at], q["sharp"][:, at]), abs=1e-12)
        assert wide["auroc"] == pytest.approx(roc_auc_score(hard == at, q["sharp"][:, at]), abs=1e-12)


def test_the_average_is_the_macro_average(result: ClassEvaluation, p: np.ndarray, q: dict[str, np.ndarray]) -> None:
    macro = result.per_class.average.table.set_index(["metric", "model"]).loc[("auroc", "loose"), "value"]
    assert macro == pytest.approx(roc_auc_score(p.argmax(axis=1), q["loose"], multi_class="ovr", average="macro"))


def test_over_all_classes(result: ClassEvaluation, p: np.ndarray, q: dict[str, np.ndarray]) -> None:
    for name, values in q.items():
        called = values.argmax(axis=1)
        assert overall(result, "accuracy", name) == (called == p.argmax(axis=1)).mean()
        assert overall(result, "expected_accuracy", name) == pytest.approx(p[np.arange(N), called].mean())
        stacked = np.repeat(np.arange(3), N)
        expected = log_loss(stacked, np.tile(values, (3, 1)), sample_weight=p.T.ravel())
        assert overall(result, "log_loss", name) == pytest.approx(expected)
        noise = (p * (1 - p)).sum(axis=1).mean()
        assert overall(result, "brier", name) == pytest.approx(((p - values) ** 2).sum(axis=1).mean() + noise)
    rows = result.overall
    assert (rows["low"] <= rows["value"]).all()
    assert (rows["value"] <= rows["high"]).all()
    assert rows.loc[rows["metric"] == "brier", "ceiling"].iloc[0] == pytest.approx(noise)


def test_classes_share_the_resamples(p: np.ndarray) -> None:
    """Two classes are mirror images, resample by resample: their AUROC and its interval are the same."""
    two = np.column_stack([p[:, 0], 1 - p[:, 0]])
    score = np.clip(two[:, 0] + np.random.default_rng(2).normal(0, 0.2, N), 0, 1)
    tables = [pd.DataFrame({"item": range(N), "p_a": values, "p_b": 1 - values}) for values in (two[:, 0], score)]
    found = evaluate_classes(tables[0], {"m": tables[1]}, n_bootstrap=60).per_class
    columns = ["value", "low", "high"]
    first, second = (task.table.set_index("metric").loc["soft_auroc", columns] for task in found.tasks)
    np.testing.assert_allclose(first.astype(float), second.astype(float), rtol=1e-9)


def test_groups_are_redrawn(p: np.ndarray, q: dict[str, np.ndarray]) -> None:
    groups = pd.Series(np.arange(N) // 5, index=[f"i{i}" for i in range(N)], name="patient").astype("str")
    found = evaluate_classes(frame(p), {"m": frame(q["sharp"])}, groups=groups, n_bootstrap=20)
    assert found.per_class.settings.redrawn == "the 30 groups (patient)"
    with pytest.raises(InputError, match="149 items have no group, the first is 'i1'"):
        evaluate_classes(frame(p), {"m": frame(q["sharp"])}, groups=groups[:1])


def test_probabilities_that_do_not_sum_to_one_are_said(p: np.ndarray, q: dict[str, np.ndarray]) -> None:
    found = evaluate_classes(frame(p), {"sharp": frame(q["sharp"]), "half": frame(q["sharp"] / 2)}, n_bootstrap=20)
    assert any(
        notice.text.startswith("the probabilities of half do not sum to 1") for notice in found.per_class.notices
    )
    assert np.isnan(overall(found, "log_loss", "half"))
    assert overall(found, "accuracy", "half") == overall(found, "accuracy", "sharp")


def test_the_order_of_items_and_columns_does_not_matter(
    result: ClassEvaluation, p: np.ndarray, q: dict[str, np.ndarray]
) -> None:
    turned = {name: frame(values)[::-1][["p_cow", "item", "p_cat", "p_dog"]] for name, values in q.items()}
    again = evaluate_classes(frame(p), turned, n_bootstrap=60)
    pd.testing.assert_frame_equal(again.overall, result.overall)
    pd.testing.assert_frame_equal(again.per_class.to_frame(), result.per_class.to_frame())


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        (lambda t: t, lambda t: t.drop(columns="p_cow"), "the scores of 'm' have no column p_cow"),
        (lambda t: t.drop(columns=["p_cow", "p_dog"]), lambda t: t, "two or more classes"),
        (lambda t: t, lambda t: t.drop(columns="item"), "the scores of 'm' have no column item"),
        (
            lambda t: t.assign(p_cat=0.0, p_dog=0.5, p_cow=0.5),
            lambda t: t,
            "class 'cat' has probability 0 for every item",
        ),
        (lambda t: t.assign(p_cat=0.9), lambda t: t, "soft labels must sum to 1"),
        (lambda t: t, lambda t: t.assign(p_dog=1.5), r"in \[0, 1\], got 1.5 for item 'i0', class 'dog'"),
        (lambda t: t, lambda t: t.assign(p_dog=np.nan), r"in \[0, 1\], got nan"),
        (lambda t: t, lambda t: t.iloc[2:], "the scores of 'm' lack 2 items, the first is 'i0'"),
        (lambda t: pd.concat([t, t.head(1)]), lambda t: t, "item 'i0' is duplicated in the soft labels"),
        (lambda t: t.head(1), lambda t: t, "at least two items, got 1"),
    ],
)
def test_what_is_refused(p: np.ndarray, labels: object, scores: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_classes(labels(frame(p)), {"m": scores(frame(p))}, n_bootstrap=5)


def test_no_model_is_refused(p: np.ndarray) -> None:
    with pytest.raises(InputError, match="at least one model"):
        evaluate_classes(frame(p), {})
