"""Simulation of votes, expert labels and model scores with a known truth."""

from __future__ import annotations

from typing import Any

import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from softgold.simulation.experts import ask_experts
from softgold.simulation.graph import Responses, draw_responses
from softgold.simulation.population import Crowd, draw_crowd, draw_items
from softgold.simulation.presets import CLEANPATRICK_ISSUES, Preset, preset_settings
from softgold.simulation.result import Simulation, Truth
from softgold.simulation.scores import model_scores
from softgold.simulation.settings import SimulationSettings, generator
from softgold.tables.experts import ExpertLabels
from softgold.tables.scores import Scores
from softgold.tables.votes import VoteTable


def simulate(
    preset: Preset | None = None, *, issue: str | None = None, scale: float = 1.0, **settings: Any
) -> Simulation:
    """Simulate a study with a known truth.

    Annotator a votes 1 on item i with probability sigmoid(c_a b_i + d_a + u_i): c is the ability (above 0 helpful, 0
    chance, below 0 adversarial), d the lean (above 0 tends to vote yes), b the appearance of the item, and u the pull
    that shifts all votes on it. In the default model `two-class`, b is drawn around +sqrt(3) or -sqrt(3), depending on
    the class z, so that some items look like the other class. In `glad` (CleanPatrick, section 3.3) the class is the
    sign of b, and d = u = 0. Time and memory are linear in the number of votes.

    Args:
        preset: `small` (an invented study of 2,000 items with all kinds of annotators), `cleanpatrick` (sizes,
            prevalences and expert agreement of the CleanPatrick study; one of three issue types per call), or None
            for the defaults of `SimulationSettings`.
        issue: For `cleanpatrick`: `off_topic`, `near_duplicates` (default) or `label_errors`. Otherwise any name;
            simulations with equal seeds and different issues share their annotators.
        scale: Factor on the numbers of items and votes; the number of annotators stays.
        **settings: Fields of `SimulationSettings` that replace those of the preset, `seed` included.

    Returns:
        Votes, truth, expert labels and model scores.

    Example:
        >>> study = simulate(n_items=500, n_annotators=30, prevalence=0.2, seed=7)
        >>> study.votes.n_votes, int(study.truth.label.sum()), study.votes.components.count
        (5000, 100, 1)
        >>> simulate("small").votes.n_items
        2000
    """
    chosen = preset_settings(preset, issue=issue, scale=scale, **settings)
    crowd = draw_crowd(chosen)
    responses = draw_responses(chosen, crowd.activity, generator(chosen, "responses"))
    annotator_codes, seen = pd.factorize(responses.annotators[~responses.abstained])
    truth = _state_truth(chosen, crowd.take(seen))
    item_codes = responses.items[~responses.abstained]
    logits = truth.ability[annotator_codes] * truth.difficulty[item_codes]
    chances = expit(logits + truth.lean[annotator_codes] + truth.pull[item_codes])
    votes = generator(chosen, "votes").random(len(chances)) < chances
    n_abstentions = int(responses.abstained.sum())
    return Simulation(
        votes=VoteTable.from_codes(
            item_codes, annotator_codes, votes, truth.item_ids, truth.annotator_ids, n_abstentions=n_abstentions
        ),
        abstentions=_abstentions(chosen, responses),
        truth=truth,
        experts=_draw_experts(chosen, truth),
        scores=_draw_scores(chosen, truth),
        settings=chosen,
    )


def simulate_cleanpatrick(*, scale: float = 1.0, **settings: Any) -> dict[str, Simulation]:
    """Simulate the three issue types of the preset `cleanpatrick`, by name; they share their annotators.

    Args:
        scale: As in `simulate`.
        **settings: As in `simulate`.

    Example:
        >>> studies = simulate_cleanpatrick(scale=0.1, seed=3)
        >>> {issue: round(float(study.truth.label.mean()), 2) for issue, study in studies.items()}
        {'off_topic': 0.04, 'near_duplicates': 0.21, 'label_errors': 0.32}
    """
    return {issue: simulate("cleanpatrick", issue=issue, scale=scale, **settings) for issue in CLEANPATRICK_ISSUES}


def _state_truth(settings: SimulationSettings, crowd: Crowd) -> Truth:
    items, model = draw_items(settings), settings.vote_model
    return Truth(
        model=settings.model,
        item_ids=_ids("i", range(settings.n_items), settings.n_items),
        label=items.label,
        difficulty=items.difficulty,
        pull=items.pull,
        annotator_ids=_ids("a", crowd.numbers, settings.n_annotators),
        ability=crowd.ability,
        lean=crowd.lean,
        sensitivity=model.yes_rate(crowd.ability, crowd.lean, positive=True),
        specificity=1 - model.yes_rate(crowd.ability, crowd.lean, positive=False),
        kind=pd.Index(crowd.kind, dtype="str"),
    )


def _abstentions(settings: SimulationSettings, responses: Responses) -> pd.DataFrame:
    items, annotators = responses.items[responses.abstained], responses.annotators[responses.abstained]
    return pd.DataFrame(
        {
            "item": _ids("i", items, settings.n_items),
            "annotator": _ids("a", annotators, settings.n_annotators),
        }
    )


def _ids(letter: str, numbers: range | NDArray[Any], total: int) -> pd.Index[str]:
    """Return ids with leading zeros, so that they sort like numbers: i0001, i0002, ..."""
    digits = len(str(total))
    return pd.Index([f"{letter}{number + 1:0{digits}d}" for number in numbers], dtype="str")


def _draw_experts(settings: SimulationSettings, truth: Truth) -> ExpertLabels | None:
    if not settings.expert_errors:
        return None
    rng = generator(settings, "experts")
    items = None
    if settings.n_expert_items is not None:
        items = truth.item_ids[rng.choice(settings.n_items, settings.n_expert_items, replace=False)]
    return ask_experts(truth, items, errors=settings.expert_errors, ability=settings.expert_ability, seed=rng)


def _draw_scores(settings: SimulationSettings, truth: Truth) -> Scores | None:
    if not settings.model_aurocs:
        return None
    return model_scores(truth, settings.model_aurocs, settings.model_ambiguity, generator(settings, "scores"))
