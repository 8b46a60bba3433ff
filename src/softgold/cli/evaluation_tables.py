"""The tables that `softgold evaluate` prints for people."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from softgold.cli.common import say
from softgold.cli.text import one_line

if TYPE_CHECKING:
    import pandas as pd

    from softgold.evaluation import Average, Evaluation, TaskEvaluation

__all__ = ["print_evaluation"]

SHOWN = ("auroc", "soft_auroc", "ap", "soft_ap")
# A log has no edge; a narrow default would cut the names of the models.
WIDTH_IN_LOGS = 100
LONGEST_NAME = 200


def print_evaluation(result: Evaluation, soft: str) -> None:
    """Print one table a task, ordinary beside soft, on standard error, and what to know about them."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console = Console(stderr=True, width=WIDTH_IN_LOGS)
    say(f"soft labels: {soft}; hard labels: {result.hard}; intervals {100 * result.settings['level']:g} %")
    for task in result.tasks:
        console.print(_table(task.table, _headline(task)))
        _print_comparisons(task)
        for note in task.notes:
            say(f"note: {note}")
    if result.average is not None:
        console.print(_table(result.average.table, f"average of {len(result.tasks)} tasks"))
        _print_comparisons(result.average)
    for note in result.notes:
        say(f"note: {note}")


def _headline(task: TaskEvaluation) -> str:
    name = "" if task.task is None else f"{_name(task.task)}: "
    rates = f"{100 * task.base_rate:.1f} % positive, mean soft label {task.soft_base_rate:.3f}"
    return f"{name}{task.n_items:,} items, {rates}"


def _table(rows: pd.DataFrame, title: str) -> Table:
    """Lay out one row a model, the best by the first soft metric first."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("model", overflow="fold")
    metrics = [name for name in SHOWN if (rows["metric"] == name).any()]
    cells = {(str(row["model"]), str(row["metric"])): row for row in rows.to_dict(orient="records")}
    for name in metrics:
        table.add_column(rows.loc[rows["metric"] == name, "title"].iloc[0], justify="right", no_wrap=True)
    leading = next((name for name in ("soft_auroc", "auroc", *metrics) if name in metrics), None)
    models = list(dict.fromkeys(rows["model"]))
    if leading is not None:
        models.sort(key=lambda model: float(cells[model, leading]["rank"]))
    for model in models:
        table.add_row(escape(_name(model)), *(_cell(cells[model, name]) for name in metrics))
    return table


def _cell(row: Mapping[Hashable, Any]) -> str:
    value, low, high, rank = (float(row[name]) for name in ("value", "low", "high", "rank"))
    if math.isnan(value):
        return "-"
    place = f"{rank:g}."
    return f"{value:.3f} {place:>7}\n[dim]{low:.3f} - {high:.3f}[/dim]"


def _print_comparisons(part: TaskEvaluation | Average) -> None:
    titles = dict(zip(part.table["metric"], part.table["title"], strict=True))
    for found in part.comparisons:
        if found.ordinary not in SHOWN:
            continue
        best = f"first {_names(found.best_ordinary)} -> {_names(found.best_soft)}"
        pairs = "pair changes" if len(found.swapped) == 1 else "pairs change"
        changes = f"{len(found.swapped)} {pairs} places"
        say(f"{titles[found.ordinary]} -> {titles[found.soft]}: {best}; {changes}; R^2 {found.r_squared:.3f}")
    if part.stability is not None:
        for metric, rows in part.stability.groupby("metric", sort=False):
            values = dict(zip(rows["labels"], rows["mean_pairwise"], strict=True))
            say(f"stability of the {metric} ranking under resampled votes: {_pair(values)}")


def _pair(values: dict[str, float]) -> str:
    return f"ordinary {values['hard']:.3f}, soft {values['soft']:.3f}"


def _names(models: tuple[str, ...]) -> str:
    return " = ".join(map(_name, models)) if models else "nobody"


def _name(text: str) -> str:
    """Return a name that cannot steer the terminal or fill it."""
    return one_line(text, LONGEST_NAME)
