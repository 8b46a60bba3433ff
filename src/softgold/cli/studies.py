"""`calibrate`, `sample-experts` and `evaluate` on a run with several questions or classes."""

from __future__ import annotations

import os
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
    from softgold.evaluation.words import list_names
    from softgold.experts import calibrate, read_key
    from softgold.experts.studies import answers_by_task, check_class_key, split_by_task

    with study.reading():
        items = {name: run.soft_labels.item_ids for name, run in study.tasks.items()}
    panels = answers_by_task(list(experts), items, study.kind, **columns)
    keys = {name: read_key(part) for name, part in ({} if key is None else split_by_task(key)).items()}
    if key is not None and study.kind == "classes":
        check_class_key(next(iter(keys.values())), study.class_labels)
    lacking = [name for name in panels if keys and name not in keys and "" not in keys]
    if lacking:
        raise InputError(f"{key} has no items of {lacking[0]!r}, which experts answered")
    results = {}
    said: dict[tuple[str, type[Warning]], list[str]] = {}
    with progress("calibrating", len(panels), quiet=quiet) as advance:
        for name, panel in panels.items():
            sample = keys.get(name, keys.get(""))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", SoftgoldWarning)
                results[name] = calibrate(study.tasks[name].soft_labels, panel, sample=sample, **options)
            for warning in caught:
                said.setdefault((str(warning.message), warning.category), []).append(name)
            advance(1)
    for (text, category), names in said.items():
        warnings.warn(f"{list_names(names)}: {text}", category, stacklevel=2)
    left = [name for name in study.tasks if name not in results]
    if left:
        say(f"no answers of experts on {', '.join(left[:8])}: labels there are not calibrated", quiet=quiet)
    return results


def sample_study(study: Study, budget: int, **options: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw items of every question, or of all classes together; call it inside `with reading(study.path):`.

    Returns:
        The items for the sheet, `task, item`, or `item` with several classes; and the key, with the same columns first.
    """
    from softgold.experts import sample_classes, sample_for_experts
    from softgold.runs.study import with_task

    if study.kind == "classes":
        if options.pop("scheme") == "paper":
            raise UsageError("--scheme paper asks one question with two classes; leave it out with several classes")
        sample = sample_classes(study.class_labels, budget, **options)
        return sample.sheet()[["item"]], sample.key()
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
        raise UsageError("a run with several classes needs scores with a probability per class")
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


def read_group_column(
    group: str | None, items: Path | None, folders: list[Path | None], tables: list[Path | None], item: str | None
) -> pd.Series | None:
    """Read the groups from the table of items, or else from the first table that has the column."""
    from softgold.evaluation import read_groups
    from softgold.readers.sources import open_source

    if group is None:
        return None
    if items is not None:
        return read_groups(items, group, item=item)
    candidates = [*items_files(folders), *(path for path in tables if path is not None and path.is_file())]
    for path in candidates:
        if group in open_source(path).columns:
            return read_groups(path, group, item=item)
    looked = ", ".join(str(path) for path in candidates) or "the run"
    raise InputError(f"there is no column {group!r} in {looked}; give --items FILE with item and {group}")


def items_files(folders: list[Path | None]) -> list[Path]:
    """Return items.csv of those folders that have it."""
    return [folder / "items.csv" for folder in folders if folder is not None and (folder / "items.csv").is_file()]


def evaluate_class_run(run: Path, scores: Path, output: Path, *, force: bool, quiet: bool, **options: Any) -> Any:
    """Judge models with a probability per class against a run with several classes, write and return the result."""
    from softgold.evaluation import evaluate_classes
    from softgold.output import RUN_MARKER, check_target, reading, stamps
    from softgold.runs import open_study, write_result
    from softgold.runs.results import RESULTS

    kind = RESULTS["class_evaluation"]
    for name in kind.files:
        check_target(output / name, force=force)
    with reading(run):
        study = open_study(run)
        table, began = study.soft_labels_frame(), stamps(run, (RUN_MARKER, *kind.made_from))
    models = read_class_scores(scores, tuple(study.tasks))
    result = evaluate_classes(table, models, **options)
    same = os.path.realpath(output) == os.path.realpath(run)
    written = write_result(result, output, inputs=[scores], force=force, began=began if same else None)
    for (model, title), rows in result.overall.groupby(["model", "title"], sort=False):
        row = rows.iloc[0]
        say(f"{model}: {title} {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})", quiet=quiet)
    say(f"written: {', '.join(map(str, written))}", quiet=quiet)
    return result


def read_class_scores(path: Path, classes: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Read scores of a table with `item`, perhaps `model`, and a column `p_<class>` (or `<class>`) per class."""
    import numpy as np
    import pandas as pd

    from softgold.readers.cells import code_ids, parse_numbers
    from softgold.readers.columns import ITEM, MODEL, find_column, find_optional
    from softgold.readers.sources import open_source

    table = open_source(path)
    items, model = find_column(table, ITEM), find_optional(table, MODEL)
    ids = code_ids(table, items, table.load([items])[0])
    frame = pd.DataFrame({"item": ids.index()[ids.codes]})
    for name in classes:
        found = [at for at, column in enumerate(table.columns) if column in (f"p_{name}", name)]
        if len(found) != 1:
            problem = "no column" if not found else "two columns"
            raise InputError(f"{path} has {problem} p_{name} for the class {name!r}; it has {', '.join(table.columns)}")
        frame[f"p_{name}"] = parse_numbers(table, found[0], table.load(found)[0], "a probability")
    if frame.isna().to_numpy().any():
        row = int(np.argmax(frame.isna().any(axis=1)))
        raise InputError(f"{path}, {table.where(row)}: a probability is missing")
    if model is None:
        return {path.name.split(".")[0]: frame}
    names = code_ids(table, model, table.load([model])[0])
    by_model = frame.groupby(names.index()[names.codes], sort=False)
    return {str(name): rows.reset_index(drop=True) for name, rows in by_model}
