"""Soft labels with honest uncertainty from crowd votes, and evaluation that uses them.

The names below are resolved when they are first used, so that importing softgold imports neither torch nor pandas.
"""

from __future__ import annotations

# Nothing is imported here, so that Ctrl-C while the command line starts is met by the command line.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from softgold import errors, plot
    from softgold.evaluation import evaluate
    from softgold.experts import calibrate, sample_for_experts
    from softgold.models.base import Fit, fit
    from softgold.models.baselines import Majority, Mean, RatingMean
    from softgold.models.crowd.estimator import GLAD, TwoClass
    from softgold.models.tasks import fit_tasks
    from softgold.planning import forecast, plan_controls, plan_votes, read_crew, update_run
    from softgold.readers import (
        read_experts,
        read_export,
        read_ratings,
        read_scores,
        read_soft_labels,
        read_study,
        read_votes,
    )
    from softgold.runs import Run, Study, open_run, open_study, save_study
    from softgold.simulation import simulate
    from softgold.tables.experts import ExpertLabels
    from softgold.tables.ratings import RatingTable
    from softgold.tables.scores import Scores
    from softgold.tables.soft_labels import SoftLabels
    from softgold.tables.votes import VoteTable

__version__ = "0.2.0"

__all__ = [
    "GLAD",
    "ExpertLabels",
    "Fit",
    "Majority",
    "Mean",
    "RatingMean",
    "RatingTable",
    "Run",
    "Scores",
    "SoftLabels",
    "Study",
    "TwoClass",
    "VoteTable",
    "calibrate",
    "errors",
    "evaluate",
    "fit",
    "fit_tasks",
    "forecast",
    "open_run",
    "open_study",
    "plan_controls",
    "plan_votes",
    "plot",
    "read_crew",
    "read_experts",
    "read_export",
    "read_ratings",
    "read_scores",
    "read_soft_labels",
    "read_study",
    "read_votes",
    "sample_for_experts",
    "save_study",
    "simulate",
    "update_run",
]

_HOMES = {
    "softgold.evaluation": ("evaluate",),
    "softgold.experts": ("calibrate", "sample_for_experts"),
    "softgold.models.base": ("Fit", "fit"),
    "softgold.models.baselines": ("Majority", "Mean", "RatingMean"),
    "softgold.models.crowd.estimator": ("GLAD", "TwoClass"),
    "softgold.planning": ("forecast", "plan_controls", "plan_votes", "read_crew", "update_run"),
    "softgold.models.tasks": ("fit_tasks",),
    "softgold.readers": (
        "read_experts",
        "read_export",
        "read_ratings",
        "read_scores",
        "read_soft_labels",
        "read_study",
        "read_votes",
    ),
    "softgold.runs": ("Run", "Study", "open_run", "open_study", "save_study"),
    "softgold.simulation": ("simulate",),
    "softgold.tables.experts": ("ExpertLabels",),
    "softgold.tables.ratings": ("RatingTable",),
    "softgold.tables.scores": ("Scores",),
    "softgold.tables.soft_labels": ("SoftLabels",),
    "softgold.tables.votes": ("VoteTable",),
}
_MODULES = ("errors", "plot")
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"softgold.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'softgold' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
