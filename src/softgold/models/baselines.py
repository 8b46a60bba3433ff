"""Aggregators without a model: majority, the share of positive votes, and the mean of ratings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_choice, check_in_range, check_ordered_pair, check_pair
from softgold.errors import InputError, UsageError
from softgold.models.agreement import agreement_with_others
from softgold.models.base import Arrays, Diagnostics, Fit, FitState, FloatArray, Model, Notice, OnProgress, Posterior
from softgold.tables.ratings import RatingTable
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable

Tie = Literal["positive", "negative"]


class CountBaseline(ABC):
    """A baseline that looks at the numbers of votes and positive votes of each item, and at nothing else."""

    name: ClassVar[str]

    def aggregate(self, votes: VoteTable) -> SoftLabels:
        """Return the soft labels of each item's votes."""
        return self.of_counts(votes.item_ids, votes.item_counts, votes.item_positives)

    @abstractmethod
    def of_counts(self, item_ids: pd.Index[str], counts: NDArray[np.int64], positives: FloatArray) -> SoftLabels:
        """Return the soft labels of items with these numbers of votes and positive votes."""


@dataclass(frozen=True)
class Majority(CountBaseline):
    """Majority vote: p is 1 or 0, and 0.5 at a tie, whatever the order of the rows.

    Attributes:
        tie: Hard label of a tie, where p is 0.5; None for no hard labels.

    Example:
        >>> votes = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 0, 1], ["x", "y"], ["ann", "bob"])
        >>> Majority().aggregate(votes).p.tolist()
        [0.5, 1.0]
        >>> Majority(tie="negative").aggregate(votes).label.tolist()
        [0, 1]
    """

    name = "majority"

    tie: Tie | None = None

    def __post_init__(self) -> None:
        if self.tie is not None:
            check_choice(self.tie, get_args(Tie), "tie")

    def of_counts(self, item_ids: pd.Index[str], counts: NDArray[np.int64], positives: FloatArray) -> SoftLabels:
        """Return the majority of items with these numbers of votes and positive votes."""
        shares = Mean().of_counts(item_ids, counts, positives)
        p = shares.majority
        label = None
        if self.tie is not None:
            label = (p >= 0.5 if self.tie == "positive" else p > 0.5).astype(np.int8)
        return replace(shares, p=p, method=self.name, label=label)


@dataclass(frozen=True)
class Mean(CountBaseline):
    """Share of positive votes, with or without a Beta(a, b) prior: p = (n_positive + a) / (n_votes + a + b).

    Attributes:
        smoothing: (a, b) of the prior, in votes that were not cast; None for the plain share.

    Example:
        >>> votes = VoteTable.from_codes([0, 0, 1], [0, 1, 0], [1, 0, 1], ["x", "y"], ["ann", "bob"])
        >>> Mean().aggregate(votes).p.tolist()
        [0.5, 1.0]
        >>> Mean(smoothing=(1, 1)).aggregate(votes).p.round(4).tolist()
        [0.5, 0.6667]
    """

    name = "mean"

    smoothing: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.smoothing is None:
            return
        pair = check_pair(self.smoothing, "smoothing")
        object.__setattr__(self, "smoothing", pair)
        if min(pair) < 0:
            raise UsageError(f"smoothing must not be negative, got {self.smoothing!r}")

    def of_counts(self, item_ids: pd.Index[str], counts: NDArray[np.int64], positives: FloatArray) -> SoftLabels:
        """Return the share of items with these numbers of votes and positive votes."""
        a, b = self.smoothing or (0.0, 0.0)
        p = (positives + a) / (counts + a + b)
        # Averaged repeats have weights such as 1/3, whose sum may pass 1 by a rounding.
        p = np.clip(p, 0.0, 1.0)
        known: dict[str, Any] = {"n_votes": counts, "n_positive": positives, "method": self.name}
        return SoftLabels(item_ids=item_ids, p=p, expected_vote=p, **known)


