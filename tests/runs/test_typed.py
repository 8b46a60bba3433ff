"""Typed values through JSON: what `to_jsonable` wrote comes back equal, anything else is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from softgold.output import json_text
from softgold.runs.typed import decode


@dataclass(frozen=True)
class Part:
    """A part."""

    name: Literal["a", "b"]
    size: int
    share: float = 0.5


@dataclass(frozen=True, eq=False)
class Whole:
    """A value with everything in it that may be stored."""

    parts: tuple[Part, ...]
    pair: tuple[str, int]
    maybe: Part | None
    nothing: float | None
    by_name: Mapping[str, float]
    matrix: NDArray[np.float64]
    counts: NDArray[np.int64]
    table: pd.DataFrame
    flag: bool


def whole() -> Whole:
    table = pd.DataFrame({"expert": ["NA", "7"], "rate": [0.1, np.nan], "n": [3, 4], "ok": [True, False]})
    return Whole(
        (Part("a", 1), Part("b", 2, 0.1 + 0.2)),
        ("x", 3),
        Part("a", 5),
        None,
        {"z": 1.0, "nan": float("nan")},
        np.array([[1.5, np.nan], [0.1, 2.0]]),
        np.array([1, 2]),
        table.astype({"expert": "str"}),
        True,
    )


def through_json(value: Any) -> Any:
    return json.loads(json_text(value))


def test_a_value_comes_back_equal() -> None:
    before = whole()
    after = decode(Whole, through_json(before))
    for name in ("parts", "pair", "maybe", "nothing", "flag"):
        assert getattr(after, name) == getattr(before, name)
    assert list(after.by_name) == ["z", "nan"]
    assert np.isnan(after.by_name["nan"])
    np.testing.assert_array_equal(after.matrix, before.matrix)
    assert after.counts.dtype == np.int64
    pd.testing.assert_frame_equal(after.table, before.table)


def test_a_table_without_rows_keeps_its_columns() -> None:
    empty = pd.DataFrame({"detector": [], "auroc": []})
    assert list(decode(pd.DataFrame, through_json(empty)).columns) == ["detector", "auroc"]


def test_a_default_stands_in_for_a_field_that_is_missing() -> None:
    assert decode(Part, {"name": "a", "size": 1}) == Part("a", 1)


@pytest.mark.parametrize(
    ("hint", "value", "said"),
    [
        (Part, {"size": 1}, "value.name is missing"),
        (Part, [], "value must be an object, got []"),
        (Part, {"name": "c", "size": 1}, "value.name must be one of 'a', 'b', got 'c'"),
        (Part, {"name": "a", "size": 1.5}, "value.size must be a whole number, got 1.5"),
        (Part, {"name": "a", "size": True}, "value.size must be a whole number, got True"),
        (Part, {"name": "a", "size": 1, "share": "x"}, "value.share must be a number, got 'x'"),
        (float, 10**400, "value must be a number"),
        (tuple[Part, ...], [{"name": "a", "size": 1}, 3], "value[1] must be an object, got 3"),
        (tuple[str, int], ["x"], "value must be a list of 2"),
        (Mapping[str, float], {"a": "b"}, "value.a must be a number"),
        (NDArray[np.float64], ["x"], "value is not an array of float64"),
        (NDArray[np.int64], [10**30], "value is not an array of int64"),
        (NDArray[np.float64], 3, "value must be a list of numbers"),
        (pd.DataFrame, {"a": [1], "b": []}, "value has columns of different lengths"),
        (pd.DataFrame, {"a": [1, "x"]}, "value.a mixes int, str"),
        (bool, 1, "value must be true or false, got 1"),
        (str, "x" * 100, None),
        (int, "x" * 100, "got " + repr("x" * 100)[:60] + "..."),
    ],
)
def test_what_has_another_type_is_named(hint: Any, value: Any, said: str | None) -> None:
    if said is None:
        assert decode(hint, value) == value
        return
    with pytest.raises(ValueError, match="value") as caught:
        decode(hint, value)
    assert said in str(caught.value)
