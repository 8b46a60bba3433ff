"""Assignment of annotators to items: a sparse random graph with given marginals and number of components.

In this module items and annotators have places 0 .. I-1 and 0 .. A-1, in which each component is contiguous. One draw
then serves all components: an annotator is drawn by activity from an interval of the cumulative weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softgold.simulation.settings import SimulationSettings

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# `long_tail`: spread of the logarithm, share of items with one response, share and size of the tail.
LOG_SPREAD = 0.35
SINGLE_SHARE = 0.0005
TAIL_SHARE = 0.0015
TAIL_FACTORS = (3.0, 22.0)

# Rounds of redrawing before the remaining responses are drawn item by item.
REDRAW_ROUNDS = 25


@dataclass(frozen=True, eq=False)
class Responses:
    """Distinct pairs of an item and an annotator, sorted by item; three arrays of shape (R,).

    Attributes:
        items: Item of each response, 0 .. I-1.
        annotators: Annotator of each response, 0 .. A-1.
        abstained: Whether the response is an abstention. The votes alone reach every item and every annotator and
            have the chosen number of components.
    """

    items: IntArray
    annotators: IntArray
    abstained: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Layout:
    """Places of annotators available to each item, and their activity.

    Attributes:
        first: First annotator of the item's component, shape (I,).
        stop: One past the last annotator of the component, shape (I,).
        activity: Activity of the annotator at each place, shape (A,).
        cumulative: Sum of the activities before each place, shape (A + 1,).
    """

    first: IntArray
    stop: IntArray
    activity: FloatArray
    cumulative: FloatArray

    def draw(self, items: IntArray, stop: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw one annotator per item by activity, from places first .. stop-1."""
        first = self.first[items]
        low, high = self.cumulative[first], self.cumulative[stop]
        drawn = np.searchsorted(self.cumulative, low + rng.random(len(items)) * (high - low), side="right") - 1
        return np.clip(drawn, first, stop - 1)


def draw_responses(settings: SimulationSettings, activity: FloatArray, rng: np.random.Generator) -> Responses:
    """Draw the responses.

    A random spanning tree connects every component: each item is linked to an annotator already reached, and each
    annotator is first reached from one item. An item's remaining responses are drawn by activity without replacement.
    """
    item_at, annotator_at = rng.permutation(settings.n_items), _reaching_order(settings, activity, rng)
    layout = _lay_out(settings, activity[annotator_at])
    counts = _response_counts(settings, rng)
    tree_items, tree_annotators = _draw_tree(settings, layout, counts, rng)
    missing = counts - np.bincount(tree_items, minlength=settings.n_items)
    more_items, more_annotators = _draw_rest(layout, tree_items, tree_annotators, missing, rng)
    abstained = np.zeros(counts.sum(), dtype=np.bool_)
    abstained[len(tree_items) + rng.choice(len(more_items), settings.n_abstentions, replace=False)] = True
    items = item_at[np.concatenate([tree_items, more_items])]
    annotators = annotator_at[np.concatenate([tree_annotators, more_annotators])]
    order = np.lexsort((rng.random(len(items)), items))
    return Responses(items[order], annotators[order], abstained[order])


