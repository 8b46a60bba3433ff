"""Control questions: which items tell most about an annotator.

An item with a known answer tests whether an annotator can tell; a set of them should tell both ability and lean, so
positives and negatives, clear ones and some that only the able get right. Each item's information is the expected
Fisher matrix of the answer about (ability, lean), with the item's own uncertainty summed out: an item of which the
answer is not known tells little. Items are chosen one by one to shrink the posterior of the annotator most (greedy
D-optimal design; Chaloner and Verdinelli, Statistical Science 10, 1995).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from softgold.checks import check_positive_int
from softgold.errors import UsageError
from softgold.models.base import Fit, Posterior
from softgold.models.crowd.states import normal_nodes
from softgold.planning.beliefs import Beliefs
from softgold.planning.crew import Crew
from softgold.readers.base import shorten
from softgold.tables.parts import VotesInParts

FloatArray = NDArray[np.float64]

N_NODES = 5
NO_LEAN = 1e-12  # variance of a lean that the model does not have
CLEAR = 0.1  # a control question has an answer: min(p, 1 - p) is below this


@dataclass(frozen=True, eq=False)
class ControlPlan:
    """Items to show to one annotator, in the order in which they were chosen; N rows.

    Attributes:
        annotator: The annotator.
        item_ids: The items, length N.
        p: Soft labels, shape (N,).
        n_votes: Votes so far, shape (N,).
        gain: What each adds to what is known of the annotator, in nats, given those before it, shape (N,).
        ability_sd: Posterior standard deviation of the ability now and after all answers.
    """

    annotator: str
    item_ids: pd.Index[str]
    p: FloatArray
    n_votes: NDArray[np.int64]
    gain: FloatArray
    ability_sd: tuple[float, float]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per item: `item, annotator, answer, p, n_votes, gain`."""
        return pd.DataFrame(
            {
                "item": self.item_ids,
                "annotator": self.annotator,
                "answer": (self.p >= 0.5).astype(np.int64),
                "p": self.p,
                "n_votes": self.n_votes,
                "gain": self.gain,
            }
        )

    def __str__(self) -> str:
        before, after = self.ability_sd
        return (
            f"{len(self.item_ids)} control questions for {shorten(self.annotator)}: the standard deviation of the "
            f"ability falls from {before:.2f} to {after:.2f}"
        )


def plan_controls(
    fitted: Fit | Posterior, annotator: str, count: int, *, votes: VotesInParts | None = None
) -> ControlPlan:
    """Return which items to show to an annotator to learn most about ability and lean.

    Args:
        fitted: A fit of a crowd model, or its posterior together with `votes`.
        annotator: Id of the annotator; one who is not in the fit is a member of the fitted population.
        count: Number of items.
        votes: The votes that a posterior was fitted to; not needed with a fit.

    Example:
        >>> import softgold
        >>> study = softgold.simulate(n_items=200, n_annotators=20, seed=0)
        >>> plan = plan_controls(softgold.fit(study.votes, engine="coordinate"), "newcomer", 10)
        >>> sorted(set(plan.to_frame()["answer"])), plan.ability_sd[1] < plan.ability_sd[0]
        ([0, 1], True)
    """
    beliefs = Beliefs.of(fitted, votes)
    count = check_positive_int(count, "count")
    crew = Crew(pd.Index([annotator], dtype="str"), np.ones(1, dtype=np.int64))
    skills = crew.skills(beliefs)
    p = beliefs.posterior.soft_labels().p
    usable = np.flatnonzero((crew.n_free(beliefs.votes) > 0) & (np.minimum(p, 1 - p) < CLEAR))
    if len(usable) < count:
        raise UsageError(
            f"{len(usable):,} items could be control questions for {shorten(annotator)} (p below {CLEAR:g} or above "
            f"{1 - CLEAR:g}, and no vote of this annotator), and {count:,} were asked for; ask for fewer"
        )
    cov = _as_matrix(skills.cov[0], beliefs.posterior.population.has_lean)
    information = fisher_information(beliefs, skills.mean[0], cov)[usable]
    chosen, gain, after = choose_greedily(information, cov, count)
    items = usable[chosen]
    unit = beliefs.posterior.population.unit
    spread = float(np.sqrt(cov[0, 0]) / unit), float(np.sqrt(after[0, 0]) / unit)
    ids, counts = beliefs.posterior.item_ids[items], beliefs.posterior.item_counts[items]
    return ControlPlan(annotator, ids, p[items], counts, gain, spread)


def _as_matrix(cov: FloatArray, has_lean: bool) -> FloatArray:
    return np.array([[cov[0], cov[1]], [cov[1], cov[2]]]) if has_lean else np.diag([cov[0], NO_LEAN])


def fisher_information(beliefs: Beliefs, mean: FloatArray, cov: FloatArray) -> FloatArray:
    """Return the expected Fisher matrix of each item as rows (cc, cd, dd), shape (I, 3)."""
    states = beliefs.states
    nodes, weights = normal_nodes(N_NODES)
    first, second = (part.ravel() for part in np.meshgrid(nodes, nodes))
    points = mean + np.column_stack([first, second]) @ np.linalg.cholesky(cov).T
    weight = np.outer(weights, weights).ravel()
    chance = expit(points[:, :1] * states.b + points[:, 1:] + states.u)  # nodes x states
    slope = chance * (1 - chance)
    table = np.hstack([chance.T, (slope * states.b).T, slope.T])

    def work(rows: slice, mass: FloatArray) -> FloatArray:
        yes, by_ability, by_lean = np.hsplit(mass @ table, 3)
        scale = weight / np.maximum(yes * (1 - yes), 1e-12)
        return np.column_stack(
            [(by_ability**2 * scale).sum(1), (by_ability * by_lean * scale).sum(1), (by_lean**2 * scale).sum(1)]
        )

    return np.concatenate(list(beliefs.each_chunk(work)))


def choose_greedily(
    information: FloatArray, cov: FloatArray, count: int
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Choose items one by one; return their rows, what each adds in nats, and the covariance after all of them."""
    precision = np.linalg.inv(cov)
    open_rows = np.ones(len(information), dtype=bool)
    chosen, gains = [], []
    for _ in range(count):
        cc, cd, dd = precision[0, 0], precision[0, 1], precision[1, 1]
        grown = (cc + information[:, 0]) * (dd + information[:, 2]) - (cd + information[:, 1]) ** 2
        gain = np.where(open_rows, 0.5 * np.log(grown / (cc * dd - cd**2)), -np.inf)
        best = int(np.argmax(gain))
        chosen.append(best)
        gains.append(float(gain[best]))
        open_rows[best] = False
        more = information[best]
        precision = precision + np.array([[more[0], more[1]], [more[1], more[2]]])
    return np.array(chosen), np.array(gains), np.linalg.inv(precision)
