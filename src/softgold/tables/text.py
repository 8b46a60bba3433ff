"""Columns of text, alike under pandas 2, where they hold objects, and pandas 3, which has a type for them."""

from __future__ import annotations

from typing import Any

import pandas as pd

# Options of `read_csv` that read back every digit: pandas 3.1 does so by itself, and warns of the option.
EVERY_DIGIT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)


def as_text(column: pd.Series[Any]) -> pd.Series[str]:
    """Return a column as text; missing cells stay missing, where `astype("str")` of pandas 2 would write "None".

    >>> as_text(pd.Series([7, None], dtype=object)).tolist()
    ['7', nan]
    """
    return column.astype("str").where(column.notna())
