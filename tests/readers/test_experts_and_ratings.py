"""Expert labels and ratings are read like votes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.readers import read_experts, read_ratings


def test_several_experts() -> None:
    frame = pd.DataFrame({"item": ["x", "x", "y"], "expert": ["e1", "e2", "e1"], "label": ["yes", "no", ""]})
    with pytest.warns(DataWarning, match="1 item has no label"):
        experts = read_experts(frame)
    assert experts.expert_ids.tolist() == ["e1", "e2"]
    assert experts.item_ids.tolist() == ["x"]
    assert experts.labels.tolist() == [1, 0]
    assert experts.item_codes.tolist() == [0, 0]
    assert experts.expert_codes.tolist() == [0, 1]
    assert (len(experts), experts.table.n_abstentions) == (2, 1)


def test_a_single_expert_needs_no_column() -> None:
    experts = read_experts(pd.DataFrame({"task": ["x", "y"], "answer": [1, 0]}))
    assert experts.expert_ids.tolist() == ["expert"]
    assert experts.labels.tolist() == [1, 0]


def test_a_single_expert_who_contradicts_himself() -> None:
    frame = pd.DataFrame({"item": ["x", "x"], "label": [1, 0]})
    with pytest.raises(InputError, match="different labels by the same annotator on the same item"):
        read_experts(frame)
    assert read_experts(frame, duplicates="last").labels.tolist() == [0]


def test_expert_columns_can_be_named() -> None:
    frame = pd.DataFrame({"item": ["x"], "label": [1], "vote": [0], "doctor": ["d"]})
    with pytest.raises(InputError, match="could be the vote: 'label', 'vote'"):
        read_experts(frame)
    experts = read_experts(frame, annotator="doctor", vote="vote")
    assert (experts.expert_ids.tolist(), experts.labels.tolist()) == (["d"], [0])


def test_ratings() -> None:
    frame = pd.DataFrame(
        {"image": ["x", "x", "x", "y", "z"], "rater": ["a", "b", "c", "a", "a"], "score": ["0", "2", "1.5", "1", ""]}
    )
    with pytest.warns(DataWarning, match="1 item has no rating"):
        ratings = read_ratings(frame, scale=(0, 2))
    assert ratings.item_means.tolist() == pytest.approx([3.5 / 3, 1.0])
    assert ratings.item_counts.tolist() == [3, 1]
    assert (ratings.n_items, ratings.n_annotators, ratings.n_abstentions) == (2, 3, 1)
    assert ratings.scale == (0.0, 2.0)


def test_wide_ratings() -> None:
    frame = pd.DataFrame({"item": ["x", "y"], "a": [1, 5], "b": [np.nan, 4]})
    ratings = read_ratings(frame, scale=(1, 5), wide=True)
    assert ratings.item_means.tolist() == [1.0, 4.5]


def test_repeated_ratings() -> None:
    frame = pd.DataFrame({"item": ["x", "x", "x"], "rater": ["a", "a", "b"], "rating": [0, 1, 2]})
    with pytest.raises(InputError, match="different ratings by the same annotator"):
        read_ratings(frame, scale=(0, 2))
    assert read_ratings(frame, scale=(0, 2), duplicates="mean").item_means.tolist() == [1.25]
    assert read_ratings(frame, scale=(0, 2), duplicates="all").item_means.tolist() == [1.0]


@pytest.mark.parametrize("value", [3, -0.1, np.inf, "high", "1_0", "0,5"])
def test_ratings_that_are_none(value: object) -> None:
    frame = pd.DataFrame({"item": ["x", "y"], "rater": "a", "rating": [1, value]})
    with pytest.raises(InputError, match=r"row 2, column 'rating': a rating must .*, got '"):
        read_ratings(frame, scale=(0, 2))


@pytest.mark.parametrize("scale", [(2, 0), (0, 0), (0, np.inf), (0, 1, 2), ("0", "2"), 2, None])
def test_scales_that_are_none(scale: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="scale must be"):
        read_ratings(pd.DataFrame({"item": ["x"], "rater": "a", "rating": [1]}), scale=scale)
