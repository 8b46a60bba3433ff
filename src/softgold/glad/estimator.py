"""The model with the habits of scikit-learn and crowd-kit: parameters in the constructor, results with a final `_`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from softgold.glad.coordinate import Family
from softgold.glad.fitting import Engine, Fit, Init, fit
from softgold.glad.priors import Prior
from softgold.readers import read_votes
from softgold.softlabels import SoftLabels
from softgold.votes import VoteTable

__all__ = ["GLAD"]


class GLAD(BaseEstimator):
    """Signed-difficulty model of binary votes, after GLAD (Whitehill et al., 2009) and CleanPatrick (2025).

    Args:
        engine: "svi" (Pyro) or "coordinate" (deterministic, no torch).
        prior: "default", "paper", or a `Prior`.
        seed: Seed of `svi`.
        init: Where `svi` starts.
        family: Factors of `coordinate`.
        max_steps: Cap on steps or sweeps.
        batch_items: Items per step of `svi`.
        device: Where `svi` computes.
        threshold: p at and above which `labels_` are 1.

    Attributes:
        fit_: The whole `Fit`.
        probas_: P(label) of each task, columns 0 and 1, indexed by `task`.
        labels_: Label of each task, indexed by `task`.
        skills_: Mean ability of each worker, indexed by `worker`.

    Example:
        >>> tasks, workers = list("uuuvvvwwwxxx"), list("abcabcabcabc")
        >>> votes = pd.DataFrame({"task": tasks, "worker": workers, "label": [1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0]})
        >>> GLAD(engine="coordinate").fit_predict(votes).to_dict()
        {'u': 1, 'v': 0, 'w': 1, 'x': 0}
    """

    def __init__(
        self,
        *,
        engine: Engine = "svi",
        prior: str | Prior = "default",
        seed: int = 0,
        init: Init = "coordinate",
        family: Family = "free",
        max_steps: int | None = None,
        batch_items: int | None = None,
        device: str = "cpu",
        threshold: float = 0.5,
    ) -> None:
        self.engine = engine
        self.prior = prior
        self.seed = seed
        self.init = init
        self.family = family
        self.max_steps = max_steps
        self.batch_items = batch_items
        self.device = device
        self.threshold = threshold

    @property
    def name(self) -> str:
        """Name of the aggregator: that of the engine."""
        return self.engine

    def fit(self, data: VoteTable | Any, y: None = None) -> GLAD:
        """Fit to a frame `task, worker, label` (or any of the accepted column names), a file, or a `VoteTable`."""
        votes = data if isinstance(data, VoteTable) else read_votes(data)
        settings = {name: value for name, value in self.get_params().items() if name != "threshold"}
        self.fit_: Fit = fit(votes, **settings)
        labels = self.fit_.posterior.soft_labels()
        tasks = pd.Index(labels.item_ids, name="task")
        self.probas_ = pd.DataFrame({0: 1 - labels.p, 1: labels.p}, index=tasks)
        self.labels_: pd.Series[Any] = pd.Series(
            (labels.p >= self.threshold).astype(np.int64), index=tasks, name="agg_label"
        )
        workers = pd.Index(self.fit_.posterior.annotator_ids, name="worker")
        self.skills_ = pd.Series(self.fit_.posterior.abilities.mean, index=workers, name="skill")
        return self

    def fit_predict(self, data: VoteTable | Any, y: None = None) -> pd.Series[Any]:
        """Fit, and return the labels."""
        return self.fit(data).labels_

    def fit_predict_proba(self, data: VoteTable | Any, y: None = None) -> pd.DataFrame:
        """Fit, and return the probabilities of both labels."""
        return self.fit(data).probas_

    def aggregate(self, votes: VoteTable) -> SoftLabels:
        """Fit, and return the soft labels: the contract of every aggregator."""
        return self.fit(votes).fit_.posterior.soft_labels()
