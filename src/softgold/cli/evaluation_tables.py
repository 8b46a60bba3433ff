"""The tables that `softgold evaluate` prints for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from softgold.cli.common import say

if TYPE_CHECKING:
    import pandas as pd

    from softgold.evaluation import Average, Evaluation, TaskEvaluation

__all__ = ["print_evaluation"]

SHOWN = ("auroc", "soft_auroc", "ap", "soft_ap")
# A log has no edge; a narrow default would cut the names of the models.
WIDTH_IN_LOGS = 100


def print_evaluation(result: Evaluation) -> None:
    """Print one table per task, ordinary beside soft, on standard error, and what to know about them."""
    from softgold.evaluation.words import notice_words

    console = Console(stderr=True)
    if not console.is_terminal:
        console = Console(stderr=True, width=WIDTH_IN_LOGS)
    settings = result.settings
    intervals = f"intervals {100 * settings.level:g} %, {settings.n_bootstrap:,} resamples of {settings.redrawn}"
    say(f"soft labels: {result.soft}; hard labels: {result.hard}; {intervals}")
    for task in result.tasks:
        console.print(_table(task.table, _headline(task)))
        _print_comparisons(task)
    if result.average is not None:
        console.print(_table(result.average.table, f"average of {len(result.tasks)} tasks"))
        _print_comparisons(result.average)
    for notice in result.notices:
        say(f"note: {notice_words(notice, result)}")


def _headline(task: TaskEvaluation) -> str:
    name = "" if task.task is None else f"{task.task}: "
    rates = f"{100 * task.base_rate:.1f} % positive, mean soft label {task.soft_base_rate:.3f}"
    return f"{name}{task.n_items:,} items, {rates}"


def _table(rows: pd.DataFrame, title: str) -> Table:
    """Lay out one row per model, the best by the first soft metric first, and the ceiling below them."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("model", overflow="fold")
    metrics = [name for name in SHOWN if (rows["metric"] == name).any()]
    models = list(dict.fromkeys(rows["model"]))
    columns, order = {}, {model: float(place) for place, model in enumerate(models)}
    for name in metrics:
        own = rows[rows["metric"] == name]
        table.add_column(own["title"].iloc[0], justify="right", no_wrap=True)
        columns[name] = dict(zip(own["model"], _cells(own), strict=True))
        if name == "soft_auroc" or (name == "auroc" and "soft_auroc" not in metrics):
            order = dict(zip(own["model"], own["rank"].fillna(math.inf), strict=True))
    for model in sorted(models, key=lambda model: order[model]):
        table.add_row(escape(model), *(columns[name][model] for name in metrics))
    ceilings = [rows.loc[rows["metric"] == name, "ceiling"].iloc[0] for name in metrics]
    if any(not math.isnan(ceiling) for ceiling in ceilings):
        table.add_section()
        table.add_row("[dim]the soft labels themselves[/dim]", *(_ceiling(ceiling) for ceiling in ceilings))
    return table


def _cells(rows: pd.DataFrame) -> list[str]:
    """Return value, place and interval of each model, and for soft metrics the share of the way to the ceiling."""
    from softgold.evaluation.words import place_names

    places = place_names(rows["rank"].tolist())
    cells = []
    for place, (_, row) in zip(places, rows.iterrows(), strict=True):
        if math.isnan(row["value"]):
            cells.append("-")
            continue
        share = "" if math.isnan(row["share"]) else f", {row['share']:.0%} of the way"
        cells.append(f"{row['value']:.3f} {place:>4}\n[dim]{row['low']:.3f} - {row['high']:.3f}{share}[/dim]")
    return cells


def _ceiling(value: float) -> str:
    return "" if math.isnan(value) else f"[dim]{value:.3f}     [/dim]"


def _print_comparisons(part: TaskEvaluation | Average) -> None:
    from softgold.evaluation.words import lead_words, r_squared_words, swap_words

    titles = dict(zip(part.table["metric"], part.table["title"], strict=True))
    for found in part.comparisons:
        if found.ordinary not in SHOWN:
            continue
        ordinary, soft = titles[found.ordinary], titles[found.soft]
        say(f"{lead_words(found.best_ordinary, ordinary)}; {lead_words(found.best_soft, soft)}")
        if found.best_soft.closest:
            square = r_squared_words(found)
            say(f"{ordinary} -> {soft}: {swap_words(found, ordinary, soft)}{'; ' if square else ''}{square}")
    for metric, rows in part.stability.groupby("metric", sort=False):
        values = dict(zip(rows["labels"], rows["mean_pairwise"], strict=True))
        say(
            f"stability of the {metric} ranking under resampled votes: ordinary {values['hard']:.3f}, "
            f"soft {values['soft']:.3f}"
        )
