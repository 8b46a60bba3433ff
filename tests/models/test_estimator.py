"""The estimators: the habits of scikit-learn and crowd-kit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import softgold
from softgold.errors import InputError, UsageError
from softgold.models.base import find_model, fit
from softgold.models.crowd.estimator import GLAD, TwoClass
from softgold.readers import read_votes
from softgold.tables.soft_labels import Aggregator

ESTIMATORS = (TwoClass, GLAD)
SHARED: dict[str, Any] = {
    "engine": "coordinate",
    "seed": 4,
    "max_steps": 77,
    "batch_items": None,
    "device": "cpu",
    "threshold": 0.9,
}
PARAMETERS: dict[Any, dict[str, Any]] = {
    TwoClass: {**SHARED, "prevalence": 0.4},
    GLAD: {**SHARED, "prior": "paper", "init": "coordinate"},
}


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def frame(draw_crowd: Any) -> pd.DataFrame:
    votes = draw_crowd(1, n_items=60, n_annotators=12).votes.to_frame()
    return votes.rename(columns={"item": "task", "annotator": "worker", "vote": "label"})


@pytest.fixture(scope="module")
def fitted(kind: Any, frame: pd.DataFrame) -> Any:
    return kind(engine="coordinate").fit(frame)


# --- parameters ---


def test_the_constructor_only_stores(kind: Any) -> None:
    estimator = kind(**PARAMETERS[kind])
    assert estimator.get_params() == PARAMETERS[kind]
    assert not [name for name in vars(estimator) if name.endswith("_")]
    kind(engine="no such engine")


def test_parameters_are_those_of_the_model(kind: Any) -> None:
    """A prior in numbers is an option of `fit` alone."""
    extra = {"ability_mean", "ability_scale", "difficulty_scale"}
    assert set(kind().get_params()) - {"threshold"} == set(find_model(kind.name).options) - extra
    defaults = find_model(kind.name).settings()
    for name, value in kind().get_params().items():
        if name != "threshold":
            assert getattr(defaults, name) == value, name


def test_clone_and_set_params(kind: Any) -> None:
    original = kind(**PARAMETERS[kind])
    copy = clone(original)
    assert copy is not original
    assert copy.get_params() == original.get_params()
    assert copy.set_params(engine="svi").engine == "svi"
    assert original.engine == "coordinate"
    with pytest.raises(ValueError, match="Invalid parameter 'difficulty'"):
        copy.set_params(difficulty=3)


def test_a_clone_of_a_fitted_estimator_is_not_fitted(fitted: Any, frame: pd.DataFrame) -> None:
    with pytest.raises(NotFittedError):
        clone(fitted).predict(frame)


def test_repr_names_what_was_changed(kind: Any) -> None:
    assert repr(kind()) == f"{kind.__name__}()"
    assert repr(kind(engine="coordinate", seed=3)) == f"{kind.__name__}(engine='coordinate', seed=3)"


@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
def test_parameters_reach_the_fit(kind: Any, frame: pd.DataFrame) -> None:
    estimator = kind(**PARAMETERS[kind]).fit(frame)
    for name, value in PARAMETERS[kind].items():
        if name != "threshold":
            assert getattr(estimator.fit_.settings, name) == value, name
    assert np.array_equal(estimator.labels_, estimator.probas_[1] >= 0.9)
    assert not np.array_equal(estimator.labels_, estimator.probas_[1] >= 0.5)


def test_bad_parameters_are_said_when_fitting(kind: Any, frame: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="engine must be one of svi, coordinate; got 'em'"):
        kind(engine="em").fit(frame)
    with pytest.raises(InputError, match="no annotator column"):
        kind(engine="coordinate").fit(frame.drop(columns="worker"))


# --- results ---


def test_an_estimator_that_is_not_fitted_says_so(kind: Any, frame: pd.DataFrame) -> None:
    for method in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
            getattr(kind(), method)(frame)


def test_results_have_names_and_indices(fitted: Any, frame: pd.DataFrame) -> None:
    assert fitted.probas_.index.tolist() == fitted.labels_.index.tolist() == frame["task"].drop_duplicates().tolist()
    assert list(fitted.probas_.columns) == [0, 1]
    assert fitted.probas_.sum(axis=1).to_numpy() == pytest.approx(np.ones(60))
    assert fitted.labels_.dtype == np.int64
    assert np.array_equal(fitted.labels_, fitted.probas_[1] >= 0.5)
    assert set(fitted.skills_.index) == set(frame["worker"])
    abilities = fitted.fit_.posterior.annotators()["ability_mean"]
    assert fitted.skills_.tolist() == abilities.tolist()
    assert fitted.probas_.index.name == fitted.labels_.index.name == "task"


def test_fit_returns_the_estimator(kind: Any, frame: pd.DataFrame) -> None:
    estimator = kind(engine="coordinate")
    assert estimator.fit(frame) is estimator


def test_fit_predict_and_fit_predict_proba(kind: Any, frame: pd.DataFrame, fitted: Any) -> None:
    labels = kind(engine="coordinate").fit_predict(frame)
    probas = kind(engine="coordinate").fit_predict_proba(frame)
    assert labels.equals(fitted.labels_)
    assert probas.equals(fitted.probas_)
    expected = fit(frame, model=kind.name, engine="coordinate").posterior.soft_labels()
    assert probas[1].tolist() == expected.p.tolist()


def test_predicting_the_training_votes_gives_the_fit(fitted: Any, frame: pd.DataFrame) -> None:
    assert fitted.predict_proba(frame).equals(fitted.probas_)
    assert fitted.predict(frame).equals(fitted.labels_)


def test_predicting_new_votes(fitted: Any) -> None:
    best = fitted.skills_.idxmax()
    new = pd.DataFrame({"task": ["x", "y"], "worker": [best, best], "label": [1, 0]})
    found = fitted.predict_proba(new)
    expected = fitted.fit_.posterior.predict(read_votes(new)).p
    assert found[1].tolist() == expected.tolist()
    assert found[0].tolist() == (1 - expected).tolist()
    assert found.index.tolist() == ["x", "y"]
    assert fitted.predict(new).to_dict() == {"x": 1, "y": 0}


def test_the_contract_of_aggregators(kind: Any, frame: pd.DataFrame, fitted: Any) -> None:
    votes, estimator = read_votes(frame), kind(engine="coordinate")
    assert isinstance(estimator, Aggregator)
    labels = estimator.aggregate(votes)
    assert labels.method == estimator.name
    assert labels.item_ids.equals(votes.item_ids)
    assert labels.p.tolist() == fitted.probas_[1].tolist()


# --- items as they came in ---


def test_whole_numbers_come_back_as_such(kind: Any, frame: pd.DataFrame) -> None:
    numbered = frame.assign(task=frame["task"].str[1:].astype("int64") + 1000)
    estimator = kind(engine="coordinate").fit(numbered)
    assert estimator.labels_.index.dtype == np.int64
    assert estimator.labels_.index.tolist() == numbered["task"].drop_duplicates().tolist()
    assert estimator.labels_[1007] == estimator.labels_.loc[1007]
    predicted = estimator.predict_proba(numbered.head(20))
    assert predicted.index.dtype == np.int64
    assert numbered.merge(estimator.labels_, left_on="task", right_index=True).shape[0] == len(numbered)


def test_items_and_annotators_with_the_same_numbers_are_not_mixed_up(kind: Any, frame: pd.DataFrame) -> None:
    """Workers 0 to 11 and tasks 0 to 11, the workers' column first: ids are those of the column that was read."""
    some = frame[frame["task"].isin([f"i{number}" for number in range(12)])]
    numbered = pd.DataFrame(
        {
            "worker": some["worker"].str[1:].astype("float64"),
            "task": some["task"].str[1:].astype("int64"),
            "label": some["label"],
        }
    ).astype({"worker": "int32"})
    estimator = kind(engine="coordinate").fit(numbered)
    assert estimator.labels_.index.name == "task"
    assert estimator.labels_.index.dtype == np.int64
    assert estimator.labels_.index.tolist() == numbered["task"].drop_duplicates().tolist()


def test_a_table_of_votes_has_texts(kind: Any, frame: pd.DataFrame, fitted: Any) -> None:
    estimator = kind(engine="coordinate").fit(read_votes(frame))
    assert estimator.labels_.index.tolist() == fitted.labels_.index.tolist()
    assert estimator.labels_.index.name == "item"


# --- engines and names ---


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
def test_svi_is_the_default_and_reproducible(kind: Any, frame: pd.DataFrame) -> None:
    first, again = (kind(seed=2, max_steps=20).fit(frame) for _ in range(2))
    assert first.fit_.settings.engine == "svi"
    assert first.probas_.equals(again.probas_)


def test_the_public_names() -> None:
    assert softgold.GLAD is GLAD
    assert softgold.TwoClass is TwoClass
    assert softgold.fit is fit
