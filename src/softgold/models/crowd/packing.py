"""Frozen dataclasses of numbers as flat dictionaries of arrays, and back: how the state of a fit is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import Arrays

Kind = TypeVar("Kind")


def pack(value: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """Return every field as an array; those of nested dataclasses and mappings are named `outer/inner`."""
    found: dict[str, NDArray[Any]] = {}
    for name, part in (value if isinstance(value, Mapping) else vars(value)).items():
        if isinstance(part, Mapping) or is_dataclass(part):
            found |= pack(part, f"{prefix}{name}/")
        else:
            found[prefix + name] = np.asarray(part)
    return found


def unpack(kind: Callable[..., Kind], arrays: Arrays, prefix: str = "") -> Kind:
    """Return the dataclass that `pack` took apart.

    >>> from softgold.models.crowd.population import Population
    >>> unpack(Population, pack(Population(2.0, 0.0, 1.0))).unit
    2.0
    """
    return kind(**{name: _value(hint, arrays, prefix + name) for name, hint in get_type_hints(kind).items()})


def _value(hint: Any, arrays: Arrays, name: str) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        return unpack(hint, arrays, f"{name}/")
    if get_origin(hint) is Mapping:
        return {key.removeprefix(f"{name}/"): arrays[key] for key in arrays if key.startswith(f"{name}/")}
    if get_origin(hint) is tuple:
        return tuple(arrays[name].tolist())
    return hint(arrays[name]) if hint in {int, float} else arrays[name]


class Packed:
    """A dataclass that is stored field by field."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fields as arrays."""
        return pack(self)
