"""Items given the annotators: the exact distribution over each item's states, a chunk of items at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Response, Skills
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.population import ItemTotals
from softgold.models.crowd.priors import Prevalence
from softgold.models.crowd.states import States

Watch = Callable[[VoteChunk, FloatArray], None]  # is shown q(state) of the items of every chunk, shape (n, K)


@dataclass(frozen=True, eq=False)
class Tables:
    """What a sweep tells every chunk: annotators, their response in each state, the states of an item."""

    skills: Skills
    response: Response
    states: States
    prevalence: Prevalence | float | None


@dataclass(frozen=True, eq=False)
class ChunkResult:
    """What a chunk gives back to a sweep.

    Attributes:
        positive: p of its items, shape (n,).
        mass: Sum of q(state) over the votes of each column of the chunk, shape (C, K).
        totals: Sums over its items.
    """

    positive: FloatArray
    mass: FloatArray
    totals: ItemTotals


def item_masses(chunk: VoteChunk, skills: Skills, response: Response, states: States) -> tuple[FloatArray, FloatArray]:
    """Return q(state) of a chunk's items, shape (n, K), and the log of their evidence, shape (n,).

    log q = log prior + the sum over the votes of E[log P(vote | state)], which is E[x] - softplus for a yes vote and
    -softplus for a no vote, x = c b + d + u.
    """
    table = -response.softplus[chunk.annotators]
    mean = skills.mean[chunk.annotators[chunk.yes]]
    table[chunk.yes] += mean[:, :1] * states.b + mean[:, 1:] + states.u
    mass = chunk.by_item @ table
    mass += states.log_prior
    top = mass.max(axis=1, keepdims=True)
    mass -= top
    np.exp(mass, out=mass)
    total = mass.sum(axis=1, keepdims=True)
    mass /= total
    return mass, (top + np.log(total))[:, 0]


def step(chunk: VoteChunk, tables: Tables, watch: Watch | None = None) -> ChunkResult:
    """Update the items of a chunk: a pure function, the same for every driver."""
    mass, evidence = item_masses(chunk, tables.skills, tables.response, tables.states)
    if watch is not None:
        watch(chunk, mass)
    weight, positive, rule = chunk.item_weight, mass @ tables.states.positive, tables.prevalence
    rates = item_rates(chunk, tables.skills.mean[:, 0], rule) if isinstance(rule, str) else np.zeros(len(weight))
    score = mass @ tables.states.pull_score
    of_items = (np.ones(len(weight)), positive, positive * (1 - positive), rates, score, score**2, evidence)
    totals = ItemTotals(*(weight @ np.column_stack(of_items)).tolist())
    return ChunkResult(positive, chunk.by_column @ mass, totals)


def item_rates(chunk: VoteChunk, ability: FloatArray, prevalence: Prevalence) -> FloatArray:
    """Return how far a chunk's items count as positive for the prevalence, from 0 to 1, shape (n,).

    "able": share of yes votes, each weighing its annotator's squared ability, reversed where the ability is negative.
    """
    mean = ability[chunk.annotators]
    yes = np.arange(len(mean)) >= chunk.n_no
    weight = np.ones(len(mean))
    if prevalence == "able":
        weight, yes = mean**2, yes ^ (mean < 0)
    total, agreed = chunk.by_item @ weight, chunk.by_item @ (weight * yes)
    rate: FloatArray = np.divide(agreed, total, out=np.full(len(total), 0.5), where=total > 0)
    return 0.5 + 0.5 * np.sign(np.round(rate - 0.5, 12)) if prevalence == "majority" else rate


def rate_slopes(chunk: VoteChunk, ability: FloatArray) -> FloatArray:
    """Return how the sum of a chunk's "able" rates follows the ability behind each of its columns, shape (C,)."""
    mean = ability[chunk.annotators]
    yes = (np.arange(len(mean)) >= chunk.n_no) ^ (mean < 0)
    total, rate = chunk.by_item @ mean**2, item_rates(chunk, ability, "able")
    inverse = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)
    slopes: FloatArray = 2 * mean * (yes * (chunk.by_column @ inverse) - chunk.by_column @ (rate * inverse))
    return slopes
