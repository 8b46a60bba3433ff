"""The coordinate engine: deterministic mean-field ascent with exact one-dimensional updates, NumPy and SciPy alone.

A sweep updates every item given the annotators, chunk by chunk, then every annotator given the sums that the chunks
returned, then the learned scale. `item_step` is a pure function of a chunk of votes and the annotators' tables, and
nothing of size items x grid is held beyond its chunk.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from softgold.glad.chunks import VoteChunk
from softgold.glad.factors import (
    Factor,
    NormalPrior,
    concatenate,
    local_factor,
    shared_grid_factor,
)
from softgold.glad.grid import SinhGrid, log_two_cosh_half
from softgold.glad.normals import Normals, gaussian_factor, normal_factor
from softgold.glad.priors import Prior, learned_scale, log_hyper_prior
from softgold.glad.threads import THREADS, worker_pool
from softgold.votes import VoteTable

__all__ = ["CoordinateState", "Family", "Grids", "ItemChunk", "ItemResult", "item_step", "run"]

FloatArray = NDArray[np.float64]
Family = Literal["free", "gaussian"]
Result = TypeVar("Result")

UNIT = NormalPrior(0.0, 1.0)
ITEM_STEP = 0.1
ABILITY_SCALE, ABILITY_STEP = 0.1, 0.1
LARGEST_LEARNED_SCALE, TYPICAL_LEARNED_SCALE = 100.0, 10.0
EXTRAPOLATED_SWEEPS = (4, 6, 8)
LARGEST_STRETCH = 0.5  # in log units
ROW_BLOCK = 512
P_TOLERANCE = 1e-3
ELBO_TOLERANCE = 1e-6
MAX_SWEEPS = 500


def largest_scale(prior: Prior) -> float:
    """Return the largest difficulty scale that is learned; the product of both scales is what the votes can tell."""
    return LARGEST_LEARNED_SCALE / prior.ability_scale


@dataclass(frozen=True)
class Grids:
    """The two grids of a fit and h on their product.

    No factor reaches further than sqrt(2 n log 2) prior scales, n its number of votes, because the likelihood gains at
    most log 2 a vote over its value at zero; 20 nats more leave nothing out.
    """

    items: SinhGrid
    abilities: SinhGrid
    coupling: FloatArray

    @classmethod
    def for_votes(cls, votes: VoteTable, prior: Prior, *, ability: float = 0.0) -> Grids:
        """Return grids wide enough for every factor of this table, and for a whitened ability known already."""

        def reach(most_votes: int) -> float:
            return math.sqrt(2 * (most_votes * math.log(2) + 20))

        abilities = prior.whitened_abilities(prior.difficulty_scale or largest_scale(prior))
        # h(c b) bends where b is about 1/c, and a vague prior admits abilities of the order of its scale.
        typical = prior.whitened_abilities(prior.difficulty_scale or TYPICAL_LEARNED_SCALE / prior.ability_scale)
        finest = min(0.1, 3 / (abs(typical.mean) + typical.sd))
        items = SinhGrid.reaching(reach(int(votes.item_counts.max())), scale=finest, step=ITEM_STEP)
        furthest = max(ability, abs(abilities.mean) + abilities.sd * reach(int(votes.annotator_counts.max())))
        grid = SinhGrid.reaching(furthest, scale=ABILITY_SCALE, step=ABILITY_STEP)
        return cls(items, grid, log_two_cosh_half(grid.nodes[:, None] * items.nodes))


@dataclass(frozen=True, eq=False)
class ItemChunk:
    """Item factors of a chunk with what the votes said of them."""

    first_item: int
    factor: Factor
    eta: FloatArray
    penalty: FloatArray


@dataclass(frozen=True, eq=False)
class ItemResult:
    """What a chunk gives back: sums for the annotators and for the bound.

    Attributes:
        first_item: Number of the chunk's first item.
        positive: P(b > 0) of its items.
        bound: The chunk's part of the evidence lower bound.
        eta: Sum of (y - 1/2) E[b] per annotator, shape (A,).
        tables: Sum of the item factors' tables per annotator, shape (A, item grid).
        normals: The item factors themselves where they are Normals: the next sweep starts from them.
    """

    first_item: int
    positive: FloatArray
    bound: float
    eta: FloatArray
    tables: FloatArray
    normals: Normals | None


def item_factors(
    chunk: VoteChunk,
    ability: FloatArray,
    coupled: FloatArray,
    grids: Grids,
    family: Family,
    start: Normals | None = None,
) -> ItemChunk:
    """Return the optimal item factors of a chunk, given the mean abilities and `coupled`, their tables @ coupling.

    Normal factors are searched for from `start`, the chunk's items of the sweep before.
    """
    eta = chunk.signed @ ability
    penalty = chunk.weights @ coupled.astype(chunk.weights.dtype, copy=False)
    if family == "free":
        factor = shared_grid_factor(eta, penalty, UNIT, grids.items)
    else:
        factor = gaussian_factor(eta, penalty, UNIT, grids.items, start)
    return ItemChunk(chunk.first_item, factor, eta, penalty)


def item_step(chunk: VoteChunk, items: ItemChunk) -> ItemResult:
    """Return the sums that annotators and bound need from a chunk whose items have just been updated."""
    factor = items.factor
    return ItemResult(
        first_item=items.first_item,
        positive=factor.positive,
        bound=float(factor.bound.sum()),
        eta=chunk.signed.T @ factor.mean,
        tables=chunk.weights_by_annotator @ factor.table,
        normals=None if factor.nodes is None else Normals(factor.mean, factor.sd),
    )


@dataclass(frozen=True, eq=False)
class CoordinateState:
    """Everything that the next sweep needs; a run that goes on from a stored state gives the same numbers.

    Attributes:
        sweep: Sweeps done.
        abilities: Whitened annotator factors.
        scale: Difficulty scale in force.
        positive: P(b > 0) of each item after the last sweep, shape (I,).
        elbo: Evidence lower bound after each sweep's item step, of this family of factors; the first sweep has none,
            since it starts at a point.
        growth: Change of the log root mean square ability, annotators counted by their votes, in each sweep of this
            family of factors.
        change: Largest change of P(b > 0) in the last sweep.
        items: Whitened item factors after the last sweep, where they are Normals.
    """

    sweep: int
    abilities: Factor
    scale: float
    positive: FloatArray
    elbo: tuple[float, ...]
    growth: tuple[float, ...] = ()
    change: float = math.inf
    items: Normals | None = None

    @property
    def settled(self) -> bool:
        """Whether the last sweep left the soft labels and the bound where they were."""
        if self.change >= P_TOLERANCE or len(self.elbo) < 2:
            return False
        return abs(self.elbo[-1] - self.elbo[-2]) <= ELBO_TOLERANCE * abs(self.elbo[-1])


def start_state(votes: VoteTable, prior: Prior, grids: Grids) -> CoordinateState:
    """Return the consensus start: every annotator at whitened ability 1, which weighs all votes alike.

    A prior that expects adversaries starts them at -1: the sweeps do not cross from one sign to the other.
    """
    ones = np.ones(votes.n_annotators)
    level = -ones if prior.ability_mean < 0 else ones
    abilities = replace(normal_factor(level, 1e-6 * ones, grids.abilities), entropy=np.full(len(ones), -np.inf))
    return CoordinateState(0, abilities, prior.starting_scale, votes.item_shares, ())


def on_normals(state: CoordinateState, items: Normals, grid: SinhGrid) -> CoordinateState:
    """Return where Normal factors go on from free ones: at their means and standard deviations."""
    abilities = normal_factor(state.abilities.mean, state.abilities.sd, grid)
    return CoordinateState(state.sweep, abilities, state.scale, state.positive, (), items=items)


def in_order(
    work: Callable[[VoteChunk], Result], chunks: Iterable[VoteChunk], pool: ThreadPoolExecutor
) -> Iterator[Result]:
    """Work on some chunks at a time; give the results in the order of the chunks, so that sums do not depend on it."""
    pending: deque[Future[Result]] = deque()
    for chunk in chunks:
        pending.append(pool.submit(work, chunk))
        if len(pending) > 2 * THREADS:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def sweep(
    state: CoordinateState,
    chunks: Iterable[VoteChunk],
    prior: Prior,
    grids: Grids,
    family: Family,
    pool: ThreadPoolExecutor,
) -> CoordinateState:
    """Update every item, then every annotator, then the learned scale."""
    ability_prior = prior.whitened_abilities(state.scale)
    coupled = state.abilities.table @ grids.coupling
    positive = np.empty_like(state.positive)
    bound = ability_bound(state.abilities, ability_prior, prior, state.scale)
    eta = np.zeros(len(state.abilities.mean))
    tables = np.zeros((len(eta), grids.items.count))
    normals: list[Normals] = []

    def step(chunk: VoteChunk) -> ItemResult:
        start = state.items and state.items.rows(slice(chunk.first_item, chunk.first_item + chunk.weights.shape[0]))
        return item_step(chunk, item_factors(chunk, state.abilities.mean, coupled, grids, family, start))

    for result in in_order(step, chunks, pool):
        positive[result.first_item : result.first_item + len(result.positive)] = result.positive
        bound += result.bound
        eta += result.eta
        tables += result.tables
        if result.normals is not None:
            normals.append(result.normals)
    penalty = tables @ grids.coupling.T
    abilities = _ability_factors(eta, penalty, ability_prior, grids, family, pool, state)
    scale = state.scale
    if prior.learned:
        scale = learned_scale(prior, scale, len(eta), float(abilities.mean.sum()), float(abilities.second.sum()))
        scale = min(scale, largest_scale(prior))
    elbo = (*state.elbo, bound) if np.isfinite(bound) else state.elbo
    activity = tables.sum(axis=1)  # every item's table adds up to 1, so this is the votes of each annotator
    growth = 0.5 * float(np.log((activity @ abilities.second) / (activity @ state.abilities.second)))
    change = float(np.abs(positive - state.positive).max())
    items = Normals.concatenate(normals) if normals else None
    return CoordinateState(state.sweep + 1, abilities, scale, positive, elbo, (*state.growth, growth), change, items)


def ability_bound(abilities: Factor, ability_prior: NormalPrior, prior: Prior, scale: float) -> float:
    """Return the annotators' part of the bound: prior and entropy, and the hyper-prior of a learned scale."""
    part = ability_prior.expected_log_density(abilities.mean, abilities.second) + abilities.points.entropy
    return float(part.sum()) + (log_hyper_prior(scale, prior.ability_scale) if prior.learned else 0.0)


