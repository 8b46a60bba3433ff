"""The exceptions and warnings that softgold raises, all of them below one root.

A message is one sentence for a person: what is wrong, where (file, row, column, value), what to do about it.

    >>> import pandas as pd, softgold
    >>> try:
    ...     softgold.read_votes(pd.DataFrame({"item": ["x"], "annotator": ["ann"], "vote": [2]}))
    ... except softgold.errors.InputError as error:
    ...     print(error)
    the data frame, row 1, column 'vote': a vote must be 0 or 1, ...
"""

from __future__ import annotations

import warnings

__all__ = [
    "ConvergenceWarning",
    "DataWarning",
    "InputError",
    "OutputError",
    "SoftgoldError",
    "SoftgoldWarning",
    "StorageError",
    "UsageError",
    "warn",
]


class SoftgoldError(Exception):
    """Root of every error in the input or in its use, not in softgold itself. Exit code 2."""


class InputError(SoftgoldError, ValueError):
    """A table, file or array breaks its contract."""


class UsageError(SoftgoldError, ValueError):
    """An argument or an option has a value that it cannot have."""


class OutputError(SoftgoldError, OSError):
    """A result cannot be written where it was asked for."""


class StorageError(SoftgoldError, ValueError):
    """A stored run is damaged, foreign, or of an unknown version."""


class SoftgoldWarning(UserWarning):
    """Root of every warning of softgold."""


class DataWarning(SoftgoldWarning):
    """The data is usable, but needs attention."""


class ConvergenceWarning(SoftgoldWarning):
    """A fit stopped before it had settled."""


def warn(message: str, category: type[SoftgoldWarning] = DataWarning) -> None:
    """Warn the caller of the public function that called this one."""
    warnings.warn(message, category, stacklevel=3)
