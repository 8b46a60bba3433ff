"""The section on further votes says what the forecast, the plan and the history say."""

from __future__ import annotations

import pytest

import softgold
from softgold.models.base import Fit
from softgold.planning import Forecast, VotePlan
from softgold.report.planning_section import planning_section
from softgold.runs import Round


@pytest.fixture(scope="module")
def fit() -> Fit:
    return softgold.fit(
        softgold.simulate(n_items=150, n_annotators=20, votes_per_item=3, seed=1).votes, engine="coordinate"
    )


@pytest.fixture(scope="module")
def plan(fit: Fit) -> VotePlan:
    return softgold.plan_votes(fit, 60)


@pytest.fixture(scope="module")
def forecast(fit: Fit) -> Forecast:
    return softgold.forecast(fit, horizon=12, n_campaigns=20)


def test_numbers_are_those_of_the_values(forecast: Forecast, plan: VotePlan) -> None:
    section = planning_section(forecast, plan)
    (panel,) = section.panels
    assert section.title == "What to do next"
    assert "labels are wrong now" in section.words
    assert "60 votes on" in section.words
    (figure,) = panel.figures
    assert figure.table is not None
    first = figure.table.rows[0]
    assert first[0].text == "0"
    assert first[1].order == pytest.approx(forecast.adaptive.error[0])
    table = panel.tables[0]
    assert [row[0].text for row in table.rows] == plan.item_ids[:15].tolist()
    assert sum(row[4].order or 0 for row in table.rows) == plan.votes_suggested[:15].sum()
    assert "softgold next RUN --budget N" in table.rest
    assert panel.tables[1].rows[0][0].text == forecast.ambiguous.item_ids[0]


def test_the_history_is_drawn_from_the_second_round_on(forecast: Forecast) -> None:
    rounds = (Round(100, 100, 50, 9, 0.2), Round(40, 140, 50, 9, 0.15, 2.0, "new.csv"))
    assert len(planning_section(forecast, history=rounds[:1]).panels[0].figures) == 1
    figure = planning_section(forecast, history=rounds).panels[0].figures[1]
    assert figure.title == "The campaign so far"
    assert "2 rounds: 20.0 % expected wrong at first, 15.0 % now." in figure.words
    assert figure.svg.count("<circle") == 2
    assert figure.table is not None
    assert [cell.text for cell in figure.table.rows[1]] == ["2", "40", "140", "15.00 %", "2.00"]
    assert figure.table.rows[0][4].text == "–"


def test_a_model_that_does_not_tell_says_so() -> None:
    section = planning_section()
    assert section.words == "This model does not say what further votes would change."
    assert section.panels[0].tables == ()


def test_names_are_escaped(fit: Fit) -> None:
    frame = fit.votes.to_frame()
    frame["item"] = "<b>" + frame["item"]
    found = softgold.fit(frame, engine="coordinate")
    section = planning_section(plan=softgold.plan_votes(found, 5))
    assert section.panels[0].tables[0].rows[0][0].text.startswith("<b>")  # the page escapes cells
