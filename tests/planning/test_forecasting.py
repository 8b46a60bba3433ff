"""What further votes would buy: what must hold, what happened, and the sentence."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import UsageError
from softgold.models.base import Fit
from softgold.planning import Crew, Forecast, forecast, read_crew
from softgold.planning.forecast_result import Ambiguous, Curve, VotesNeeded
from softgold.planning.forecasting import prediction_ends, votes_to_reach
from softgold.simulation import Simulation


@pytest.fixture(scope="module")
def found(fitted: Fit) -> Forecast:
    return forecast(fitted, target_error=0.16, horizon=12, n_campaigns=20)


def test_curves_start_now_and_fall(found: Forecast, fitted: Fit) -> None:
    now = fitted.posterior.soft_labels().uncertainty.mean()
    assert found.error == pytest.approx(now)
    for curve in (found.adaptive, found.uniform):
        assert curve.votes[0] == 0
        assert curve.error[0] == pytest.approx(now, abs=0.03)
        assert curve.error[-1] < curve.error[0]
        assert curve.brier[-1] < curve.brier[0]
        assert (curve.error_low <= curve.error_high).all()
    assert found.adaptive.error[0] == pytest.approx(found.uniform.error[0])
    assert found.error_left < found.adaptive.error[-1]


def test_votes_placed_well_buy_more(found: Forecast) -> None:
    middle = slice(10, 40)
    assert (found.adaptive.brier[middle] < found.uniform.brier[middle]).all()
    assert found.needed is not None
    assert found.needed.votes < found.needed.uniform
    assert found.needed.low <= found.needed.votes <= found.needed.high


def test_the_same_seed_gives_the_same_forecast(fitted: Fit) -> None:
    one, two, other = (forecast(fitted, horizon=4, n_campaigns=20, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.adaptive.error, two.adaptive.error)
    assert not np.array_equal(one.adaptive.error, other.adaptive.error)


def test_whoever_has_voted_is_free_unless_said_otherwise(fitted: Fit) -> None:
    everybody = read_crew(fitted.posterior.annotators()[["annotator"]])
    one, two = (
        forecast(fitted, horizon=4, n_campaigns=20),
        forecast(fitted, annotators=everybody, horizon=4, n_campaigns=20),
    )
    assert np.array_equal(one.adaptive.error, two.adaptive.error)


def test_nobody_free_is_said(fitted: Fit) -> None:
    nobody = Crew(fitted.votes.annotator_ids, np.zeros(fitted.votes.n_annotators, dtype=np.int64))
    with pytest.raises(UsageError, match="nobody is free"):
        forecast(fitted, annotators=nobody, horizon=4, n_campaigns=20)


def test_able_annotators_promise_more(fitted: Fit) -> None:
    ability = fitted.posterior.annotators().set_index("annotator")["ability_mean"].sort_values()
    ends = {}
    for name, ids in (("worst", ability.index[:6]), ("best", ability.index[-6:])):
        crew = Crew(pd.Index(ids, dtype="str"), np.full(6, 100))
        ends[name] = forecast(fitted, annotators=crew, horizon=6, n_campaigns=20).uniform.brier[-1]
    assert ends["best"] < ends["worst"]


@pytest.mark.slow
def test_the_realised_error_lies_in_the_interval_as_often_as_it_says() -> None:
    """Simulated campaigns: forecast at three votes per item, two more bought for all, refitted, compared."""
    inside = []
    for seed in range(10):
        study = softgold.simulate(n_items=300, n_annotators=40, votes_per_item=5, prevalence=0.4, seed=seed)
        votes = study.votes.to_frame()
        early = votes[votes.groupby("item").cumcount() < 3]
        now = forecast(softgold.fit(early, engine="coordinate"), horizon=2, n_campaigns=20, seed=seed)
        later = softgold.fit(votes, engine="coordinate").posterior.soft_labels()
        truth = pd.Series(study.truth.label, index=study.truth.item_ids).reindex(later.item_ids).to_numpy()
        wrong = ((later.p >= 0.5) != truth).mean()
        _, low, high = now.uniform.error_at(2 * 300)
        inside.append(low <= wrong <= high)
    assert sum(inside) >= 7


def test_ambiguous_items_have_been_looked_at_and_stay_even(study: Simulation) -> None:
    votes = softgold.simulate(n_items=150, n_annotators=40, votes_per_item=25, seed=2)
    fit = softgold.fit(votes.votes, engine="coordinate")
    items = forecast(fit, horizon=2, n_campaigns=20).ambiguous
    assert 0 < len(items) < 75
    assert (np.minimum(items.p, 1 - items.p) >= items.error_left - 1e-9).all()
    assert np.minimum(items.p, 1 - items.p).mean() > 0.2
    assert list(items.to_frame().columns) == ["item", "p", "n_votes", "error_left"]
    look = pd.Series(votes.truth.difficulty, index=votes.truth.item_ids).abs()
    assert look.loc[items.item_ids].mean() < 0.5 * look.mean()


@pytest.mark.parametrize(
    ("error", "target", "expected"),
    [
        ([0.4, 0.3, 0.1], 0.2, 15.0),
        ([0.4, 0.3, 0.1], 0.4, 0.0),
        ([0.4, 0.3, 0.3], 0.2, math.inf),
        ([0.2, 0.3, 0.1], 0.15, 15.0),
    ],
)
def test_crossings(error: list[float], target: float, expected: float) -> None:
    assert votes_to_reach(np.array([0.0, 10.0, 20.0]), np.array(error), target) == pytest.approx(expected)


def test_an_interval_holds_as_many_further_draws_as_it_says() -> None:
    draws = np.random.default_rng(0).standard_normal((41, 4000))
    low, high = prediction_ends(draws[:40])
    assert np.mean((low <= draws[40]) & (draws[40] <= high)) == pytest.approx(0.9, abs=0.015)


def sentence(needed: VotesNeeded | None, ambiguous: int = 0, error_left: float = 0.02) -> str:
    flat = np.full(2, 0.1)
    curve = Curve(np.array([0.0, 10.0]), flat, flat - 0.02, flat + 0.02, flat, flat, flat)
    ids = pd.Index([f"i{number}" for number in range(ambiguous)], dtype="str")
    items = Ambiguous(ids, np.zeros(ambiguous), np.ones(ambiguous, dtype=np.int64), np.zeros(ambiguous))
    return str(Forecast(1000, 5000, 0.1, error_left, curve, curve, needed, items, 0.9, 20))


def test_the_sentence() -> None:
    assert sentence(None) == "about 10.0 % of the 1,000 labels are wrong now (8.0 % - 12.0 %); no item is ambiguous"
    text = sentence(VotesNeeded(0.03, 4133.0, 3590.0, 4910.0, 9012.0), ambiguous=212)
    assert "to reach 3 % wrong you need about 4,100 more votes (3,600 - 4,900), 9,000 if spread evenly" in text
    assert text.endswith("212 items are ambiguous and no number of votes will settle them: ask an expert")
    assert "1 item is ambiguous" in sentence(None, ambiguous=1)
    never = VotesNeeded(0.03, math.inf, 100.0, math.inf, math.inf)
    assert "3 % wrong is not reached with 20 more votes per item" in sentence(never)
    assert "cannot be reached by votes: about 5.0 % stay wrong" in sentence(never, error_left=0.05)
    assert "more than were looked at" in sentence(VotesNeeded(0.03, 50.0, 10.0, math.inf, math.inf))
    assert "3 % wrong is reached already" in sentence(VotesNeeded(0.03, 0.0, 0.0, 0.0, 0.0))


@pytest.mark.parametrize("options", [{"target_error": 1.5}, {"horizon": 0}, {"n_campaigns": 3}, {"seed": -1}])
def test_bad_arguments_are_said(fitted: Fit, options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        forecast(fitted, **options)  # type: ignore[arg-type]