def _reaching_order(settings: SimulationSettings, activity: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return the annotator at each place: random components, active annotators likely first in each.

    The tree links items only to annotators already reached; those should be the active ones.
    """
    component = rng.permutation(np.repeat(np.arange(settings.n_components), settings.component_annotators))
    return np.lexsort((rng.exponential(size=len(activity)) / activity, component))


def _lay_out(settings: SimulationSettings, activity: FloatArray) -> _Layout:
    ends = np.cumsum(settings.component_annotators)
    return _Layout(
        first=np.repeat(ends - settings.component_annotators, settings.component_items),
        stop=np.repeat(ends, settings.component_items),
        activity=activity,
        cumulative=np.concatenate([[0.0], np.cumsum(activity)]),
    )


def _response_counts(settings: SimulationSettings, rng: np.random.Generator) -> IntArray:
    """Return the number of responses per item, shape (I,)."""
    weights = _count_weights(settings, rng)
    bounds = np.cumsum(settings.component_items)[:-1]
    parts = zip(np.split(weights, bounds), settings.component_responses, settings.component_annotators, strict=True)
    return np.concatenate([_share_out(part, int(total), int(most), rng) for part, total, most in parts])


def _count_weights(settings: SimulationSettings, rng: np.random.Generator) -> FloatArray:
    size = settings.n_items
    if settings.vote_distribution == "fixed":
        return np.ones(size)
    if settings.vote_distribution == "poisson":
        return 1.0 + rng.poisson(settings.votes_per_item - 1, size).astype(np.float64)
    weights = rng.lognormal(0.0, LOG_SPREAD, size)
    tail = rng.random(size) < TAIL_SHARE
    low, high = TAIL_FACTORS
    weights[tail] = low * (high / low) ** rng.random(tail.sum())
    weights[rng.random(size) < SINGLE_SHARE] = 1e-9
    return weights


def _share_out(weights: FloatArray, total: int, most: int, rng: np.random.Generator) -> IntArray:
    """Return whole numbers in [1, most] with sum `total`, as nearly proportional to `weights` as possible.

    Bisection finds the factor; systematic rounding keeps each number within one of its real value and the sum exact.
    """
    low, high = np.log(0.5 / weights.max()), np.log(most / weights.min())
    for _ in range(60):
        middle = (low + high) / 2
        enough = np.clip(np.exp(middle) * weights, 1, most).sum() >= total
        low, high = (low, middle) if enough else (middle, high)
    shares = np.clip(np.exp(high) * weights, 1, most)
    edges = np.floor(np.cumsum(shares) + rng.random())
    edges[-1] = total
    return np.diff(edges, prepend=0).astype(np.int64)


def _draw_tree(
    settings: SimulationSettings, layout: _Layout, counts: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw a spanning tree of each component in which no item has more links than its count."""
    component = np.repeat(np.arange(settings.n_components), settings.component_items)
    spare = np.repeat(np.arange(settings.n_items), counts - 1)
    spare_component = component[spare]
    shuffled = np.lexsort((rng.random(len(spare)), spare_component))
    n_spare = np.bincount(spare_component, minlength=settings.n_components)
    rank = np.arange(len(spare)) - np.repeat(np.cumsum(n_spare) - n_spare, n_spare)
    # Each component starts with its first annotator; the others are reached from these items, in order.
    bringing = np.sort(spare[shuffled[rank < settings.component_annotators[spare_component] - 1]])
    brought = np.delete(np.arange(settings.n_annotators), np.unique(layout.first))
    n_brought = np.bincount(bringing, minlength=settings.n_items)
    reached = np.cumsum(n_brought) - n_brought + component + 1
    every_item = np.arange(settings.n_items)
    known = layout.draw(every_item, reached, rng)
    return np.concatenate([every_item, bringing]), np.concatenate([known, brought])


def _draw_rest(
    layout: _Layout, items: IntArray, annotators: IntArray, missing: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw `missing` further annotators per item, by activity without replacement.

    This draws with replacement and redraws repeats, which gives the same distribution and takes few rounds unless an
    item needs nearly all annotators.
    """
    n_annotators = np.int64(len(layout.activity))
    missing = missing.copy()
    taken = items * n_annotators + annotators
    found = []
    for _ in range(REDRAW_ROUNDS):
        wanted = np.repeat(np.arange(len(missing)), missing)
        if not len(wanted):
            break
        taken = taken[missing[taken // n_annotators] > 0]
        candidates = wanted * n_annotators + layout.draw(wanted, layout.stop[wanted], rng)
        fresh = _first_seen(taken, candidates)
        found.append(fresh)
        taken = np.concatenate([taken, fresh])
        missing -= np.bincount(fresh // n_annotators, minlength=len(missing))
    found.append(_complete(layout, taken, missing, rng))
    pairs = np.concatenate(found)
    return pairs // n_annotators, pairs % n_annotators


def _first_seen(taken: IntArray, candidates: IntArray) -> IntArray:
    """Return the distinct candidates that are not taken."""
    _, first = np.unique(np.concatenate([taken, candidates]), return_index=True)
    return candidates[first[first >= len(taken)] - len(taken)]


def _complete(layout: _Layout, taken: IntArray, missing: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw the remaining responses item by item, by the smallest exponentials over activities."""
    n_annotators = np.int64(len(layout.activity))
    taken = np.sort(taken)
    found = [np.empty(0, dtype=np.int64)]
    for item in np.flatnonzero(missing):
        start, end = np.searchsorted(taken, [item * n_annotators, (item + 1) * n_annotators])
        places = np.arange(layout.first[item], layout.stop[item])
        places = places[~np.isin(places, taken[start:end] - item * n_annotators)]
        order = np.argsort(rng.exponential(size=len(places)) / layout.activity[places])
        found.append(item * n_annotators + places[order[: missing[item]]])
    return np.concatenate(found)
