"""A start for the sweeps where an earlier fit of nearly the same votes stood."""

from __future__ import annotations

import numpy as np

from softgold.models.crowd.classes import oriented, vote_classes
from softgold.models.crowd.coordinate import CoordinateState
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.tables.votes import VoteTable


def warm_state(votes: VoteTable, posterior: CrowdPosterior) -> CoordinateState:
    """Return the state from which sweeps over `votes` go on: annotators and populations as fitted before.

    Annotators who are new are members of the fitted population.
    """
    kinds = vote_classes(votes if posterior.population.has_lean else oriented(votes))
    first = np.unique(kinds.annotator, return_index=True)[1]
    known = posterior.annotator_ids.get_indexer(votes.annotator_ids[first])
    return CoordinateState.start(posterior.skills_at(known), posterior.population)
