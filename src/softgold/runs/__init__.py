"""The run directory: the only code that knows the names, versions and digests of its files."""

from softgold.runs.fits import Round, save_fit, votes_digest
from softgold.runs.opening import is_study, open_run, open_study
from softgold.runs.results import write_result
from softgold.runs.run import Run
from softgold.runs.study import Study, save_study

__all__ = [
    "Round",
    "Run",
    "Study",
    "is_study",
    "open_run",
    "open_study",
    "save_fit",
    "save_study",
    "votes_digest",
    "write_result",
]
