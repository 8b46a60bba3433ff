"""What a fit of a crowd model says: items, annotators, soft labels by sampling or exactly, soft labels of new votes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from softgold.errors import InputError
from softgold.models.base import Arrays, FloatArray, Posterior
from softgold.models.crowd.annotators import Skills, respond
from softgold.models.crowd.chunks import vote_chunks
from softgold.models.crowd.population import Population
from softgold.models.crowd.prevalence import PrevalenceDoubt
from softgold.models.crowd.priors import CrowdPrior
from softgold.models.crowd.states import Lattice, States
from softgold.models.crowd.summary import REACH, ItemSummary, class_rates, response_curve, summarise_chunks
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable

PARTS = {"item": ItemSummary, "skill": Skills, "doubt": PrevalenceDoubt, "lattice": Lattice}
ROWS = ("certainty", "mirror_odds", "item_counts", "item_positives", "annotator_counts", "annotator_agreement")
MAY_BE_NAN = frozenset({"annotator_agreement"})
SHARES = frozenset({"item_positive", "item_expected_vote", "certainty"})


@dataclass(frozen=True, eq=False, repr=False)
class CrowdPosterior(Posterior):
    """Fitted posterior of a vote table with I items and A annotators, oriented so that the annotators are helpful.

    Attributes:
        item_ids: Ids of the items, length I.
        annotator_ids: Ids of the annotators, length A.
        method: Name of the model.
        prior: Prior over (z, b).
        population: Hyper-parameters in force.
        lattice: Where the states of an item are.
        skills: Annotator factors, the ability in the model's unit.
        doubt: How far the prevalence may be off, which intervals of annotators allow for.
        items: What is reported of the items.
        certainty: Probability that each annotator's component is the right way round, shape (A,).
        mirror_odds: See `mirror.Images.odds`; per annotator, shape (A,).
        item_counts: Votes per item, shape (I,).
        item_positives: Positive votes per item, shape (I,).
        annotator_counts: Votes per annotator, shape (A,).
        annotator_agreement: Share of votes that agree with the majority of the others, shape (A,).
    """

    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]
    method: str
    prior: CrowdPrior
    population: Population
    lattice: Lattice
    skills: Skills
    doubt: PrevalenceDoubt
    items: ItemSummary
    certainty: FloatArray
    mirror_odds: FloatArray
    item_counts: NDArray[np.int64]
    item_positives: FloatArray
    annotator_counts: NDArray[np.int64]
    annotator_agreement: FloatArray

    @property
    def states(self) -> States:
        """The states of an item with their prior."""
        return self.prior.states(self.population, self.lattice)

    def soft_labels(self) -> SoftLabels:
        """Return the soft labels, p = P(z = 1 | votes) computed exactly given the annotators."""
        return self.items.soft_labels(self.item_ids, self.item_counts, self.item_positives, self.method)

    def annotators(self) -> pd.DataFrame:
        """Return one row per annotator: ability, lean, sensitivity and specificity with intervals, votes, agreement."""
        columns: dict[str, Any] = {"annotator": self.annotator_ids}
        scale = np.array([1 / self.population.unit, self.states.lean])
        means, sds = self.skills.mean * scale, np.sqrt(self.skills.variance) * scale
        for name, mean, sd in zip(("ability", "lean"), means.T, sds.T, strict=True):
            columns |= {f"{name}_mean": mean, f"{name}_sd": sd}
            columns |= {f"{name}_lo": mean - REACH * sd, f"{name}_hi": mean + REACH * sd}
        ends = self.skills, *self.doubt.ends(self.skills)
        for name, label in (("sensitivity", 1), ("specificity", 0)):  # their intervals: over all plausible prevalences
            means, lows, highs = np.stack([class_rates(skills, self.states, label) for skills in ends], axis=1)
            columns |= {name: means[0], f"{name}_lo": lows.min(axis=0), f"{name}_hi": highs.max(axis=0)}
        # P(ability < 0), over both images where the component is in doubt.
        below = ndtr(-self.skills.mean[:, 0] / np.sqrt(self.skills.cov[:, 0]))
        columns["p_adversarial"] = self.certainty * below + (1 - self.certainty) * (1 - below)
        return pd.DataFrame(columns | {"n_votes": self.annotator_counts, "agreement": self.annotator_agreement})

    def skills_at(self, places: NDArray[np.intp]) -> Skills:
        """Return the factors of annotators by number; -1 is a newcomer, a member of the fitted population."""
        found, seen = Skills.at(self.population, len(places)), places >= 0
        found.mean[seen], found.cov[seen] = self.skills.mean[places[seen]], self.skills.cov[places[seen]]
        return found

    def predict(self, votes: VoteTable) -> SoftLabels:
        """Return soft labels of the items of `votes`, known or never seen, with the annotators held as fitted.

        Only the votes given count: an item's former votes must be among them if they are to. Annotators who were not
        in the fit are members of the fitted population. An item is as doubtful as its most doubtful annotator.
        """
        if votes.n_votes == 0:
            raise InputError("the table has no votes to predict from; it needs at least one that is not an abstention")
        known = self.annotator_ids.get_indexer(votes.annotator_ids)
        seen = known >= 0
        states = self.states
        curve = response_curve(respond(self.skills, states), self.annotator_counts)
        skills, chunks = self.skills_at(known), vote_chunks(votes)
        items = summarise_chunks(chunks, skills, respond(skills, states), states, curve, self.population.unit)
        certainty, odds = np.where(seen, self.certainty[known], 1.0), np.where(seen, self.mirror_odds[known], 0.0)
        order = np.argsort(-certainty[votes.annotator_codes], kind="stable")
        doubtful = np.empty(votes.n_items, np.intp)
        doubtful[votes.item_codes[order]] = votes.annotator_codes[order]  # the most doubtful is written last
        mixed = items.mixed(certainty[doubtful], odds[doubtful])
        return mixed.soft_labels(votes.item_ids, votes.item_counts, votes.item_positives, self.method)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the posterior as arrays of numbers."""
        parts = zip(PARTS, (self.items, self.skills, self.doubt, self.lattice), strict=True)
        arrays = {f"{prefix}_{name}": value for prefix, part in parts for name, value in vars(part).items()}
        population = np.array(list(vars(self.population).values()))
        return arrays | {"population": population} | {name: getattr(self, name) for name in ROWS}

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, item_ids: pd.Index[str], annotator_ids: pd.Index[str], method: str, prior: CrowdPrior
    ) -> CrowdPosterior:
        """Return the posterior that `to_arrays` gave; a ValueError says what does not fit together."""
        if not any(name.startswith("doubt_") for name in arrays):  # written before intervals allowed for it
            none = vars(PrevalenceDoubt.none(len(annotator_ids)))
            arrays = {**arrays, **{f"doubt_{name}": part for name, part in none.items()}}
        sizes = {"item": len(item_ids), "doubt_reach": 2, "lattice": arrays["lattice_b"].size}
        sizes |= {"lattice_pull": arrays["lattice_pull"].size, "population": len(fields(Population))}
        columns = {"skill_mean": (2,), "skill_cov": (3,), "doubt_shift": (2,)}

        def checked(name: str) -> NDArray[Any]:
            known = (size for prefix, size in reversed(sizes.items()) if name.startswith(prefix))
            return _checked(arrays, name, (next(known, len(annotator_ids)), *columns.get(name, ())))

        items, skills, doubt, lattice = (
            kind(*(checked(f"{prefix}_{field.name}") for field in fields(kind))) for prefix, kind in PARTS.items()
        )
        if (skills.variance < 0).any() or (skills.cov[:, 0] == 0).any():
            raise ValueError("skill_cov has a variance that is not positive")
        fitted = (Population(*checked("population").tolist()), lattice, skills, doubt, items)
        return cls(item_ids, annotator_ids, method, prior, *fitted, *(checked(name) for name in ROWS))


def _checked(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = arrays[name]
    if array.dtype.kind not in "fi" or array.shape != shape:
        raise ValueError(f"{name} is not an array of numbers of shape {shape}")
    if name not in MAY_BE_NAN and not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    if name in SHARES and array.size and (array.min() < 0 or array.max() > 1):
        raise ValueError(f"{name} is not between 0 and 1")
    return array
