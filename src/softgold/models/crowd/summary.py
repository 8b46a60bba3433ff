"""From the states of items and the factors of annotators to what is reported of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Response, Rows, Skills, in_blocks, respond, times
from softgold.models.crowd.chunks import VoteChunk
from softgold.models.crowd.items import item_masses
from softgold.models.crowd.mirror import mix
from softgold.models.crowd.states import States, normal_nodes, quantiles
from softgold.models.crowd.threads import in_order, worker_pool
from softgold.tables.soft_labels import DifficultySummary, SoftLabels

INTERVAL = (0.025, 0.975)
REACH = float(ndtri(INTERVAL[1]))  # standard deviations that an interval reaches to either side


@dataclass(frozen=True, eq=False)
class ItemSummary(Rows):
    """What is reported of I items, each array of shape (I,); b in its own units.

    Attributes:
        mean: Posterior mean of b.
        sd: Posterior standard deviation of b.
        low: Lower end of the 95 % credible interval.
        high: Upper end.
        positive: p, the soft label.
        expected_vote: Share of positive votes to expect from the annotators of this table.
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    positive: FloatArray
    expected_vote: FloatArray

    def mixed(self, certainty: FloatArray, odds: FloatArray) -> ItemSummary:
        """Return the mixture of each item with its mirror image; arguments as in `mirror.mix`.

        The vote to expect stays: abilities turn over together with b. An interval reaches over both images.
        """
        unsure = certainty < 1
        mean = np.where(unsure, (2 * certainty - 1) * self.mean, self.mean)
        second = self.sd**2 + self.mean**2
        return replace(
            self,
            mean=mean,
            sd=np.where(unsure, np.sqrt(np.maximum(second - mean**2, 0.0)), self.sd),
            low=np.where(unsure, np.minimum(self.low, -self.high), self.low),
            high=np.where(unsure, np.maximum(self.high, -self.low), self.high),
            positive=mix(self.positive, certainty, odds),
        )

    def soft_labels(
        self, item_ids: pd.Index[str], n_votes: NDArray[np.int64], n_positive: FloatArray, method: str
    ) -> SoftLabels:
        """Return the items as soft labels; arguments as in `SoftLabels`."""
        b = DifficultySummary(self.mean, self.sd, self.low, self.high)
        return SoftLabels(item_ids, self.positive, self.expected_vote, n_votes, n_positive, method, b)

    @staticmethod
    def concatenate(parts: Iterable[ItemSummary]) -> ItemSummary:
        """Return the summaries of several chunks as one."""
        return ItemSummary(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))


def response_curve(response: Response, counts: NDArray[np.int64]) -> FloatArray:
    """Return the chance of a yes vote in each state by an annotator of the table, counted by votes, shape (K,)."""
    curve: FloatArray = counts @ response.sigmoid / counts.sum()
    return curve


def summarise_chunks(
    chunks: Iterable[VoteChunk], skills: Skills, response: Response, states: States, curve: FloatArray, unit: float
) -> ItemSummary:
    """Return the exact summary of the items of some chunks, given the annotators and the `response_curve` of the fit.

    Sums run along rows, so that items with the same votes get the same bits wherever they are in the table.
    """
    b = unit * states.b

    def work(chunk: VoteChunk) -> ItemSummary:
        mass, _ = item_masses(chunk, skills, response, states)
        mean = (mass * b).sum(axis=1)
        variance = (mass * (b - mean[:, None]) ** 2).sum(axis=1)
        over_b = mass.reshape(len(mass), -1, states.n_pulls).sum(axis=2)
        low, high = quantiles(b[:: states.n_pulls], over_b, INTERVAL)
        positive = np.clip((mass * states.positive).sum(axis=1), 0.0, 1.0)
        return ItemSummary(mean, np.sqrt(variance), low, high, positive, (mass * curve).sum(axis=1))

    with worker_pool() as pool:
        return ItemSummary.concatenate(in_order(work, chunks, pool))


def summarise_published(
    b_mean: FloatArray, b_sd: FloatArray, states: States, curve: FloatArray, unit: float
) -> ItemSummary:
    """Return the summary of items as the published recipe has them: b is Normal, and its sign is the class."""
    nodes, weights = normal_nodes(21)
    chance = np.interp((b_mean[:, None] + b_sd[:, None] * nodes) / unit, states.b, curve)
    low, high = b_mean - REACH * b_sd, b_mean + REACH * b_sd
    return ItemSummary(b_mean, b_sd, low, high, ndtr(b_mean / b_sd), chance @ weights)


def class_rates(skills: Skills, states: States, label: int) -> FloatArray:
    """Return P(vote = label | z = label), mean and ends of the 95 % credible interval of each annotator, shape (3, A).

    It is the sensitivity for label 1, the specificity for label 0.

    The rate is nearly a function of one direction in (ability, lean), that of its gradient: the ends of an interval
    are the rates at the points that lie furthest along it (first-order reliability method).
    """
    weight, sign = states.given_class(label), 2 * label - 1
    found = np.empty((3, len(skills.mean)))

    def rate(x: FloatArray) -> FloatArray:
        return expit(sign * (x[:, :1] * states.b + x[:, 1:] * states.lean + states.u))

    def work(rows: slice) -> None:
        mean = skills.mean[rows]
        at_mean = rate(mean)
        g = sign * (at_mean * (1 - at_mean) * weight) @ states.features
        move = times(skills.cov[rows], g)
        move *= REACH / np.sqrt(np.maximum((move * g).sum(axis=1, keepdims=True), 1e-24))
        yes = respond(skills.take(rows), states).sigmoid @ weight
        found[:, rows] = yes if label else 1 - yes, rate(mean - move) @ weight, rate(mean + move) @ weight

    in_blocks(work, len(skills.mean), len(states.b), None)
    return found
