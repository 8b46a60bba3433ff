"""The run directory: the only code that knows the names, versions and digests of its files."""

from softgold.runs.fits import save_fit, soft_labels_path, votes_digest
from softgold.runs.opening import is_study, open_run, open_study
from softgold.runs.records import Round
from softgold.runs.results import RESULTS, report_path, write_result
from softgold.runs.run import Run
from softgold.runs.streamed import save_streamed
from softgold.runs.study import Study, save_study

__all__ = [
    "RESULTS",
    "Round",
    "Run",
    "Study",
    "is_study",
    "open_run",
    "open_study",
    "report_path",
    "save_fit",
    "save_streamed",
    "save_study",
    "soft_labels_path",
    "votes_digest",
    "write_result",
]