@dataclass(frozen=True)
class RatingMean:
    """Mean rating mapped from its scale to [0, 1], and a hard label where the mean lies strictly above a cut.

    Attributes:
        cut: Threshold on the original scale; None for no hard labels. Ratings strictly above the cut, or above
            the middle of the scale where there is no cut, are counted as positive.

    Example:
        >>> ratings = RatingTable(
        ...     np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1.0, 2.0, 1.0]), ["x", "y"], ["ann", "bob"], (0, 2)
        ... )
        >>> labels = RatingMean(cut=1).aggregate(ratings)
        >>> labels.p.tolist(), labels.label.tolist()
        ([0.75, 0.5], [1, 0])
    """

    name: ClassVar[str] = "mean"

    cut: float | None = None

    def aggregate(self, ratings: RatingTable) -> SoftLabels:
        """Return the mean rating of each item on [0, 1]."""
        low, high = check_ordered_pair(ratings.scale, "scale")
        cut = (low + high) / 2 if self.cut is None else check_in_range(self.cut, low, high, "cut")
        p = np.clip((ratings.item_means - low) / (high - low), 0.0, 1.0)
        return SoftLabels(
            item_ids=ratings.item_ids,
            p=p,
            expected_vote=p,
            n_votes=ratings.item_counts,
            n_positive=ratings.item_sums((ratings.ratings > cut).astype(np.float64)),
            method=self.name,
            rating_mean=p,
            label=None if self.cut is None else (ratings.item_means > cut).astype(np.int8),
        )


@dataclass(frozen=True, eq=False, repr=False)
class BaselinePosterior(Posterior):
    """Soft labels of a baseline, and how its annotators agree.

    Attributes:
        item_ids: Ids of the items, length I.
        annotator_ids: Ids of the annotators, length A.
        aggregator: The baseline.
        labels: Soft labels of the fitted items.
        annotator_counts: Votes per annotator, shape (A,).
        annotator_agreement: Share of votes that agree with the majority of the others, shape (A,).
    """

    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    aggregator: CountBaseline
    labels: SoftLabels
    annotator_counts: NDArray[np.int64]
    annotator_agreement: FloatArray

    def soft_labels(self) -> SoftLabels:
        """Return the soft labels."""
        return self.labels

    def annotators(self) -> pd.DataFrame:
        """Return `annotator, n_votes, agreement`."""
        columns = {"annotator": self.annotator_ids, "n_votes": self.annotator_counts}
        return pd.DataFrame({**columns, "agreement": self.annotator_agreement})

    def predict(self, votes: VoteTable) -> SoftLabels:
        """Return the soft labels of other votes; a baseline learns nothing from those that it was fitted to."""
        if votes.n_votes == 0:
            raise InputError("the table has no votes to predict from; it needs at least one that is not an abstention")
        return self.aggregator.aggregate(votes)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the counts, from which everything else follows."""
        return {
            "item_counts": self.labels.n_votes,
            "item_positives": self.labels.n_positive,
            "annotator_counts": self.annotator_counts,
            "annotator_agreement": self.annotator_agreement,
        }


class BaselineModel(Model):
    """A baseline as a model of the registry; its settings are the aggregator itself."""

    def __init__(self, kind: type[Majority | Mean]) -> None:
        self.kind, self.name, self.options = kind, kind.name, tuple(field.name for field in fields(kind))

    def settings(self, **options: Any) -> CountBaseline:
        """Return the aggregator."""
        return self.kind(**options)

    def fit(self, votes: VoteTable, settings: Any, on_progress: OnProgress, resume: FitState | None) -> Fit:
        """Aggregate the votes."""
        known = (settings, settings.aggregate(votes), votes.annotator_counts, agreement_with_others(votes))
        posterior = BaselinePosterior(votes.item_ids, votes.annotator_ids, *known)
        notices = tuple(Notice("reader", note) for note in votes.notes)
        return Fit(self.name, settings, votes, posterior, Diagnostics(notices=notices))

    def posterior(
        self, arrays: Arrays, item_ids: pd.Index[str], annotator_ids: pd.Index[str], settings: Any
    ) -> BaselinePosterior:
        """Return the stored posterior."""
        for name, ids in (("item_counts", item_ids), ("item_positives", item_ids), ("annotator_counts", annotator_ids)):
            if arrays[name].dtype.kind not in "fi" or arrays[name].shape != (len(ids),):
                raise ValueError(f"{name} is not an array of {len(ids)} numbers")
        labels = settings.of_counts(item_ids, arrays["item_counts"], arrays["item_positives"].astype(np.float64))
        counts, agreement = arrays["annotator_counts"], arrays["annotator_agreement"]
        return BaselinePosterior(item_ids, annotator_ids, settings, labels, counts, agreement)


MAJORITY = BaselineModel(Majority)
MEAN = BaselineModel(Mean)
