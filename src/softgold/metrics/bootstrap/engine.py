"""The engine of the bootstrap: draws resamples of a plan, or enumerates them, and evaluates metrics on them.

Replicates are drawn in blocks with a seed each, so that a replicate depends on the seed and its own number alone, and
not on how many are drawn, how many are held at once, or how many threads share the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softgold.checks import check_choice, check_in_range, check_positive_int, check_same_length
from softgold.errors import InputError, UsageError
from softgold.metrics.bootstrap.replicates import Evaluator, Metric, evaluator
from softgold.metrics.bootstrap.resamples import Draw, Plan
from softgold.metrics.bootstrap.result import BootstrapResult, summarise

__all__ = ["Method", "Settings", "resample"]

FloatArray = NDArray[np.float64]
Method = Literal["auto", "sample", "enumerate"]

REPLICATES_PER_SEED = 64
# A block of running sums should stay in the cache; a replicate that is too long for it is taken alone.
ELEMENTS_AT_ONCE = 1 << 16
# An enumeration is held whole: at most 80 MB an array.
MAX_ENUMERATED_ELEMENTS = 10_000_000


@dataclass(frozen=True)
class Settings:
    """How to resample, checked once; the fields are explained in `bootstrap`."""

    n_replicates: int
    level: float
    seed: int
    method: Method
    workers: int

    def __post_init__(self) -> None:
        """Check every field."""
        check_positive_int(self.n_replicates, "n_replicates")
        check_in_range(self.level, 0, 1, "level", ends="open")
        check_positive_int(self.seed, "seed", minimum=0)
        check_choice(self.method, ("auto", "sample", "enumerate"), "method")
        check_positive_int(self.workers, "workers")


def resample(
    plan: Plan, metrics: Sequence[str | Metric], scores: FloatArray, k: int | None, settings: Settings
) -> dict[str, BootstrapResult]:
    """Evaluate metrics on the resamples of a plan, for scores of shape (n,) or (n, K)."""
    if scores.ndim not in (1, 2):
        raise InputError(f"scores must have 1 or 2 dimensions, got shape {scores.shape}")
    check_same_length(plan.n_items, scores=scores)
    if not plan.n_items:
        raise InputError("the bootstrap needs at least one item")
    evaluate = evaluator(metrics, scores.reshape(plan.n_items, -1), k)
    if _enumerable(plan, settings):
        draw, probability = plan.enumerate()
        replicates = _evaluate_in_pieces(draw, evaluate)
    else:
        replicates, probability = _sample(plan, evaluate, settings), None
    estimates, shape = evaluate(plan.observed())[0], scores.shape[1:]
    return {
        name: summarise(
            estimates[:, at].reshape(shape), replicates[:, :, at].reshape(-1, *shape), probability, level=settings.level
        )
        for at, name in enumerate(evaluate.names)
    }


def _enumerable(plan: Plan, settings: Settings) -> bool:
    """Decide whether to enumerate; refuse what cannot be."""
    fits = plan.n_distinct * plan.n_items <= MAX_ENUMERATED_ELEMENTS
    if settings.method == "enumerate" and not fits:
        raise UsageError("there are too many distinct resamples to enumerate them; use method='sample'")
    few = plan.n_distinct <= settings.n_replicates
    return settings.method == "enumerate" or (settings.method == "auto" and few and fits)


def _evaluate_in_pieces(draw: Draw, evaluate: Evaluator) -> FloatArray:
    rows = _rows_at_once(draw.weight.shape[1])
    return np.concatenate([evaluate(draw.rows(start, start + rows)) for start in range(0, len(draw), rows)])


def _sample(plan: Plan, evaluate: Evaluator, settings: Settings) -> FloatArray:
    """Draw and evaluate the replicates, block by block; shape (B, K, M)."""
    rows = _rows_at_once(plan.n_items)
    replicates = np.empty((settings.n_replicates, evaluate.scores.shape[1], len(evaluate.names)))
    # The C library hands freed memory back to the system beyond a limit that follows the largest block freed so far.
    # One large block keeps the small ones in the process, and saves a third of the time in page faults.
    np.empty(1 << 24, dtype=np.uint8)

    def fill(number: int) -> None:
        rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(number,)))
        block = replicates[number * REPLICATES_PER_SEED : (number + 1) * REPLICATES_PER_SEED]
        for start in range(0, len(block), rows):
            piece = block[start : start + rows]
            piece[:] = evaluate(plan.draw(rng, len(piece)))

    numbers = range(-(-settings.n_replicates // REPLICATES_PER_SEED))
    if settings.workers == 1:
        for number in numbers:
            fill(number)
    else:
        with ThreadPoolExecutor(settings.workers) as pool:
            list(pool.map(fill, numbers))
    return replicates


def _rows_at_once(n_items: int) -> int:
    return max(1, ELEMENTS_AT_ONCE // n_items)
