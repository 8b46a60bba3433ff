"""Simulated campaigns: what a fitted model expects of votes that have not been given yet.

A campaign draws what the votes so far leave open: the prevalence, which the model takes from a rule; what the
annotators have in common; the skills of each from the posterior; and with these the chances of every item. The
planner does not know the draw: it starts from the fitted beliefs and updates them vote by vote. Every item gets its
further votes once, up to a horizon; which of them are bought is decided afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softgold.models.crowd.annotators import Skills, respond
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.models.crowd.states import States
from softgold.planning.beliefs import Beliefs, VoterPool, select_items, state_masses
from softgold.planning.crew import Crew
from softgold.planning.outcomes import vote_values
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]

POINT = 1e-12  # variance of skills that are taken as known
MOST_VOTERS = 400
# Spread of the log odds of the prevalence around what the rule of the model gives: the rule was off by 0.48 on this
# scale (root mean square over 50 simulated studies with three votes per item and true prevalences from 0.2 to 0.5).
ODDS_SD = 0.5


@dataclass(frozen=True, eq=False)
class Sample:
    """Some items that stand for all, and the annotators who may vote on them.

    Attributes:
        votes: Their votes.
        skills: Posterior of the annotators of `votes`.
        voters: Posterior of those who give the next votes, G of them, each as likely as the other.
        pool: The same in types, which is how the planner values votes.
        posterior: The fitted posterior.
        certainty: Probability that each item's component is the right way round, shape (n,).
    """

    votes: VoteTable
    skills: Skills
    voters: Skills
    pool: VoterPool
    posterior: CrowdPosterior
    certainty: FloatArray

    @classmethod
    def of(cls, beliefs: Beliefs, crew: Crew, size: int) -> Sample:
        """Return at most `size` items spread evenly over the range of p, and voters drawn by their weight."""
        p = beliefs.posterior.soft_labels().p
        places = np.linspace(0, beliefs.n_items - 1, min(size, beliefs.n_items)).astype(np.int64)
        items = np.sort(np.argsort(p, kind="stable")[places])
        votes, annotators = select_items(beliefs.votes, items)
        # Evenly spaced through the cumulative weights: everybody gets as many places as the weight says.
        total = np.cumsum(crew.weight(beliefs))
        voters = np.searchsorted(total / total[-1], (np.arange(MOST_VOTERS) + 0.5) / MOST_VOTERS)
        fitted, asked = beliefs.posterior.skills.take(annotators), crew.skills(beliefs).take(voters)
        return cls(votes, fitted, asked, crew.pool(beliefs), beliefs.posterior, beliefs.certainty[items])

    @cached_property
    def masses(self) -> FloatArray:
        """State probabilities of the items, as fitted: where the planner starts in every campaign, shape (n, K)."""
        return state_masses(self.votes, self.skills, self.posterior.states)

    @cached_property
    def answers(self) -> FloatArray:
        """Chances of the voters' answers, as fitted; see `_answers`."""
        return _answers(self.voters, self.posterior.states)


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
    states, world = sample.posterior.states, _draw_world(sample.posterior, rng)
    believed, told = sample.masses, sample.answers
    actual = state_masses(sample.votes, world.drawn(sample.skills, rng), world.states)
    meant, n_voters = _answers(world.drawn(sample.voters, rng), states), len(sample.voters.mean)
    state = _draw_rows(actual, rng)
    course = []
    for step in range(horizon + 1):
        p, truth = (
            _mixed(mass @ positive, sample.certainty)
            for mass, positive in ((believed, states.positive), (actual, world.states.positive))
        )
        value = vote_values(believed, states.positive, sample.pool.yes, sample.certainty) @ sample.pool.share
        course.append((value, np.where(p >= 0.5, 1 - truth, truth), truth * (1 - p) ** 2 + (1 - truth) * p**2))
        if step < horizon:
            who = rng.integers(n_voters, size=len(state))
            yes = rng.random(len(state)) < meant[n_voters + who, state]
            answer = who + n_voters * yes
            believed, actual = _updated(believed, told[answer]), _updated(actual, meant[answer])
    return Campaign(*(np.column_stack(part) for part in zip(*course, strict=True)))


@dataclass(frozen=True, eq=False)
class _World:
    """What is true of all items and all annotators in one campaign.

    Attributes:
        states: The states with the prevalence of this world.
        shift: What all annotators have in common beyond the fit, in ability and lean, shape (2,).
        varies: 1 for an ability or lean that annotators differ in, 0 for the lean of a model without, shape (2,).
    """

    states: States
    shift: FloatArray
    varies: FloatArray

    def drawn(self, skills: Skills, rng: np.random.Generator) -> Skills:
        """Return skills that are points, drawn from the factors and moved together."""
        wide = np.sqrt(skills.cov[:, 0])
        slope = skills.cov[:, 1] / wide
        rest = np.sqrt(np.maximum(skills.cov[:, 2] - slope**2, 0.0))
        first, second = rng.standard_normal((2, len(wide)))
        moves = np.column_stack([wide * first, slope * first + rest * second])
        return Skills(skills.mean + self.varies * (self.shift + moves), np.tile([POINT, 0.0, POINT], (len(wide), 1)))


def _draw_world(posterior: CrowdPosterior, rng: np.random.Generator) -> _World:
    population, count = posterior.population, len(posterior.annotator_ids)
    spread = population.spread / np.sqrt(count)
    odds = population.log_odds
    if isinstance(posterior.prior.prevalence, str):
        odds += ODDS_SD * rng.standard_normal()
    states = posterior.prior.states(replace(population, log_odds=odds), posterior.lattice)
    return _World(states, spread * rng.standard_normal(2), np.array([1.0, float(population.has_lean)]))


def _mixed(p: FloatArray, certainty: FloatArray) -> FloatArray:
    return certainty * p + (1 - certainty) * (1 - p)


def _draw_rows(mass: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a state of each item, shape (n,)."""
    total = np.cumsum(mass, axis=1)
    below: NDArray[np.intp] = (total < rng.random((len(mass), 1)) * total[:, -1:]).sum(axis=1)
    return below.clip(max=mass.shape[1] - 1)


def _answers(voters: Skills, states: States) -> FloatArray:
    """Return the chances of a no vote of each voter in each state, then those of a yes vote, shape (2 G, K)."""
    yes = respond(voters, states).sigmoid
    return np.concatenate([1 - yes, yes])


def _updated(mass: FloatArray, chance: FloatArray) -> FloatArray:
    """Return the state probabilities after votes that had this chance in each state, which is overwritten."""
    chance *= mass
    chance /= chance.sum(axis=1, keepdims=True)
    return chance
