"""Result of a simulation: the data of a study and the truth behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.simulation.settings import SimulationSettings
from softgold.simulation.vote_models import MODELS, ModelName
from softgold.tables.experts import ExpertLabels
from softgold.tables.scores import Scores
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Truth:
    """True items and annotators of a simulation, in the order of its vote table.

    Attributes:
        model: Model that the votes were drawn from.
        item_ids: Ids of the items, length I.
        label: True class z, int8, shape (I,).
        difficulty: Signed difficulty b, shape (I,): its sign is the class that the item looks like; a small |b| is
            hard. In `glad` its sign is the class; in `two-class` an item with the other sign is tricky.
        pull: Pull u, shape (I,), which shifts all votes on the item. 0 in `glad`.
        annotator_ids: Ids of the annotators, length A.
        ability: Ability c, shape (A,): above 0 helpful, 0 chance, below 0 adversarial.
        lean: Lean d, shape (A,): an annotator with d > 0 tends to vote yes. 0 in `glad`.
        sensitivity: P(vote 1 | z = 1) of each annotator over the model's items, shape (A,).
        specificity: P(vote 0 | z = 0) of each annotator over the model's items, shape (A,).
        kind: `helpful`, `random` or `adversarial`, length A.
    """

    model: ModelName
    item_ids: pd.Index[str]
    label: NDArray[np.int8]
    difficulty: FloatArray
    pull: FloatArray
    annotator_ids: pd.Index[str]
    ability: FloatArray
    lean: FloatArray
    sensitivity: FloatArray
    specificity: FloatArray
    kind: pd.Index[str]

    @property
    def clarity(self) -> FloatArray:
        """Clarity b (2 z - 1): how much each item looks like its class, shape (I,); below 0 it is tricky."""
        clarity: FloatArray = self.difficulty * (2.0 * self.label - 1.0)
        return clarity

    @property
    def expert_clarity(self) -> FloatArray:
        """Clarity of each item to an expert, shape (I,).

        Equal to the crowd's in `glad`, and sqrt(3), the clarity of a typical item, larger in `two-class`: experts see
        through most tricky items.
        """
        return self.clarity + MODELS[self.model].expert_insight

    def items_frame(self) -> pd.DataFrame:
        """Return the table `item, label, b, pull`."""
        return pd.DataFrame({"item": self.item_ids, "label": self.label, "b": self.difficulty, "pull": self.pull})

    def annotators_frame(self) -> pd.DataFrame:
        """Return the table `annotator, ability, kind, lean, sensitivity, specificity`."""
        return pd.DataFrame(
            {
                "annotator": self.annotator_ids,
                "ability": self.ability,
                "kind": self.kind,
                "lean": self.lean,
                "sensitivity": self.sensitivity,
                "specificity": self.specificity,
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A simulated study.

    Attributes:
        votes: Votes of the crowd, sorted by item.
        abstentions: Responses without a vote, a table `item, annotator`.
        truth: True items and annotators, in the order of `votes.item_ids` and `votes.annotator_ids`.
        experts: Expert labels, or None.
        scores: Model scores in (0, 1), or None.
        settings: Settings of the simulation.
    """

    votes: VoteTable
    abstentions: pd.DataFrame
    truth: Truth
    experts: ExpertLabels | None
    scores: Scores | None
    settings: SimulationSettings

    def __repr__(self) -> str:
        return str(self.votes).replace("VoteTable", "Simulation")

    def tables(self, decimals: int = 6) -> dict[str, pd.DataFrame]:
        """Return the tables to write to files, by name, with real numbers rounded.

        `votes` has an empty vote for each abstention. `experts` and `scores` are present if the study has them.

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
