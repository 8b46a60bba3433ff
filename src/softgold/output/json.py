"""Results as JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from softgold.output.atomic import atomic_file
from softgold.output.targets import PathLike

SCALARS = {str, bool, int, float, type(None)}


def write_json(value: Any, path: PathLike, *, force: bool = False) -> None:
    """Write a value as JSON, atomically."""
    text = json_text(value)
    with atomic_file(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def json_text(value: Any) -> str:
    r"""Return `value` as indented JSON with a line end; see `to_jsonable` for what may be in it.

    Bytes of a file name that are not UTF-8 are escaped, and read back equal:

    >>> json_text({"source": os.fsdecode(b"votes-\xff.csv")})
    '{\n  "source": "votes-\\udcff.csv"\n}\n'
    """
    text = _indented(to_jsonable(value)) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _indented(value: Any, margin: str = "\n") -> str:
    """Return what `json.dumps` with `indent=2` gives, in less time: C encodes the lists of plain values."""
    inner = margin + "  "
    if isinstance(value, dict) and value:
        rows = (f"{_encoder().encode(key)}: {_indented(entry, inner)}" for key, entry in value.items())
        return f"{{{inner}{f',{inner}'.join(rows)}{margin}}}"
    if isinstance(value, list) and value:
        if set(map(type, value)) <= SCALARS:
            return f"[{inner}{_encoder(f',{inner}').encode(value)[1:-1]}{margin}]"
        return f"[{inner}{f',{inner}'.join(_indented(entry, inner) for entry in value)}{margin}]"
    return _encoder().encode(value)


@cache
def _encoder(separator: str = ", ") -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(separator, ": "))


def to_jsonable(value: Any) -> Any:
    """Return `value` in JSON's own types.

    Dataclasses and mappings become objects, arrays lists, data frames objects of columns, numbers not finite null.

    >>> from pathlib import Path
    >>> to_jsonable({"p": np.array([0.5, np.nan]), "seed": np.int64(7), "run": Path("x")})
    {'p': [0.5, None], 'seed': 7, 'run': 'x'}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.ndarray | np.generic):
        plain = value.dtype.kind in "biu" or (value.dtype.kind == "f" and np.isfinite(value).all())
        return value.tolist() if plain else to_jsonable(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # a data frame, without importing pandas
        value = value.to_dict(orient="list")
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(entry) for key, entry in value.items()}
    return _jsonable_list(list(value))


def _jsonable_list(entries: list[Any]) -> list[Any]:
    kinds = set(map(type, entries))
    if kinds == {float}:  # most lists are long columns of numbers
        return [entry if math.isfinite(entry) else None for entry in entries]
    return entries if kinds <= SCALARS - {float} else [to_jsonable(entry) for entry in entries]
