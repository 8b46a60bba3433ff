"""Simulated campaigns: what a fitted model expects of votes that have not been given yet.

A campaign draws what the votes so far leave open: the annotators' skills from their posterior, and with these skills
the chances of every item. The planner does not know the draw: it starts from the fitted beliefs and updates them vote
by vote. Every item gets its further votes once, up to a horizon; which of them are bought is decided afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgold.models.crowd.annotators import Skills, respond
from softgold.models.crowd.chunks import vote_chunks
from softgold.models.crowd.items import item_masses
from softgold.models.crowd.states import States
from softgold.planning.beliefs import Beliefs, VoterPool
from softgold.planning.outcomes import vote_values
from softgold.tables.votes import VoteTable

__all__ = ["Campaign", "Sample", "run_campaign"]

FloatArray = NDArray[np.float64]

POINT = 1e-12  # variance of skills that are taken as known
MOST_VOTERS = 400


@dataclass(frozen=True, eq=False)
class Sample:
    """Some items that stand for all, and the annotators who may vote on them.

    Attributes:
        votes: Their votes.
        skills: Posterior of the annotators of `votes`.
        voters: Posterior of those who give the next votes, G of them, each as likely as the other, and all of them
            annotators of their own.
        pool: The same in types, which is how the planner values votes.
        states: The states of an item.
        certainty: Probability that each item's component is the right way round, shape (n,).
    """

    votes: VoteTable
    skills: Skills
    voters: Skills
    pool: VoterPool
    states: States
    certainty: FloatArray

    @classmethod
    def of(cls, beliefs: Beliefs, skills: Skills, weight: FloatArray, pool: VoterPool, size: int) -> Sample:
        """Return items spread evenly over the range of p, and voters drawn by their weight.

        Args:
            beliefs: The beliefs.
            skills: Posterior of those who may give the next votes.
            weight: How many of the next votes each gives, up to a factor.
            pool: The same people in types.
            size: Most items in the sample.
        """
        p = beliefs.posterior.soft_labels().p
        places = np.linspace(0, beliefs.n_items - 1, min(size, beliefs.n_items)).astype(np.int64)
        items = np.sort(np.argsort(p, kind="stable")[places])
        votes, annotators = _only(beliefs.votes, items)
        # Evenly spaced through the cumulative weights: everybody gets as many places as the weight says.
        total = np.cumsum(weight) / weight.sum()
        voters = np.searchsorted(total, (np.arange(MOST_VOTERS) + 0.5) / MOST_VOTERS)
        fitted = beliefs.posterior.skills.take(annotators)
        return cls(votes, fitted, skills.take(voters), pool, beliefs.states, beliefs.certainty[items])


def _only(votes: VoteTable, items: NDArray[np.int64]) -> tuple[VoteTable, NDArray[np.intp]]:
    """Return the votes on some items, and which annotators of the whole table gave them."""
    place = np.full(votes.n_items, -1)
    place[items] = np.arange(len(items))
    kept = place[votes.item_codes] >= 0
    annotators, codes = np.unique(votes.annotator_codes[kept], return_inverse=True)
    weights = None if votes.weights is None else votes.weights[kept]
    table = VoteTable.from_codes(
        place[votes.item_codes[kept]],
        codes,
        votes.votes[kept],
        votes.item_ids[items],
        votes.annotator_ids[annotators],
        weights=weights,
    )
    return table, annotators


@dataclass(frozen=True, eq=False)
class Campaign:
    """One simulated course of n items over 0 .. H further votes each, arrays of shape (n, H + 1).

    Attributes:
        value: What the next vote is worth to the planner.
        wrong: Chance that the planner's label is wrong, for one who knows the drawn skills.
        brier: Expected squared distance of the planner's p from the class, likewise.
    """

    value: FloatArray
    wrong: FloatArray
    brier: FloatArray


def run_campaign(sample: Sample, horizon: int, rng: np.random.Generator) -> Campaign:
    """Simulate `horizon` further votes on every item of the sample."""
    states, n_items = sample.states, sample.votes.n_items
    believed = _masses(sample.votes, sample.skills, states)
    actual = _masses(sample.votes, _drawn(sample.skills, rng), states)
    told, meant = (respond(skills, states).sigmoid for skills in (sample.voters, _drawn(sample.voters, rng)))
    state = _draw_rows(actual, rng)
    course = []
    for step in range(horizon + 1):
        course.append(_standing(sample, believed, actual))
        if step < horizon:
            who = rng.integers(len(told), size=n_items)
            yes = rng.random(n_items) < meant[who, state]
            believed, actual = _updated(believed, told[who], yes), _updated(actual, meant[who], yes)
    return Campaign(*(np.column_stack(part) for part in zip(*course, strict=True)))


def _masses(votes: VoteTable, skills: Skills, states: States) -> FloatArray:
    response = respond(skills, states)
    return np.concatenate([item_masses(chunk, skills, response, states)[0] for chunk in vote_chunks(votes)])


def _drawn(skills: Skills, rng: np.random.Generator) -> Skills:
    """Return skills that are points, drawn from the factors."""
    wide = np.sqrt(skills.cov[:, 0])
    slope = skills.cov[:, 1] / wide
    rest = np.sqrt(np.maximum(skills.cov[:, 2] - slope**2, 0.0))
    first, second = rng.standard_normal((2, len(wide)))
    moves = np.column_stack([wide * first, slope * first + rest * second])
    return Skills(skills.mean + moves, np.tile([POINT, 0.0, POINT], (len(wide), 1)))


def _draw_rows(mass: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a state of each item, shape (n,)."""
    total = np.cumsum(mass, axis=1)
    return np.minimum((total < rng.random((len(mass), 1)) * total[:, -1:]).sum(axis=1), mass.shape[1] - 1)


def _updated(mass: FloatArray, chance: FloatArray, yes: NDArray[np.bool_]) -> FloatArray:
    found = mass * np.where(yes[:, None], chance, 1 - chance)
    return found / found.sum(axis=1, keepdims=True)


def _standing(sample: Sample, believed: FloatArray, actual: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return value of the next vote, chance of a wrong label and expected Brier score of each item."""
    positive, sure = sample.states.positive, sample.certainty
    p, truth = (sure * found + (1 - sure) * (1 - found) for found in (believed @ positive, actual @ positive))
    value = vote_values(believed, positive, sample.pool.yes, sure) @ sample.pool.share
    return value, np.where(p >= 0.5, 1 - truth, truth), truth * (1 - p) ** 2 + (1 - truth) * p**2
