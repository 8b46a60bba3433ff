"""What a fit of a crowd model says: items, annotators, soft labels by sampling or exactly, soft labels of new votes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from softgold.checks import check_positive_int
from softgold.errors import InputError
from softgold.models.agreement import agreement_with_others
from softgold.models.base import Arrays, Posterior
from softgold.models.crowd.annotators import Skills, respond
from softgold.models.crowd.chunks import vote_chunks
from softgold.models.crowd.mirror import Images
from softgold.models.crowd.priors import CrowdPrior, Population
from softgold.models.crowd.states import Lattice, States
from softgold.models.crowd.summary import (
    INTERVAL,
    ItemSummary,
    class_rates,
    response_curve,
    summarise_items,
)
from softgold.tables.soft_labels import DifficultySummary, SoftLabels
from softgold.tables.votes import VoteTable

__all__ = ["CrowdPosterior"]

FloatArray = NDArray[np.float64]

MAY_BE_NAN = frozenset({"annotator_agreement"})
SHARES = frozenset({"item_positive", "item_expected_vote", "certainty"})


@dataclass(frozen=True, eq=False)
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
    items: ItemSummary
    certainty: FloatArray
    mirror_odds: FloatArray
    item_counts: NDArray[np.int64]
    item_positives: FloatArray
    annotator_counts: NDArray[np.int64]
    annotator_agreement: FloatArray

    @classmethod
    def of(
        cls,
        votes: VoteTable,
        method: str,
        prior: CrowdPrior,
        population: Population,
        lattice: Lattice,
        skills: Skills,
        items: ItemSummary | None = None,
    ) -> CrowdPosterior:
        """Return the posterior of fitted annotators, mirror images aside.

        Items take their exact step unless their summary is given.
        """
        if items is None:
            states = prior.states(population, lattice)
            response = respond(skills, states)
            curve = response_curve(response, votes.annotator_counts)
            items = summarise_items(vote_chunks(votes), skills, response, states, curve, population.unit)
        sure = np.ones(votes.n_annotators)
        return cls(
            votes.item_ids,
            votes.annotator_ids,
            method,
            prior,
            population,
            lattice,
            skills,
            items,
            sure,
            np.zeros_like(sure),
            votes.item_counts,
            votes.item_positives,
            votes.annotator_counts,
            agreement_with_others(votes),
        )

    def with_images(self, votes: VoteTable, images: Images) -> CrowdPosterior:
        """Return the posterior with items mixed over both mirror images of their component."""
        parts = votes.components
        return replace(
            self,
            items=self.items.mixed(images.certainty[parts.items], images.odds[parts.items]),
            certainty=images.certainty[parts.annotators],
            mirror_odds=images.odds[parts.annotators],
        )

    @property
    def states(self) -> States:
        """The states of an item with their prior."""
        return self.prior.states(self.population, self.lattice)

    def soft_labels(self) -> SoftLabels:
        """Return the soft labels, p = P(z = 1 | votes) computed exactly given the annotators."""
        return self._labels(self.item_ids, self.items, self.item_counts, self.item_positives)

    def _labels(
        self, ids: pd.Index[str], items: ItemSummary, counts: NDArray[np.int64], positives: FloatArray
    ) -> SoftLabels:
        return SoftLabels(
            item_ids=ids,
            p=items.positive,
            expected_vote=items.expected_vote,
            n_votes=counts,
            n_positive=positives,
            method=self.method,
            difficulty=DifficultySummary(items.mean, items.sd, items.low, items.high),
        )

    def sample_soft_labels(self, n_samples: int = 1000, *, seed: int = 0) -> SoftLabels:
        """Return soft labels whose p is the share of `n_samples` draws of z that are 1 (CleanPatrick's p-bar).

        In the fitted posterior the class of an item is a coin with its p, so the number of positive draws is binomial:
        drawn as such, it has the same distribution as counting the draws.
        """
        count = check_positive_int(n_samples, "n_samples")
        share = np.random.default_rng(seed).binomial(count, self.items.positive) / count
        return replace(self.soft_labels(), p=share)

    def annotators(self) -> pd.DataFrame:
        """Return one row per annotator: ability, lean, sensitivity and specificity with intervals, votes, agreement."""
        columns: dict[str, Any] = {"annotator": self.annotator_ids}
        sd = np.sqrt(self.skills.variance)
        reach = float(ndtri(INTERVAL[1]))
        for place, (name, unit) in enumerate((("ability", self.population.unit), ("lean", 1.0))):
            mean, spread = self.skills.mean[:, place] / unit, sd[:, place] / unit
            ends = (mean - reach * spread, mean + reach * spread)
            columns |= {f"{name}_mean": mean, f"{name}_sd": spread, f"{name}_lo": ends[0], f"{name}_hi": ends[1]}
        for name, label in (("sensitivity", 1), ("specificity", 0)):
            rates = class_rates(self.skills, self.states, label)
            columns |= {name: rates.mean, f"{name}_lo": rates.low, f"{name}_hi": rates.high}
        columns |= {
            "p_adversarial": self._p_adversarial(),
            "n_votes": self.annotator_counts,
            "agreement": self.annotator_agreement,
        }
        return pd.DataFrame(columns)

    def vote_entropy(self) -> FloatArray:
        """Return the mean entropy of a vote given the state of the item, shape (I,)."""
        return self.items.expected_entropy

    def _p_adversarial(self) -> FloatArray:
        """Return P(ability < 0), over both images where the component is in doubt."""
        below = ndtr(-self.skills.mean[:, 0] / np.sqrt(self.skills.cov[:, 0]))
        return self.certainty * below + (1 - self.certainty) * (1 - below)

    def predict(self, votes: VoteTable) -> SoftLabels:
        """Return soft labels of the items of `votes`, known or never seen, with the annotators held as fitted.

        Only the votes given count: an item's former votes must be among them if they are to. Annotators who were not
        in the fit are members of the fitted population. An item is as doubtful as its most doubtful annotator.
        """
        if votes.n_votes == 0:
            raise InputError("the table has no votes to predict from; it needs at least one that is not an abstention")
        known = self.annotator_ids.get_indexer(votes.annotator_ids)
        seen = known >= 0
        strangers = Skills.at(self.population, votes.n_annotators)
        skills = Skills(
            np.where(seen[:, None], self.skills.mean[known], strangers.mean),
            np.where(seen[:, None], self.skills.cov[known], strangers.cov),
        )
        states = self.states
        curve = response_curve(respond(self.skills, states), self.annotator_counts)
        response = respond(skills, states)
        items = summarise_items(vote_chunks(votes), skills, response, states, curve, self.population.unit)
        certainty, odds = np.ones(votes.n_items), np.zeros(votes.n_items)
        by_annotator = np.where(seen, self.certainty[known], 1.0)
        order = np.argsort(-by_annotator[votes.annotator_codes], kind="stable")  # the most doubtful is written last
        who = votes.annotator_codes[order]
        certainty[votes.item_codes[order]] = by_annotator[who]
        odds[votes.item_codes[order]] = np.where(seen[who], self.mirror_odds[known[who]], 0.0)
        return self._labels(votes.item_ids, items.mixed(certainty, odds), votes.item_counts, votes.item_positives)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the posterior as arrays of numbers."""
        arrays: dict[str, NDArray[Any]] = {f"item_{name}": value for name, value in vars(self.items).items()}
        arrays |= {f"skill_{name}": value for name, value in vars(self.skills).items()}
        arrays |= {f"lattice_{name}": value for name, value in vars(self.lattice).items()}
        arrays["population"] = np.array([getattr(self.population, field.name) for field in fields(Population)])
        for name in ("certainty", "mirror_odds", *COUNTS):
            arrays[name] = getattr(self, name)
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, item_ids: pd.Index[str], annotator_ids: pd.Index[str], method: str, prior: CrowdPrior
    ) -> CrowdPosterior:
        """Return the posterior that `to_arrays` gave; a ValueError says what does not fit together."""
        items = ItemSummary(*(_checked(arrays, f"item_{field.name}", len(item_ids)) for field in fields(ItemSummary)))
        rows = len(annotator_ids)
        skills = Skills(_checked(arrays, "skill_mean", rows, 2), _checked(arrays, "skill_cov", rows, 3))
        size = len(np.atleast_1d(arrays["lattice_b"]))
        lattice = Lattice(
            _checked(arrays, "lattice_b", size),
            _checked(arrays, "lattice_width", size),
            *(_checked(arrays, f"lattice_{name}", arrays["lattice_pull"].size) for name in ("pull", "pull_weight")),
        )
        if (skills.variance < 0).any() or (skills.cov[:, 0] == 0).any():
            raise ValueError("skill_cov has a variance that is not positive")
        numbers = _checked(arrays, "population", len(fields(Population)))
        counts = [_checked(arrays, name, len(item_ids) if name.startswith("item") else rows) for name in COUNTS]
        certainty, odds = _checked(arrays, "certainty", rows), _checked(arrays, "mirror_odds", rows)
        population = Population(*map(float, numbers))
        return cls(item_ids, annotator_ids, method, prior, population, lattice, skills, items, certainty, odds, *counts)


COUNTS = ("item_counts", "item_positives", "annotator_counts", "annotator_agreement")


def _checked(arrays: Arrays, name: str, rows: int, columns: int | None = None) -> NDArray[Any]:
    array = arrays[name]
    shape = (rows,) if columns is None else (rows, columns)
    if array.dtype.kind not in "fi" or array.shape != shape:
        raise ValueError(f"{name} is not an array of numbers of shape {shape}")
    if name not in MAY_BE_NAN and not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    if name in SHARES and array.size and (array.min() < 0 or array.max() > 1):
        raise ValueError(f"{name} is not between 0 and 1")
    return array
