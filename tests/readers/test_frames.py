"""Frames of other libraries, and ids that keep their type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.evaluation import evaluate
from softgold.models.baselines import Mean
from softgold.readers import read_scores, read_votes
from softgold.tables.scores import Scores

COLUMNS: dict[str, Any] = {"item": [3, 1, 3], "annotator": ["z", "y", "y"], "vote": [1, 0, 1]}
ROWS = [[3, "z", 1], [1, "y", 0], [3, "y", 1]]


class HuggingFaceDataset:
    """What softgold uses of `datasets.Dataset`: an Arrow table behind a format."""

    features = ("item", "annotator", "vote")

    def with_format(self, kind: str) -> dict[slice, pa.Table]:
        assert kind == "arrow"
        return Slices(pa.table(COLUMNS))


class Slices(dict[slice, pa.Table]):
    def __init__(self, table: pa.Table) -> None:
        super().__init__()
        self.table = table

    def __getitem__(self, key: slice) -> pa.Table:
        return self.table[key]


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "Arrow": lambda: pa.table(COLUMNS),
    "Arrow batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "Polars": lambda: pl.DataFrame(COLUMNS),
    "Polars, lazy": lambda: pl.LazyFrame(COLUMNS),
    "Polars, categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("annotator").cast(pl.Categorical)),
    "DuckDB": lambda: duckdb.from_arrow(pa.table(COLUMNS)),
    "Hugging Face": HuggingFaceDataset,
}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_every_library(library: str) -> None:
    votes = read_votes(FRAMES[library]())
    assert votes.to_frame().values.tolist() == ROWS
    assert votes.to_frame()["item"].dtype == np.int64


@pytest.mark.parametrize("source", [None, 3, [1], {"item": [1]}, np.zeros(3)])
def test_what_is_no_frame(source: object) -> None:
    with pytest.raises(UsageError, match="a table must be a path, '-' or a data frame"):
        read_votes(source)


def test_frames_without_rows() -> None:
    with pytest.raises(InputError, match="the data frame has no rows"):
        read_votes(pl.DataFrame(COLUMNS).head(0))


@pytest.mark.parametrize("kind", ["int64", "int32", "uint64", "uint8"])
def test_whole_numbers_come_back_as_such(kind: str) -> None:
    frame = pd.DataFrame(COLUMNS).astype({"item": kind})
    labels = Mean().aggregate(read_votes(frame))
    merged = frame.merge(labels.to_frame(), on="item")
    assert merged["p"].tolist() == [1.0, 0.0, 1.0]


def test_text_stays_text() -> None:
    frame = pd.DataFrame({**COLUMNS, "item": ["007", "1", "007"]})
    assert Mean().aggregate(read_votes(frame)).to_frame()["item"].tolist() == ["007", "1"]


def test_floats_that_are_whole_numbers_match_integers() -> None:
    labels = Mean().aggregate(read_votes(pd.DataFrame(COLUMNS)))
    with pytest.warns(
        DataWarning, match="column 'item': the ids are floats, and are read as the whole numbers that they are"
    ):
        scores = read_scores(pd.DataFrame({"item": [1.0, 3.0], "net": [0.1, 0.9]}))
    assert scores.item_ids.tolist() == ["1", "3"]
    assert labels.item_ids.get_indexer(scores.item_ids).tolist() == [1, 0]
    with pytest.warns(DataWarning, match="are floats"):
        assert read_votes(pd.DataFrame({**COLUMNS, "item": [3.0, 1.0, 3.0]})).to_frame().values.tolist() == ROWS


def test_a_join_that_finds_nothing_shows_both_sides() -> None:
    labels = Mean().aggregate(read_votes(pd.DataFrame(COLUMNS)))
    scores = Scores(pd.Index(["1.png", "3.png"], dtype="str"), ("net",), np.array([[0.1], [0.9]]))
    with pytest.raises(
        InputError, match=r"ids in the scores look like '1.png', '3.png'; ids in the soft labels look like '3', '1'"
    ):
        evaluate(labels, scores)


def test_ids_of_parquet_keep_their_type(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    pd.DataFrame(COLUMNS).to_parquet(path, index=False)
    assert read_votes(path).to_frame()["item"].tolist() == [3, 1, 3]