def _ability_factors(
    eta: FloatArray,
    penalty: FloatArray,
    ability_prior: NormalPrior,
    grids: Grids,
    family: Family,
    pool: ThreadPoolExecutor,
    state: CoordinateState,
) -> Factor:
    # The consensus start is a point: no Normal to go on from.
    start = None if state.items is None else Normals(state.abilities.mean, state.abilities.sd)

    def work(rows: slice) -> Factor:
        if family == "free":
            return local_factor(eta[rows], penalty[rows], ability_prior, grids.abilities)
        return gaussian_factor(eta[rows], penalty[rows], ability_prior, grids.abilities, start and start.rows(rows))

    return concatenate(list(pool.map(work, [slice(k, k + ROW_BLOCK) for k in range(0, len(eta), ROW_BLOCK)])))


def run(
    state: CoordinateState,
    chunks: Iterable[VoteChunk],
    prior: Prior,
    grids: Grids,
    *,
    family: Family = "free",
    max_sweeps: int = MAX_SWEEPS,
    on_sweep: Callable[[CoordinateState], None] = lambda state: None,
) -> tuple[CoordinateState, bool]:
    """Sweep until the soft labels and the bound have settled; return the last state and whether they have."""
    with worker_pool() as pool:

        def advance(state: CoordinateState) -> CoordinateState:
            return sweep(state, chunks, prior, grids, family, pool)

        while state.sweep < max_sweeps and not state.settled:
            state = advance_extrapolated(advance, state, prior, grids.abilities, family)
            on_sweep(state)
    return state, state.settled


def advance_extrapolated(
    advance: Callable[[CoordinateState], CoordinateState],
    state: CoordinateState,
    prior: Prior,
    grid: SinhGrid,
    family: Family,
) -> CoordinateState:
    """Sweep once; early on, from abilities stretched to where their growth points, unless that lowers the bound.

    Abilities and the learned scale grow together from the consensus, geometrically and slowly: the one slow mode of
    the ascent. Its rate shows in two successive sweeps.
    """
    if len(state.growth) not in EXTRAPOLATED_SWEEPS:
        return advance(state)
    before, last = state.growth[-2:]
    rate = np.clip(last / before if before else 0.0, 0.0, 0.9)
    stretch = float(np.exp(np.clip(last * rate / (1 - rate), -LARGEST_STRETCH, LARGEST_STRETCH)))
    scale = min(state.scale * stretch, largest_scale(prior)) if prior.learned else state.scale
    if family == "free":
        abilities = state.abilities.stretched(stretch, grid)
    else:
        abilities = normal_factor(stretch * state.abilities.mean, stretch * state.abilities.sd, grid)
    ahead = advance(replace(state, abilities=abilities, scale=scale))
    return ahead if ahead.elbo[-1] >= state.elbo[-1] else advance(state)
