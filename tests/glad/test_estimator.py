"""The estimator: the habits of scikit-learn and crowd-kit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import softgold
from softgold.errors import InputError, UsageError
from softgold.glad.estimator import GLAD
from softgold.glad.fitting import fit
from softgold.glad.priors import Prior
from softgold.readers import read_votes
from softgold.simulation import simulate

PARAMETERS: dict[str, Any] = {
    "engine": "coordinate",
    "prior": Prior(0.0, 1.0, 2.5),
    "seed": 4,
    "init": "coordinate",
    "family": "gaussian",
    "max_steps": 77,
    "batch_items": None,
    "device": "cpu",
    "threshold": 0.7,
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    votes = simulate(n_items=60, n_annotators=12, votes_per_item=5, seed=1).votes.to_frame()
    return votes.rename(columns={"item": "task", "annotator": "worker", "vote": "label"})


def test_the_constructor_only_stores() -> None:
    estimator = GLAD(**PARAMETERS)
    assert estimator.get_params() == PARAMETERS
    assert not hasattr(estimator, "fit_")
    GLAD(engine="no such engine")  # type: ignore[arg-type]


def test_clone_and_set_params() -> None:
    original = GLAD(**PARAMETERS)
    copy = clone(original)
    assert copy is not original
    assert copy.get_params() == original.get_params()
    assert copy.set_params(engine="svi", family="free").engine == "svi"
    assert original.engine == "coordinate"
    with pytest.raises(ValueError, match="Invalid parameter 'difficulty'"):
        copy.set_params(difficulty=3)


def test_a_clone_of_a_fitted_estimator_is_not_fitted(frame: pd.DataFrame) -> None:
    fitted = GLAD(engine="coordinate").fit(frame)
    assert not hasattr(clone(fitted), "probas_")


def test_repr_names_what_was_changed() -> None:
    assert repr(GLAD()) == "GLAD()"
    assert repr(GLAD(engine="coordinate", seed=3)) == "GLAD(engine='coordinate', seed=3)"
    assert "Prior(" in repr(GLAD(prior=Prior(difficulty_scale=2.0)))


def test_results_have_the_names_and_indices_of_crowd_kit(frame: pd.DataFrame) -> None:
    estimator = GLAD(engine="coordinate")
    assert estimator.fit(frame) is estimator
    assert estimator.probas_.index.name == estimator.labels_.index.name == "task"
    assert list(estimator.probas_.columns) == [0, 1]
    assert estimator.probas_.sum(axis=1).to_numpy() == pytest.approx(np.ones(60))
    assert estimator.labels_.name == "agg_label"
    assert estimator.skills_.index.name == "worker"
    assert estimator.probas_.index.tolist() == frame["task"].drop_duplicates().tolist()
    assert set(estimator.skills_.index) == set(frame["worker"])
    assert np.array_equal(estimator.labels_, estimator.probas_[1] >= 0.5)


def test_fit_predict_and_fit_predict_proba(frame: pd.DataFrame) -> None:
    labels, probas = GLAD(engine="coordinate").fit_predict(frame), GLAD(engine="coordinate").fit_predict_proba(frame)
    assert isinstance(labels, pd.Series)
    assert isinstance(probas, pd.DataFrame)
    assert labels.dtype == np.int64
    expected = fit(frame, engine="coordinate").posterior.soft_labels()
    assert probas[1].tolist() == expected.p.tolist()
    assert labels.tolist() == (expected.p >= 0.5).astype(int).tolist()


def test_parameters_reach_the_fit(frame: pd.DataFrame) -> None:
    estimator = GLAD(**PARAMETERS).fit(frame)
    settings = estimator.fit_.settings
    for name in ("engine", "prior", "seed", "init", "family", "max_steps", "batch_items", "device"):
        assert getattr(settings, name) == PARAMETERS[name], name
    assert np.array_equal(estimator.labels_, estimator.probas_[1] >= 0.7)


def test_svi_through_the_estimator_is_reproducible(frame: pd.DataFrame) -> None:
    first, again = (GLAD(seed=2).fit_predict_proba(frame) for _ in range(2))
    assert first.equals(again)


def test_the_contract_of_aggregators(frame: pd.DataFrame) -> None:
    votes = read_votes(frame)
    labels = GLAD(engine="coordinate").aggregate(votes)
    assert labels.method == GLAD(engine="coordinate").name == "coordinate"
    assert labels.item_ids.equals(votes.item_ids)


def test_bad_parameters_are_said_when_fitting(frame: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="engine must be one of svi, coordinate; got 'em'"):
        GLAD(engine="em").fit(frame)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no annotator column"):
        GLAD(engine="coordinate").fit(frame.drop(columns="worker"))


def test_the_public_name() -> None:
    assert softgold.GLAD is GLAD
    assert softgold.fit is fit
