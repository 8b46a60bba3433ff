"""Whatever is read: a table or one of our errors, nothing else."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgold.errors import SoftgoldError, SoftgoldWarning
from softgold.readers import read_experts, read_ratings, read_scores, read_soft_labels, read_votes
from softgold.tables.votes import VoteTable

RELAXED = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
RULES = st.sampled_from(["error", "first", "last", "mean", "all"])

CELLS = st.one_of(
    st.sampled_from(["0", "1", "yes", "no", "", "x", "y", "a", '"', '"x', "x,y", "\n", "NA", "1.0", "\ufeff", "=1+1"]),
    st.text(max_size=5),
)
HEADERS = st.permutations(["item", "annotator", "vote"]).map(list) | st.lists(
    st.sampled_from(["item", "task", "annotator", "vote", "label", "", "Item", "p", "model", "score"]), max_size=5
)


@st.composite
def csv_bytes(draw: st.DrawFn) -> bytes:
    """Lines that look like a vote table, more or less."""
    header = draw(HEADERS)
    width = st.just(len(header)) | st.integers(0, 5)
    rows = draw(st.lists(width.flatmap(lambda n: st.lists(CELLS, min_size=n, max_size=n)), max_size=8))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(",".join(cells) for cells in [header, *rows])
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\n"])) + text.encode("utf-8", "surrogatepass")


@st.composite
def mutated(draw: st.DrawFn, good: bytes) -> bytes:
    """A good file with some bytes changed, and perhaps its end cut off."""
    data = bytearray(good)
    for position in draw(st.lists(st.integers(0, len(data) - 1), max_size=5)):
        data[position] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


def outcome(read: Any, source: object, **options: object) -> object:
    """Return the table, or None for an error of ours; anything else fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SoftgoldWarning)
        try:
            return read(source, **options)
        except SoftgoldError as error:
            message = str(error)
    assert message
    assert "\n" not in message
    return None


def check(votes: object) -> None:
    if votes is None:
        return
    assert isinstance(votes, VoteTable)
    assert votes.n_votes > 0
    assert set(votes.votes.tolist()) <= {0, 1}
    assert votes.item_ids.is_unique
    assert votes.annotator_ids.is_unique
    assert (votes.item_counts > 0).all()
    assert all(text.strip() for text in votes.item_ids)
    assert votes.describe().n_items == votes.n_items


@pytest.mark.slow
@RELAXED
@given(
    data=st.binary(max_size=200) | csv_bytes(), suffix=st.sampled_from([".csv", ".tsv"]), rule=RULES, wide=st.booleans()
)
def test_any_text_file(tmp_path: Path, data: bytes, suffix: str, rule: str, wide: bool) -> None:
    path = tmp_path / f"votes{suffix}"
    path.write_bytes(data)
    check(outcome(read_votes, path, duplicates=rule, wide=wide))
    outcome(read_experts, path, duplicates=rule)
    outcome(read_scores, path)
    outcome(read_soft_labels, path)
    outcome(read_ratings, path, scale=(0, 1))


GOOD = pd.DataFrame({"item": ["x", "x", "y"], "annotator": ["a", "b", "a"], "vote": [1, 0, 1]})


@RELAXED
@given(data=st.data())
def test_any_damage_to_compressed_text(tmp_path: Path, data: st.DataObject) -> None:
    good = gzip.compress(GOOD.to_csv(index=False).encode(), mtime=0)
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(data.draw(mutated(good)))
    check(outcome(read_votes, path))


@pytest.mark.slow
@RELAXED
@given(data=st.data())
def test_any_damage_to_parquet(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "votes.parquet"
    GOOD.to_parquet(path, index=False)
    path.write_bytes(data.draw(mutated(path.read_bytes())))
    check(outcome(read_votes, path))


@pytest.mark.slow
def test_damage_to_a_page_of_parquet_is_a_sentence(tmp_path: Path) -> None:
    """Arrow reads codes that have no text."""
    path = tmp_path / "votes.parquet"
    GOOD.to_parquet(path, index=False, compression=None)
    good = path.read_bytes()
    for position in range(4, len(good) - 8 - int.from_bytes(good[-8:-4], "little")):
        for value in {0, 3, 12, 255, good[position] ^ 1} - {good[position]}:
            path.write_bytes(good[:position] + bytes([value]) + good[position + 1 :])
            check(outcome(read_votes, path))


def test_damage_to_the_footer_of_parquet_does_not_end_the_process(tmp_path: Path) -> None:
    """Changed types of columns made Arrow's own objects for column chunks abort."""
    path = tmp_path / "votes.parquet"
    GOOD.to_parquet(path, index=False)
    good = path.read_bytes()
    start = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for position in range(start, start + 70):
        for value in {0, 1, 12, 24, 36, 38, good[position] ^ 1} - {good[position]}:
            path.write_bytes(good[:position] + bytes([value]) + good[position + 1 :])
            check(outcome(read_votes, path))


OBJECTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.text(alphabet=st.characters(categories=["Cs"]), max_size=2),
    st.binary(max_size=3),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(np.int8(1)),
    st.just([1]),
    st.dates(),
    st.complex_numbers(),
)
KINDS = st.sampled_from([OBJECTS, st.sampled_from([0, 1]), st.sampled_from(["x", "y"]), st.floats(), st.booleans()])


@pytest.mark.slow
@RELAXED
@given(data=st.data(), rows=st.integers(0, 6), rule=RULES, wide=st.booleans())
def test_any_frame(data: st.DataObject, rows: int, rule: str, wide: bool) -> None:
    columns = {}
    for name in ("item", "annotator", "vote"):
        kind = data.draw(KINDS)
        values = data.draw(st.lists(kind, min_size=rows, max_size=rows))
        columns[name] = pd.Series(values, dtype=object if kind is OBJECTS else None)
    frame = pd.DataFrame(columns)
    check(outcome(read_votes, frame, duplicates=rule, wide=wide))
    outcome(read_scores, frame)


@pytest.mark.slow
@RELAXED
@given(
    st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6), st.sampled_from([0, 1])), min_size=1, max_size=12),
    st.sampled_from([".csv", ".tsv", ".csv.gz", ".parquet"]),
)
def test_good_votes_survive_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int]], suffix: str
) -> None:
    from softgold.output import write_table

    frame = pd.DataFrame(rows, columns=["item", "annotator", "vote"])
    direct = outcome(read_votes, frame, duplicates="all")
    path = tmp_path_factory.mktemp("votes") / f"votes{suffix}"
    write_table(frame, path)
    again = outcome(read_votes, path, duplicates="all")
    has_nul = frame[["item", "annotator"]].map(lambda text: "\0" in text).to_numpy().any()
    if direct is None or (has_nul and suffix != ".parquet"):
        assert again is None
    else:
        assert again.to_frame().equals(direct.to_frame())
