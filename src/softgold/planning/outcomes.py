"""What up to n more votes would do to an item: exact sums over all outcomes.

A further vote is a pair (type of annotator, answer). Given the state of an item the votes are independent, so that n
of them are a multinomial draw over the 2 T cells, and everything to be known after them follows from the joint
probability of outcome and class: two matrix products for all items together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from softgold.planning.beliefs import Beliefs, VoterPool

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is expected of each item after 0 .. N more votes, arrays of shape (I, N + 1).

    Attributes:
        error: Expected chance that the label is wrong, E[min(p, 1 - p)].
        brier: Expected Brier score, E[p (1 - p)]. Its fall by n votes is E[(p' - p)^2].
    """

    error: FloatArray
    brier: FloatArray


def look_ahead(beliefs: Beliefs, pool: VoterPool, depth: int) -> Outlook:
    """Return the outlook of every item over up to `depth` votes of a pool."""
    likelihood, starts = _outcomes(pool, depth)
    positive = beliefs.states.positive
    both = np.hstack([likelihood, likelihood * positive[:, None]])
    error, brier = np.empty((2, beliefs.n_items, depth + 1))

    def work(rows: slice, mass: FloatArray) -> None:
        total, first = np.hsplit(mass @ both, 2)
        sure = beliefs.certainty[rows, None]
        if (sure < 1).any():  # in the mirror image the same votes say the opposite
            first = sure * first + (1 - sure) * (total - first)
        other = total - first
        error[rows] = np.add.reduceat(np.minimum(first, other), starts, axis=1)
        first *= other
        first /= total
        brier[rows] = np.add.reduceat(first, starts, axis=1)

    for _ in beliefs.each_chunk(work):
        pass
    return Outlook(error, brier)


def _outcomes(pool: VoterPool, depth: int) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the chance of every outcome of 0 .. depth votes in each state, (K, C), and where each number begins."""
    cells = np.vstack([pool.yes * pool.share[:, None], (1 - pool.yes) * pool.share[:, None]])
    columns: list[FloatArray] = []
    starts: list[int] = []
    for count in range(depth + 1):
        starts.append(len(columns))
        for chosen in combinations_with_replacement(range(len(cells)), count):
            orders = factorial(count) // prod(factorial(chosen.count(cell)) for cell in set(chosen))
            columns.append(orders * cells[list(chosen)].prod(axis=0))
    return np.column_stack(columns), np.array(starts)


def vote_values(mass: FloatArray, positive: FloatArray, yes: FloatArray, certainty: FloatArray) -> FloatArray:
    """Return what a vote of each annotator on each item is worth: the fall of E[p (1 - p)], shape (n, A).

    Args:
        mass: State probabilities of the items, shape (n, K).
        positive: P(z = 1 | state), shape (K,).
        yes: Chance of a yes vote of the annotators in each state, shape (A, K).
        certainty: Probability that each item's component is the right way round, shape (n,).
    """
    said_yes, both = mass @ yes.T, mass @ (yes * positive).T
    p = (mass @ positive)[:, None]
    # p' - p is (P(yes, z = 1) - p P(yes)) / P(yes) after a yes vote, and minus the same over P(no) after a no vote.
    gap = (2 * certainty[:, None] - 1) * (both - p * said_yes)
    value: FloatArray = gap**2 / np.maximum(said_yes * (1 - said_yes), 1e-300)
    return value
