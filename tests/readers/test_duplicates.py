"""Repeats, abstentions and wide tables."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.readers import read_votes
from softgold.tables.votes import VoteTable


def frame(*rows: tuple[str, str, object]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["item", "annotator", "vote"])


REPEATED = frame(("x", "a", 1), ("y", "a", 0), ("x", "a", 0), ("x", "b", 1), ("x", "a", 0), ("z", "a", 1))


def test_conflicting_repeats_are_an_error_that_shows_the_rows() -> None:
    with pytest.raises(InputError) as caught:
        read_votes(REPEATED)
    assert str(caught.value) == (
        "the data frame: different votes by the same annotator on the same item: item 'x', annotator 'a': 1 in row 1 "
        "but 0 in row 3; say with --duplicates first, last, mean or all (duplicates=) what to do"
    )


def test_many_conflicts_show_the_first_three() -> None:
    rows = [(item, "a", vote) for vote in (0, 1) for item in "vwxyz"]
    with pytest.raises(InputError, match=r"item 'v'.*item 'w'.*item 'x'.*; and 2 more; say with") as caught:
        read_votes(frame(*rows))
    assert "item 'y'" not in str(caught.value)


def kept(votes: VoteTable) -> list[tuple[str, str, int]]:
    return list(votes.to_frame().itertuples(index=False, name=None))


def test_first_and_last() -> None:
    first = read_votes(REPEATED, duplicates="first")
    assert kept(first) == [("x", "a", 1), ("y", "a", 0), ("x", "b", 1), ("z", "a", 1)]
    last = read_votes(REPEATED, duplicates="last")
    assert kept(last) == [("y", "a", 0), ("x", "b", 1), ("x", "a", 0), ("z", "a", 1)]
    assert last.item_ids.tolist() == ["x", "y", "z"]
    assert "the last of each is kept" in last.notes[0]
    assert first.weights is None


def test_all_keeps_repeats_as_independent_votes() -> None:
    votes = read_votes(REPEATED, duplicates="all")
    assert votes.n_votes == 6
    assert votes.item_counts.tolist() == [4, 1, 1]
    assert votes.item_positives.tolist() == [2, 0, 1]
    assert "all are kept" in votes.notes[0]


def test_mean_shares_one_vote_among_the_repeats() -> None:
    votes = read_votes(REPEATED, duplicates="mean")
    assert votes.n_votes == 6
    assert votes.weights is not None
    assert votes.weights.tolist() == [1 / 3, 1, 1 / 3, 1, 1 / 3, 1]
    assert votes.item_counts.tolist() == [2, 1, 1]
    assert votes.annotator_counts.tolist() == [3, 1]
    assert votes.item_positives.tolist() == pytest.approx([4 / 3, 0, 1])
    assert votes.signed_csr().toarray()[0].tolist() == pytest.approx([-1 / 3, 1])


@pytest.mark.parametrize("rule", ["error", "first", "last", "mean"])
def test_equal_repeats_are_one_vote_with_a_warning(rule: str) -> None:
    rows = frame(("x", "a", 1), ("x", "a", 1), ("x", "a", 1), ("y", "a", 0))
    with pytest.warns(DataWarning, match="1 pair of item and annotator has the same vote more than once") as caught:
        votes = read_votes(rows, duplicates=rule)
    assert kept(votes) == [("x", "a", 1), ("y", "a", 0)]
    assert votes.weights is None
    assert [str(warning.message) for warning in caught] == list(votes.notes)
    assert caught[0].filename == __file__


def test_mean_with_equal_and_different_repeats() -> None:
    rows = frame(("x", "a", 1), ("x", "a", 1), ("y", "a", 1), ("y", "a", 0))
    with pytest.warns(DataWarning):
        votes = read_votes(rows, duplicates="mean")
    assert kept(votes) == [("x", "a", 1), ("y", "a", 1), ("y", "a", 0)]
    assert votes.weights is not None
    assert votes.weights.tolist() == [1, 0.5, 0.5]
    assert len(votes.notes) == 2


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="duplicates must be one of error, first, last, mean, all; got 'average'"):
        read_votes(REPEATED, duplicates="average")


@pytest.mark.parametrize("rule", ["first", "last", "mean", "all"])
def test_rules_agree_with_a_plain_loop(rule: str) -> None:
    rng = np.random.default_rng(3)
    rows = [(f"i{rng.integers(6)}", f"a{rng.integers(4)}", int(rng.integers(2))) for _ in range(120)]
    groups: dict[tuple[str, str], list[int]] = {}
    for item, annotator, vote in rows:
        groups.setdefault((item, annotator), []).append(vote)
    pick = {"first": lambda v: v[0], "last": lambda v: v[-1], "mean": np.mean, "all": sum}[rule]
    expected: dict[str, float] = {}
    for (item, _), votes in groups.items():
        expected[item] = expected.get(item, 0) + float(pick(votes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        table = read_votes(frame(*rows), duplicates=rule)
    assert dict(zip(table.item_ids, table.item_positives, strict=True)) == pytest.approx(expected)


def test_abstentions_are_counted_and_not_used() -> None:
    rows = frame(("x", "a", ""), ("y", "a", 1), ("x", "b", 0), ("w", "c", None), ("w", "a", None))
    with pytest.warns(DataWarning, match=r"1 item has no vote and is left out \(first: 'w'\)"):
        votes = read_votes(rows)
    assert votes.n_abstentions == 3
    assert votes.abstained_items == ("w",)
    assert votes.abstained_annotators == ("c",)
    assert votes.item_ids.tolist() == ["x", "y"]
    assert votes.annotator_ids.tolist() == ["a", "b"]
    assert kept(votes) == [("y", "a", 1), ("x", "b", 0)]


def test_an_abstention_beside_a_vote_is_no_repeat() -> None:
    votes = read_votes(frame(("x", "a", 1), ("x", "a", None)))
    assert (votes.n_votes, votes.n_abstentions, votes.notes) == (1, 1, ())


def test_rows_of_errors_count_the_abstentions_too() -> None:
    rows = frame(("x", "a", None), ("x", "b", 1), ("y", "b", None), ("x", "b", 0))
    with pytest.raises(InputError, match="1 in row 2 but 0 in row 4"):
        read_votes(rows)


def test_nothing_but_abstentions() -> None:
    with pytest.raises(InputError, match="the data frame has no votes: every vote is empty"):
        read_votes(frame(("x", "a", None), ("y", "a", "")))


def test_wide_tables(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("ann,image,bob\nyes,x,\n,y,\n0,z,1\n")
    with pytest.warns(DataWarning, match=r"1 item has no vote and is left out \(first: 'y'\)"):
        votes = read_votes(path, wide=True)
    assert kept(votes) == [("x", "ann", 1), ("z", "ann", 0), ("z", "bob", 1)]
    assert (votes.n_abstentions, votes.abstained_items) == (0, ("y",))


def test_wide_tables_equal_their_long_form() -> None:
    long = frame(*[(f"i{item}", f"a{who}", (item * who) % 2) for item, who in itertools.product(range(5), range(4))])
    long = long[(long["item"] != "i2") | (long["annotator"] != "a1")]
    wide = long.pivot(index="item", columns="annotator", values="vote")
    assert read_votes(wide, wide=True).to_frame().equals(read_votes(long).to_frame())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item\nx\n", "has no column besides the items"),
        ("item,a,a\nx,1,1\n", "the column of a rater is named twice: 'a'"),
        ("item,a,\nx,1,1\n", "the column of a rater has a blank name"),
        ("item,a,b\nx,1,5\n", r"row 1 \(line 2\), column 'b': a vote must be .* got '5'"),
        ("item,a,b\nx,1,0\nx,0,\n", r"annotator 'a': 1 in row 1 \(line 2\) but 0 in row 2 \(line 3\)"),
        ("item,a,b\nx,,\n", "has no votes"),
        ("a,b\n1,0\n", "has no item column"),
    ],
)
def test_bad_wide_tables(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_votes(path, wide=True)


def test_wide_tables_have_no_vote_column() -> None:
    with pytest.raises(UsageError, match="vote='v' has no meaning in a wide table"):
        read_votes(pd.DataFrame({"item": ["x"], "v": [1]}), wide=True, vote="v")
