"""Ids are stored as text; the name of an index records whether they were whole numbers, to restore them."""

from __future__ import annotations

from typing import Any

import pandas as pd

WHOLE = {"int64", "uint64"}


def restore_ids(ids: pd.Index[Any]) -> pd.Index[Any]:
    """Return ids in the type in which they came.

    >>> restore_ids(pd.Index(["7", "12"], dtype="str", name="int64")).tolist()
    [7, 12]
    >>> restore_ids(pd.Index(["007"], dtype="str")).tolist()
    ['007']
    """
    return ids.astype(str(ids.name)).rename(None) if ids.name in WHOLE else ids


def compare_ids(left: pd.Index[Any], left_name: str, right: pd.Index[Any], right_name: str) -> str:
    """Say what the ids of two tables look like, for a join that finds nothing.

    >>> compare_ids(pd.Index(["1.png"]), "the scores", pd.Index(["1", "2"]), "the soft labels")
    "ids in the scores look like '1.png'; ids in the soft labels look like '1', '2'"
    """
    return f"ids in {left_name} look like {_examples(left)}; ids in {right_name} look like {_examples(right)}"


def _examples(ids: pd.Index[Any], shown: int = 3) -> str:
    return (
        ", ".join(repr(text if len(text) <= 40 else f"{text[:40]}...") for text in map(str, ids[:shown])) or "nothing"
    )
