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

import errno
import warnings

__all__ = [
    "BudgetError",
    "ConvergenceWarning",
    "DataWarning",
    "InputError",
    "OutputError",
    "SoftgoldError",
    "SoftgoldWarning",
    "StorageError",
    "UsageError",
]

# Of PyTorch, Arrow, Python and the loader of libraries, which have no exceptions of their own for it; a thread needs
# memory for its stack.
SHORTAGES = (
    "not enough memory",
    "Failed to launch worker thread",
    "can't start new thread",
    "failed to map segment from shared object",
)


class SoftgoldError(Exception):
    """Root of every error in the input or in its use, not in softgold itself. Exit code 2.

    Example:
        >>> issubclass(InputError, SoftgoldError), issubclass(OutputError, OSError)
        (True, True)
    """


class InputError(SoftgoldError, ValueError):
    """A table, file or array breaks its contract.

    Example:
        >>> import softgold
        >>> try:
        ...     softgold.metrics.soft_auroc([0.5, 2], [1, 2])
        ... except softgold.errors.InputError as error:
        ...     print(error)
        p must lie in [0, 1], got 2.0 at position 1
    """


class UsageError(SoftgoldError, ValueError):
    """An argument or an option has a value that it cannot have.

    Example:
        >>> import softgold
        >>> try:
        ...     softgold.simulate(n_items=0)
        ... except softgold.errors.UsageError as error:
        ...     print(error)
        n_items must be a whole number of at least 2, got 0
    """


class BudgetError(UsageError):
    """A budget is above the number of votes that are worth buying.

    Attributes:
        open_votes: Number of votes that are.

    Example:
        >>> import softgold
        >>> fit = softgold.fit(softgold.simulate(n_items=50, seed=0).votes, engine="coordinate")
        >>> try:
        ...     softgold.plan_votes(fit, 1000)
        ... except BudgetError as error:
        ...     print(softgold.plan_votes(fit, error.open_votes).budget == error.open_votes)
        True
    """

    def __init__(self, message: str, open_votes: int) -> None:
        super().__init__(message)
        self.open_votes = open_votes


class OutputError(SoftgoldError, OSError):
    """A result cannot be written where it was asked for.

    Example:
        >>> import tempfile, softgold
        >>> fit = softgold.fit(softgold.simulate(n_items=30, n_annotators=12, seed=0).votes, model="mean")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/run")
        ...     try:
        ...         fit.save(f"{folder}/run")
        ...     except OutputError:
        ...         print("there is a run already")
        there is a run already
    """


class StorageError(SoftgoldError, ValueError):
    """A stored run is damaged, foreign, or of an unknown version.

    Example:
        >>> import pathlib, tempfile, softgold
        >>> fit = softgold.fit(softgold.simulate(n_items=30, n_annotators=12, seed=0).votes, model="mean")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = pathlib.Path(folder, "run")
        ...     fit.save(run)
        ...     _ = (run / "run.json").write_text("{")
        ...     try:
        ...         softgold.open_run(run).fit
        ...     except StorageError:
        ...         print("the run is damaged")
        the run is damaged
    """


class SoftgoldWarning(UserWarning):
    """Root of every warning of softgold.

    Example:
        >>> issubclass(DataWarning, SoftgoldWarning), issubclass(ConvergenceWarning, SoftgoldWarning)
        (True, True)
    """


class DataWarning(SoftgoldWarning):
    """The data is usable, but needs attention.

    Example:
        >>> import warnings, pandas as pd, softgold
        >>> frame = pd.DataFrame({"item": ["x", "x"], "annotator": ["ann", "ann"], "vote": [1, 1]})
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     votes = softgold.read_votes(frame)
        >>> print(caught[0].message)
        1 pair of item and annotator has the same vote more than once (first at row 2); one of each is kept
    """


class ConvergenceWarning(SoftgoldWarning):
    """A fit stopped before it had settled.

    Example:
        >>> import warnings, softgold
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     fit = softgold.fit(softgold.simulate(n_items=50, seed=0).votes, engine="coordinate", max_steps=2)
        >>> print(caught[0].category.__name__, fit.diagnostics.converged)
        ConvergenceWarning False
    """


def warn(message: str, category: type[SoftgoldWarning] = DataWarning) -> None:
    """Warn the caller of the public function that called this one."""
    warnings.warn(message, category, stacklevel=3)


def is_shortage(error: Exception) -> bool:
    """Say whether an error of any library means that memory ran out.

    >>> is_shortage(MemoryError()), is_shortage(RuntimeError("can't start new thread")), is_shortage(ValueError("bad"))
    (True, True, False)
    """
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or any(words in str(error) for words in SHORTAGES)
    )
