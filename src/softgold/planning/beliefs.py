"""What is believed of every item, and who will vote next: all that planning takes from a fitted crowd model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from softgold.errors import UsageError
from softgold.models.base import Fit, Posterior
from softgold.models.crowd.annotators import Skills, respond
from softgold.models.crowd.chunks import VoteChunk, part_chunks, vote_chunks
from softgold.models.crowd.items import item_masses
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.states import States
from softgold.models.crowd.threads import in_order, worker_pool
from softgold.tables.parts import VotesInParts
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]
Result = TypeVar("Result")

N_TYPES = 3


@dataclass(frozen=True, eq=False)
class VoterPool:
    """Who gives the next vote: T types of annotators, who answer alike within a type.

    Attributes:
        yes: Chance of a yes vote of each type in each state, shape (T, K).
        share: Share of the next votes that each type gives, shape (T,).
    """

    yes: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, yes: FloatArray, weight: FloatArray, sharpness: FloatArray, n_types: int = N_TYPES) -> VoterPool:
        """Group annotators into types of about equal weight, by how sharply they tell the classes apart.

        Args:
            yes: Chance of a yes vote of each annotator in each state, shape (A, K).
            weight: How many of the next votes each gives, up to a factor, shape (A,).
            sharpness: Sensitivity + specificity - 1 of each, shape (A,).
            n_types: Number of types.
        """
        order = np.argsort(sharpness, kind="stable")
        total = np.cumsum(weight[order])
        middle = (total - weight[order] / 2) / total[-1]
        kind = np.empty(len(order), dtype=np.int64)
        kind[order] = np.minimum((middle * n_types).astype(np.int64), n_types - 1)
        found = np.flatnonzero(np.bincount(kind, weights=weight, minlength=n_types))
        member = (kind == found[:, None]) * weight
        share = member.sum(axis=1)
        return cls(member @ yes / share[:, None], share / share.sum())


@dataclass(frozen=True, eq=False)
class Beliefs:
    """State probabilities of the items of a fitted table, computed chunk by chunk when they are asked for.

    Attributes:
        posterior: The fitted posterior.
        votes: The votes it was fitted to, gone through part by part.
        states: The states of an item.
        certainty: Probability that each item's component is the right way round, shape (I,).
    """

    posterior: CrowdPosterior
    votes: VotesInParts
    states: States
    certainty: FloatArray

    @classmethod
    def of(cls, fitted: Fit | Posterior, votes: VotesInParts | None = None) -> Beliefs:
        """Return the beliefs of a fit, or of a posterior and the votes it was fitted to."""
        posterior, votes = _taken_apart(fitted, votes)
        if not isinstance(posterior, CrowdPosterior):
            raise UsageError(
                "planning needs a crowd model (two-class or glad): vote shares do not say what a vote would change"
            )
        same = posterior.item_ids.equals(votes.item_ids) and posterior.annotator_ids.equals(votes.annotator_ids)
        if not same or not np.array_equal(posterior.item_counts, votes.item_counts):
            raise UsageError("votes must be those that the posterior was fitted to; fit them again")
        return cls(posterior, votes, posterior.states, _item_certainty(posterior, votes))

    @property
    def n_items(self) -> int:
        """Number of items I."""
        return len(self.certainty)

    def chances(self, skills: Skills) -> FloatArray:
        """Return the chance of a yes vote of some annotators in each state, shape (A, K)."""
        return respond(skills, self.states).sigmoid

    def sharpness(self, skills: Skills) -> FloatArray:
        """Return sensitivity + specificity - 1 of some annotators, shape (A,)."""
        gap = self.states.given_class(1) - self.states.given_class(0)
        return self.chances(skills) @ gap

    def masses(self, items: NDArray[np.int64]) -> FloatArray:
        """Return the state probabilities of some items, which ascend, shape (n, K)."""
        votes, annotators = select_items(self.votes, items)
        return state_masses(votes, self.posterior.skills.take(annotators), self.states)

    def each_chunk(self, work: Callable[[slice, FloatArray], Result]) -> Iterator[Result]:
        """Call `work` with the rows and the state probabilities, shape (n, K), of every chunk; yield in order."""
        skills, states = self.posterior.skills, self.states
        response = respond(skills, states)

        def on_chunk(chunk: VoteChunk) -> Result:
            return work(chunk.rows, item_masses(chunk, skills, response, states)[0])

        one_each = np.ones(self.votes.n_annotators)
        chunks = (
            chunk
            for part, some in self.votes.each()
            for chunk in part_chunks(some, one_each, first_item=part.first_item)
        )
        with worker_pool() as pool:
            yield from in_order(on_chunk, chunks, pool)


def _item_certainty(posterior: CrowdPosterior, votes: VotesInParts) -> FloatArray:
    """Return the certainty of each item's component; all annotators of an item are in one."""
    if (posterior.certainty == 1).all():
        return np.broadcast_to(1.0, votes.n_items)
    certainty = np.ones(votes.n_items)
    for part, some in votes.each():
        certainty[part.rows] = posterior.certainty[some.annotators[some.starts[:-1]]]
    return certainty


def _taken_apart(fitted: Fit | Posterior, votes: VotesInParts | None) -> tuple[Posterior, VotesInParts]:
    if isinstance(fitted, Fit):
        return fitted.posterior, fitted.votes if votes is None else votes
    if votes is None:
        raise UsageError("a posterior needs the votes it was fitted to: give votes=, or the fit in place of .posterior")
    return fitted, votes


def select_items(votes: VotesInParts, items: NDArray[np.int64]) -> tuple[VoteTable, NDArray[np.intp]]:
    """Return the votes on some items, which ascend, and which annotators of the whole table gave them."""
    place, who, said, weights = (np.concatenate(part) for part in zip(*_votes_on(votes, items), strict=True))
    annotators, codes = np.unique(who, return_inverse=True)
    weighted = None if np.isnan(weights).any() else weights
    names = (votes.item_ids[items], votes.annotator_ids[annotators])
    return VoteTable.from_codes(place, codes, said, *names, weights=weighted), annotators.astype(np.intp)


def _votes_on(votes: VotesInParts, items: NDArray[np.int64]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Give place, annotator, vote and weight (NaN where votes have none) of the votes on some items, part by part."""
    for part, some in votes.each():
        first, last = np.searchsorted(items, [part.first_item, part.rows.stop])
        found = some.select(items[first:last] - part.first_item)
        weights = np.full(len(found.votes), np.nan) if found.weights is None else found.weights
        yield first + found.items, found.annotators, found.votes, weights


def state_masses(votes: VoteTable, skills: Skills, states: States) -> FloatArray:
    """Return the state probabilities of all items of a small table, shape (I, K)."""
    response = respond(skills, states)
    return np.concatenate([item_masses(chunk, skills, response, states)[0] for chunk in vote_chunks(votes)])
