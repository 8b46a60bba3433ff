"""What further votes would buy, placed adaptively or evenly, and when no further vote helps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgold.checks import check_in_range, check_positive_int
from softgold.models.base import Fit, Posterior
from softgold.planning.beliefs import Beliefs
from softgold.planning.campaigns import Campaign, Sample, run_campaign
from softgold.planning.crew import Crew
from softgold.planning.forecast_result import Ambiguous, Curve, Forecast, VotesNeeded
from softgold.tables.parts import VotesInParts

FloatArray = NDArray[np.float64]

LEVEL = 0.9
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
HORIZON = 20  # further votes per item that are looked at
SAMPLED_ITEMS = 1000
N_CAMPAIGNS = 40
FEWEST_CAMPAIGNS = 20  # fewer have no draw outside an interval of 90 %
N_POINTS = 61
UNSETTLED = 0.2  # chance of a wrong label that an ambiguous item keeps, more likely than not, after any number of votes


def forecast(
    fitted: Fit | Posterior,
    *,
    votes: VotesInParts | None = None,
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
        n_campaigns: Campaigns to simulate, at least 20.
        seed: Seed of the random numbers.

    Example:
        >>> import softgold
        >>> study = softgold.simulate(n_items=200, n_annotators=20, votes_per_item=3, seed=0)
        >>> found = forecast(softgold.fit(study.votes, engine="coordinate"), n_campaigns=20)
        >>> bool(found.adaptive.error[-1] < found.error), found.adaptive.error_at(400) < found.uniform.error_at(400)
        (True, True)
    """
    beliefs = Beliefs.of(fitted, votes)
    check_positive_int(horizon, "horizon")
    check_positive_int(n_campaigns, "n_campaigns", minimum=FEWEST_CAMPAIGNS)
    if target_error is not None:
        check_in_range(target_error, 0.0, 1.0, "target_error")
    sample = Sample.of(beliefs, annotators or Crew.of(beliefs), SAMPLED_ITEMS)
    rng = np.random.default_rng(check_positive_int(seed, "seed", minimum=0))
    campaigns = [run_campaign(sample, horizon, rng) for _ in range(n_campaigns)]
    luck = rng.standard_normal(n_campaigns)
    grid = np.rint(beliefs.n_items * horizon * np.linspace(0, 1, N_POINTS) ** 2)
    adaptive = _Courses.of([_adaptive(one, grid, beliefs.n_items) for one in campaigns], luck, grid)
    uniform = _Courses.of([_uniform(one, grid, beliefs.n_items) for one in campaigns], luck, grid)
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


Course = tuple[FloatArray, FloatArray, FloatArray]  # error, Brier score, variance of the share of wrong labels


def _adaptive(found: Campaign, grid: FloatArray, n_items: int) -> Course:
    """Return the course of a campaign that always buys the vote that is worth most.

    An item's next vote is bought once all votes worth more are bought, so that a vote counts with the smallest value
    on the way to it, and one sort of these gives the order of all votes.
    """
    sampled = len(found.value)
    bar = np.minimum.accumulate(found.value[:, :-1], axis=1)
    order = np.argsort(-bar, axis=None, kind="stable")
    bought = np.arange(1 + len(order)) * (n_items / sampled)
    variance = found.wrong * (1 - found.wrong)

    def course(values: FloatArray) -> FloatArray:
        steps = np.diff(values, axis=1).ravel()[order]
        total = values[:, 0].sum() + np.concatenate([[0.0], np.cumsum(steps)])
        found_at: FloatArray = np.interp(grid, bought, total / sampled)
        return found_at

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
    def of(cls, courses: list[Course], luck: FloatArray, grid: FloatArray) -> _Courses:
        """Add to every campaign the luck of the draw of its classes: a Normal deviate times their spread."""
        error, brier, variance = (np.array(part) for part in zip(*courses, strict=True))
        lucky = np.clip(error + luck[:, None] * np.sqrt(variance), 0.0, 1.0)
        return cls(grid, error, lucky, brier)

    def curve(self) -> Curve:
        """Return means and intervals."""
        (low, high), (brier_low, brier_high) = (prediction_ends(part) for part in (self.error_with_luck, self.brier))
        return Curve(self.votes, self.error.mean(axis=0), low, high, self.brier.mean(axis=0), brier_low, brier_high)

    def reach(self, target: float) -> FloatArray:
        """Return the votes at which every campaign reaches the target, infinite where it does not."""
        return np.array([votes_to_reach(self.votes, error, target) for error in self.error_with_luck])


def prediction_ends(draws: FloatArray) -> FloatArray:
    """Return the ends of the interval from n draws, shape (n, P) to (2, P).

    Weibull's positions: a further draw lies below the k-th smallest with probability k / (n + 1). NumPy's default ones
    would make an interval of 40 draws hold 86 % of further draws in place of 90 %.
    """
    ends: FloatArray = np.quantile(draws, TAILS, axis=0, method="weibull")
    return ends


def votes_to_reach(votes: FloatArray, error: FloatArray, target: float) -> float:
    """Return after how many votes an error falls to the target, interpolated; infinity if it does not."""
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
    low, high = (float(each[round(tail * (len(each) + 1)) - 1]) for tail in TAILS)  # not between finite and infinite
    middle, even = (votes_to_reach(part.votes, part.error.mean(axis=0), target) for part in (adaptive, uniform))
    return VotesNeeded(target, middle, min(low, middle), max(high, middle), even)


def _unsettled(beliefs: Beliefs) -> tuple[float, Ambiguous]:
    """Return the share of labels that stay wrong after any number of votes, and the items to ask an expert about."""
    positive = beliefs.states.positive
    left = np.minimum(positive, 1 - positive)
    table = np.column_stack([left, left > UNSETTLED])
    posterior, p = beliefs.posterior, beliefs.posterior.soft_labels().p
    error_left, unsettled = np.empty(beliefs.n_items), np.empty(beliefs.n_items, dtype=bool)

    def work(rows: slice, mass: FloatArray) -> None:
        known, share = (mass @ table).T
        sure = beliefs.certainty[rows]
        error = sure * known + (1 - sure) * (1 - known)
        error_left[rows] = np.minimum(error, np.minimum(p[rows], 1 - p[rows]))
        unsettled[rows] = share > 0.5

    for _ in beliefs.each_chunk(work):
        pass
    items = np.flatnonzero(unsettled)
    items = items[np.argsort(-error_left[items], kind="stable")]
    ambiguous = Ambiguous(posterior.item_ids[items], p[items], posterior.item_counts[items], error_left[items])
    return float(error_left.mean()), ambiguous
