"""Majority, mean and smoothed mean, by hand and against pandas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fixtures.tables import NEEDS_A_RULE, REAL_TABLES
from softgold.errors import UsageError
from softgold.models.baselines import Majority, Mean, RatingMean
from softgold.readers import read_ratings, read_votes
from softgold.tables.ratings import RatingTable
from softgold.tables.soft_labels import COLUMNS, Aggregator
from softgold.tables.votes import VoteTable

ROWS = [("x", "a", 1), ("x", "b", 0), ("y", "a", 1), ("y", "b", 1), ("y", "c", 0), ("z", "a", 0)]
FRAME = pd.DataFrame(ROWS, columns=["item", "annotator", "vote"])


@pytest.fixture
def votes() -> VoteTable:
    return read_votes(FRAME)


def test_majority(votes: VoteTable) -> None:
    labels = Majority().aggregate(votes)
    assert labels.p.tolist() == [0.5, 1.0, 0.0]
    assert labels.expected_vote.tolist() == pytest.approx([1 / 2, 2 / 3, 0])
    assert labels.label is None
    assert labels.method == "majority"


def test_ties_fall_where_they_are_told(votes: VoteTable) -> None:
    positive = Majority(tie="positive").aggregate(votes)
    negative = Majority(tie="negative").aggregate(votes)
    assert positive.label is not None
    assert negative.label is not None
    assert positive.label.tolist() == [1, 1, 0]
    assert negative.label.tolist() == [0, 1, 0]
    assert positive.p.tolist() == negative.p.tolist() == [0.5, 1.0, 0.0]
    with pytest.raises(UsageError, match="tie must be one of positive, negative; got 'random'"):
        Majority(tie="random")


def test_row_order_changes_no_label() -> None:
    forwards = Majority(tie="positive").aggregate(read_votes(FRAME)).to_frame().set_index("item")
    backwards = Majority(tie="positive").aggregate(read_votes(FRAME[::-1])).to_frame().set_index("item")
    pd.testing.assert_frame_equal(forwards, backwards.loc[forwards.index])


def test_a_tie_of_averaged_repeats_is_a_tie() -> None:
    # 1/3 + 1/3 + 1/3 + ... of k repeats is not exactly one vote in binary.
    for k in (3, 6, 7, 10, 49):
        rows = [("x", "a", n % 2) for n in range(k)] + [("x", "b", n % 2) for n in range(1, k + 1)]
        labels = Majority().aggregate(read_votes(pd.DataFrame(rows, columns=FRAME.columns), duplicates="mean"))
        assert labels.p.tolist() == [0.5]
        assert labels.majority.tolist() == [0.5]
        assert labels.n_votes.tolist() == [2]


def test_mean_agrees_with_pandas() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"item": rng.integers(50, size=400).astype(str), "annotator": np.arange(400), "vote": rng.integers(2, size=400)}
    )
    labels = Mean().aggregate(read_votes(frame)).to_frame().set_index("item")
    expected = frame.groupby("item", sort=False)["vote"].agg(["mean", "sum", "count"])
    assert labels.index.tolist() == expected.index.tolist()
    assert labels["p"].to_numpy() == pytest.approx(expected["mean"].to_numpy())
    assert labels["n_positive"].tolist() == expected["sum"].tolist()
    assert labels["n_votes"].tolist() == expected["count"].tolist()


def test_smoothing_is_a_beta_prior(votes: VoteTable) -> None:
    labels = Mean(smoothing=(1, 3)).aggregate(votes)
    assert labels.p.tolist() == pytest.approx([2 / 6, 3 / 7, 1 / 5])
    assert labels.mean_vote.tolist() == pytest.approx([1 / 2, 2 / 3, 0])
    assert Mean(smoothing=(0, 0)).aggregate(votes).p.tolist() == Mean().aggregate(votes).p.tolist()


@pytest.mark.parametrize("smoothing", [(-1, 1), (1, np.nan), (np.inf, 1), (1,), (1, 2, 3), ("1", 1), 1])
def test_bad_smoothing(smoothing: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="smoothing"):
        Mean(smoothing=smoothing)


@pytest.fixture
def ratings() -> RatingTable:
    rows = [("x", "a", 0), ("x", "b", 2), ("y", "a", 2), ("y", "b", 1), ("z", "a", 1), ("z", "b", 1), ("z", "c", 1)]
    return read_ratings(pd.DataFrame(rows, columns=["item", "rater", "rating"]), scale=(0, 2))


def test_rating_mean(ratings: RatingTable) -> None:
    labels = RatingMean(cut=1).aggregate(ratings)
    assert labels.p.tolist() == [0.5, 0.75, 0.5]
    assert labels.label is not None
    assert labels.label.tolist() == [0, 1, 0]  # strictly above the cut
    assert labels.n_positive.tolist() == [1, 1, 0]
    assert labels.mean_vote.tolist() == [0.5, 0.75, 0.5]
    assert RatingMean().aggregate(ratings).label is None


def test_votes_are_ratings_from_0_to_1(votes: VoteTable) -> None:
    from_ratings = RatingMean().aggregate(read_ratings(FRAME, scale=(0, 1)))
    assert isinstance(RatingMean(), Aggregator)
    pd.testing.assert_frame_equal(from_ratings.to_frame(), Mean().aggregate(votes).to_frame())


def test_rating_scale_is_mapped_to_the_unit_interval() -> None:
    frame = pd.DataFrame({"item": list("xyz"), "rater": "a", "rating": [-1, 1, 3]})
    assert RatingMean().aggregate(read_ratings(frame, scale=(-1, 3))).p.tolist() == [0, 0.5, 1]


def test_a_cut_outside_the_scale(ratings: RatingTable) -> None:
    with pytest.raises(UsageError, match="cut must lie in"):
        RatingMean(cut=2.5).aggregate(ratings)


def test_the_table_of_a_baseline(votes: VoteTable) -> None:
    frame = Majority(tie="positive").aggregate(votes).to_frame()
    assert frame.columns.tolist() == [*COLUMNS, "label"]
    assert frame[["b_mean", "b_sd", "b_lo", "b_hi"]].isna().all(axis=None)
    assert frame["majority"].tolist() == [0.5, 1.0, 0.0]
    assert frame["uncertainty"].tolist() == [0.5, 0.0, 0.0]
    assert frame["entropy"].tolist() == pytest.approx([np.log(2), 0, 0])


@pytest.mark.parametrize("name", REAL_TABLES)
def test_real_tables(real_data: Path, name: str) -> None:
    path = real_data / name / "votes.csv"
    rule = "all" if name in NEEDS_A_RULE else "error"
    votes = read_votes(path, duplicates=rule)
    frame = pd.read_csv(path, dtype={"item": "str", "annotator": "str"})
    expected = frame.groupby("item", sort=False)["vote"].mean()
    labels = Mean().aggregate(votes)
    assert labels.item_ids.tolist() == expected.index.tolist()
    assert labels.p == pytest.approx(expected.to_numpy())
    assert votes.n_votes == len(frame)
    assert votes.describe().n_annotators == frame["annotator"].nunique()
