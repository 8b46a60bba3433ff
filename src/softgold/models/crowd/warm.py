"""A start for the sweeps where an earlier fit of nearly the same votes stood."""

from __future__ import annotations

import numpy as np

from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.classes import vote_classes
from softgold.models.crowd.coordinate import CoordinateState
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.tables.votes import VoteTable

__all__ = ["warm_state"]


def warm_state(votes: VoteTable, posterior: CrowdPosterior) -> CoordinateState:
    """Return the state from which sweeps over `votes` go on: annotators, items and populations as fitted before.

    Annotators who are new are members of the fitted population; new items start at 1/2.
    """
    kinds = vote_classes(votes)
    annotators, items = (np.unique(side, return_index=True)[1] for side in (kinds.annotator, kinds.item))
    known = posterior.annotator_ids.get_indexer(votes.annotator_ids[annotators])
    newcomers, seen = Skills.at(posterior.population, len(known)), (known >= 0)[:, None]
    skills = Skills(
        np.where(seen, posterior.skills.mean[known], newcomers.mean),
        np.where(seen, posterior.skills.cov[known], newcomers.cov),
    )
    places = posterior.item_ids.get_indexer(votes.item_ids[items])
    positive = np.where(places >= 0, posterior.items.positive[places], 0.5)
    return CoordinateState(0, skills, posterior.population, positive)
