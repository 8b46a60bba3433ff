"""`softgold evaluate`: models against hard and soft labels, with intervals and ranking stability."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softgold.cli.common import AsJson, Force, GroupColumn, ItemColumn, Quiet, Seed, print_json, progress, say
from softgold.errors import InputError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from softgold.evaluation.result import Evaluation
    from softgold.experts import ReleasedLabels
    from softgold.tables.soft_labels import SoftLabels

STEPS = 1000


def command(
    scores: Annotated[
        Path, typer.Option("--scores", metavar="FILE", help="Scores: item and one column per model, or long.")
    ],
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="Run directory with soft_labels.csv in it.")] = None,
    soft_labels: Annotated[
        Path | None, typer.Option("--soft-labels", metavar="FILE", help="Soft labels of any origin, in place of RUN.")
    ] = None,
    soft: Annotated[
        str,
        typer.Option(
            "--soft", metavar="COLUMN", help="Column that serves as soft label: p, p_calibrated, expected_vote, ..."
        ),
    ] = "p",
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", metavar="FILE", help="Hard labels: item, label. Else labels.csv of RUN, else p >= 0.5."
        ),
    ] = None,
    task_col: Annotated[
        str | None, typer.Option("--task-col", metavar="NAME", help="Column with the task of each item.")
    ] = None,
    group_col: GroupColumn = None,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", metavar="FILE", help="Table with item, and task or group; else items.csv beside the data."
        ),
    ] = None,
    item_col: ItemColumn = None,
    k: Annotated[
        list[int] | None, typer.Option("--k", metavar="N", help="Length of a list for P@k; may be repeated.")
    ] = None,
    missing: Annotated[
        Literal["error", "drop"], typer.Option(help="What to do about items that a model has no score for.")
    ] = "error",
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Go on without scores of items that have no soft label.")
    ] = False,
    n_bootstrap: Annotated[int, typer.Option(help="Resamples of the items or groups, for the intervals.")] = 2000,
    n_vote_bootstrap: Annotated[
        int, typer.Option(help="Resamples of the votes, for the stability of the ranking; 0 for none.")
    ] = 1000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder to write to, made if need be; RUN if left out, or the current one.",
        ),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Judge models against hard labels and against soft ones.

    Prints ordinary metrics beside soft ones and writes metrics.csv and evaluation.json.
    """
    from softgold.cli.studies import evaluate_class_run, read_group_column
    from softgold.evaluation.alignment import align
    from softgold.evaluation.metrics import LENGTHS, METRICS
    from softgold.evaluation.run import Plan, judge
    from softgold.metrics.bootstrap.engine import Settings
    from softgold.output import RUN_MARKER, new_folder, reading, stamps
    from softgold.readers import read_scores
    from softgold.runs import is_study, open_study, soft_labels_path, write_result
    from softgold.runs.limits import check_memory
    from softgold.runs.results import RESULTS, plain_result

    if run is not None and soft_labels is None and is_study(run) and open_study(run).kind == "classes":
        given = {"--task-col": task_col, "--labels": labels, "--soft": None if soft == "p" else soft}
        unread = [name for name, value in given.items() if value is not None]
        if unread:
            raise UsageError(f"{unread[0]} does not work with several classes")
        options = {
            "groups": read_group_column(group_col, items, [run, scores.parent], [scores], item_col),
            "k": LENGTHS if k is None else k,
            "n_bootstrap": n_bootstrap,
            "level": level,
            "seed": seed,
            "workers": os.cpu_count() or 1,
        }
        judged = evaluate_class_run(run, scores, output or run, force=force, quiet=quiet or as_json, **options)
        if as_json:
            print_json(plain_result(judged))
        return
    folder = _check_paths(run, soft_labels, output, force)
    folders = [run, scores.parent]
    models = read_scores(scores, item=item_col, missing="keep", ignore=() if group_col is None else (group_col,))
    if run is not None and not is_study(run):
        check_memory(run, "evaluate", models=len(models.models))
    with nullcontext() if run is None else reading(run):
        table, column, released, tasks = _read_soft(run, soft_labels, soft, item_col, models.item_ids, quiet=quiet)
        began = stamps(folder, (RUN_MARKER, *RESULTS["evaluation"].made_from))
    soft_path = soft_labels if run is None else soft_labels_path(run)
    aligned = align(
        table,
        models,
        soft=column,
        labels=released if labels is None else _read_hard(labels),
        tasks=tasks if tasks is not None else _read_tasks(task_col, group_col, items, folders, item_col),
        groups=read_group_column(group_col, items, folders, [soft_path, scores], item_col),
        missing=missing,
        ignore_unknown=ignore_unknown,
    )
    what = f"judging {len(models.models)} models on {len(models):,} items"
    del table, models, released, tasks  # ids of millions of items are not held while they are judged
    drawing = Settings(n_bootstrap, level, seed, workers=os.cpu_count() or 1)
    lengths = LENGTHS if k is None else tuple(k)
    with progress(what, STEPS, quiet=quiet) as advance:
        result = judge(aligned, soft, Plan(METRICS, lengths, drawing, n_vote_bootstrap, missing, _steps(advance)))
    with new_folder(folder):
        written = write_result(result, folder, inputs=[scores], force=force, began=began)
    _show(result, written, quiet, as_json)


