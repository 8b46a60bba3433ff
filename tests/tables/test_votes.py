"""The vote table: codes, counts, sparse view, components, description."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError
from softgold.output import json_text
from softgold.readers import read_votes
from softgold.tables import description
from softgold.tables.description import describe_agreement
from softgold.tables.votes import VoteTable


def table(*rows: tuple[str, str, int], **options: str) -> VoteTable:
    return read_votes(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), **options)


THREE = table(("x", "a", 1), ("x", "b", 1), ("x", "c", 0), ("y", "a", 0), ("z", "d", 1), ("z", "e", 0))


def test_counts() -> None:
    assert (THREE.n_items, THREE.n_annotators, THREE.n_votes) == (3, 5, 6)
    assert THREE.item_counts.tolist() == [3, 1, 2]
    assert THREE.item_positives.tolist() == [2, 0, 1]
    assert THREE.item_shares.tolist() == pytest.approx([2 / 3, 0, 1 / 2])
    assert THREE.annotator_counts.tolist() == [2, 1, 1, 1, 1]
    assert THREE.annotator_positives.tolist() == [1, 1, 0, 1, 0]


def test_a_table_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        THREE.votes = THREE.votes[:1]
    for array in (THREE.votes, THREE.item_codes, THREE.annotator_codes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_sparse_view_agrees_with_the_dense_table() -> None:
    dense = np.zeros((3, 5))
    for item, annotator, vote in zip(THREE.item_codes, THREE.annotator_codes, THREE.votes, strict=True):
        dense[item, annotator] += 2 * vote - 1
    assert (THREE.signed_csr().toarray() == dense).all()
    assert THREE.signed_csr().nnz == 6


def test_repeats_stay_separate_entries_of_the_sparse_view() -> None:
    repeated = table(("x", "a", 1), ("x", "a", 1), ("x", "a", 0), duplicates="all")
    assert repeated.signed_csr().nnz == 3
    assert repeated.signed_csr().toarray().tolist() == [[1.0]]


def test_components_are_numbered_by_their_first_item() -> None:
    assert THREE.components.count == 2
    assert THREE.components.items.tolist() == [0, 0, 1]
    assert THREE.components.annotators.tolist() == [0, 0, 0, 1, 1]


def test_components_agree_with_a_walk_over_the_graph() -> None:
    rng = np.random.default_rng(5)
    rows = {(f"i{rng.integers(40)}", f"a{rng.integers(40)}") for _ in range(50)}
    votes = table(*[(item, annotator, 1) for item, annotator in sorted(rows)])
    label = {item: number for number, item in enumerate(votes.item_ids)}
    for _ in range(len(rows)):
        for item, annotator in rows:
            lowest = min(label[item], label.get(annotator, label[item]))
            label[item] = label[annotator] = lowest
    assert votes.components.count == len(set(label.values()))
    by_component = pd.Series(votes.components.items).groupby([label[item] for item in votes.item_ids]).nunique()
    assert (by_component == 1).all()


def test_tables_of_codes_are_checked() -> None:
    with pytest.raises(InputError, match="equally long"):
        VoteTable.from_codes([0, 0], [0], [1], ["x"], ["a"])
    with pytest.raises(InputError, match="every item of a vote table needs a vote"):
        VoteTable.from_codes([0], [0], [1], ["x", "y"], ["a"])
    with pytest.raises(InputError, match="every annotator of a vote table needs a vote"):
        VoteTable.from_codes([0], [0], [1], ["x"], ["a", "b"])


def test_a_vote_takes_few_bytes() -> None:
    n = 100_000
    frame = pd.DataFrame(
        {"item": [f"image_{k // 10}" for k in range(n)], "annotator": [f"a{k % 997}" for k in range(n)]}
    )
    assert read_votes(frame.assign(vote=1)).nbytes / n < 40


def test_description_by_hand() -> None:
    found = THREE.describe()
    assert (found.n_items, found.n_annotators, found.n_votes, found.n_positive) == (3, 5, 6, 3)
    assert found.positive_share == 0.5
    assert (found.votes_per_item.minimum, found.votes_per_item.median, found.votes_per_item.maximum) == (1, 2, 3)
    assert found.votes_per_annotator.mean == pytest.approx(6 / 5)
    assert (found.n_single_vote_items, found.n_components) == (1, 2)
    assert found.largest_component_share == pytest.approx(2 / 3)
    assert (found.agreement.n_items, found.agreement.unanimous, found.agreement.tied) == (2, 0, 1)
    # Of the three pairs on x one agrees, of the one pair on z none.
    assert found.agreement.share == pytest.approx((1 / 3 + 0) / 2)


def test_agreement_agrees_with_a_loop_over_pairs() -> None:
    rng = np.random.default_rng(8)
    rows = [(f"i{rng.integers(10)}", f"a{rng.integers(6)}", int(rng.integers(2))) for _ in range(80)]
    with pytest.warns(DataWarning, match="the same vote more than once"):
        votes = table(*rows, duplicates="mean")
    means: dict[str, dict[str, list[int]]] = {}
    for item, annotator, vote in rows:
        means.setdefault(item, {}).setdefault(annotator, []).append(vote)
    shares = []
    for voters in means.values():
        x = [float(np.mean(given)) for given in voters.values()]
        pairs = [(p, q) for k, p in enumerate(x) for q in x[k + 1 :]]
        if pairs:
            shares.append(np.mean([p * q + (1 - p) * (1 - q) for p, q in pairs]))
    assert votes.describe().agreement.share == pytest.approx(np.mean(shares))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("x", "a", 1), ("x", "b", 1)], "every vote is positive"),
        ([("x", "a", 0), ("x", "b", 0)], "every vote is negative"),
        ([("x", "a", 0), ("y", "a", 1)], "there is only one annotator"),
        ([("x", "a", 0), ("y", "b", 1)], "the votes fall into 2 components"),
        ([("x", "a", 0), ("y", "b", 1)], "items with a single vote: 2"),
        (
            [(f"i{k}", "a", 0) for k in range(10)] + [("i0", "b", 1)],
            "annotators with at least 10 votes, all equal: 1",
        ),
    ],
)
def test_description_warns(rows: list[tuple[str, str, int]], said: str) -> None:
    assert any(said in warning for warning in table(*rows).describe().warnings)


def test_text_and_json_come_from_the_same_value() -> None:
    found = THREE.describe()
    as_json = json.loads(json_text(found))
    assert as_json["agreement"]["share"] == found.agreement.share
    assert as_json["warnings"] == list(found.warnings)
    text = str(found)
    assert "items                3 (1 with one vote)" in text
    assert "warning: the votes fall into 2 components" in text


def test_a_table_without_pairs_has_no_agreement() -> None:
    found = table(("x", "a", 1)).describe()
    assert np.isnan(found.agreement.share)
    assert json.loads(json_text(found))["agreement"]["share"] is None
    assert "agreement            unknown" in str(found)


def test_agreement_of_some_items_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 6, size=100)
    positives = rng.integers(0, counts + 1).astype(np.float64)
    whole = describe_agreement(counts, positives, positives)
    monkeypatch.setattr(description, "ITEMS_AT_ONCE", 7)
    in_pieces = describe_agreement(counts, positives, positives)
    assert in_pieces == replace(whole, share=in_pieces.share)
    assert in_pieces.share == pytest.approx(whole.share, abs=1e-15)
