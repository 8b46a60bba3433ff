"""A run directory that is read while others may replace it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from softgold.errors import StorageError
from softgold.output import Stamps, reading, stamps


@dataclass(frozen=True)
class RunFolder:
    """A directory whose parts are read when they are first used, each as a whole.

    Parts that must belong together are read inside `with run.reading():`.

    Attributes:
        path: The directory.
    """

    path: Path
    _began: Stamps = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_began", stamps(self.path))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let a block read several parts while no other process replaces any of them.

        Raises:
            StorageError: Another fit took the place of the run since it was opened.
        """
        with reading(self.path):
            if stamps(self.path) != self._began:
                raise StorageError(f"{self.path} was replaced by another fit since it was opened; open it again")
            yield
