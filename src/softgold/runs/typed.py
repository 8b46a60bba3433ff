"""Typed values from JSON: `decode` reads back what `softgold.output.to_jsonable` wrote, by the type's own hints."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from softgold.tables.text import as_text

LARGEST = 2.0**1023  # a longer integer is no float


def decode(hint: Any, value: Any, where: str = "value") -> Any:
    """Return `value` as the type that `hint` names.

    Args:
        hint: A frozen dataclass, a plain type, None, a Literal, a union, a NumPy array, a pandas frame, or a tuple or
            mapping of those.
        value: What JSON gave. A number that was not finite was written as null and comes back as NaN.
        where: Name of the value, for messages.

    Raises:
        ValueError: The value does not have this type; the message names the place.

    Example:
        >>> decode(tuple[float, ...], [1, None], "elbo")
        (1.0, nan)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _decode_union(inner, value, where)
    if origin is Literal:
        return _checked(value in inner, value, where, f"one of {', '.join(map(repr, inner))}")
    if is_dataclass(hint):
        return _decode_dataclass(hint, value, where)
    container = origin or hint
    if container in _CONTAINERS:
        return _CONTAINERS[container](inner, value, where)
    return _decode_scalar(hint, value, where)


def _decode_union(members: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in members:
        return None
    problems = []
    for member in members:
        if member is type(None):
            continue
        try:
            return decode(member, value, where)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError(problems[0])


def _decode_dataclass(hint: Any, value: Any, where: str) -> Any:
    _checked(isinstance(value, dict), value, where, "an object")
    hints = get_type_hints(hint)
    found = {}
    for field in fields(hint):
        place = f"{where}.{field.name}"
        if field.name in value:
            found[field.name] = decode(hints[field.name], value[field.name], place)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{place} is missing")
    return hint(**found)


def _decode_tuple(inner: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    _checked(isinstance(value, list), value, where, "a list")
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(decode(inner[0], entry, f"{where}[{at}]") for at, entry in enumerate(value))
    _checked(len(value) == len(inner), value, where, f"a list of {len(inner)}")
    return tuple(
        decode(kind, entry, f"{where}[{at}]") for at, (kind, entry) in enumerate(zip(inner, value, strict=True))
    )


def _decode_mapping(inner: tuple[Any, ...], value: Any, where: str) -> dict[str, Any]:
    _checked(isinstance(value, dict), value, where, "an object")
    kind = inner[1] if inner else Any
    return {key: decode(kind, entry, f"{where}.{key}") for key, entry in value.items()}


def _decode_array(inner: tuple[Any, ...], value: Any, where: str) -> np.ndarray[Any, Any]:
    _checked(isinstance(value, list), value, where, "a list of numbers")
    dtype = get_args(inner[1])[0] if len(inner) > 1 and get_args(inner[1]) else np.float64
    try:
        return np.array(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{where} is not an array of {np.dtype(dtype)}") from None


def _decode_frame(inner: tuple[Any, ...], value: Any, where: str) -> pd.DataFrame:
    _checked(isinstance(value, dict), value, where, "a table, as an object of columns")
    columns = {name: _decode_column(cells, f"{where}.{name}") for name, cells in value.items()}
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"{where} has columns of different lengths")
    return pd.DataFrame(columns)


def _decode_column(cells: Any, where: str) -> Any:
    """Return whole numbers as integers, other numbers and nulls as floats, and the rest as text."""
    _checked(isinstance(cells, list), cells, where, "a list")
    kinds = {type(cell) for cell in cells}
    if kinds == {bool}:
        return np.array(cells, dtype=np.bool_)
    if kinds == {int}:
        return np.array(cells, dtype=np.int64)
    if kinds <= {int, float, type(None)}:
        return np.array(cells, dtype=np.float64)
    if kinds <= {str, type(None)}:
        return as_text(pd.Series(cells, dtype=object))
    raise ValueError(f"{where} mixes {', '.join(sorted(kind.__name__ for kind in kinds))}")


_CONTAINERS = {
    tuple: _decode_tuple,
    Mapping: _decode_mapping,
    dict: _decode_mapping,
    np.ndarray: _decode_array,
    pd.DataFrame: _decode_frame,
}


def _decode_scalar(hint: Any, value: Any, where: str) -> Any:
    is_number = isinstance(value, int | float) and type(value) is not bool and abs(value) < LARGEST
    if hint is float:
        return float("nan") if value is None else float(_checked(is_number, value, where, "a number"))
    if hint is int:
        return _checked(is_number and isinstance(value, int), value, where, "a whole number")
    if hint in (str, bool):
        return _checked(isinstance(value, hint), value, where, "a text" if hint is str else "true or false")
    raise TypeError(f"{where} has the type {hint!r}, which cannot be stored")


def _checked(holds: bool, value: Any, where: str, expected: str) -> Any:
    if holds:
        return value
    text = repr(value)
    raise ValueError(f"{where} must be {expected}, got {text if len(text) <= 60 else text[:60] + '...'}")
