"""Votes larger than memory: the same fit, over chunks that are read from disk in every sweep."""

from softgold.scale.fitting import StreamedFit, check_streamable, fit_store
from softgold.scale.plan import StreamPlan, build_votes, choose_plan, workspace
from softgold.scale.store import VoteStore

__all__ = [
    "StreamPlan",
    "StreamedFit",
    "VoteStore",
    "build_votes",
    "check_streamable",
    "choose_plan",
    "fit_store",
    "workspace",
]
