"""`calibrate`, `sample-experts` and `evaluate` on a run with several questions or classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgold.cli.common import progress, say
from softgold.errors import InputError, SoftgoldWarning, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from softgold.experts import Calibration
    from softgold.runs import Study
    from softgold.tables.soft_labels import SoftLabels

__all__ = ["calibrate_study", "merged_soft_labels", "sample_study"]


def calibrate_study(
    study: Study,
    experts: Sequence[Path],
    columns: dict[str, str | None],
    key: Path | None,
    *,
    quiet: bool,
    **options: Any,
) -> dict[str, Calibration]:
    """Calibrate every question or class that experts answered, each with its own threshold."""
    from softgold.experts import calibrate, read_key
    from softgold.experts.studies import answers_by_task, split_by_task

    items = {name: run.soft_labels.item_ids for name, run in study.tasks.items()}
    panels = answers_by_task(list(experts), items, study.kind, **columns)
    keys = {} if key is None else split_by_task(key)
    results = {}
    with progress("calibrating", len(panels), quiet=quiet) as advance:
        for name, panel in panels.items():
            sample = None if key is None else read_key(keys[name] if name in keys else keys[""])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", SoftgoldWarning)
                results[name] = calibrate(study.tasks[name].soft_labels, panel, sample=sample, **options)
            for warning in caught:
                warnings.warn(f"{name}: {warning.message}", warning.category, stacklevel=2)
            advance(1)
    left = [name for name in study.tasks if name not in results]
    if left:
        say(f"no answers of experts on {', '.join(left[:8])}: labels there are not calibrated", quiet=quiet)
    return results


def sample_study(study: Study, budget: int, **options: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw items of every question; return the items for the sheet (`task, item`) and the key, with a column `task`."""
    from softgold.experts import sample_for_experts
    from softgold.runs.study import with_task

    each = max(1, budget // len(study.tasks))
    samples = {name: sample_for_experts(run.soft_labels, each, **options) for name, run in study.tasks.items()}
    sheet = with_task({name: sample.sheet()[["item"]] for name, sample in samples.items()})
    return sheet, with_task({name: sample.key() for name, sample in samples.items()})


def merged_soft_labels(study: Study, scored: pd.Index[str], *, quiet: bool) -> tuple[SoftLabels, pd.Series]:
    """Return the soft labels of all questions that models have scores for, and the question of each item."""
    import numpy as np
    import pandas as pd

    from softgold.tables.soft_labels import SoftLabels

    if study.kind == "classes":
        raise UsageError("a run with several classes is evaluated by softgold.evaluation.evaluate_classes")
    labels = {name: run.soft_labels for name, run in study.tasks.items()}
    known = {name: table for name, table in labels.items() if table.item_ids.isin(scored).any()}
    if not known:
        raise InputError(f"{study.path}: the models have no score of any item of its {len(labels)} tasks")
    left = [name for name in labels if name not in known]
    if left:
        say(f"no scores of {', '.join(left)}: not evaluated", quiet=quiet)
    parts = list(known.values())
    ids = parts[0].item_ids.append([part.item_ids for part in parts[1:]])
    if ids.has_duplicates:
        first = next(iter(study.tasks.values())).path
        raise InputError(
            f"items of several tasks have the same id, such as {ids[ids.duplicated()][0]!r}: evaluate the run of each "
            f"task, such as {first}"
        )
    p, expected, n_votes, n_positive = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("p", "expected_vote", "n_votes", "n_positive")
    )
    tasks = np.repeat(list(known), [len(part) for part in parts])
    whole = SoftLabels(ids, p, expected, n_votes, n_positive, parts[0].method)
    return whole, pd.Series(tasks, index=ids, name="task")
