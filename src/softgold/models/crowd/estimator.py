"""The models in the style of scikit-learn and crowd-kit: parameters in the constructor, results with a final `_`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softgold.models.base import Fit, fit
from softgold.models.crowd.priors import Prevalence
from softgold.models.crowd.settings import Engine, Init
from softgold.readers import read_votes
from softgold.readers.columns import ITEM
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable


# Fields are the arguments of the constructor, which stores them and does no more, as scikit-learn asks.
@dataclass(kw_only=True, eq=False, repr=False)
class CrowdEstimator(BaseEstimator):
    """What both estimators share.

    Attributes:
        fit_: The whole `Fit`.
        probas_: P(label) of each item, columns 0 and 1, indexed by item.
        labels_: Label of each item, indexed by item.
        skills_: Mean ability of each annotator, indexed by annotator.
    """

    name: ClassVar[str]

    engine: Engine = "svi"
    seed: int = 0
    max_steps: int | None = None
    batch_items: int | None = None
    device: str = "cpu"
    threshold: float = 0.5

    def fit(self, data: VoteTable | Any, y: None = None) -> Self:
        """Fit to a frame of votes (`item, annotator, vote` or any of the accepted column names), a file, a table."""
        table, names = _votes_of(data)
        settings = {name: value for name, value in self.get_params().items() if name != "threshold"}
        self.fit_: Fit = fit(table, model=self.name, **settings)
        labels = self.fit_.posterior.soft_labels()
        self.probas_ = _probabilities(labels, names)
        self.labels_ = self._cut(self.probas_)
        annotators = self.fit_.posterior.annotators().set_index("annotator")
        self.skills_ = annotators["ability_mean"].rename("skill")
        return self

    def predict_proba(self, data: VoteTable | Any) -> pd.DataFrame:
        """Return P(label) of the items of new votes, columns 0 and 1, with the annotators as fitted."""
        check_is_fitted(self, "fit_")
        table, names = _votes_of(data)
        return _probabilities(self.fit_.posterior.predict(table), names)

    def predict(self, data: VoteTable | Any) -> pd.Series[Any]:
        """Return labels of the items of new votes."""
        return self._cut(self.predict_proba(data))

    def fit_predict(self, data: VoteTable | Any, y: None = None) -> pd.Series[Any]:
        """Fit, and return the labels."""
        return self.fit(data).labels_

    def fit_predict_proba(self, data: VoteTable | Any, y: None = None) -> pd.DataFrame:
        """Fit, and return the probabilities of both labels."""
        return self.fit(data).probas_

    def aggregate(self, votes: VoteTable) -> SoftLabels:
        """Fit, and return the soft labels: the contract of every aggregator."""
        return self.fit(votes).fit_.posterior.soft_labels()

    def _cut(self, probabilities: pd.DataFrame) -> pd.Series[Any]:
        return (probabilities[1] >= self.threshold).astype(np.int64).rename("label")


@dataclass(kw_only=True, eq=False, repr=False)
class TwoClass(CrowdEstimator):
    """The two-class model: the class of an item is separate from its appearance.

    Args:
        engine: "svi" (Pyro) or "coordinate" (deterministic, no torch).
        prevalence: "able", "share", "majority", or the share of positive items as a number.
        seed: Seed of `svi`.
        max_steps: Cap on steps or sweeps.
        batch_items: Items per step of `svi`.
        device: Where `svi` computes.
        threshold: p at and above which labels are 1.

    Example:
        >>> items, annotators = list("uuuvvvwwwxxx"), list("abcabcabcabc")
        >>> votes = pd.DataFrame({"item": items, "annotator": annotators, "vote": [1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0]})
        >>> TwoClass(engine="coordinate").fit_predict(votes).to_dict()
        {'u': 1, 'v': 0, 'w': 1, 'x': 0}
    """

    name = "two-class"

    prevalence: Prevalence | float = "able"


@dataclass(kw_only=True, eq=False, repr=False)
class GLAD(CrowdEstimator):
    """The published model of signed difficulties, after GLAD (Whitehill et al., 2009) and CleanPatrick (2025).

    Args:
        engine: "svi" (Pyro) or "coordinate" (deterministic, no torch).
        prior: "default" or "paper".
        init: Where `svi` starts: "coordinate", or "paper" for the published recipe.
        seed: Seed of `svi`.
        max_steps: Cap on steps or sweeps.
        batch_items: Items per step of `svi`.
        device: Where `svi` computes.
        threshold: p at and above which labels are 1.

    Example:
        >>> items, annotators = list("uuuvvvwwwxxx"), list("abcabcabcabc")
        >>> votes = pd.DataFrame({"item": items, "annotator": annotators, "vote": [1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0]})
        >>> GLAD(engine="coordinate").fit_predict(votes).to_dict()
        {'u': 1, 'v': 0, 'w': 1, 'x': 0}
    """

    name = "glad"

    prior: str = "default"
    init: Init = "coordinate"


def _votes_of(data: VoteTable | Any) -> tuple[VoteTable, pd.Index[Any] | None]:
    """Return the votes, and the items as they came in where they came in a pandas frame."""
    table = data if isinstance(data, VoteTable) else read_votes(data)
    return table, _original_ids(data, table) if isinstance(data, pd.DataFrame) else None


def _original_ids(frame: pd.DataFrame, table: VoteTable) -> pd.Index[Any] | None:
    """Return the frame's own item ids, type included, in the order of the table; None if they cannot be told."""
    name = next(name for name in frame.columns if str(name).strip().casefold() in ITEM)
    seen = pd.Index(frame[name].dropna().unique())
    places = pd.Index(seen.astype("str")).get_indexer(table.item_ids)
    return seen[places].rename(name) if (places >= 0).all() else None


def _probabilities(labels: SoftLabels, names: pd.Index[Any] | None) -> pd.DataFrame:
    index = pd.Index(labels.item_ids, name="item") if names is None else names
    return pd.DataFrame({0: 1 - labels.p, 1: labels.p}, index=index)
