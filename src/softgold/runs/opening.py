"""Open a run directory, whatever it holds."""

from __future__ import annotations

from pathlib import Path

from softgold.errors import InputError
from softgold.output import PathLike, settle
from softgold.readers.base import web_address
from softgold.runs.files import read_json
from softgold.runs.fits import SOFT_LABELS, soft_labels_path
from softgold.runs.records import RECORD
from softgold.runs.run import Run
from softgold.runs.study import STUDY_FORMAT, Study


def open_run(path: PathLike) -> Run:
    """Open a run directory, as `softgold fit` or `fit.save(dir)` wrote it.

    Its parts are read when they are first used.

    Raises:
        InputError: There is no run, or it has several questions.

    Example:
        >>> import tempfile, softgold
        >>> study = softgold.simulate(n_items=50, n_annotators=12, seed=0)
        >>> folder = tempfile.mkdtemp() + "/run"
        >>> softgold.fit(study.votes, engine="coordinate").save(folder)
        >>> run = open_run(folder)
        >>> run.votes.n_items, len(run.soft_labels), run.has("calibration")
        (50, 50, False)
    """
    folder = _run_folder(path)
    if is_study(folder):
        study = Study(folder)
        first = next(iter(study.tasks.values())).path
        raise InputError(
            f"{folder} has {len(study.tasks)} {study.kind}; use softgold.open_study, or the run of one, such as {first}"
        )
    return Run(folder)


def open_study(path: PathLike) -> Study:
    """Open a run directory with several questions or classes.

    Raises:
        InputError: There is no run, or it has one question.

    Example:
        >>> import tempfile, softgold
        >>> votes = softgold.simulate(n_items=50, n_annotators=12, seed=0).votes
        >>> folder = tempfile.mkdtemp() + "/study"
        >>> softgold.save_study({"edema": softgold.fit(votes, model="mean")}, folder, kind="tasks")
        >>> list(open_study(folder).tasks)
        ['edema']
    """
    folder = _run_folder(path)
    if not is_study(folder):
        raise InputError(f"{folder} has one question; use softgold.open_run")
    return Study(folder)


def is_study(path: PathLike) -> bool:
    """Return whether a run directory has several questions or classes."""
    record = Path(path) / RECORD
    return record.is_file() and read_json(record, "softgold fit").get("format") == STUDY_FORMAT


def _run_folder(path: PathLike) -> Path:
    folder = Path(path)
    settle(folder)
    if not folder.is_dir():
        raise InputError(f"there is no run {web_address(folder) or folder}; 'softgold fit' makes one")
    if not soft_labels_path(folder).is_file():
        raise InputError(f"{folder} is not a run: it has no {SOFT_LABELS}; 'softgold fit' makes one")
    return folder
