"""What a fit says: items, annotators, soft labels by sampling or exactly, and soft labels of new votes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import ndtri

from softgold.checks import check_positive_int
from softgold.errors import InputError
from softgold.glad.chunks import vote_chunks
from softgold.glad.coordinate import UNIT, Family, Grids, item_factors
from softgold.glad.factors import Factor
from softgold.glad.grid import SinhGrid
from softgold.glad.normals import Normals, normal_factor, normal_table
from softgold.glad.priors import Prior
from softgold.glad.summary import INTERVAL, ItemSummary, Pool, quantiles, summarise_exact
from softgold.softlabels import DifficultySummary, SoftLabels
from softgold.votes import VoteTable

__all__ = ["AbilityPosterior", "Posterior", "agreement_with_others"]

FloatArray = NDArray[np.float64]

REFINEMENT = 8


@dataclass(frozen=True, eq=False)
class AbilityPosterior:
    """Posterior of A annotators' abilities.

    Attributes:
        mean: Posterior mean, shape (A,).
        sd: Posterior standard deviation, shape (A,).
        low: Lower end of the 95 % credible interval, shape (A,).
        high: Upper end, shape (A,).
        p_adversarial: P(ability < 0), shape (A,).
        nodes: Points of a discrete representation, shape (A, N).
        mass: Their probabilities, shape (A, N).
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    p_adversarial: FloatArray
    nodes: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, factor: Factor, scale: float, family: Family) -> AbilityPosterior:
        """Return the posterior in the abilities' own units from whitened factors."""
        nodes, mass, _ = factor.points
        if family == "gaussian":
            reach = float(ndtri(INTERVAL[1])) * factor.sd
            low, high = factor.mean - reach, factor.mean + reach
        else:
            low, high = quantiles(*_refined(nodes, mass), INTERVAL)
        adversarial = 1 - factor.positive
        return cls(factor.mean / scale, factor.sd / scale, low / scale, high / scale, adversarial, nodes / scale, mass)