def _show(result: Evaluation, written: Sequence[Path], quiet: bool, as_json: bool) -> None:
    from softgold.cli.evaluation_tables import print_evaluation
    from softgold.runs.results import plain_result

    if as_json:
        print_json(plain_result(result))
    elif not quiet:
        print_evaluation(result)
        say(f"written: {', '.join(map(str, written))}")


def _steps(advance: Callable[[int], None]) -> Callable[[float], None]:
    """Turn shares of the work that is done into steps of a bar."""
    shown = 0

    def show(share: float) -> None:
        nonlocal shown
        advance(int(STEPS * share) - shown)
        shown = int(STEPS * share)

    return show


def _check_paths(run: Path | None, soft_labels: Path | None, output: Path | None, force: bool) -> Path:
    """Return the folder to write to."""
    from softgold.output import check_target
    from softgold.runs import is_study, open_run
    from softgold.runs.results import RESULTS

    if (run is None) == (soft_labels is None):
        raise UsageError("give a run directory or --soft-labels FILE, one of the two")
    if run is not None and not is_study(run):
        open_run(run)
    folder = output or run or Path()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; the results need a folder")
    if folder.is_dir():
        for name in RESULTS["evaluation"].files:
            check_target(folder / name, force=force)
    return folder


def _read_soft(
    run: Path | None, soft_labels: Path | None, soft: str, item: str | None, scored: pd.Index[str], *, quiet: bool
) -> tuple[SoftLabels, str, ReleasedLabels | None, pd.Series | None]:
    """Return the table, its column that serves as soft label, the released labels, and the tasks, of a run."""
    from softgold.cli.studies import merged_soft_labels
    from softgold.evaluation.labels import SOFT_COLUMNS
    from softgold.readers import read_soft_labels
    from softgold.runs import is_study, open_run, open_study

    if run is None:
        # In a table of another origin any column can be the soft label.
        return read_soft_labels(str(soft_labels), item=item, p=soft), "p", None, None
    if soft not in SOFT_COLUMNS:
        raise UsageError(f"--soft must be one of {', '.join(SOFT_COLUMNS)} for a run directory; got {soft!r}")
    if is_study(run):
        study = open_study(run)
        table, tasks = merged_soft_labels(study, scored, quiet=quiet)
        return table, soft, study.labels if study.has("labels") else None, tasks
    opened = open_run(run)
    released = opened.hard_labels if opened.has("labels") else None
    if soft == "p_calibrated" and released is None:
        raise InputError(f"{run} has no p_calibrated, because it was not calibrated; 'softgold calibrate' does that")
    table = opened.soft_labels if soft == "expected_vote" else opened.brief_labels
    if released is not None and released.item_ids.equals(table.item_ids):
        released = replace(released, item_ids=table.item_ids, p=table.p)  # millions of them are held once
    return table, soft, released, None


def _read_hard(path: Path) -> pd.Series:
    """Read hard labels, one per item."""
    import pandas as pd

    from softgold.readers import read_experts

    labels = read_experts(path)
    if len(labels.expert_ids) > 1:
        raise InputError(f"{path} has labels of {len(labels.expert_ids)} experts; hard labels need one row per item")
    return pd.Series(labels.labels, index=labels.item_ids[labels.item_codes])


def _read_tasks(
    task: str | None, group: str | None, items: Path | None, folders: list[Path | None], item: str | None
) -> pd.Series | None:
    """Read the tasks; a table of items that was given for its groups need not have any."""
    from softgold.cli.studies import items_files
    from softgold.evaluation import read_tasks
    from softgold.readers.sources import open_source

    if task is None:
        with_tasks = items is not None and (group is None or "task" in open_source(items).columns)
        return read_tasks(items, item=item) if items is not None and with_tasks else None
    found = items or next(iter(items_files(folders)), None)
    if found is None:
        raise UsageError("--task-col needs a table with the tasks: give --items FILE with item and task")
    return read_tasks(found, item=item, task=task)
