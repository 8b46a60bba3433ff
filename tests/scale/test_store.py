"""Votes on disk are those that `read_votes` gives, whatever the order of the rows and the size of the parts."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures.parts import PART_VOTES, TABLES, with_repeats, write_parts
from softgold.errors import InputError
from softgold.models.crowd.chunks import part_chunks
from softgold.models.crowd.classes import oriented, refine, vote_classes
from softgold.models.crowd.mirror import VoteGraph
from softgold.readers import read_votes
from softgold.scale.canonical import find_kinds, is_opposite, refine_store
from softgold.scale.chunkfile import write_chunks
from softgold.scale.components import find_components
from softgold.scale.files import VoteFiles, find_files
from softgold.scale.raw import code_files
from softgold.scale.store import VoteStore
from softgold.tables.hashing import text_hashes
from softgold.tables.votes import VoteTable

pytestmark = pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")

StoreOf = Callable[..., VoteStore]


def rows_of(store: VoteStore) -> pd.DataFrame:
    """Every vote of a store with ids, sorted."""
    pieces = []
    for part, votes in store.each():
        items = np.array(store.texts(part).to_pylist())[votes.items]
        people = np.array(store.annotator_texts.to_pylist())[votes.annotators]
        weights = np.ones(len(items)) if votes.weights is None else votes.weights
        pieces.append(pd.DataFrame({"item": items, "annotator": people, "vote": votes.votes, "weight": weights}))
    return pd.concat(pieces).sort_values(["item", "annotator", "vote", "weight"], ignore_index=True)


def rows_of_table(votes: VoteTable) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "item": votes.item_ids.to_numpy()[votes.item_codes],
            "annotator": votes.annotator_ids.to_numpy()[votes.annotator_codes],
            "vote": votes.votes,
            "weight": np.ones(votes.n_votes) if votes.weights is None else votes.weights,
        }
    )
    return frame.sort_values(["item", "annotator", "vote", "weight"], ignore_index=True)


def check_same(store: VoteStore, votes: VoteTable) -> None:
    pd.testing.assert_frame_equal(rows_of(store), rows_of_table(votes), check_dtype=False)
    assert [text for part in store.parts for text in store.texts(part).to_pylist()] == votes.item_ids.tolist()
    assert store.annotator_texts.to_pylist() == votes.annotator_ids.tolist()
    assert store.kinds == (votes.item_ids.name, votes.annotator_ids.name)
    assert store.item_counts.tolist() == np.bincount(votes.item_codes).tolist()
    assert store.annotator_counts.tolist() == votes.annotator_counts.tolist()
    assert store.n_positive == votes.votes.sum()
    for name in ("n_votes", "n_items", "n_annotators", "n_abstentions", "abstained_items", "abstained_annotators"):
        assert getattr(store, name) == getattr(votes, name), name


@pytest.mark.parametrize("kind", TABLES)
def test_a_store_is_the_table(kind: str, vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    rows = TABLES[kind](vote_frame)
    store = store_of(rows)
    check_same(store, read_votes(rows))
    assert len(store.parts) > 1
    assert max(part.n_votes for part in store.parts) < 3 * PART_VOTES


@pytest.mark.parametrize("rule", ["first", "last", "mean", "all"])
def test_repeats_are_resolved_and_reported_as_in_memory(rule: str, vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    rows = with_repeats(vote_frame)
    store, votes = store_of(rows, duplicates=rule), read_votes(rows, duplicates=rule)  # type: ignore[arg-type]
    check_same(store, votes)
    assert store.weighted == (votes.weights is not None)
    assert [re.sub(r"first at .*?\)", "", note) for note in store.notes] == [
        re.sub(r"first at .*?\)", "", note) for note in votes.notes
    ]


def test_where_a_repeat_is_counts_within_its_file(vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    rows = pd.concat([vote_frame, vote_frame.iloc[:1]])
    last = len(rows) - len(np.array_split(np.arange(len(rows)), 3)[2])
    (note,) = store_of(rows).notes
    assert re.search(rf"votes-2\.parquet, row {len(rows) - last}\); one of each is kept", note)


def test_different_votes_are_an_error_that_names_files_and_rows(vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    first = vote_frame.iloc[0]
    rows = pd.concat([vote_frame, vote_frame.iloc[:1].assign(vote=1 - first["vote"])])
    found = rf"item '{first['item']}', annotator '{first['annotator']}': \d in .*votes-0\.parquet, row 1 but \d in "
    with pytest.raises(InputError, match=found + r".*votes-2\.parquet, row \d+; say with --duplicates"):
        store_of(rows)


def test_text_files_give_the_same_votes_and_name_their_lines(
    vote_frame: pd.DataFrame, store_of: StoreOf, tmp_path: Path
) -> None:
    quoted = vote_frame.assign(item=vote_frame["item"] + ' "a,\nb"')
    check_same(store_of(quoted, suffix="csv"), read_votes(quoted))
    bad = tmp_path / "bad.csv"
    lines = [f"i{number},a,1" for number in range(5000)]
    lines[4000] = "i4000,a,maybe"
    bad.write_text("item,annotator,vote\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"bad\.csv, row 4001 \(line 4002\), column 'vote': a vote must be") as raised:
        code_files(VoteFiles("bad", (bad,)), tmp_path / "work", rows=200)
    with pytest.raises(InputError) as in_memory:
        read_votes(bad)
    assert str(raised.value).split("; if one value")[0] == str(in_memory.value).split("; if one value")[0]


def test_packed_text_is_unpacked_while_it_is_read(vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(vote_frame.to_csv(index=False).encode()))
    (tmp_path / "work").mkdir()
    raw = code_files(VoteFiles("packed", find_files(str(tmp_path / "*.csv.gz"))), tmp_path / "work", rows=100)
    assert sum(part.rows for part in raw.parts) == len(vote_frame)
    assert len(raw.parts) > 1


def test_a_named_value_counts_as_positive_even_if_it_comes_late(vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    rows = vote_frame.assign(vote=np.where(np.arange(len(vote_frame)) < 600, "no dog", "Dog"))
    check_same(store_of(rows, positive="dog"), read_votes(rows, positive="dog"))


def test_a_value_that_no_vote_has_is_refused(vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    with pytest.raises(InputError, match=r"no vote is 'cat', as --positive .* the values are '1', '0'"):
        store_of(vote_frame.assign(vote=vote_frame["vote"].astype("str")), positive="cat")


def test_only_abstentions_are_no_votes(vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    with pytest.raises(InputError, match="has no votes: every vote is empty"):
        store_of(vote_frame.assign(vote=""))


# --- files ---


def test_a_pattern_without_a_match_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file matches '.*none-\*\.parquet'"):
        find_files(str(tmp_path / "none-*.parquet"))


def test_other_columns_in_one_file_are_said(vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    pattern = write_parts(vote_frame, tmp_path)
    vote_frame.rename(columns={"annotator": "colour"}).to_parquet(tmp_path / "votes-1.parquet", index=False)
    with pytest.raises(
        InputError, match=r"votes-1\.parquet has the columns 'item', 'colour', 'vote', and not those of"
    ):
        list(VoteFiles(pattern, find_files(pattern)).batches(100))
    vote_frame.rename(columns={"annotator": "worker"}).to_parquet(tmp_path / "votes-1.parquet", index=False)
    with pytest.raises(InputError, match=r"votes-1\.parquet has the columns 'item', 'worker', 'vote' where .*votes-0"):
        list(VoteFiles(pattern, find_files(pattern)).batches(100))


def test_one_damaged_file_among_many_is_named(vote_frame: pd.DataFrame, tmp_path: Path) -> None:
    pattern = write_parts(vote_frame, tmp_path, count=30)
    damaged = tmp_path / "votes-17.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"votes-17\.parquet cannot be read as Parquet"):
        list(VoteFiles(pattern, find_files(pattern)).batches(100))


def test_hashes_tell_texts_apart_wherever_they_are() -> None:
    texts = [f"{number}" for number in range(2000)] + ["", "a", "aa", "ä", "\0", "\0\0"]
    hashes = text_hashes(pa.array(texts))
    assert len(set(hashes.tolist())) == len(texts)
    again = text_hashes(pa.array(["other", *reversed(texts)]).slice(1))
    assert hashes.tolist() == again.tolist()[::-1]


# --- kinds, chunks, components ---


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("merge", [True, False])
def test_chunks_on_disk_are_those_of_memory(
    kind: str, merge: bool, vote_frame: pd.DataFrame, store_of: StoreOf
) -> None:
    rows = TABLES[kind](vote_frame)
    store, votes = store_of(rows), read_votes(rows)
    here, there = refine_store(store), refine(votes)
    for mine, theirs in zip(here, there, strict=True):
        assert mine.tolist() == theirs.tolist()
    kinds, expected = find_kinds(here, merge=merge), vote_classes(votes, merge=merge, colours=there)
    assert kinds.item.tolist() == expected.item.tolist()
    assert kinds.annotator.tolist() == expected.annotator.tolist()
    file = write_chunks(store, kinds, "chunks", part_votes=PART_VOTES, size=40)
    whole = expected.votes.by_item()
    chunks = tuple(part_chunks(whole, expected.annotator_weight, expected.item_weight, size=40))
    assert len(file.cuts) - 1 == len(chunks)
    for number, chunk in enumerate(chunks):
        found = file.load(number)
        assert (found.first_item, found.n_no) == (chunk.first_item, chunk.n_no)
        for name in ("annotators", "item_weight"):
            assert getattr(found, name).tolist() == getattr(chunk, name).tolist()
        for name in ("by_item", "by_column"):
            one, other = getattr(found, name), getattr(chunk, name)
            assert all(
                getattr(one, part).tolist() == getattr(other, part).tolist() for part in ("data", "indices", "indptr")
            )


@pytest.mark.parametrize("kind", TABLES)
def test_components_and_orientation_are_those_of_memory(kind: str, vote_frame: pd.DataFrame, store_of: StoreOf) -> None:
    rows = TABLES[kind](vote_frame)
    store, votes = store_of(rows), read_votes(rows)
    found, expected = find_components(store), VoteGraph.of(votes)
    assert found.graph.annotators.tolist() == expected.annotators.tolist()
    assert found.graph.items.tolist() == expected.items.tolist()
    items = np.concatenate([found.of(part) for part in store.parts])
    assert items.tolist() == votes.components.items.tolist()
    assert is_opposite(store) == (oriented(votes) is not votes)
