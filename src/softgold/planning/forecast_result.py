"""What a forecast says: curves, votes needed, ambiguous items, and one sentence that sums it up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """What to expect after so many further votes, each array of shape (P,).

    Attributes:
        votes: Further votes.
        error: Expected share of wrong labels.
        error_low: Lower end of its interval.
        error_high: Upper end.
        brier: Expected Brier score.
        brier_low: Lower end of its interval.
        brier_high: Upper end.
    """

    votes: FloatArray
    error: FloatArray
    error_low: FloatArray
    error_high: FloatArray
    brier: FloatArray
    brier_low: FloatArray
    brier_high: FloatArray

    def error_at(self, votes: float) -> tuple[float, float, float]:
        """Return the expected share of wrong labels after some votes, and its interval."""
        value, low, high = (
            float(np.interp(votes, self.votes, part)) for part in (self.error, self.error_low, self.error_high)
        )
        return value, low, high

    def to_frame(self) -> pd.DataFrame:
        """Return one row per number of votes."""
        return pd.DataFrame(vars(self))


@dataclass(frozen=True)
class VotesNeeded:
    """Further votes until a share of wrong labels is reached.

    Attributes:
        target_error: The share.
        votes: About how many votes; infinite where they do not reach it.
        low: Lower end of the interval.
        high: Upper end; infinite where some simulated campaigns do not reach it.
        uniform: Votes needed when every item gets equally many.
    """

    target_error: float
    votes: float
    low: float
    high: float
    uniform: float


@dataclass(frozen=True, eq=False)
class Ambiguous:
    """Items that no number of votes will settle, the most even first, each array of shape (M,).

    Attributes:
        item_ids: Their ids, length M.
        p: Soft labels.
        n_votes: Votes so far.
        error_left: Expected chance of a wrong label after any number of votes.
    """

    item_ids: pd.Index[str]
    p: FloatArray
    n_votes: NDArray[np.int64]
    error_left: FloatArray

    def __len__(self) -> int:
        return len(self.item_ids)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per item: `item, p, n_votes, error_left`."""
        return pd.DataFrame(
            {"item": self.item_ids, "p": self.p, "n_votes": self.n_votes, "error_left": self.error_left}
        )


@dataclass(frozen=True, eq=False)
class Forecast:
    """What further votes would buy.

    Attributes:
        n_items: Number of items.
        n_votes: Votes so far.
        error: Expected share of wrong labels now.
        error_left: The same after any number of votes.
        adaptive: Votes bought one after the other where they are worth most.
        uniform: Equally many votes on every item.
        needed: Votes until the target, where one was given.
        ambiguous: Items to ask an expert about.
        level: Probability of the intervals.
        horizon: Further votes per item that were looked at.
    """

    n_items: int
    n_votes: int
    error: float
    error_left: float
    adaptive: Curve
    uniform: Curve
    needed: VotesNeeded | None
    ambiguous: Ambiguous
    level: float
    horizon: int

    def to_frame(self) -> pd.DataFrame:
        """Return both curves in one table, `policy` first."""
        named = (("adaptive", self.adaptive), ("uniform", self.uniform))
        return pd.concat([curve.to_frame().assign(policy=name) for name, curve in named], ignore_index=True)[
            ["policy", *vars(self.adaptive)]
        ]

    def __str__(self) -> str:
        now, low, high = self.adaptive.error_at(0)
        text = (
            f"about {_percent(now)} of the {self.n_items:,} labels are wrong now ({_percent(low)} - {_percent(high)})"
        )
        if self.needed is not None:
            text += f"; {_needed_words(self)}"
        return f"{text}; {_ambiguous_words(len(self.ambiguous))}"


def _needed_words(found: Forecast) -> str:
    needed = found.needed
    assert needed is not None
    goal = f"{100 * needed.target_error:g} % wrong"
    if needed.votes == 0:
        return f"{goal} is reached already"
    if math.isinf(needed.votes) and needed.target_error <= found.error_left:
        stay = _percent(found.error_left)
        return f"{goal} cannot be reached by votes: about {stay} stay wrong however many are bought"
    if math.isinf(needed.votes):
        return f"{goal} is not reached with {found.horizon} more votes per item"
    most = "more than were looked at" if math.isinf(needed.high) else f"{_rounded(needed.high):,}"
    even = "" if math.isinf(needed.uniform) else f", {_rounded(needed.uniform):,} if spread evenly"
    about, least = _rounded(needed.votes), _rounded(needed.low)
    return f"to reach {goal} you need about {about:,} more votes ({least:,} - {most}){even}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _rounded(votes: float) -> int:
    """Return a number of votes with two significant digits: more would promise too much."""
    return int(float(f"{votes:.2g}"))


def _ambiguous_words(count: int) -> str:
    if count == 0:
        return "no item is ambiguous"
    if count == 1:
        return "1 item is ambiguous and no number of votes will settle it: ask an expert"
    return f"{count:,} items are ambiguous and no number of votes will settle them: ask an expert"
