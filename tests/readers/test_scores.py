"""Model scores, wide or long, and soft-label tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softgold.errors import InputError, UsageError
from softgold.models.baselines import Majority
from softgold.output import write_table
from softgold.readers import read_scores, read_soft_labels, read_votes

WIDE = pd.DataFrame({"item": ["007", "x"], "net": [0.1, 0.9], "tree": [-3.0, 2.5]})


def test_wide_and_long_are_the_same() -> None:
    long = WIDE.melt(id_vars="item", var_name="model", value_name="score")
    for scores in (read_scores(WIDE), read_scores(long)):
        assert scores.item_ids.tolist() == ["007", "x"]
        assert scores.models == ("net", "tree")
        assert scores.values.tolist() == [[0.1, -3.0], [0.9, 2.5]]
        assert scores.values.dtype == np.float64
        assert scores.to_frame().equals(WIDE)
        assert len(scores) == 2


def test_scores_of_one_model() -> None:
    assert read_scores(WIDE).of("tree").tolist() == [-3.0, 2.5]
    with pytest.raises(UsageError, match="the scores have no model 'forest'; they have net, tree"):
        read_scores(WIDE).of("forest")


def test_numbers_are_read_exactly(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=500) * 10.0 ** np.random.default_rng(2).integers(-300, 300, 500)
    frame = pd.DataFrame({"item": [f"i{n}" for n in range(500)], "m": values})
    write_table(frame, tmp_path / "scores.csv")
    assert (read_scores(tmp_path / "scores.csv").of("m") == values).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item,m\nx,1\ny,inf\n", r"row 2 \(line 3\), column 'm': a score must be a finite number, got 'inf'"),
        ("item,m\nx,1\ny,1e999\n", r"row 2 \(line 3\), column 'm': a score must be a finite number, got '1e999'"),
        ("item,m\nx,high\n", r"row 1 \(line 2\), column 'm': a score must be a finite number, got 'high'"),
        ("item,m,n\nx,1,2\ny,,1\n", r"item 'y' has no score of model 'm' \(missing in all: 1\)"),
        ("item,m,n\nx,1,NaN\n", "item 'x' has no score of model 'n'"),
        ("item,m\nx,1\nx,1\n", r"row 2 \(line 3\), column 'item': the item 'x' is duplicated"),
        ("item,m,m\nx,1,1\n", "the column of a model is named twice: 'm'"),
        ("item\nx\n", "a wide table has one column per model"),
        ("item,model,score\nx,m,1\nx,m,1\n", r"row 2 .*: a score of the same model for item 'x' is duplicated"),
        ("item,model,score\nx,m,1\ny,n,1\n", r"item 'x' has no score of model 'n' \(missing in all: 2\)"),
        ("item,model,score\nx,,1\n", "column 'model': the id is blank"),
        ("m,n\n1,2\n", "has no item column"),
    ],
)
def test_bad_scores(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_scores(path)


def test_gaps_can_be_kept() -> None:
    frame = pd.DataFrame({"item": ["x", "x", "y"], "model": ["m", "n", "m"], "score": [1.0, None, 2.0]})
    values = read_scores(frame, missing="keep").values
    assert np.array_equal(values, [[1, np.nan], [2, np.nan]], equal_nan=True)
    with pytest.raises(UsageError, match="missing must be one of error, keep"):
        read_scores(frame, missing="drop")


def test_soft_labels_read_back_what_was_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"item": ["x", "x", "y"], "annotator": ["a", "b", "a"], "vote": [1, 0, 1]})
    labels = Majority(tie="positive").aggregate(read_votes(frame))
    write_table(labels.to_frame(), tmp_path / "soft_labels.csv")
    again = read_soft_labels(tmp_path / "soft_labels.csv")
    assert again.to_frame().equals(labels.to_frame())
    assert again.difficulty is None


def test_soft_labels_of_others_need_two_columns() -> None:
    labels = read_soft_labels(pd.DataFrame({"image": [1, 2], "p": [0.25, 1]}))
    assert labels.item_ids.tolist() == ["1", "2"]
    assert labels.p.tolist() == [0.25, 1.0]
    assert labels.n_votes.tolist() == [0, 0]
    assert np.isnan(labels.mean_vote).all()
    assert np.isnan(labels.expected_vote).all()
    assert labels.label is None


def test_difficulty_is_read() -> None:
    columns = {"b_mean": [0.5], "b_sd": [0.1], "b_lo": [0.3], "b_hi": [0.7]}
    labels = read_soft_labels(pd.DataFrame({"item": ["x"], "p": [0.9], **columns}))
    assert labels.difficulty is not None
    assert labels.difficulty.high.tolist() == [0.7]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"item": ["x"], "q": [1]}, "has no p column"),
        ({"item": ["x", "y"], "p": [0.5, 1.5]}, r"row 2, column 'p': a soft label must lie in \[0, 1\], got '1.5'"),
        ({"item": ["x", "y"], "p": [0.5, None]}, "row 2, column 'p': a soft label must lie in"),
        ({"item": ["x", "x"], "p": [0.5, 0.5]}, "row 2, column 'item': the item 'x' is duplicated"),
        ({"item": ["x"], "p": [0.5], "label": [2]}, "row 1, column 'label': a hard label must be 0 or 1"),
    ],
)
def test_bad_soft_labels(frame: dict[str, list[object]], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_soft_labels(pd.DataFrame(frame))
