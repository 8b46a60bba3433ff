"""What is not known about annotators because the prevalence is not.

Votes alone hardly tell how common positives are: fewer positives and annotators who say yes more readily give the same
votes. A rule such as "able" fixes the prevalence, and the intervals of the annotators' rates take it as known. Here is
what they leave out: how far the prevalence may be off, and where the annotators would be then.

The plausible prevalence is that of Rogan and Gladen, "Estimating prevalence from the results of a screening test",
Am. J. Epidemiol. 107 (1978): (share of yes votes - (1 - a)) / (2 a - 1), with the accuracy a of those who vote, give
or take what a common lean would add, which the prior of the population knows to one standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from softgold.models.base import FloatArray
from softgold.models.crowd.annotators import Skills, VoteSums
from softgold.models.crowd.coordinate import FIRST_SWEEPS, CoordinateState, Problem, sweep
from softgold.models.crowd.items import Tables
from softgold.models.crowd.population import Population
from softgold.models.crowd.priors import POPULATION_WEIGHT, TwoClassPrior
from softgold.models.crowd.threads import worker_pool

COMMON_LEAN = 1 / math.sqrt(POPULATION_WEIGHT)  # spread of the mean lean before any vote
SWEEPS = 4  # lead all but a few per cent of the way to another prevalence


@dataclass(frozen=True, eq=False)
class PrevalenceDoubt:
    """How far the prevalence may be off, and where annotators would be then.

    Attributes:
        shift: Change of ability and lean per unit of the log odds of the prevalence, shape (A, 2).
        reach: Least and largest plausible change of these log odds, at most and at least 0, shape (2,).
    """

    shift: FloatArray
    reach: FloatArray

    @staticmethod
    def none(count: int) -> PrevalenceDoubt:
        """Return no doubt about `count` annotators: the prevalence was given, or the model has none."""
        return PrevalenceDoubt(np.zeros((count, 2)), np.zeros(2))

    def take(self, rows: NDArray[np.intp]) -> PrevalenceDoubt:
        """Return the doubt about some annotators."""
        return PrevalenceDoubt(self.shift[rows], self.reach)

    def ends(self, skills: Skills) -> tuple[Skills, ...]:
        """Return the annotators at the least and at the largest plausible prevalence."""
        return tuple(Skills(skills.mean + change * self.shift, skills.cov) for change in self.reach)


class OtherPrevalence(TwoClassPrior):
    """The prior with another prevalence than that of the fit, where the bound is bound to be lower."""

    largest_fall = math.inf


def plausible_change(sums: VoteSums, tables: Tables, weight: FloatArray, n_items: float) -> FloatArray:
    """Return the least and the largest plausible change of the log odds of the prevalence, shape (2,).

    Votes weigh as their annotator's squared ability and are reversed where that is negative, as in the rule "able".

    Args:
        sums: What annotators see of the items.
        tables: Annotators, their response and the states that the sums were taken with.
        weight: How many annotators each stands for, shape (A,).
        n_items: Number of items.
    """
    states, response, ability = tables.states, tables.response, tables.skills.mean[:, 0]
    of_class = np.column_stack([states.given_class(0), states.given_class(1)])
    count, yes = sums.mass.sum(axis=1), sums.yes[:, 1]
    seen = weight * (ability**2 + 1e-12)

    def mean(values: FloatArray) -> float:
        return float(seen @ values) / float(seen @ count)

    share = mean(np.where(ability < 0, count - yes, yes))
    accuracy = 0.5 + 0.5 * mean(count * np.abs(np.diff(response.sigmoid @ of_class)[:, 0]))
    slack = COMMON_LEAN * mean(count * (response.slope @ of_class).mean(axis=1))
    least = 1 / (n_items + 2)
    found = (share - (1 - accuracy) + np.array([-slack, slack])) / max(2 * accuracy - 1, 1e-6)
    now = logit(np.clip(mean(sums.mass @ states.positive), least, 1 - least))
    low, high = logit(np.clip(found, least, 1 - least)) - now
    return np.array([min(low, 0.0), max(high, 0.0)])


def prevalence_doubt(problem: Problem, skills: Skills, population: Population) -> PrevalenceDoubt:
    """Return what is not known about the annotators of `problem`, by some sweeps from where they are.

    Args:
        problem: What was fitted.
        skills: Annotators as the sweeps left them.
        population: Hyper-parameters in force.
    """
    if not isinstance(problem.prior.prevalence, str):
        return PrevalenceDoubt.none(len(skills.mean))
    driver = problem.driver
    with worker_pool() as pool:
        tables = problem.tables(skills, population, pool)
        swept = driver.sweep(tables, pool, number=0, since=None)
        items = swept.totals.items
        reach = plausible_change(swept.sums, tables, driver.annotator_weight, items)
        far = float(reach[np.argmax(np.abs(reach))])
        if not far:
            return PrevalenceDoubt.none(len(skills.mean))
        target = expit(logit(np.clip(swept.totals.positive / items, 1e-9, 1 - 1e-9)) + far)
        other = replace(problem, prior=OtherPrevalence(float(target)))
        moved = replace(population, log_odds=population.log_odds + far)
        state = CoordinateState.start(skills, moved, FIRST_SWEEPS)
        for _ in range(SWEEPS):
            state = sweep(state, other, pool)
    return PrevalenceDoubt((state.skills.mean - skills.mean) / far, reach)
