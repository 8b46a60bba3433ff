"""The engine of the bootstrap: draws resamples of a plan, or enumerates them, and evaluates metrics on them.

Resamples are drawn in blocks with one seed each, so that a resample depends on the seed and its own number alone, and
not on how many are drawn or on how many processes share the work.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

from softgold.checks import (
    MOST_RESAMPLES,
    as_probabilities,
    check_choice,
    check_in_range,
    check_positive_int,
    check_same_length,
)
from softgold.errors import InputError, UsageError
from softgold.metrics.bootstrap.draws import Draw
from softgold.metrics.bootstrap.plans import Plan
from softgold.metrics.bootstrap.probabilities import Predictions, ScoreSums, predictions, score_sums
from softgold.metrics.bootstrap.rankings import RankedItems, RankingSums, rank_items, ranking_sums
from softgold.metrics.bootstrap.result import BootstrapResult, summarise
from softgold.metrics.ranking import auc_pr
from softgold.metrics.reliability import average_calibration_error
from softgold.metrics.sweep import ratio

FloatArray = NDArray[np.float64]
Method = Literal["auto", "sample", "enumerate"]
OnResamples = Callable[[int], None]

RESAMPLES_PER_SEED = 64
# Resamples of many items are drawn and evaluated some at a time, to bound the memory (one byte per item and resample).
MAX_ELEMENTS = 1 << 26
# Seconds of work that are worth the start of processes, which takes about two.
WORTH_PROCESSES = 6.0
# More items than these are not handed to processes, each of which would hold what is prepared of every model.
MOST_SHARED_ITEMS = 1 << 22
# An enumeration is held whole: at most 80 MB per array.
MAX_ENUMERATED_ELEMENTS = 10_000_000


class Metric(Protocol):
    """Any metric of soft labels and scores that knows weights, such as the functions of `softgold.metrics`."""

    def __call__(self, p: ArrayLike, scores: ArrayLike, /, *, sample_weight: ArrayLike | None = ...) -> float:
        """Return the value of one model."""
        ...


RANKING: dict[str, Callable[[RankingSums, int], FloatArray]] = {
    "soft_auroc": lambda sums, k: sums.auroc(),
    "soft_average_precision": lambda sums, k: sums.average_precision(),
    "precision_at_k": lambda sums, k: sums.precision_at(k),
    "recall_at_k": lambda sums, k: sums.recall_at(k),
}
PROBABILITY: dict[str, Callable[[ScoreSums], FloatArray]] = {
    "balanced_brier": ScoreSums.balanced_brier,
    "brier_score": ScoreSums.brier,
    "expected_calibration_error": ScoreSums.calibration_error,
    "log_loss": ScoreSums.log_loss,
}
CALLED: dict[str, Metric] = {
    "auc_pr": auc_pr,
    "average_calibration_error": average_calibration_error,
}
METRIC_NAMES = tuple(sorted([*RANKING, *PROBABILITY, *CALLED]))
# A list with its own length: precision_at_100 is precision_at_k with k = 100.
AT_LENGTH = re.compile(r"(precision|recall)_at_([1-9][0-9]{0,17})")


@dataclass(frozen=True)
class Settings:
    """How to resample, checked once; the fields are explained in `bootstrap`."""

    n_bootstrap: int
    level: float = 0.95
    seed: int = 0
    method: Method = "auto"
    workers: int = 1

    def __post_init__(self) -> None:
        """Check every field."""
        check_positive_int(self.n_bootstrap, "n_bootstrap", maximum=MOST_RESAMPLES)
        check_in_range(self.level, 0, 1, "level", ends="open")
        check_positive_int(self.seed, "seed", minimum=0)
        check_choice(self.method, ("auto", "sample", "enumerate"), "method")
        check_positive_int(self.workers, "workers")


@dataclass(frozen=True, eq=False)
class _Request:
    """A metric against one kind of label: its name, and how to get it.

    `length` is that of the list for precision and recall at k, else 0; `called` has the metrics that are plain
    functions.
    """

    labels: int
    name: str
    family: Literal["ranking", "probability", "called"]
    metric: str
    length: int
    called: tuple[Metric, ...]


@dataclass(frozen=True, eq=False)
class _Evaluator:
    """Several metrics of K models on blocks of resamples; models are sorted or prepared once, where a metric asks.

    `probable` has the numbers of the models whose scores are probabilities; the others have NaN for scores of
    probabilities.
    """

    columns: tuple[FloatArray, ...]
    requests: tuple[_Request, ...]
    ranked: tuple[RankedItems, ...]
    probable: tuple[int, ...]
    predicted: Predictions | None

    def __call__(self, draw: Draw) -> FloatArray:
        """Return the values of each resample, model and request; shape (C, K, M)."""
        values = np.full((draw.n_resamples, len(self.columns), len(self.requests)), np.nan)
        self._rank(draw, values)
        self._score(draw, values)
        for at, request in self._of("called"):
            labels, weights = draw.rows(request.labels)
            for model, scores in enumerate(self.columns):
                rows = zip(labels, weights, strict=True)
                values[:, model, at] = [request.called[0](row, scores, sample_weight=weight) for row, weight in rows]
        return values

    def _of(self, family: str) -> list[tuple[int, _Request]]:
        return [(at, request) for at, request in enumerate(self.requests) if request.family == family]

    def _rank(self, draw: Draw, values: FloatArray) -> None:
        asked = self._of("ranking")
        which = tuple(sorted({request.labels for _, request in asked}))
        longest = max((request.length for _, request in asked), default=0)
        for model, ranked in enumerate(self.ranked):
            sums = dict(zip(which, ranking_sums(ranked, draw, which, longest), strict=True))
            for at, request in asked:
                values[:, model, at] = RANKING[request.metric](sums[request.labels], request.length)

    def _score(self, draw: Draw, values: FloatArray) -> None:
        asked = self._of("probability")
        if self.predicted is None:
            return
        for which in sorted({request.labels for _, request in asked}):
            of_models = score_sums(self.predicted, draw, which)
            for model, sums in zip(self.probable, of_models, strict=True):
                for at, request in asked:
                    if request.labels == which:
                        values[:, model, at] = PROBABILITY[request.metric](sums)


def resample(
    plan: Plan,
    metrics: Sequence[Sequence[str | Metric]],
    scores: FloatArray,
    settings: Settings,
    *,
    k: int | None = None,
    on_resamples: OnResamples | None = None,
) -> tuple[dict[str, BootstrapResult], ...]:
    """Evaluate metrics on the resamples of a plan.

    Args:
        plan: What is redrawn.
        metrics: For each kind of label of the plan, its metrics, by name or as functions.
        scores: Scores of shape (n,) or (n, K). A model with scores outside [0, 1] has NaN for scores of probabilities.
        settings: How many resamples, and how.
        k: Length of the list for `precision_at_k` and `recall_at_k`.
        on_resamples: Called with the number of resamples just finished.

    Returns:
        For each kind of label, the results by the name of the metric.
    """
    if scores.ndim not in (1, 2):
        raise InputError(f"scores must have 1 or 2 dimensions, got shape {scores.shape}")
    check_same_length(plan.n_items, scores=scores)
    if not plan.n_items:
        raise InputError("the bootstrap needs at least one item")
    evaluate = _evaluator(metrics, scores.reshape(plan.n_items, -1), k)
    done = on_resamples or (lambda count: None)
    if _enumerable(plan, settings):
        draw, probability = plan.enumerate()
        replicates = _evaluate_all(draw, evaluate)
        done(settings.n_bootstrap)
    else:
        shape = (len(evaluate.columns), len(evaluate.requests))
        replicates, probability = _sample(plan, evaluate, shape, settings, done), None
    estimates, models = evaluate(plan.observed())[0], scores.shape[1:]
    results: tuple[dict[str, BootstrapResult], ...] = tuple({} for _ in metrics)
    for at, request in enumerate(evaluate.requests):
        rows = replicates[:, :, at].reshape(-1, *models)
        results[request.labels][request.name] = summarise(
            estimates[:, at].reshape(models), rows, probability, level=settings.level
        )
    return results


def _evaluator(metrics: Sequence[Sequence[str | Metric]], scores: FloatArray, k: int | None) -> _Evaluator:
    requests = tuple(_request(at, metric, k) for at, of_labels in enumerate(metrics) for metric in of_labels)
    names = [(request.labels, request.name) for request in requests]
    if len(set(names)) < len(names):
        raise UsageError(f"metrics must have different names, got {', '.join(name for _, name in names)}")
    by_model = np.ascontiguousarray(scores.T)
    columns = tuple(by_model)
    families = {request.family for request in requests}
    ranked = tuple(rank_items(column) for column in columns) if "ranking" in families else ()
    probable = tuple(at for at, column in enumerate(columns) if _is_probability(column))
    wanted = bool(probable) and "probability" in families
    every = len(probable) == len(columns)
    predicted = predictions(by_model if every else by_model[list(probable)]) if wanted else None
    return _Evaluator(columns, requests, ranked, probable, predicted)


def check_probabilities(metrics: Sequence[str | Metric], scores: FloatArray) -> None:
    """Raise if a metric needs probabilities and a score is not one."""
    if any(metric in PROBABILITY for metric in metrics if isinstance(metric, str)):
        as_probabilities(scores, "scores", ndim=None)


def _is_probability(column: FloatArray) -> bool:
    return bool(column.min() >= 0 and column.max() <= 1)


def _request(labels: int, metric: str | Metric, k: int | None) -> _Request:
    if not isinstance(metric, str):
        name = getattr(metric, "__name__", repr(metric))
        return _Request(labels, name, "called", name, 0, (metric,))
    own = AT_LENGTH.fullmatch(metric)
    if own is not None:
        return _Request(labels, metric, "ranking", f"{own[1]}_at_k", int(own[2]), ())
    check_choice(metric, METRIC_NAMES, "metric")
    if metric.endswith("_at_k"):
        if k is None:
            raise UsageError(f"{metric} needs k, the length of the list")
        return _Request(labels, metric, "ranking", metric, check_positive_int(k, "k"), ())
    if metric in RANKING:
        return _Request(labels, metric, "ranking", metric, 0, ())
    if metric in PROBABILITY:
        return _Request(labels, metric, "probability", metric, 0, ())
    return _Request(labels, metric, "called", metric, 0, (CALLED[metric],))


def _enumerable(plan: Plan, settings: Settings) -> bool:
    """Decide whether to enumerate; refuse what cannot be."""
    fits = plan.n_distinct * plan.n_items <= MAX_ENUMERATED_ELEMENTS
    if settings.method == "enumerate" and not fits:
        raise UsageError("there are too many distinct resamples to enumerate them; use method='sample'")
    few = plan.n_distinct <= settings.n_bootstrap
    return settings.method == "enumerate" or (settings.method == "auto" and few and fits)


def _evaluate_all(draw: Draw, evaluate: _Evaluator) -> FloatArray:
    starts = range(0, draw.n_resamples, RESAMPLES_PER_SEED)
    return np.concatenate([evaluate(draw.columns(start, start + RESAMPLES_PER_SEED)) for start in starts])


def sample_means(plan: Plan, values: FloatArray, settings: Settings) -> FloatArray:
    """Return the means of per-item values of shape (n, M) on drawn resamples, shape (B, M)."""
    infinite = np.isinf(values).astype(np.float64)
    finite = np.where(infinite > 0, 0.0, values)

    def means(draw: Draw) -> FloatArray:
        weight = draw.weight.T.astype(np.float64)
        # An infinite loss of weight zero is no loss.
        found = ratio(weight @ finite, weight.sum(axis=1)[:, None])
        return np.where(weight @ infinite > 0, np.inf, found)

    return _sample(plan, means, values.shape[1:], settings, lambda count: None)


def _sample(
    plan: Plan,
    evaluate: Callable[[Draw], FloatArray],
    shape: tuple[int, ...],
    settings: Settings,
    done: OnResamples,
) -> FloatArray:
    """Draw and evaluate the resamples, block by block; shape (B, *shape)."""
    at_once = max(1, min(RESAMPLES_PER_SEED, MAX_ELEMENTS // plan.n_items))
    starts = range(0, settings.n_bootstrap, RESAMPLES_PER_SEED)
    counts = [min(RESAMPLES_PER_SEED, settings.n_bootstrap - start) for start in starts]
    replicates = np.empty((settings.n_bootstrap, *shape))
    work = partial(_block, plan, evaluate, settings.seed, at_once)
    workers = settings.workers if plan.n_items <= MOST_SHARED_ITEMS else 1
    for start, block in zip(starts, _blocks(work, counts, workers), strict=True):
        replicates[start : start + len(block)] = block
        done(len(block))
    return replicates


def _block(
    plan: Plan, evaluate: Callable[[Draw], FloatArray], seed: int, at_once: int, number: int, count: int
) -> FloatArray:
    """Draw and evaluate the first `count` resamples of a block, `at_once` at a time."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    # The C library hands freed memory back to the system beyond a limit that follows the largest block freed so far.
    # One large block keeps the small ones in the process, and saves most of the time in page faults.
    np.empty(1 << 24, dtype=np.uint8)
    # Matrix products are small here: threads inside of them would only get in each other's way.
    with _libraries().limit(limits=1, user_api="blas"):
        # Always as many, also where fewer are wanted: the shape of a matrix product decides its rounding.
        pieces = [evaluate(plan.draw(rng, at_once)) for _ in range(0, count, at_once)]
    return np.concatenate(pieces)[:count]


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looking through the loaded libraries takes some milliseconds: once, not per block


def _blocks(work: Callable[[int, int], FloatArray], counts: Sequence[int], workers: int) -> Iterator[FloatArray]:
    """Yield the blocks in order, made side by side in processes where that is worth their start.

    Threads would be no faster: steps down a ranking are so short that they wait for the interpreter's lock.
    """
    started = time.perf_counter()
    yield work(0, counts[0])
    rest = list(enumerate(counts))[1:]
    if workers == 1 or (time.perf_counter() - started) * len(rest) < WORTH_PROCESSES:
        yield from (work(number, count) for number, count in rest)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=workers, return_as="generator")(delayed(work)(number, count) for number, count in rest)
