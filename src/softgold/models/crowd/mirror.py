"""Mirror images: (z, b, c) -> (1 - z, -b, -c) leaves the votes as likely as they were, in each component by itself.

Votes alone cannot tell which image is right. What tells is that the annotators of a table are helpful on the whole:
an image weighs as the density of its abilities under the population of all annotators, and, where the prevalence is
known from elsewhere, as that of its items. The population used is the annotators' own mean and spread. The prior of
the fit, which draws few annotators towards chance, would leave three readers who agree with each other in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from softgold.models.base import ComponentReport, FloatArray
from softgold.models.crowd.annotators import Skills
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import CrowdPrior
from softgold.tables.votes import VoteTable

ItemBlocks = Iterable[tuple[NDArray[np.int32], FloatArray]]

NEGLIGIBLE = 0.01  # weight up to which the lesser image is left out


@dataclass(frozen=True, eq=False)
class Images:
    """How far the fitted image of each component can be trusted.

    Attributes:
        upright: Whether the fitted image is the more likely one, per component, shape (P,).
        certainty: Weight of the more likely image per component, 1 where the other is negligible, shape (P,).
        odds: Log odds that an item of the component would have in the other image without any vote, plus those in
            the fitted image, shape (P,).
    """

    upright: NDArray[np.bool_]
    certainty: FloatArray
    odds: FloatArray

    def certain(self) -> Images:
        """Return the images with the fitted one taken for granted."""
        return Images(np.ones_like(self.upright), np.ones_like(self.certainty), self.odds)

    def reports(self, graph: VoteGraph) -> tuple[ComponentReport, ...]:
        """Return sizes and certainty of each component."""
        votes = np.bincount(graph.annotators, weights=graph.annotator_counts).astype(np.int64)
        columns = (graph.items, np.bincount(graph.annotators), votes, self.certainty)
        return tuple(ComponentReport(*row) for row in zip(*(column.tolist() for column in columns), strict=True))


@dataclass(frozen=True, eq=False)
class VoteGraph:
    """The components of a vote graph, numbered by first item, without its items.

    Attributes:
        annotators: Component of each annotator, shape (A,); every component has one.
        annotator_counts: Votes per annotator, shape (A,).
        items: Number of items of each component, shape (P,).
    """

    annotators: NDArray[np.int32]
    annotator_counts: NDArray[np.int64]
    items: NDArray[np.int64]

    @staticmethod
    def of(votes: VoteTable) -> VoteGraph:
        """Return the components of a table."""
        parts = votes.components
        return VoteGraph(parts.annotators, votes.annotator_counts, np.bincount(parts.items, minlength=parts.count))


def weigh_images(
    graph: VoteGraph, skills: Skills, blocks: ItemBlocks, population: Population, prior: CrowdPrior
) -> Images:
    """Compare the fitted image of each component with its mirror image.

    A prevalence that was learned from the abilities turns over with a component. A prior that expects abilities on one
    side of chance has fixed the sign: then the fitted image is taken for granted.

    Args:
        graph: The components.
        skills: Annotator factors.
        blocks: Component and p of the items in the fitted image, some at a time, in the order of the items; gone
            through once at most.
        population: Hyper-parameters in force.
        prior: The prior over (z, b).
    """
    mean = skills.mean[:, 0]
    # Helpful on the whole: the population is that of the annotators with every component the right way round.
    # Annotators count by their votes, so that many with one vote each do not outweigh the others.
    count = graph.annotator_counts / graph.annotator_counts.mean()
    sign = np.where(np.bincount(graph.annotators, weights=count * mean) < 0, -1.0, 1.0)
    helpful = sign[graph.annotators] * mean
    centre = np.average(helpful, weights=count)
    spread = np.average(skills.cov[:, 0] + (helpful - centre) ** 2, weights=count)
    evidence = 2 * count * mean * centre / spread
    weight = np.bincount(graph.annotators, weights=evidence).astype(np.float64)
    turns = prior.prevalence == "able"
    mirrored = (1 - 2 * (graph.items / graph.items.sum()) * turns) * population.log_odds
    if population.log_odds:
        weight += _item_weight(blocks, population.log_odds, mirrored)
    certainty = expit(np.abs(weight))
    certainty[certainty >= 1 - NEGLIGIBLE] = 1.0
    images = Images(weight >= 0, certainty, population.log_odds + mirrored)
    return images.certain() if prior.ability_mean else images


def _item_weight(blocks: ItemBlocks, log_odds: float, mirrored: FloatArray) -> FloatArray:
    """Return what the items of each component say for the fitted image, shape (P,)."""
    weight = np.zeros_like(mirrored)
    for parts, positive in blocks:
        evidence = logit(np.clip(positive, 1e-12, 1 - 1e-12)) - log_odds
        turned = _log_evidence(-evidence, mirrored[parts]) + evidence
        np.add.at(weight, parts, _log_evidence(evidence, log_odds) - turned)  # one by one: blocks of any size
    return weight


def _log_evidence(evidence: FloatArray, log_odds: FloatArray | float) -> FloatArray:
    """Return log(pi exp(evidence) + 1 - pi), evidence being the log likelihood ratio of the classes."""
    return np.logaddexp(evidence - np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds))


def mix(positive: FloatArray, certainty: FloatArray, odds: FloatArray) -> FloatArray:
    """Return p mixed over both images, each array of shape (I,); `odds` as in `Images`."""
    other = expit(odds - logit(np.clip(positive, 1e-300, 1 - 1e-16)))
    return np.where(certainty < 1, certainty * positive + (1 - certainty) * other, positive)
