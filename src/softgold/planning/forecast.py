"""What further votes would buy, placed adaptively or evenly, and when no further vote helps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_in_range, check_positive_int
from softgold.models.base import Fit, Posterior
from softgold.planning.beliefs import Beliefs
from softgold.planning.campaigns import Campaign, Sample, run_campaign
from softgold.planning.crew import Crew
from softgold.tables.votes import VoteTable

__all__ = ["Ambiguous", "Curve", "Forecast", "VotesNeeded", "forecast"]

FloatArray = NDArray[np.float64]

LEVEL = 0.9
HORIZON = 20  # further votes per item that are looked at
SAMPLED_ITEMS = 2000
N_CAMPAIGNS = 40
N_POINTS = 61
UNSETTLED = 0.2  # chance of a wrong label that an ambiguous item keeps, more likely than not, after any number of votes


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
        text = f"about {now:.1%} of the {self.n_items:,} labels are wrong now ({low:.1%} - {high:.1%})"
        if self.needed is not None:
            text += f"; {_needed_words(self)}"
        return f"{text}; {_ambiguous_words(len(self.ambiguous))}"


def _needed_words(found: Forecast) -> str:
    needed = found.needed
    assert needed is not None
    goal = f"{100 * needed.target_error:g} % wrong"
    if needed.votes == 0:
        return f"{goal} is reached already"
    if math.isinf(needed.votes):
        most = found.horizon
        if needed.target_error <= found.error_left:
            return f"{goal} cannot be reached by votes: about {found.error_left:.1%} stay wrong however many are bought"
        return f"{goal} is not reached with {most} more votes per item"
    high = "more than all looked at" if math.isinf(needed.high) else f"{_round(needed.high):,}"
    even = "" if math.isinf(needed.uniform) else f", {_round(needed.uniform):,} if spread evenly"
    return f"to reach {goal} you need about {_round(needed.votes):,} more votes ({_round(needed.low):,} - {high}){even}"


def _round(votes: float) -> int:
    """Return a number of votes to two significant digits: more would pretend."""
    if votes <= 0:
        return 0
    unit = 10 ** max(0, math.floor(math.log10(votes)) - 1)
    return round(votes / unit) * unit


def _ambiguous_words(count: int) -> str:
    if count == 0:
        return "no item is ambiguous"
    items = "1 item is ambiguous and no number of votes will settle it" if count == 1 else (
        f"{count:,} items are ambiguous and no number of votes will settle them"
    )
    return f"{items}: ask an expert"


def forecast(
    fitted: Fit | Posterior,
    *,
    votes: VoteTable | None = None,
    target_error: float | None = None,
    annotators: Crew | None = None,
    horizon: int = HORIZON,
    n_campaigns: int = N_CAMPAIGNS,
    seed: int = 0,
) -> Forecast:
    """Return the expected share of wrong labels and Brier score as a function of further votes.

    Campaigns are simulated from the fitted model (see `campaigns`). The intervals cover what is not known of the
    annotators, which votes will come, and the classes of the items; not that the model may be wrong.

    Args:
        fitted: A fit of a crowd model, or its posterior together with `votes`.
        votes: The votes that a posterior was fitted to; not needed with a fit.
        target_error: Share of wrong labels to reach.
        annotators: Who will vote; the annotators of the table, as active as before, if None.
        horizon: Further votes per item to look at.
        n_campaigns: Campaigns to simulate.
        seed: Seed of the random numbers.

    Example:
        >>> import softgold
        >>> study = softgold.simulate(n_items=200, n_annotators=20, votes_per_item=3, seed=0)
        >>> found = forecast(softgold.fit(study.votes, engine="coordinate"), n_campaigns=10)
        >>> bool(found.adaptive.error[-1] < found.error), found.adaptive.error_at(400) < found.uniform.error_at(400)
        (True, True)
    """
    beliefs = Beliefs.of(fitted, votes)
    check_positive_int(horizon, "horizon")
    check_positive_int(n_campaigns, "n_campaigns", minimum=10)
    if target_error is not None:
        check_in_range(target_error, 0.0, 1.0, "target_error")
    sample = _sample(beliefs, annotators)
    rng = np.random.default_rng(check_positive_int(seed, "seed", minimum=0))
    campaigns = [run_campaign(sample, horizon, rng) for _ in range(n_campaigns)]
    luck = rng.standard_normal(n_campaigns)
    grid = np.rint(beliefs.n_items * horizon * np.linspace(0, 1, N_POINTS) ** 2)
    adaptive = _Courses.of([_adaptive(one, grid, beliefs.n_items) for one in campaigns], luck, grid, beliefs.n_items)
    uniform = _Courses.of([_uniform(one, grid, beliefs.n_items) for one in campaigns], luck, grid, beliefs.n_items)
    left, ambiguous = _unsettled(beliefs)
    needed = None if target_error is None else _needed(target_error, adaptive, uniform)
    return Forecast(
        beliefs.n_items,
        beliefs.votes.n_votes,
        float(beliefs.posterior.soft_labels().uncertainty.mean()),
        left,
        adaptive.curve(),
        uniform.curve(),
        needed,
        ambiguous,
        LEVEL,
        horizon,
    )


def _sample(beliefs: Beliefs, crew: Crew | None) -> Sample:
    if crew is None:
        weight = beliefs.posterior.annotator_counts.astype(np.float64)
        return Sample.of(beliefs, beliefs.posterior.skills, weight, beliefs.pool(), SAMPLED_ITEMS)
    weight = crew.capacity.astype(np.float64)
    return Sample.of(beliefs, crew.skills(beliefs), weight, crew.pool(beliefs), SAMPLED_ITEMS)


Course = tuple[FloatArray, FloatArray, FloatArray]  # error, Brier score, variance of the share of wrong labels


def _adaptive(found: Campaign, grid: FloatArray, n_items: int) -> Course:
    """Return the course of a campaign that always buys the vote that is worth most.

    An item's next vote is bought once all votes worth more are bought, so that a vote counts with the smallest value
    on the way to it, and one sort of these gives the order of all votes.
    """
    sampled, steps = found.value.shape
    bar = np.minimum.accumulate(found.value[:, :-1], axis=1)
    order = np.argsort(-bar, axis=None, kind="stable")
    bought = np.arange(1 + len(order)) * (n_items / sampled)
    variance = found.wrong * (1 - found.wrong)

    def course(values: FloatArray) -> FloatArray:
        steps_down = np.diff(values, axis=1).ravel()[order]
        total = values[:, 0].sum() + np.concatenate([[0.0], np.cumsum(steps_down)])
        return np.interp(grid, bought, total / sampled)

    return course(found.wrong), course(found.brier), course(variance) / n_items


def _uniform(found: Campaign, grid: FloatArray, n_items: int) -> Course:
    bought = np.arange(found.wrong.shape[1]) * float(n_items)
    parts = (found.wrong, found.brier, found.wrong * (1 - found.wrong) / n_items)
    error, brier, variance = (np.interp(grid, bought, part.mean(axis=0)) for part in parts)
    return error, brier, variance


@dataclass(frozen=True, eq=False)
class _Courses:
    """The courses of all campaigns, arrays of shape (campaigns, P)."""

    votes: FloatArray
    error: FloatArray
    error_with_luck: FloatArray
    brier: FloatArray

    @classmethod
    def of(cls, courses: list[Course], luck: FloatArray, grid: FloatArray, n_items: int) -> _Courses:
        """Add to every campaign the luck of the draw of its classes: a Normal deviate times their spread."""
        error, brier, variance = (np.array(part) for part in zip(*courses, strict=True))
        lucky = np.clip(error + luck[:, None] * np.sqrt(variance), 0.0, 1.0)
        return cls(grid, error, lucky, brier)

    def curve(self) -> Curve:
        """Return means and intervals."""
        tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
        low, high = np.quantile(self.error_with_luck, tails, axis=0)
        brier_low, brier_high = np.quantile(self.brier, tails, axis=0)
        return Curve(self.votes, self.error.mean(axis=0), low, high, self.brier.mean(axis=0), brier_low, brier_high)

    def reach(self, target: float) -> FloatArray:
        """Return the votes at which every campaign reaches the target, infinite where it does not."""
        return np.array([_crossing(self.votes, error, target) for error in self.error_with_luck])


def _crossing(votes: FloatArray, error: FloatArray, target: float) -> float:
    falling = np.minimum.accumulate(error)
    if falling[-1] > target:
        return math.inf
    place = int(np.argmax(falling <= target))
    if place == 0:
        return 0.0
    before, after = falling[place - 1], falling[place]
    share = (before - target) / (before - after)
    return float(votes[place - 1] + share * (votes[place] - votes[place - 1]))


def _needed(target: float, adaptive: _Courses, uniform: _Courses) -> VotesNeeded:
    each = np.sort(adaptive.reach(target))
    low, high = (float(each[round(tail * (len(each) - 1))]) for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    middle, even = (_crossing(part.votes, part.error.mean(axis=0), target) for part in (adaptive, uniform))
    return VotesNeeded(target, middle, min(low, middle), max(high, middle), even)


def _unsettled(beliefs: Beliefs) -> tuple[float, Ambiguous]:
    """Return the share of labels that stay wrong after any number of votes, and the items to ask an expert about."""
    positive = beliefs.states.positive
    left = np.minimum(positive, 1 - positive)
    table = np.column_stack([left, left > UNSETTLED])
    found = np.concatenate(list(beliefs.each_chunk(lambda rows, mass: mass @ table)))
    sure = beliefs.certainty
    error_left = sure * found[:, 0] + (1 - sure) * (1 - found[:, 0])
    posterior, p = beliefs.posterior, beliefs.posterior.soft_labels().p
    error_left = np.minimum(error_left, np.minimum(p, 1 - p))
    items = np.flatnonzero(found[:, 1] > 0.5)
    items = items[np.argsort(-error_left[items], kind="stable")]
    ambiguous = Ambiguous(posterior.item_ids[items], p[items], posterior.item_counts[items], error_left[items])
    return float(error_left.mean()), ambiguous
