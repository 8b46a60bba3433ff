"""The section on models: ordinary metrics beside soft ones, who leads, who changes places, how stable that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
from markupsafe import Markup

from softgold.evaluation.result import Average, Evaluation, RankComparison, TaskEvaluation
from softgold.evaluation.words import (
    at_least_words,
    both_leads,
    list_names,
    notice_words,
    place_names,
    r_squared_words,
    swap_words,
)
from softgold.report.blocks import Cell, Figure, Panel, Section, Table, figure, named, numbers, real
from softgold.report.plots import Point, paired_bars, scatter, slope
from softgold.runs import RESULTS

PAIRS = (("auroc", "soft_auroc", "AUROC"), ("ap", "soft_ap", "AP"))
MOST_MODELS = 40
MOST_IN_MATRIX = 12
MOST_TASKS = 24

Part = TaskEvaluation | Average


@dataclass(frozen=True)
class _Row:
    """One metric of one model."""

    value: float
    low: float
    high: float
    rank: float
    place: str
    share: float


Rows = dict[tuple[str, str], _Row]
NOTHING = _Row(math.nan, math.nan, math.nan, math.nan, "–", math.nan)


def model_section(evaluation: Evaluation, noun: str = "tasks") -> Section:
    """Show the models on each task, and on average where there are several; `noun` says what the tasks are."""
    count = len(evaluation.tasks)
    parts: list[tuple[str | None, Part]] = [(task.task, task) for task in evaluation.tasks[:MOST_TASKS]]
    if evaluation.average is not None:
        parts.insert(0, (f"Average of {count} {noun}", evaluation.average))
    panels = tuple(_panel(name, part, evaluation.models) for name, part in parts)
    settings = evaluation.settings
    words = (
        f"Ordinary metrics take hard labels ({evaluation.hard}) as certain; soft metrics weigh every item by its soft "
        f"label ({evaluation.soft}), so that an error on a doubtful item counts less. Intervals hold "
        f"{100 * settings.level:g} % of {settings.n_bootstrap:,} resamples of {settings.redrawn}. Two models are told "
        f"apart where one is better in at least {50 * (1 + settings.level):g} % of them."
    )
    notes = tuple(notice_words(notice, evaluation) for notice in evaluation.notices)
    if count > MOST_TASKS:
        notes = (f"{MOST_TASKS} of {count} {noun} are shown here; all are in metrics.csv", *notes)
    if notes:
        panels = (replace(panels[0], notes=notes),) if len(panels) == 1 else (*panels, Panel(notes=notes))
    return Section("models", "Models", words, panels)


def leading_words(evaluation: Evaluation) -> tuple[str, str, str] | None:
    """Return value, name and words of the tile on the first model by soft AUROC; None if no model has one.

    A model is named as the first only where the resamples separate it from every other.
    """
    found = next((entry for entry in evaluation.leading.comparisons if entry.ordinary == "auroc"), None)
    if found is None or not found.best_soft.models:
        return None
    soft, ordinary = found.best_soft, found.best_ordinary
    value = _value_words(_rows(evaluation.leading.table).get((soft.models[0], "soft_auroc"), NOTHING))
    if not soft.closest:
        return _short(soft.models[0]), "the only model", value
    if not soft.is_separated:
        together = (*soft.models, *soft.rivals)
        words = f"{list_names([_short(model) for model in together])} cannot be told apart"
        return f"{len(together)} models", "share the lead by soft AUROC", f"{words}; the first: {value}"
    share = f"ahead of every other in {at_least_words(soft.probability)}"
    same = ordinary.is_separated and ordinary.models == soft.models
    other = f"; ordinary AUROC puts {_short(ordinary.models[0])} first" if ordinary.is_separated and not same else ""
    return (
        _short(soft.models[0]),
        "first by soft AUROC",
        f"{value}, {share}{'; also by ordinary AUROC' if same else other}",
    )


def _value_words(row: _Row) -> str:
    ends = "" if math.isnan(row.low) else f" ({row.low:.3f}–{row.high:.3f})"
    return f"soft AUROC {row.value:.3f}{ends}"


def _panel(name: str | None, part: Part, models: tuple[str, ...]) -> Panel:
    rows = _rows(part.table)
    figures = [figure for pair in PAIRS for figure in _pair_figures(pair, part, rows, models)]
    if len(part.stability):
        figures.append(_stability_figure(part.stability))
    tables = [table for kind in ("hard", "soft") for table in _metric_tables(kind, part.table, rows, models)]
    if len(models) > 1:
        tables.append(_beat_table(part, models))
    sentences = []
    if isinstance(part, TaskEvaluation):
        sentences.append(
            f"{part.n_items:,} items, {100 * part.base_rate:.1f} % of them positive by the hard labels; the mean soft "
            f"label is {part.soft_base_rate:.3f}"
        )
    for found in part.comparisons:
        title = next((title for ordinary, _, title in PAIRS if ordinary == found.ordinary), None)
        if title is not None:
            sentences += _headlines(found, title)
    return Panel(tuple(figures), tuple(tables), (), " ".join(f"{_capital(text)}." for text in sentences), name)


def _headlines(found: RankComparison, title: str) -> list[str]:
    """Say who leads, and who changes places, by one metric and its soft twin."""
    soft = f"soft {title}"
    if not found.best_soft.closest:
        return []
    return [both_leads(found, title, soft), f"from {title} to {soft}, {swap_words(found, title, soft)}"]


def _rows(table: pd.DataFrame) -> Rows:
    rows: Rows = {}
    for metric, own in table.groupby("metric", sort=False):
        places = place_names(own["rank"].tolist())
        columns = [own[name].tolist() for name in ("model", "value", "low", "high", "rank", "share")]
        for place, (model, value, low, high, rank, share) in zip(places, zip(*columns, strict=True), strict=True):
            rows[model, str(metric)] = _Row(value, low, high, rank, place, share)
    return rows


def _pair_figures(pair: tuple[str, str, str], part: Part, rows: Rows, models: tuple[str, ...]) -> list[Figure]:
    """Draw one metric against its soft twin: values, and ranks."""
    ordinary, soft, title = pair
    found = next((entry for entry in part.comparisons if entry.ordinary == ordinary), None)
    measured = [(model, rows.get((model, ordinary), NOTHING), rows.get((model, soft), NOTHING)) for model in models]
    shown = [entry for entry in measured if math.isfinite(entry[1].value) and math.isfinite(entry[2].value)]
    if found is None or len(shown) < 2:
        return []
    table = numbers(
        ("model", title, "rank", f"soft {title}", "rank"),
        [
            (named(model), real(a.value, 4), Cell(a.place, a.rank), real(b.value, 4), Cell(b.place, b.rank))
            for model, a, b in shown
        ],
    )
    figures = [_scatter_figure(title, found, shown, table)]
    if len(shown) <= MOST_MODELS:
        figures.append(_slope_figure(title, found, shown, table))
    return figures


Measured = Sequence[tuple[str, _Row, _Row]]


def _scatter_figure(title: str, found: RankComparison, measured: Measured, table: Table) -> Figure:
    square = r_squared_words(found)
    points = [Point(model, before.value, after.value) for model, before, after in measured]
    chart = scatter(points, x_title=f"ordinary {title}", y_title=f"soft {title}")
    words = "One dot per model; on the dashed line both metrics would be equal."
    if len(measured) > 2:  # two dots always lie on a straight line
        words += (
            " The further the dots are from one straight line, the more the doubt in the labels matters for the "
            f"ranking{f' ({square})' if square else ''}."
        )
    return figure(f"Ordinary against soft {title}", words, chart, square or "one dot per model", table)


def _slope_figure(title: str, found: RankComparison, measured: Measured, table: Table) -> Figure:
    ordered = sorted(measured, key=lambda entry: (entry[1].rank, entry[0]))
    told = f"{_capital(swap_words(found, title, f'soft {title}'))}."
    chart = slope(
        [model for model, _, _ in ordered],
        [before.rank for _, before, _ in ordered],
        [after.rank for _, _, after in ordered],
        place_names=([before.place for _, before, _ in ordered], [after.place for _, _, after in ordered]),
        left_title=f"by {title}",
        right_title=f"by soft {title}",
    )
    words = "Lines that cross are models that change places by value when doubtful labels count less."
    return figure(f"Ranks by {title}", words, chart, told, table)


def _stability_figure(rows: pd.DataFrame) -> Figure:
    values = {
        metric: dict(zip(own["labels"], own["mean_pairwise"], strict=True))
        for metric, own in rows.dropna(subset=["mean_pairwise"]).groupby("metric", sort=False)
    }
    pairs = [(str(metric), found["hard"], found["soft"]) for metric, found in values.items() if len(found) == 2]
    told = "; ".join(f"{metric}: ordinary {hard:.3f}, soft {soft:.3f}" for metric, hard, soft in pairs)
    title = "Would other votes rank the models alike?"
    svg = Markup("")
    if pairs:
        svg = paired_bars(pairs, names=("ordinary", "soft"), x_title="mean rank correlation").render(title, told)
    cells = [
        (
            str(row["metric"]),
            "ordinary" if row["labels"] == "hard" else "soft",
            real(row["mean_pairwise"]),
            real(row["mean_vs_observed"]),
            real(row["n_used"], 0),
        )
        for row in rows.to_dict(orient="records")
    ]
    return Figure(
        title,
        "The votes of each item were resampled many times. A bar is the mean rank correlation between two such "
        f"resamples: 1 means that the ranking never changes. {told or 'Undefined here'}.",
        svg,
        numbers(("metric", "labels", "between resamples", "with the ranking found", "resamples used"), cells),
    )


def _metric_tables(kind: str, table: pd.DataFrame, rows: Rows, models: tuple[str, ...]) -> list[Table]:
    """List the metrics against one kind of label, if there are any."""
    own = table[table["labels"] == kind]
    titles = dict(zip(own["metric"], own["title"], strict=True))
    if not titles:
        return []
    ordered = sorted(models, key=lambda model: (_rank_of(rows, model), model))
    shown = ordered[:MOST_MODELS]
    cells = [
        (named(model), *(_metric_cell(rows.get((model, metric), NOTHING)) for metric in titles)) for model in shown
    ]
    words = "With intervals; the best value of each column is in bold."
    if kind == "soft":
        ceilings = own.drop_duplicates("metric")["ceiling"].tolist()
        cells.append((Cell("ceiling"), *(real(ceiling) for ceiling in ceilings)))
        words += (
            " The ceiling is what the soft labels themselves would score; a percentage says how far a model is on the "
            "way from chance to there."
        )
        if "brier" in titles:
            words += " Brier, log loss and ECE are losses of predicted probabilities: less is better."
    rest = "" if len(shown) == len(models) else f"{len(shown)} of {len(models)} models; all are in metrics.csv"
    title = "Against hard labels" if kind == "hard" else "Against soft labels"
    return [Table(("model", *titles.values()), tuple(cells), title, words, rest)]


def _rank_of(rows: Rows, model: str) -> float:
    for metric in ("soft_auroc", "auroc"):
        rank = rows.get((model, metric), NOTHING).rank
        if not math.isnan(rank):
            return rank
    return math.inf


def _metric_cell(row: _Row) -> Cell:
    if math.isnan(row.value):
        return real(row.value)
    share = "" if math.isnan(row.share) else f" · {100 * row.share:.0f} %"
    return Cell(f"{row.value:.3f} ({row.low:.3f}–{row.high:.3f}){share}", row.value, row.place.startswith("1"))


def _beat_table(part: Part, models: tuple[str, ...]) -> Table:
    """Say how likely each model is better than each other one, by soft AUROC."""
    metric = "soft_auroc" if "soft_auroc" in part.beats else next(iter(part.beats))
    matrix, own = part.beats[metric], part.table[part.table["metric"] == metric]
    ranks = dict(zip(own["model"], own["rank"].fillna(math.inf), strict=True))
    order = sorted(range(len(models)), key=lambda at: (ranks.get(models[at], math.inf), models[at]))
    shown = order[:MOST_IN_MATRIX]
    cells = tuple(
        (named(models[first]), *(real(float(matrix[first, second]), 2) for second in shown)) for first in shown
    )
    return Table(
        ("is better than", *(named(models[at]).text for at in shown)),
        cells,
        f"Who beats whom, by {own['title'].iloc[0]}",
        "The share of resamples in which the model of the row is better than that of the column; near 0.5 the data "
        "cannot tell them apart.",
        ""
        if len(shown) == len(models)
        else f"the best {len(shown)} of {len(models)}; all are in {RESULTS['evaluation'].record}",
    )


def _short(model: str) -> str:
    return named(model).text


def _capital(text: str) -> str:
    """Begin a sentence; a name at its beginning stays as it is."""
    return text[:1].upper() + text[1:] if text.startswith(("no ", "from ")) else text
