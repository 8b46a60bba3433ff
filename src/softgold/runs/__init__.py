"""The run directory: the only code that knows the names, versions and digests of its files."""

from softgold.runs.fits import Round, save_fit, votes_digest
from softgold.runs.results import write_result
from softgold.runs.run import Run, open_run

__all__ = ["Round", "Run", "open_run", "save_fit", "votes_digest", "write_result"]
