"""What a simulation gives: the data that a study would have, and the truth that it would not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.scores import Scores
from softgold.simulation.settings import SimulationSettings
from softgold.votes import ExpertLabels, VoteTable

__all__ = ["Simulation", "Truth"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of the items and annotators of a simulation, in the order of its vote table.

    Attributes:
        item_ids: Ids of the items, length I.
        label: True class, 1 where b > 0, int8, shape (I,).
        difficulty: Signed difficulty b, shape (I,): its sign is the class, and a small |b| is hard.
        annotator_ids: Ids of the annotators, length A.
        ability: Ability c, shape (A,): above 0 helpful, 0 chance, below 0 adversarial.
        kind: `helpful`, `random` or `adversarial`, length A.
    """

    item_ids: pd.Index[str]
    label: NDArray[np.int8]
    difficulty: FloatArray
    annotator_ids: pd.Index[str]
    ability: FloatArray
    kind: pd.Index[str]

    def items_frame(self) -> pd.DataFrame:
        """Return the table `item, label, b`."""
        return pd.DataFrame({"item": self.item_ids, "label": self.label, "b": self.difficulty})

    def annotators_frame(self) -> pd.DataFrame:
        """Return the table `annotator, ability, kind`."""
        return pd.DataFrame({"annotator": self.annotator_ids, "ability": self.ability, "kind": self.kind})


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated study.

    Attributes:
        votes: The crowd's votes, sorted by item.
        abstentions: Responses without a vote, a table `item, annotator`.
        truth: Items and annotators as they are, in the order of `votes.item_ids` and `votes.annotator_ids`.
        experts: The experts' labels; None if there are none.
        scores: The models' scores in (0, 1); None if there are none.
        settings: What it was made with.
    """

    votes: VoteTable
    abstentions: pd.DataFrame
    truth: Truth
    experts: ExpertLabels | None
    scores: Scores | None
    settings: SimulationSettings

    def tables(self, decimals: int = 6) -> dict[str, pd.DataFrame]:
        """Return the tables that stand for this study in files, by name, real numbers rounded.

        `votes` has an empty vote for each abstention. `experts` and `scores` are there if the study has them.

        >>> from softgold.simulation import simulate
        >>> sorted(simulate(n_items=50, n_annotators=10, votes_per_item=5).tables())
        ['annotators_truth', 'experts', 'scores', 'truth', 'votes']
        """
        tables = {
            "votes": self._responses(),
            "truth": self.truth.items_frame(),
            "annotators_truth": self.truth.annotators_frame(),
        }
        if self.experts is not None:
            tables["experts"] = self.experts.table.to_frame().rename(columns={"annotator": "expert", "vote": "label"})
        if self.scores is not None:
            tables["scores"] = self.scores.to_frame()
        return {name: table.round(decimals) for name, table in tables.items()}

    def _responses(self) -> pd.DataFrame:
        votes = self.votes.to_frame()
        if self.abstentions.empty:
            return votes
        votes["vote"] = votes["vote"].astype("Int8")
        empty = self.abstentions.assign(vote=pd.array([pd.NA] * len(self.abstentions), dtype="Int8"))
        return pd.concat([votes, empty]).sort_values("item", kind="stable", ignore_index=True)
