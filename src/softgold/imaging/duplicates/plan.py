"""The fast near-duplicate plan: which pairs to show to annotators in each round (CleanPatrick, appendix F).

As in Boruvka's algorithm for spanning trees: every sample is first paired with its nearest neighbour; the clusters
that the positive answers make are then each paired with the nearest other cluster, by their two nearest samples, and
so on until a round has no positive answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from softgold.errors import InputError, UsageError
from softgold.imaging.duplicates.spaces import Space

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Round:
    """Pairs of one round that were proposed, in ascending order of the samples.

    Attributes:
        first: The lower sample of each pair, shape (q,).
        second: The higher sample, shape (q,).
        distance: Their distance, shape (q,).
    """

    first: IntArray
    second: IntArray
    distance: FloatArray

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class AnsweredRound(Round):
    """A round with its answers: whether each pair is one of near duplicates, shape (q,)."""

    positive: BoolArray


@dataclass(frozen=True, eq=False)
class DuplicatePlan:
    """Rounds of questions so far.

    Attributes:
        ids: Ids of the samples as text, length n.
        digest: Fingerprint of the space in which the pairs are near.
        rounds: The rounds; all are answered, except perhaps the last.
        finished: Whether there is nothing left to ask.
    """

    ids: pd.Index[str]
    digest: str
    rounds: tuple[Round, ...] = ()
    finished: bool = False

    @property
    def awaited(self) -> Round | None:
        """The round whose answers are awaited, if there is one."""
        return None if len(self.answered) == len(self.rounds) else self.rounds[-1]

    @property
    def answered(self) -> tuple[AnsweredRound, ...]:
        """The rounds with answers."""
        return tuple(part for part in self.rounds if isinstance(part, AnsweredRound))

    @cached_property
    def component(self) -> IntArray:
        """Component of each sample by the positive answers, numbered by first member, shape (n,)."""
        return _components(len(self.ids), self.answered)

    def questions(self) -> pd.DataFrame:
        """Return all pairs that were proposed: `item` (the pair), `first, second, distance, round, positive`."""
        numbers = np.repeat(np.arange(1, len(self.rounds) + 1), [len(part) for part in self.rounds])
        first, second, distance = (
            np.concatenate([getattr(part, name) for part in self.rounds] or [np.empty(0, dtype=np.int64)])
            for name in ("first", "second", "distance")
        )
        answers = [answer for part in self.rounds for answer in _answers(part)]
        return pd.DataFrame({
            "item": pd.Index([f"pair{place:07d}" for place in range(1, len(first) + 1)], dtype="str"),
            "first": self.ids.take(first),
            "second": self.ids.take(second),
            "distance": distance,
            "round": numbers,
            "positive": pd.array(answers, dtype="boolean"),
        })  # fmt: skip


@dataclass(frozen=True)
class PlanStatus:
    """Progress of a plan.

    Attributes:
        n_samples: Samples.
        n_rounds: Rounds with answers.
        n_pairs: Pairs with answers.
        pairs: Pairs of each round.
        positives: Positive answers of each round with answers.
        n_awaited: Pairs that await answers.
        finished: Whether nothing is left to ask.
        components: Number of components of each size from 2, by size.
        largest: Size of the largest component, 1 if there is none.
        bound_pairs: Most pairs that the plan can need if its assumptions hold: the number of samples.
        bound_rounds: Most rounds in that case, floor(log2(largest)) + 1.
        exceeds_bound: Whether it needed more, which shows that the assumptions do not hold for these answers.
    """

    n_samples: int
    n_rounds: int
    n_pairs: int
    pairs: tuple[int, ...]
    positives: tuple[int, ...]
    n_awaited: int
    finished: bool
    components: dict[int, int]
    largest: int
    bound_pairs: int
    bound_rounds: int
    exceeds_bound: bool

    @property
    def sentence(self) -> str:
        """The bound in words, as a comparison, not as a promise."""
        bound = (
            "if near duplicates of a sample were always nearer than other samples, and near-duplication were "
            f"transitive, at most {self.bound_pairs:,} pairs in {self.bound_rounds} rounds would do"
        )
        verdict = "this took more, so that does not hold here" if self.exceeds_bound else "this took no more so far"
        return f"{self.n_pairs:,} pairs in {self.n_rounds} rounds; {bound}, and {verdict}."


def start_plan(ids: Any, space: Space) -> DuplicatePlan:
    """Begin a plan without a question yet.

    >>> from softgold.imaging.duplicates.spaces import MatrixSpace
    >>> plan = start_plan(["a", "b", "c"], MatrixSpace.of([[0, 1, 5], [1, 0, 4], [5, 4, 0]]))
    >>> propose(plan, MatrixSpace.of([[0, 1, 5], [1, 0, 4], [5, 4, 0]])).questions()["second"].tolist()
    ['b', 'c']
    """
    names: pd.Index[str] = pd.Index([str(name) for name in ids], dtype="str")
    if len(names) != len(space):
        raise InputError(f"there are {len(names)} ids for {len(space)} samples")
    if len(names) < 2:
        raise InputError(f"near duplicates need two samples or more, got {len(names)}")
    if not names.is_unique:
        raise InputError(f"ids must be unique, and {names[names.duplicated()][0]!r} is duplicated")
    return DuplicatePlan(names, space.digest)


def propose(plan: DuplicatePlan, space: Space) -> DuplicatePlan:
    """Add the next round of pairs, or mark the plan as finished if there is none.

    The clusters that take part are the samples, in the first round, and then the components that the last round has
    enlarged; the others have been answered. A pair that was asked before is not asked again.

    Args:
        plan: A plan without an awaited round.
        space: The space that the plan was started in.
    """
    if plan.awaited is not None:
        raise UsageError(f"round {len(plan.rounds)} awaits its answers; give them before the next round is proposed")
    if plan.digest != space.digest:
        raise InputError("these embeddings (or distances, or the metric) are not those that the plan was started with")
    if plan.finished:
        return plan
    members = _active(plan)
    best = space.nearest(members, plan.component[members])
    linked = best >= 0
    pairs = np.sort(np.column_stack([members[linked], members[best[linked]]]), axis=1)
    distance = space.distances(pairs[:, 0], pairs[:, 1])
    chosen = _nearest_of_each_cluster(pairs, distance, plan.component[members[linked]])
    chosen = chosen[~_asked(plan, pairs[chosen])]
    if not len(chosen):
        return replace(plan, finished=True)
    added = Round(pairs[chosen, 0], pairs[chosen, 1], distance[chosen])
    return replace(plan, rounds=(*plan.rounds, added))


def update(plan: DuplicatePlan, positive: ArrayLike) -> DuplicatePlan:
    """Take the answers to the awaited round; a round without a positive one finishes the plan.

    Args:
        plan: A plan with an awaited round.
        positive: Whether each pair of the round is one of near duplicates, shape (q,), in its order.
    """
    if plan.awaited is None:
        raise UsageError("no round awaits answers; propose the next one first")
    answers = np.asarray(positive)
    if answers.shape != (len(plan.awaited),) or not np.isin(answers, (0, 1)).all():
        raise InputError(f"answers must be {len(plan.awaited)} values of 0 and 1, got shape {answers.shape}")
    answered = AnsweredRound(**vars(plan.awaited), positive=answers.astype(bool))
    return replace(plan, rounds=(*plan.answered, answered), finished=not answers.any())


def status(plan: DuplicatePlan) -> PlanStatus:
    """Return rounds, pairs, components by size, and the bound that would hold under the assumptions (Lemma 1)."""
    answered = [part.positive for part in plan.answered]
    sizes = np.bincount(plan.component)
    of_size = np.bincount(sizes)
    largest = int(sizes.max())
    n_pairs = sum(len(part) for part in answered)
    bound_rounds = largest.bit_length()  # floor(log2(largest)) + 1
    return PlanStatus(
        n_samples=len(plan.ids),
        n_rounds=len(answered),
        n_pairs=n_pairs,
        pairs=tuple(len(part) for part in plan.rounds),
        positives=tuple(int(part.sum()) for part in answered),
        n_awaited=0 if plan.awaited is None else len(plan.awaited),
        finished=plan.finished,
        components={int(size): int(of_size[size]) for size in np.flatnonzero(of_size) if size > 1},
        largest=largest,
        bound_pairs=len(plan.ids),
        bound_rounds=bound_rounds,
        exceeds_bound=n_pairs > len(plan.ids) or len(answered) > bound_rounds,
    )


def _active(plan: DuplicatePlan) -> IntArray:
    if not plan.answered:
        return np.arange(len(plan.ids))
    last = plan.answered[-1]
    grown = np.unique(plan.component[last.first[last.positive]])
    return np.flatnonzero(np.isin(plan.component, grown))


def _nearest_of_each_cluster(pairs: IntArray, distance: FloatArray, cluster: IntArray) -> IntArray:
    """Rows of the pairs that are nearest for some cluster, each pair once, in ascending order of the samples."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0], distance, cluster))
    best = order[np.diff(cluster[order], prepend=-1) != 0]
    _, first = np.unique(pairs[best], axis=0, return_index=True)
    return np.asarray(best[first])


def _asked(plan: DuplicatePlan, pairs: IntArray) -> BoolArray:
    n = len(plan.ids)
    before = np.concatenate([part.first * n + part.second for part in plan.rounds] or [np.empty(0, dtype=np.int64)])
    return np.isin(pairs[:, 0] * n + pairs[:, 1], before)


def _components(n: int, rounds: tuple[AnsweredRound, ...]) -> IntArray:
    first = np.concatenate([part.first[part.positive] for part in rounds] or [np.empty(0, dtype=np.int64)])
    second = np.concatenate([part.second[part.positive] for part in rounds] or [np.empty(0, dtype=np.int64)])
    links = sparse.coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(n, n))
    return connected_components(links, directed=False)[1].astype(np.int64)


def _answers(part: Round) -> list[bool | None]:
    return part.positive.tolist() if isinstance(part, AnsweredRound) else [None] * len(part)
