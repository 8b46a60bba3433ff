"""`softgold baseline`."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softgold.tables.soft_labels import COLUMNS

VOTES = "item,annotator,vote\n007,a,1\n007,b,0\n=HYPERLINK(1),a,1\n"


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def read(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), dtype={"item": "str"})


def test_a_file_is_written_whole(cli: Callable[..., Any], votes: Path, tmp_path: Path) -> None:
    answer = cli("baseline", votes, "--method", "mean", "-o", tmp_path / "x.csv")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == f"mean: 2 items, 3 votes\nwritten: {tmp_path / 'x.csv'}\n"
    frame = read((tmp_path / "x.csv").read_text())
    assert tuple(frame.columns) == COLUMNS
    assert frame["item"].tolist() == ["007", "=HYPERLINK(1)"]
    assert frame["p"].tolist() == [0.5, 1.0]


def test_the_table_can_be_printed(cli: Callable[..., Any], votes: Path) -> None:
    assert read(cli("baseline", votes).out)["p"].tolist() == [0.5, 1.0]


def test_majority_with_ties(cli: Callable[..., Any], votes: Path) -> None:
    plain = read(cli("baseline", votes, "--method", "majority").out)
    assert plain["p"].tolist() == [0.5, 1.0]
    assert "label" not in plain
    hard = read(cli("baseline", votes, "--method", "majority", "--tie", "positive").out)
    assert hard["label"].tolist() == [1, 1]


def test_smoothing(cli: Callable[..., Any], votes: Path) -> None:
    frame = read(cli("baseline", votes, "--smoothing", "1", "1").out)
    assert frame["p"].tolist() == pytest.approx([0.5, 2 / 3])


def test_ratings(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("item,rater,rating\nx,a,2\nx,b,1\ny,a,1\ny,b,1\n")
    frame = read(cli("baseline", path, "--scale", "0", "2", "--cut", "1").out)
    assert frame["p"].tolist() == [0.75, 0.5]
    assert frame["label"].tolist() == [1, 0]


def test_wide_tables_and_column_names(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("photo,a,b\nx,1,0\ny,,1\n")
    frame = read(cli("baseline", path, "--wide", "--item-col", "photo").out)
    assert frame["p"].tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tie", "positive"], "--tie needs --method majority"),
        (["--method", "majority", "--smoothing", "1", "1"], "--smoothing and --scale need --method mean"),
        (["--scale", "0", "2", "--smoothing", "1", "1"], "--smoothing works with votes, not with ratings"),
        (["--cut", "1"], "--cut needs --scale LOW HIGH"),
        (["--smoothing", "-1", "1"], "smoothing must not be negative, got (-1.0, 1.0)"),
        (["--scale", "2", "0"], "scale must be two numbers, the lower one first; got (2.0, 0.0)"),
        (["--method", "median"], "'median' is not one of 'majority', 'mean'"),
    ],
)
def test_options_that_do_not_go_together(cli: Callable[..., Any], votes: Path, arguments: list[str], said: str) -> None:
    answer = cli("baseline", votes, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


@pytest.mark.parametrize("name", ["snow_rte", "bluebird", "chexpert_test", "product_matching", "sp_amt", "trec_binary"])
def test_real_tables(cli: Callable[..., Any], real_data: Path, tmp_path: Path, name: str) -> None:
    path = real_data / name / "votes.csv"
    answer = cli("baseline", path, "--method", "mean", "-o", tmp_path / "x.csv")
    assert answer.code == 0
    assert len(read((tmp_path / "x.csv").read_text())) == pd.read_csv(path)["item"].nunique()


@pytest.mark.parametrize("rule", ["first", "last", "mean", "all"])
@pytest.mark.parametrize("name", ["relex_cause", "zencrowd_us"])
def test_real_tables_with_conflicts_need_a_rule(
    cli: Callable[..., Any], real_data: Path, tmp_path: Path, name: str, rule: str
) -> None:
    path, target = real_data / name / "votes.csv", tmp_path / "x.csv"
    refused = cli("baseline", path, "-o", target)
    assert refused.code == 2
    assert "--duplicates first, last, mean or all" in refused.err
    assert not target.exists()
    assert cli("baseline", path, "-o", target, "--duplicates", rule).code == 0
    assert len(read(target.read_text())) == pd.read_csv(path)["item"].nunique()


def test_terminal_codes_in_ids_are_printed_as_they_are(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,vote\n\x1b[31mred\x1b[0m,a,1\n")
    assert "\x1b[31mred\x1b[0m,1.0," in cli("baseline", path).out
