"""The one contract of all aggregators: votes in, one soft label for each item out.

Whoever writes an aggregator adds it to AGGREGATORS.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from softgold.models.baselines import Majority, Mean
from softgold.models.crowd.estimator import GLAD, TwoClass
from softgold.readers import read_votes
from softgold.tables.soft_labels import COLUMNS, Aggregator, SoftLabels
from softgold.tables.votes import VoteTable

# What is promised here holds wherever svi stops, and test_contract.py holds fits that have settled to it.
pytestmark = pytest.mark.filterwarnings("ignore::softgold.errors.ConvergenceWarning")
AGGREGATORS: dict[str, Callable[[], Aggregator]] = {
    "majority": Majority,
    "majority with hard labels": lambda: Majority(tie="positive"),
    "mean": Mean,
    "smoothed mean": lambda: Mean(smoothing=(1, 1)),
    "two-class by coordinate": lambda: TwoClass(engine="coordinate"),
    "two-class by svi": lambda: TwoClass(max_steps=40),
    "glad by coordinate": lambda: GLAD(engine="coordinate"),
    "glad by svi": lambda: GLAD(max_steps=40),
}


def draw_frame(seed: int = 0, n_items: int = 60, n_annotators: int = 12) -> pd.DataFrame:
    """Draw votes of able and less able annotators on clear and less clear items."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(scale=2, size=n_items)
    ability = rng.normal(loc=1.5, scale=0.5, size=n_annotators)
    asked = rng.random((n_items, n_annotators)) < 0.5
    asked[:, 0] = True
    items, annotators = np.nonzero(asked)
    chance = 1 / (1 + np.exp(-ability[annotators] * difficulty[items]))
    order = rng.permutation(len(items))
    return pd.DataFrame(
        {
            "item": [f"i{item}" for item in items[order]],
            "annotator": [f"a{annotator}" for annotator in annotators[order]],
            "vote": (rng.random(len(items)) < chance).astype(int)[order],
        }
    )


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow) if "svi" in name else name for name in AGGREGATORS],
    scope="module",
)
def aggregator(request: pytest.FixtureRequest) -> Aggregator:
    return AGGREGATORS[request.param]()


@pytest.fixture(scope="module")
def votes() -> VoteTable:
    return read_votes(draw_frame())


@pytest.fixture(scope="module")
def labels(aggregator: Aggregator, votes: VoteTable) -> SoftLabels:
    return aggregator.aggregate(votes)


def test_the_contract(aggregator: Aggregator, votes: VoteTable, labels: SoftLabels) -> None:
    assert isinstance(aggregator, Aggregator)
    assert isinstance(labels, SoftLabels)
    assert labels.method == aggregator.name
    assert labels.item_ids.equals(votes.item_ids)
    assert labels.n_votes.tolist() == votes.item_counts.tolist()
    assert labels.n_positive.tolist() == votes.item_positives.tolist()


def test_soft_labels_are_probabilities(labels: SoftLabels) -> None:
    for values in (labels.p, labels.expected_vote, labels.mean_vote):
        assert values.dtype == np.float64
        assert values.shape == (len(labels),)
        assert ((values >= 0) & (values <= 1)).all()


def test_the_table_has_the_columns_of_the_contract(labels: SoftLabels) -> None:
    frame = labels.to_frame()
    assert tuple(frame.columns[: len(COLUMNS)]) == COLUMNS
    assert len(frame) == len(labels)
    assert np.allclose(frame["uncertainty"], np.minimum(frame["p"], 1 - frame["p"]))


def test_the_same_votes_give_the_same_labels(aggregator: Aggregator, votes: VoteTable, labels: SoftLabels) -> None:
    assert aggregator.aggregate(votes).p.tolist() == labels.p.tolist()


def test_row_order_does_not_matter(aggregator: Aggregator, labels: SoftLabels) -> None:
    shuffled = read_votes(draw_frame().sample(frac=1, random_state=1))
    again = aggregator.aggregate(shuffled)
    here = again.item_ids.get_indexer(labels.item_ids)
    noise = 0.005 if getattr(aggregator, "engine", "") == "svi" else 1e-9
    assert np.allclose(again.p[here], labels.p, atol=noise)


def test_names_do_not_matter(aggregator: Aggregator, labels: SoftLabels) -> None:
    frame = draw_frame()
    renamed = frame.assign(item="x" + frame["item"], annotator="y" + frame["annotator"])
    assert np.allclose(aggregator.aggregate(read_votes(renamed)).p, labels.p)


def test_more_agreement_is_more_certainty(aggregator: Aggregator, votes: VoteTable, labels: SoftLabels) -> None:
    unanimous = (votes.item_shares == 1) & (votes.item_counts >= 4)
    split = np.abs(votes.item_shares - 0.5) <= 0.1
    assert unanimous.any()
    assert split.any()
    assert labels.p[unanimous].min() > 0.5
    assert labels.uncertainty[unanimous].mean() < labels.uncertainty[split].mean()


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")  # a model says how little that is
def test_one_vote_is_enough(aggregator: Aggregator) -> None:
    single = read_votes(pd.DataFrame({"item": ["x"], "annotator": ["a"], "vote": [1]}))
    labels = aggregator.aggregate(single)
    assert len(labels) == 1
    assert 0.5 - 1e-6 <= labels.p[0] <= 1  # one vote of a stranger may say nothing


def test_averaged_repeats_are_understood(aggregator: Aggregator) -> None:
    frame = draw_frame()
    again = frame.head(20).assign(vote=lambda rows: 1 - rows["vote"])
    votes = read_votes(pd.concat([frame, again]), duplicates="mean")
    labels = aggregator.aggregate(votes)
    assert ((labels.p >= 0) & (labels.p <= 1)).all()
    assert labels.n_votes.tolist() == votes.item_counts.tolist()