def _refined(nodes: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return local nodes and masses, ascending and several times as many, by a spline through the log masses."""
    order = np.arange(nodes.shape[1])
    fine = np.linspace(0, order[-1], REFINEMENT * order[-1] + 1)
    turned = nodes[:, 0] > nodes[:, -1]
    nodes, mass = np.where(turned[:, None], nodes[:, ::-1], nodes), np.where(turned[:, None], mass[:, ::-1], mass)
    density = np.exp(CubicSpline(order, np.log(np.maximum(mass, 1e-300)), axis=1)(fine))
    return CubicSpline(order, nodes, axis=1)(fine), density / density.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Fitted posterior of a vote table with I items and A annotators, oriented so that the annotators are helpful.

    Attributes:
        item_ids: Ids of the items, length I.
        annotator_ids: Ids of the annotators, length A.
        items: Posterior of the signed difficulties and what follows from it, arrays of shape (I,).
        abilities: Posterior of the abilities.
        prior: Prior in force, with the difficulty scale that was learned.
        method: Name of the engine.
        family: "free" where item factors are exact given the annotators, "gaussian" where they are Normals.
        item_counts: Votes per item, shape (I,).
        item_positives: Positive votes per item, shape (I,).
        annotator_counts: Votes per annotator, shape (A,).
        annotator_agreement: Share of votes that agree with the majority of the others, shape (A,).
    """

    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    items: ItemSummary
    abilities: AbilityPosterior
    prior: Prior
    method: str
    family: Family
    item_counts: NDArray[np.int64]
    item_positives: FloatArray
    annotator_counts: NDArray[np.int64]
    annotator_agreement: FloatArray

    def soft_labels(self) -> SoftLabels:
        """Return the soft labels, p = P(b > 0) computed exactly from each item's posterior."""
        return _soft_labels(self.item_ids, self.items, self.item_counts, self.item_positives, self.method)

    def sample_soft_labels(self, n_samples: int = 1000, *, seed: int = 0) -> SoftLabels:
        """Return soft labels whose p is the share of `n_samples` draws of b above zero (CleanPatrick's p-bar).

        Whether a draw of b lies above zero is a coin with P(b > 0), so the number that do is drawn as a binomial: the
        same distribution as counting the draws, without making them.
        """
        count = check_positive_int(n_samples, "n_samples")
        share = np.random.default_rng(seed).binomial(count, self.items.positive) / count
        return replace(self.soft_labels(), p=share)

    def annotators(self) -> pd.DataFrame:
        """Return one row an annotator: ability with interval, P(adversarial), votes, agreement with the others."""
        return pd.DataFrame(
            {
                "annotator": self.annotator_ids,
                "ability_mean": self.abilities.mean,
                "ability_sd": self.abilities.sd,
                "ability_lo": self.abilities.low,
                "ability_hi": self.abilities.high,
                "p_adversarial": self.abilities.p_adversarial,
                "n_votes": self.annotator_counts,
                "agreement": self.annotator_agreement,
            }
        )

    def predict(self, votes: VoteTable) -> SoftLabels:
        """Return soft labels of the items of `votes`, known or never seen, with the abilities held as fitted.

        Only the votes given count: an item's former votes must be among them if they are to. Annotators who were not
        in the fit get the prior of the abilities.
        """
        if votes.n_votes == 0:
            raise InputError("the table has no votes to predict from; it needs at least one that is not an abstention")
        scale = self._scale
        grids = Grids.for_votes(votes, self.prior, ability=scale * float(np.abs(self.abilities.nodes).max()))
        table, mean = self._tables_for(votes, grids)
        pool = Pool.of(self.abilities.nodes * scale, self.abilities.mass, self.annotator_counts, grids.items)
        coupled = table @ grids.coupling
        found = (item_factors(chunk, mean, coupled, grids, "free") for chunk in vote_chunks(votes))
        parts = [summarise_exact(chunk.factor, chunk.eta, chunk.penalty, UNIT, pool) for chunk in found]
        items = ItemSummary.concatenate(parts).scaled(scale)
        return _soft_labels(votes.item_ids, items, votes.item_counts, votes.item_positives, self.method)

    def predict_proba(self, votes: VoteTable) -> FloatArray:
        """Return P(positive) of each item of `votes`, shape (I,); see `predict`."""
        return self.predict(votes).p

    @property
    def _scale(self) -> float:
        return self.prior.starting_scale

    def _tables_for(self, votes: VoteTable, grids: Grids) -> tuple[FloatArray, FloatArray]:
        """Return the whitened annotator tables and mean abilities of the annotators of `votes`."""
        known = self.annotator_ids.get_indexer(votes.annotator_ids)
        fallback = self.prior.whitened_abilities(self._scale)
        stranger = normal_factor(np.array([fallback.mean]), np.array([fallback.sd]), grids.abilities)
        table = np.repeat(stranger.table, votes.n_annotators, axis=0)
        mean = np.full(votes.n_annotators, fallback.mean)
        seen = np.flatnonzero(known >= 0)
        if len(seen):
            mean[seen] = self.abilities.mean[known[seen]] * self._scale
            table[seen] = self._tables_of(known[seen], grids.abilities)
        return table, mean

    def _tables_of(self, annotators: NDArray[np.intp], grid: SinhGrid) -> FloatArray:
        """Return the whitened tables of known annotators."""
        found = self.abilities
        if self.family == "gaussian":
            normals = Normals(found.mean[annotators] * self._scale, found.sd[annotators] * self._scale)
            return normal_table(normals, grid)
        return grid.table(found.nodes[annotators] * self._scale, found.mass[annotators])


def _soft_labels(
    item_ids: pd.Index[str],
    items: ItemSummary,
    counts: NDArray[np.int64],
    positives: FloatArray,
    method: str,
) -> SoftLabels:
    return SoftLabels(
        item_ids=item_ids,
        p=items.positive,
        expected_vote=items.expected_vote,
        n_votes=counts,
        n_positive=positives,
        method=method,
        difficulty=DifficultySummary(items.mean, items.sd, items.low, items.high),
    )


def agreement_with_others(votes: VoteTable) -> FloatArray:
    """Return each annotator's share of votes that equal the majority of the others' votes on the item, shape (A,).

    A tie among the others counts one half; votes on items that nobody else voted on do not count; NaN without any.
    An annotator's own repeats on an item are not votes of others.

    >>> table = VoteTable.from_codes([0, 0, 0, 1], [0, 1, 2, 2], [1, 1, 0, 1], ["x", "y"], ["a", "b", "c"])
    >>> agreement_with_others(table).tolist()
    [0.5, 0.5, 0.0]
    """
    weight = np.ones(votes.n_votes) if votes.weights is None else votes.weights.astype(np.float64)
    count = np.bincount(votes.item_codes, weights=weight, minlength=votes.n_items)
    own, own_positives = _own_votes(votes, weight)
    others = count[votes.item_codes] - own
    lean = 2 * (votes.item_positives[votes.item_codes] - own_positives) - others
    agree = 0.5 + 0.5 * np.sign(np.where(np.abs(lean) < 1e-9, 0.0, lean)) * (2.0 * votes.votes - 1)
    counted = weight * (others > 1e-9)
    total = np.bincount(votes.annotator_codes, weights=counted, minlength=votes.n_annotators)
    hits = np.bincount(votes.annotator_codes, weights=counted * agree, minlength=votes.n_annotators)
    shares = np.full(votes.n_annotators, np.nan)
    np.divide(hits, total, out=shares, where=total > 0)
    return shares


def _own_votes(votes: VoteTable, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, for each vote, the votes and the positive votes that its annotator cast on its item, shape (V,)."""
    pairs = votes.item_codes.astype(np.int64) * votes.n_annotators + votes.annotator_codes
    if (np.diff(np.sort(pairs)) > 0).all():
        return weight, weight * votes.votes
    _, pair_of = np.unique(pairs, return_inverse=True)
    own, positives = (np.bincount(pair_of, amount)[pair_of] for amount in (weight, weight * votes.votes))
    return own.astype(np.float64), positives.astype(np.float64)
