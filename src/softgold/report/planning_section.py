"""The section on further votes: what they would change, which to buy first, and how the campaign went so far."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from softgold.planning.allocation import VotePlan
from softgold.planning.forecast_result import Curve, Forecast
from softgold.report.blocks import Cell, Figure, Panel, Section, Table, amount, figure, named, numbers, percent, real
from softgold.report.svg import Canvas, nice_ticks
from softgold.runs import Round

TITLE = "Expected share of wrong labels"
MOST_ITEMS = 15
SHOWN_VOTES = (0.5, 1.0, 2.0, 5.0, 10.0)  # further votes per item in the table of the forecast


def planning_section(
    forecast: Forecast | None = None, plan: VotePlan | None = None, history: Sequence[Round] = ()
) -> Section:
    """Return "What to do next".

    Args:
        forecast: What further votes would change; None for models that do not tell.
        plan: The votes to buy first; None likewise, or when no vote is worth buying.
        history: Rounds of the campaign; shown from the second on.
    """
    figures = [] if forecast is None else [_forecast_figure(forecast)]
    if len(history) > 1:
        figures.append(_history_figure(history))
    tables = [] if plan is None else [_plan_table(plan)]
    if forecast is not None and len(forecast.ambiguous):
        tables.append(_ambiguous_table(forecast))
    return Section("next", "What to do next", _words(forecast, plan), (Panel(tuple(figures), tuple(tables)),))


def _words(forecast: Forecast | None, plan: VotePlan | None) -> str:
    texts = [str(part)[0].upper() + str(part)[1:] + "." for part in (forecast, plan) if part is not None]
    if forecast is not None and plan is None:
        texts.append("No vote is worth buying: none is expected to move a soft label by more than 0.01.")
    return " ".join(texts) or "This model does not say what further votes would change."


def _forecast_figure(found: Forecast) -> Figure:
    last = min(found.adaptive.votes[-1], 10.0 * found.n_items)
    adaptive, uniform = (_points(curve, last) for curve in (found.adaptive, found.uniform))
    after = found.adaptive.error_at(found.n_items)[0], found.uniform.error_at(found.n_items)[0]
    told = (
        f"After one more vote per item ({found.n_items:,} votes), {100 * after[0]:.1f} % wrong if votes go where they "
        f"are worth most, {100 * after[1]:.1f} % if every item gets one."
    )
    return figure(
        TITLE,
        f"Solid: votes bought where they are worth most; dashed: equally many for every item. {told} Intervals hold "
        f"{100 * found.level:g} % of simulated campaigns; they do not cover that the model may be wrong.",
        _lines([("curve", adaptive), ("curve-other", uniform)], "further votes"),
        told,
        _forecast_table(found),
    )


def _points(curve: Curve, last: float) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(curve.votes, curve.error, strict=True) if x <= last]


def _forecast_table(found: Forecast) -> Table:
    rows = []
    for per_item in (0.0, *SHOWN_VOTES):
        votes = per_item * found.n_items
        placed, low, high = found.adaptive.error_at(votes)
        ends = f" ({100 * low:.1f}–{100 * high:.1f})"
        share = Cell(f"{100 * placed:.1f} %{ends}", placed)
        rows.append((amount(votes), share, percent(found.uniform.error_at(votes)[0])))
    return numbers(("further votes", "wrong, well placed", "wrong, evenly placed"), rows)


def _history_figure(history: Sequence[Round]) -> Figure:
    points = [(float(entry.votes), entry.expected_error) for entry in history]
    told = (
        f"{len(history)} rounds: {100 * points[0][1]:.1f} % expected wrong at first, {100 * points[-1][1]:.1f} % now."
    )
    rows = [
        (*map(amount, (at, entry.new_votes, entry.votes)), percent(entry.expected_error, 2), real(entry.cost, 2))
        for at, entry in enumerate(history, 1)
    ]
    table = numbers(("round", "new votes", "votes", "expected wrong", "cost"), rows)
    words = f"Expected share of wrong labels after each round of votes. {told}"
    chart = _lines([("curve", points)], "votes", dots=True)
    return Figure("The campaign so far", words, chart.render(TITLE, told), table)


def _lines(drawn: Sequence[tuple[str, Sequence[tuple[float, float]]]], x_title: str, *, dots: bool = False) -> Canvas:
    """Draw lines over a common pair of axes, the vertical one from zero."""
    every = [point for _, points in drawn for point in points]
    xs, ys = [point[0] for point in every], [point[1] for point in every]
    high = 1.05 * max(ys) or 1.0
    show = "{:.0%}".format if max(nice_ticks(0, high)) >= 0.02 else "{:.1%}".format
    canvas = Canvas()
    x, y = canvas.x_scale(min(xs), max(xs)), canvas.y_scale(0.0, high)
    canvas.y_axis(y, TITLE.lower(), show=show)
    canvas.x_axis(x, x_title, count=4)
    for style, points in drawn:
        canvas.path([(x(a), y(b)) for a, b in points], style)
        for a, b in points if dots else ():
            canvas.dot(x(a), y(b), "dot-main", f"{a:,.0f} votes: {100 * b:.2f} %")
    return canvas


def _plan_table(plan: VotePlan) -> Table:
    values = zip(
        plan.item_ids,
        plan.priority,
        plan.p,
        plan.n_votes,
        plan.votes_suggested,
        plan.error_before,
        plan.error_after,
        strict=True,
    )
    rows = [
        (named(item), real(value, 4), real(p), amount(count), amount(wanted), percent(before), percent(after))
        for item, value, p, count, wanted, before, after in islice(values, MOST_ITEMS)
    ]
    return Table(
        ("item", "value of a vote", "p", "votes", "buy", "wrong now", "wrong after"),
        tuple(rows),
        "Where votes are worth most",
        "The value of a vote is the expected fall of the item's Brier score, E[(p' - p)²].",
        "'softgold next RUN --budget N' lists all." if len(plan.item_ids) > MOST_ITEMS else "",
    )


def _ambiguous_table(found: Forecast) -> Table:
    items = found.ambiguous
    values = islice(zip(items.item_ids, items.p, items.n_votes, items.error_left, strict=True), MOST_ITEMS)
    rows = [(named(item), real(p), amount(count), percent(left)) for item, p, count, left in values]
    more = "'softgold next RUN --ambiguous FILE' lists all." if len(items) > MOST_ITEMS else ""
    words = "No number of votes is expected to settle these: ask an expert."
    return Table(("item", "p", "votes", "wrong after any number of votes"), tuple(rows), "Ambiguous items", words, more)
