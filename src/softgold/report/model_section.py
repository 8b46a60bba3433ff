"""The section on models: ordinary metrics beside soft ones, rank changes, and how far the ranking can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from softgold.report.blocks import Cell, Figure, Panel, Section, Table, interval, named, numbers, real
from softgold.report.plots import Point, paired_bars, scatter, slope

__all__ = ["leading_words", "model_section"]

PAIRS = (("auroc", "soft_auroc", "AUROC"), ("ap", "soft_ap", "AP"))
MOST_MODELS = 40
MOST_IN_MATRIX = 12
MOST_TASKS = 24

Rows = dict[tuple[str, str], Mapping[str, Any]]


def model_section(evaluation: Mapping[str, Any]) -> Section:
    """Show the models on each task, and on average where there are several."""
    count = len(evaluation["tasks"])
    parts = [(task["task"], task, task["notes"]) for task in evaluation["tasks"][:MOST_TASKS]]
    if evaluation["average"] is not None:
        parts.insert(0, (f"Average of {count} tasks", evaluation["average"], ()))
    panels = tuple(_panel(name, part, notes, evaluation["models"]) for name, part, notes in parts)
    settings = evaluation["settings"]
    words = (
        f"Ordinary metrics take hard labels ({evaluation['hard']}) for certain; soft metrics weigh every item by its "
        f"soft label ({evaluation['soft']}), so that an error on a doubtful item counts less. Intervals hold "
        f"{100 * settings['level']:g} % of {settings['bootstrap']:,} resamples of the items."
    )
    notes = tuple(evaluation["notes"])
    if count > MOST_TASKS:
        notes = (f"{MOST_TASKS} of {count} tasks are shown here; all are in metrics.csv", *notes)
    return Section("models", "Models", words, (*panels, Panel(notes=notes)) if notes else panels)


def leading_words(evaluation: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the best model by soft AUROC, and in words whether the ordinary metric agrees; None if unknown."""
    part = evaluation["average"] or evaluation["tasks"][0]
    for found in part["comparisons"]:
        if found["ordinary"] == "auroc" and found["best_soft"]:
            best, before = _names(found["best_soft"]), _names(found["best_ordinary"])
            agree = "also first by ordinary AUROC" if best == before else f"ordinary AUROC puts {before} first"
            return best, agree
    return None


def _panel(name: str | None, part: Mapping[str, Any], notes: Any, models: list[str]) -> Panel:
    rows = {(row["model"], row["metric"]): row for row in part["metrics"]}
    figures = [figure for pair in PAIRS for figure in _pair_figures(pair, part, rows, models)]
    if part["stability"]:
        figures.append(_stability_figure(part["stability"]))
    tables = [table for kind in ("hard", "soft") for table in _metric_tables(kind, part["metrics"], rows, models)]
    if len(models) > 1:
        tables.append(_beat_table(part, models))
    words = ""
    if "n_items" in part:
        words = (
            f"{part['n_items']:,} items, {part['base_rate']:.1%} of them positive by the hard labels; the mean soft "
            f"label is {part['soft_base_rate']:.3f}."
        )
    return Panel(tuple(figures), tuple(tables), tuple(notes), words, name)


def _pair_figures(pair: tuple[str, str, str], part: Mapping[str, Any], rows: Rows, models: list[str]) -> list[Figure]:
    """Draw one metric against its soft twin: values, and ranks."""
    ordinary, soft, title = pair
    found = next((entry for entry in part["comparisons"] if entry["ordinary"] == ordinary), None)
    shown = [
        model
        for model in models
        if all(rows.get((model, name), {}).get("value") is not None for name in (ordinary, soft))
    ]
    if found is None or not shown:
        return []
    table = _rank_table(ordinary, soft, title, rows, shown)
    figures = [_scatter_figure(title, found, [(m, rows[m, ordinary], rows[m, soft]) for m in shown], table)]
    if 1 < len(shown) <= MOST_MODELS:
        figures.append(_slope_figure(title, found, [(m, rows[m, ordinary], rows[m, soft]) for m in shown], table))
    return figures


Measured = list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]


def _scatter_figure(title: str, found: Mapping[str, Any], measured: Measured, table: Table) -> Figure:
    square = found["r_squared"]
    explained = "R² is undefined here" if square is None else f"R² = {square:.3f}"
    told = (
        f"{explained}; first by {title} is {_names(found['best_ordinary'])}, first by soft {title} is "
        f"{_names(found['best_soft'])}."
    )
    points = [Point(model, before["value"], after["value"]) for model, before, after in measured]
    svg: Markup = scatter(
        points,
        x_title=f"ordinary {title}",
        y_title=f"soft {title}",
        title=f"Ordinary against soft {title}",
        description=told,
    )
    words = (
        "One dot a model; on the dashed line both metrics would be equal. The more the dots leave a straight line, the "
        f"more the certainty that hard labels pretend has shaped the result. {told}"
    )
    return Figure(f"Ordinary against soft {title}", words, svg, table)


