"""The coordinate engine from start to end: sweeps, and components that came out the wrong way round turned over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softgold.models.base import ComponentReport, Diagnostics, Notice, OnProgress, Progress
from softgold.models.crowd import coordinate
from softgold.models.crowd.acceleration import History
from softgold.models.crowd.coordinate import CoordinateState, Problem
from softgold.models.crowd.mirror import Images, VoteGraph
from softgold.models.crowd.population import Population
from softgold.models.crowd.settings import CrowdSettings

MOST_TURNS = 3


def sweep_cap(settings: CrowdSettings) -> int:
    """Return the cap on sweeps that the settings give."""
    given = settings.max_steps if settings.engine == "coordinate" else None
    return coordinate.MAX_SWEEPS if given is None else given


@dataclass(frozen=True, eq=False)
class Ascent:
    """A fit by sweeps, wherever its chunks live.

    Attributes:
        problem: What is fitted.
        cap: Most sweeps.
        report: Called after every sweep.
        weigh: Compares the images of each component at a state.
        kinds: Kind of each annotator, shape (A,).
        graph: The components.
    """

    problem: Problem
    cap: int
    report: OnProgress
    weigh: Callable[[CoordinateState], Images]
    kinds: NDArray[np.intp]
    graph: VoteGraph

    def run(self, state: CoordinateState) -> CoordinateState:
        """Sweep to the end, turning components that come out the wrong way round."""
        for turn in range(1, MOST_TURNS + 1):
            state = coordinate.run(state, self.problem, max_sweeps=self.cap, on_sweep=self.on_sweep)
            images = self.weigh(state)
            if images.upright.all() or state.sweep >= self.cap:
                break
            turned = np.zeros(len(state.skills.mean), dtype=bool)
            turned[self.kinds[~images.upright[self.graph.annotators]]] = True
            population = replace(state.population, log_odds=self.problem.prior.start().log_odds)
            skills = state.skills.reversed(turned)
            # What turns back every time has settled all the same, and stays the likelier way round.
            change, ended = (np.inf, 0) if turn < MOST_TURNS else (state.change, state.ended)
            state = replace(state, skills=skills, population=population, history=History(), change=change, ended=ended)
        return state

    def on_sweep(self, state: CoordinateState) -> None:
        """Report a sweep."""
        bound = state.elbo[-1] if state.elbo else np.nan
        self.report(Progress("coordinate", state.sweep, self.cap, bound, lambda: state))


def course_of(state: CoordinateState) -> Diagnostics:
    """Return how the sweeps went."""
    reason = "the soft labels and the bound have settled" if state.settled else "the cap on sweeps was reached"
    return Diagnostics(state.sweep, state.sweep, converged=state.settled, reason=reason, elbo=state.elbo)


def concluded(
    course: Diagnostics,
    population: Population,
    components: tuple[ComponentReport, ...],
    notes: tuple[str, ...],
    positives: tuple[float, float],
    started: float,
) -> Diagnostics:
    """Return the diagnostics of a whole fit.

    Args:
        course: How the engine went.
        population: Hyper-parameters in force.
        components: Connected components of the vote graph.
        notes: What the reader decided.
        positives: Number of positive votes and of all votes.
        started: When the fit began, by `time.perf_counter`.
    """
    notices = (*(Notice("reader", note) for note in notes), *_data_notices(*positives, components))
    if not course.converged:
        text = f"not converged: {course.reason} ({course.steps}); raise max_steps (--max-steps)"
        notices = (*notices, Notice("convergence", text))
    seconds = time.perf_counter() - started
    return replace(course, learned=population.named(), components=components, notices=notices, seconds=seconds)


def _data_notices(positives: float, n_votes: float, components: tuple[ComponentReport, ...]) -> tuple[Notice, ...]:
    """Return the problems of the votes that limit the fit, given the number of positive votes and of all votes."""
    found = []
    if positives in {0, n_votes}:
        word = "positive" if positives else "negative"
        text = f"every vote is {word}: nothing in the table tells annotators or items apart, and p rests on the prior"
        found.append(Notice("data", text))
    alone = [part for part in components if part.annotators == 1]
    if alone:
        text = "a single annotator, whom nothing can check: p there is only as good as the assumption that they help"
        found.append(Notice("orientation", f"{_count(alone, components)} {text}"))
    torn = [part for part in components if part.certainty < 1 and part.annotators > 1]
    if torn:
        least = min(part.certainty for part in torn)
        text = (
            "annotators who divide into camps, and nothing tells which camp is right: p there mixes both readings "
            f"(weight of the likelier one from {least:.2f}) and is drawn towards 0.5"
        )
        found.append(Notice("orientation", f"{_count(torn, components)} {text}"))
    return tuple(found)


def _count(some: list[ComponentReport], components: tuple[ComponentReport, ...]) -> str:
    items = sum(part.items for part in some)
    return f"{len(some)} of {len(components)} connected components ({items} items) have"
