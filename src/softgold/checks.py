"""Argument checks: each returns the clean value or raises an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softgold.errors import InputError, UsageError

FloatArray = NDArray[np.float64]

MOST_RESAMPLES = 1_000_000  # more would only change digits that nobody reads


def as_finite(values: ArrayLike, name: str, *, ndim: int | None = 1) -> FloatArray:
    """Return `values` as finite float64 with `ndim` dimensions (None for any number).

    >>> as_finite([1, 2], "scores")
    array([1., 2.])
    """
    array = _as_float(values, name)
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        where = np.argwhere(bad)[0].tolist()
        position = where[0] if array.ndim == 1 else tuple(where)
        raise InputError(f"{name} must be finite, got {array[bad][0]} at position {position}")
    return array


def as_probabilities(values: ArrayLike, name: str, *, ndim: int | None = 1) -> FloatArray:
    """Return `values` as float64 in [0, 1].

    >>> as_probabilities([0, 0.5], "p")
    array([0. , 0.5])
    """
    array = as_finite(values, name, ndim=ndim)
    outside = (array < 0) | (array > 1)
    if outside.any():
        where = np.argwhere(outside)[0].tolist()
        position = where[0] if array.ndim == 1 else tuple(where)
        raise InputError(f"{name} must lie in [0, 1], got {array[outside][0]} at position {position}")
    return array


def as_weights(values: ArrayLike | None, length: int, name: str = "sample_weight") -> FloatArray | None:
    """Return non-negative weights with a positive sum, or None for None.

    >>> as_weights(None, 3) is None
    True
    """
    if values is None:
        return None
    array = as_finite(values, name)
    check_same_length(length, **{name: array})
    if (array < 0).any():
        raise InputError(f"{name} must not be negative, got {array[array < 0][0]}")
    if length and array.sum() == 0:
        raise InputError(f"{name} must not be all zero")
    return array


def check_same_length(length: int, **arrays: NDArray[np.generic]) -> None:
    """Raise unless every array has `length` rows."""
    for name, array in arrays.items():
        if len(array) != length:
            raise InputError(f"{name} must have {length} rows like the other arrays, got {len(array)}")


def check_choice(value: str, choices: Sequence[str], name: str) -> None:
    """Raise unless `value` is one of `choices`."""
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


def check_positive_int(value: int, name: str, *, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int of at least `minimum` and at most `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise UsageError(f"{name} must be a whole number of at least {minimum}, got {value!r}")
    if maximum is not None and value > maximum:
        raise UsageError(f"{name} must be at most {maximum:,}, got {value!r}")
    return int(value)


def check_in_range(
    value: float, low: float, high: float, name: str, *, ends: Literal["closed", "open"] = "closed"
) -> float:
    """Return `value` as a float between `low` and `high`."""
    number = _as_number(value, name)
    inside = low <= number <= high if ends == "closed" else low < number < high
    if not inside:
        brackets = "[]" if ends == "closed" else "()"
        raise UsageError(f"{name} must lie in {brackets[0]}{low}, {high}{brackets[1]}, got {value!r}")
    return number


def check_pair(value: Sequence[float], name: str) -> tuple[float, float]:
    """Return two finite floats."""
    if not isinstance(value, Sequence) or len(value) != 2:
        raise UsageError(f"{name} must be two numbers, got {value!r}")
    first, second = (_as_number(number, name) for number in value)
    if not (np.isfinite(first) and np.isfinite(second)):
        raise UsageError(f"{name} must be two finite numbers, got {value!r}")
    return first, second


def check_ordered_pair(value: Sequence[float], name: str) -> tuple[float, float]:
    """Return (low, high) as finite floats with low < high."""
    low, high = check_pair(value, name)
    if low >= high:
        raise UsageError(f"{name} must be two numbers, the lower one first; got {value!r}")
    return low, high


def _as_number(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise UsageError(f"{name} must be a number, got {value!r}")
    return float(value)


def _as_float(values: ArrayLike, name: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numeric: {error}") from None