def _slope_figure(title: str, found: Mapping[str, Any], measured: Measured, table: Table) -> Figure:
    ordered = sorted(measured, key=lambda entry: (entry[1]["rank"], entry[0]))
    count = len(found["swapped"])
    told = (
        "No two models change places."
        if not count
        else f"{count} {'pair changes' if count == 1 else 'pairs change'} places; {len(found['moved'])} of "
        f"{len(measured)} models have another rank."
    )
    svg = slope(
        [model for model, _, _ in ordered],
        [before["rank"] for _, before, _ in ordered],
        [after["rank"] for _, _, after in ordered],
        left_title=f"by {title}",
        right_title=f"by soft {title}",
        title=f"Ranks by {title}",
        description=told,
    )
    words = f"Lines that cross are models that change places when labels are no longer taken for certain. {told}"
    return Figure(f"Ranks by {title}", words, svg, table)


def _rank_table(ordinary: str, soft: str, title: str, rows: Rows, models: list[str]) -> Table:
    return numbers(
        ("model", title, "rank", f"soft {title}", "rank"),
        [
            (
                named(model),
                real(rows[model, ordinary]["value"], 4),
                real(rows[model, ordinary]["rank"], 1),
                real(rows[model, soft]["value"], 4),
                real(rows[model, soft]["rank"], 1),
            )
            for model in models
        ],
    )


def _stability_figure(rows: list[Mapping[str, Any]]) -> Figure:
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["mean_pairwise"] is not None:
            values.setdefault(row["metric"], {})[row["labels"]] = row["mean_pairwise"]
    pairs = [(metric, found["hard"], found["soft"]) for metric, found in values.items() if len(found) == 2]
    told = "; ".join(f"{metric}: ordinary {hard:.3f}, soft {soft:.3f}" for metric, hard, soft in pairs)
    title = "Would other votes rank the models alike?"
    svg = (
        paired_bars(pairs, names=("ordinary", "soft"), x_title="mean rank correlation", title=title, description=told)
        if pairs
        else Markup("")
    )
    return Figure(
        title,
        "Each item's votes were drawn anew many times. A bar is the mean rank correlation between two such draws: 1 "
        f"means that the ranking never changes. {told or 'Undefined here'}.",
        svg,
        numbers(
            ("metric", "labels", "between draws", "with the ranking found", "draws used"),
            [
                (
                    str(row["metric"]),
                    "ordinary" if row["labels"] == "hard" else "soft",
                    real(row["mean_pairwise"]),
                    real(row["mean_vs_observed"]),
                    real(row["n_used"], 0),
                )
                for row in rows
            ],
        ),
    )


def _metric_tables(kind: str, metrics: list[Mapping[str, Any]], rows: Rows, models: list[str]) -> list[Table]:
    """List the metrics against one kind of label, if there are any."""
    titles = {row["metric"]: row["title"] for row in metrics if row["labels"] == kind}
    if not titles:
        return []
    ordered = sorted(models, key=lambda model: _rank_of(rows, model))
    shown = ordered[:MOST_MODELS]
    cells = [
        (named(model), *(_metric_cell(rows[model, metric]) for metric in titles if (model, metric) in rows))
        for model in shown
    ]
    words = "With intervals; the best of each column is in bold."
    if kind == "soft" and "brier" in titles:
        words += " Brier, log loss and ECE are losses of predicted probabilities: less is better."
    rest = "" if len(shown) == len(models) else f"{len(shown)} of {len(models)} models; all are in metrics.csv"
    title = "Against hard labels" if kind == "hard" else "Against soft labels"
    return [Table(("model", *titles.values()), tuple(cells), title, words, rest)]


def _rank_of(rows: Rows, model: str) -> tuple[float, str]:
    for metric in ("soft_auroc", "auroc"):
        rank = rows.get((model, metric), {}).get("rank")
        if rank is not None:
            return float(rank), model
    return float("inf"), model


def _metric_cell(row: Mapping[str, Any]) -> Cell:
    return interval(row["value"], row["low"], row["high"], strong=row["rank"] is not None and row["rank"] < 2)


def _beat_table(part: Mapping[str, Any], models: list[str]) -> Table:
    """Say how likely each model is better than each other one, by soft AUROC."""
    metric = "soft_auroc" if "soft_auroc" in part["beats"] else next(iter(part["beats"]))
    matrix = part["beats"][metric]
    rows = {row["model"]: row["rank"] for row in part["metrics"] if row["metric"] == metric}
    order = sorted(range(len(models)), key=lambda at: (rows.get(models[at]) or float("inf"), models[at]))
    shown = order[:MOST_IN_MATRIX]
    cells = tuple((named(models[first]), *(real(matrix[first][second], 2) for second in shown)) for first in shown)
    title = next(row["title"] for row in part["metrics"] if row["metric"] == metric)
    return Table(
        ("is better than", *(named(models[at]).text for at in shown)),
        cells,
        f"Who beats whom, by {title}",
        "The share of item resamples in which the model of the row is better than that of the column; near 0.5 the "
        "data cannot tell them apart.",
        "" if len(shown) == len(models) else f"the best {len(shown)} of {len(models)}; all are in evaluation.json",
    )


def _names(models: list[str]) -> str:
    return " = ".join(named(model).text for model in models) if models else "nobody"
