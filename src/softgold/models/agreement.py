"""How far each annotator agrees with the others, without a model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]


def agreement_with_others(votes: VoteTable) -> FloatArray:
    """Return each annotator's share of votes that equal the majority of the others' votes on the item, shape (A,).

    A tie among the others counts one half; votes on items that nobody else voted on do not count; NaN without any.
    An annotator's own repeats on an item are not votes of others.

    >>> table = VoteTable.from_codes([0, 0, 0, 1], [0, 1, 2, 2], [1, 1, 0, 1], ["x", "y"], ["a", "b", "c"])
    >>> agreement_with_others(table).tolist()
    [0.5, 0.5, 0.0]
    """
    hits, total = agreement_sums(votes)
    shares = np.full(votes.n_annotators, np.nan)
    np.divide(hits, total, out=shares, where=total > 0)
    return shares


def agreement_sums(votes: VoteTable) -> tuple[FloatArray, FloatArray]:
    """Return each annotator's votes that agree and all that count, each of shape (A,); see `agreement_with_others`."""
    weight = np.ones(votes.n_votes) if votes.weights is None else votes.weights.astype(np.float64)
    count = np.bincount(votes.item_codes, weights=weight, minlength=votes.n_items)
    own, own_positives = _own_votes(votes, weight)
    others = count[votes.item_codes] - own
    lean = 2 * (votes.item_positives[votes.item_codes] - own_positives) - others
    agree = 0.5 + 0.5 * np.sign(np.where(np.abs(lean) < 1e-9, 0.0, lean)) * (2.0 * votes.votes - 1)
    counted = weight * (others > 1e-9)
    total = np.bincount(votes.annotator_codes, weights=counted, minlength=votes.n_annotators)
    hits = np.bincount(votes.annotator_codes, weights=counted * agree, minlength=votes.n_annotators)
    return hits.astype(np.float64), total.astype(np.float64)


def _own_votes(votes: VoteTable, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, for each vote, the votes and the positive votes that its annotator cast on its item, shape (V,)."""
    pairs = votes.item_codes.astype(np.int64) * votes.n_annotators + votes.annotator_codes
    if (np.diff(np.sort(pairs)) > 0).all():
        return weight, weight * votes.votes
    _, pair_of = np.unique(pairs, return_inverse=True)
    own, positives = (np.bincount(pair_of, amount)[pair_of] for amount in (weight, weight * votes.votes))
    return own.astype(np.float64), positives.astype(np.float64)
