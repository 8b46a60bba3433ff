"""The tables that `softgold evaluate` prints for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from softgold.cli.common import say
from softgold.cli.text import one_line

if TYPE_CHECKING:
    import pandas as pd

    from softgold.evaluation import Average, Evaluation, TaskEvaluation

SHOWN = ("auroc", "soft_auroc", "ap", "soft_ap")
# In a log, a narrow default would cut the names of the models.
WIDTH_IN_LOGS = 100
LONGEST_NAME = 200


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
    say("share: how far a model is on the way from chance to the ceiling, which the soft labels themselves score")
    for notice in result.notices:
        say(f"note: {notice_words(notice, result)}")


def _headline(task: TaskEvaluation) -> str:
    name = "" if task.task is None else f"{_name(task.task)}: "
    rates = f"{100 * task.base_rate:.1f} % positive, mean soft label {task.soft_base_rate:.3f}"
    return f"{name}{task.n_items:,} items, {rates}"


def _table(rows: pd.DataFrame, title: str) -> Table:
    """Lay out one row per model, the best by the first soft metric first, and the ceiling of soft metrics below."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("model", overflow="fold", min_width=7)
    cells: dict[str, list[str]] = {model: [] for model in rows["model"]}
    ceilings: list[str] = []
    for name in SHOWN:
        own = rows[rows["metric"] == name]
        if own.empty:
            continue
        for heading, values, ceiling in _columns(own):
            table.add_column(heading, justify="right", no_wrap=True)
            ceilings.append(ceiling)
            for model, cell in zip(own["model"], values, strict=True):
                cells[model].append(cell)
    order = _order(rows)
    for model in sorted(cells, key=lambda model: order.get(model, math.inf)):
        table.add_row(escape(_name(model)), *cells[model])
    if any(ceilings):
        table.add_section()
        table.add_row("ceiling", *ceilings, style="dim")
    return table


def _columns(rows: pd.DataFrame) -> list[tuple[str, list[str], str]]:
    """Return heading, cells and ceiling of a metric, and for a soft one the shares of the way to its ceiling."""
    from softgold.evaluation.words import place_names

    cells = []
    places = place_names(rows["rank"].tolist())
    for place, value, low, high in zip(places, rows["value"], rows["low"], rows["high"], strict=True):
        interval = f"[dim]{low:.3f} - {high:.3f}[/dim]"
        cells.append("-" if math.isnan(value) else f"{value:.3f} {place:>4}\n{interval}")
    title, ceiling = rows["title"].iloc[0], rows["ceiling"].iloc[0]
    if math.isnan(ceiling):
        return [(title, cells, "")]
    shares = ["-" if math.isnan(share) else f"{100 * share:.0f} %" for share in rows["share"]]
    return [(title, cells, f"{ceiling:.3f}     "), ("share", shares, "100 %")]


def _order(rows: pd.DataFrame) -> dict[str, float]:
    """Return the rank of each model by the first metric of soft AUROC and AUROC that there is."""
    for name in ("soft_auroc", "auroc"):
        own = rows[rows["metric"] == name]
        if not own.empty:
            return dict(zip(own["model"], own["rank"].fillna(math.inf), strict=True))
    return {}


def _print_comparisons(part: TaskEvaluation | Average) -> None:
    from softgold.evaluation.words import both_leads, r_squared_words, swap_words

    titles = dict(zip(part.table["metric"], part.table["title"], strict=True))
    for found in part.comparisons:
        if found.ordinary not in SHOWN:
            continue
        ordinary, soft = titles[found.ordinary], titles[found.soft]
        say(both_leads(found, ordinary, soft))
        if found.best_soft.closest:
            square = r_squared_words(found)
            say(f"{ordinary} -> {soft}: {swap_words(found, ordinary, soft)}{'; ' if square else ''}{square}")
    for metric, rows in part.stability.groupby("metric", sort=False):
        values = dict(zip(rows["labels"], rows["mean_pairwise"], strict=True))
        say(
            f"stability of the {metric} ranking under resampled votes: ordinary {values['hard']:.3f}, "
            f"soft {values['soft']:.3f}"
        )


def _name(text: str) -> str:
    """Return a name with control characters escaped, and not too long."""
    return one_line(text, LONGEST_NAME)
