"""Settings of a simulated study, with their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from softgold.checks import check_choice, check_in_range, check_positive_int
from softgold.errors import UsageError
from softgold.simulation.vote_models import LARGEST, MODELS, ModelName, VoteModel

IntArray = NDArray[np.int64]
VoteDistribution = Literal["fixed", "poisson", "long_tail"]

MOST_VOTES = 1_000_000_000


@dataclass(frozen=True)
class SimulationSettings:
    """Settings of `simulate`.

    Settings of one model raise with the other. None stands for the model's default (`TwoClassModel`, `GladModel`).

    Attributes:
        model: `two-class` (class, appearance, pull, lean) or `glad` (published model: the class is the sign of b).
        n_items: Number of items I, at least 2.
        n_annotators: Number of annotators A; each votes at least once.
        prevalence: Share of positive items, exact up to rounding; each class has at least one item.
        ability_mean, ability_sd: See `VoteModel`; default 1, and 0.7 (two-class) or 1 (glad).
        tricky_spread, pull_sd, lean_mean, lean_sd: Two-class only, see `TwoClassModel`; default 0.8, 0.6, 0, 0.5.
        difficulty_scale, positive_ease: Glad only, see `GladModel`; default 3 and 1.
        adversarial_share: Share of annotators with c < 0 (the sign of their ability is flipped).
        random_share: Share of annotators with c = 0, whose votes do not depend on b.
        votes_per_item: Mean number of responses (votes and abstentions) per item; the total is exact up to rounding.
        vote_distribution: `fixed` (as equal as possible), `poisson` (1 + Poisson) or `long_tail` (log-normal, with a
            few items of one response and a few of about twenty times the usual number).
        activity_spread: Standard deviation of the log of annotators' activity; 0 makes all equally active.
        n_components: Exact number of connected components of the vote graph.
        abstention_rate: Share of responses that are abstentions.
        expert_errors: Flat error rate of each expert; empty for no experts.
        expert_ability: Ability k of the experts in `expert_error`; None for flat errors only.
        n_expert_items: Number of items labelled by the experts, drawn at random; None for all.
        model_aurocs: AUROC against the true class of each simulated model, in [0.5, 1); empty for no models.
        model_ambiguity: Share in [0, 1] by which each model's errors concentrate on ambiguous items (`model_scores`).
        issue: Name of the question. Simulations with equal seeds and different issues share only their annotators
            (ids, abilities, leans, activity).
        seed: Seed of all random numbers.
    """

    model: ModelName = "two-class"
    n_items: int = 1000
    n_annotators: int = 100
    prevalence: float = 0.3
    tricky_spread: float | None = None
    pull_sd: float | None = None
    difficulty_scale: float | None = None
    positive_ease: float | None = None
    ability_mean: float | None = None
    ability_sd: float | None = None
    lean_mean: float | None = None
    lean_sd: float | None = None
    adversarial_share: float = 0.0
    random_share: float = 0.0
    votes_per_item: float = 10.0
    vote_distribution: VoteDistribution = "poisson"
    activity_spread: float = 1.0
    n_components: int = 1
    abstention_rate: float = 0.0
    expert_errors: Sequence[float] = (0.01, 0.01, 0.01)
    expert_ability: float | None = 10.0
    n_expert_items: int | None = None
    model_aurocs: Sequence[float] = (0.9, 0.8)
    model_ambiguity: Sequence[float] = (0.5, 0.5)
    issue: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("expert_errors", "model_aurocs", "model_ambiguity"):
            object.__setattr__(self, name, _as_tuple(getattr(self, name), name))
        _check_model(self)
        for name, value in asdict(self.vote_model).items():
            object.__setattr__(self, name, value)
        _check_population(self)
        _check_votes(self)
        _check_connected(self)
        _check_experts(self)
        _check_models(self)

    @property
    def vote_model(self) -> VoteModel:
        """The vote model with its settings."""
        given = {name: getattr(self, name) for name in _own_settings(self.model)}
        return MODELS[self.model](**{name: value for name, value in given.items() if value is not None})

    @property
    def component_items(self) -> IntArray:
        """Items per component, as equal as possible, shape (K,)."""
        return _even_sizes(self.n_items, self.n_components)

    @property
    def component_annotators(self) -> IntArray:
        """Annotators per component, shape (K,)."""
        return _even_sizes(self.n_annotators, self.n_components)

    @property
    def component_responses(self) -> IntArray:
        """Responses per component, shape (K,)."""
        responses: IntArray = np.rint(self.votes_per_item * self.component_items).astype(np.int64)
        return responses

    @property
    def component_links(self) -> IntArray:
        """Votes of a spanning tree of each component, shape (K,)."""
        return self.component_items + self.component_annotators - 1

    @property
    def n_abstentions(self) -> int:
        """Number of abstentions."""
        return round(self.abstention_rate * int(self.component_responses.sum()))


SETTING_NAMES = tuple(field.name for field in fields(SimulationSettings))


def generator(settings: SimulationSettings, stream: str, *, shared: bool = False) -> np.random.Generator:
    """Return the random generator of one part of the study.

    Each part has its own, so that more experts, say, do not change the votes.

    Args:
        settings: Settings with the seed and the issue.
        stream: Name of the part.
        shared: Whether all issues of one seed share this part.
    """
    name = stream if shared else f"{settings.issue}/{stream}"
    return np.random.default_rng([settings.seed, crc32(name.encode())])


def _even_sizes(total: int, parts: int) -> IntArray:
    sizes = np.full(parts, total // parts, dtype=np.int64)
    sizes[: total % parts] += 1
    return sizes


def _as_tuple(values: Any, name: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise UsageError(f"{name} must be a list of numbers, got {values!r}")
    return tuple(values)


def _own_settings(model: ModelName) -> tuple[str, ...]:
    """Return the names of the model's settings."""
    return tuple(field.name for field in fields(MODELS[model]))


def _check_model(settings: SimulationSettings) -> None:
    check_choice(settings.model, get_args(ModelName), "model")
    own = _own_settings(settings.model)
    for other in MODELS:
        for name in _own_settings(other):
            if name not in own and getattr(settings, name) is not None:
                raise UsageError(
                    f"{name} is a setting of the model {other!r}, but the model is {settings.model!r}; "
                    f"leave {name} out or use the model {other!r}"
                )


def _check_population(settings: SimulationSettings) -> None:
    check_positive_int(settings.seed, "seed", minimum=0)
    check_positive_int(settings.n_items, "n_items", minimum=2)
    check_positive_int(settings.n_annotators, "n_annotators")
    check_in_range(settings.prevalence, 0, 1, "prevalence", ends="open")
    shares = [check_in_range(getattr(settings, name), 0, 1, name) for name in ("adversarial_share", "random_share")]
    if sum(shares) > 1:
        raise UsageError(f"adversarial_share + random_share must be at most 1, got {shares[0]} + {shares[1]}")


def _check_votes(settings: SimulationSettings) -> None:
    check_choice(settings.vote_distribution, get_args(VoteDistribution), "vote_distribution")
    check_in_range(settings.activity_spread, 0, 5, "activity_spread")
    check_in_range(settings.abstention_rate, 0, 0.99, "abstention_rate")
    components = check_positive_int(settings.n_components, "n_components")
    smaller = min(settings.n_items, settings.n_annotators)
    if components > smaller:
        raise UsageError(
            f"n_components must be at most {smaller}, because each needs an item and an annotator; got {components}"
        )
    check_in_range(settings.votes_per_item, 1, LARGEST, "votes_per_item")
    if settings.votes_per_item * settings.n_items > MOST_VOTES:
        raise UsageError(f"votes_per_item times n_items must be at most {MOST_VOTES:,}")
    available = settings.n_annotators // components
    if settings.votes_per_item > available:
        place = "" if components == 1 else f" in each of {components} components"
        raise UsageError(
            f"votes_per_item must be at most the number of annotators{place}, {available}, "
            f"got {settings.votes_per_item}"
        )


def _check_connected(settings: SimulationSettings) -> None:
    responses, links = settings.component_responses, settings.component_links
    worst = int(np.argmin(responses - links))
    if responses[worst] < links[worst]:
        raise UsageError(
            f"{responses[worst]} votes are too few to link {settings.component_items[worst]} items and "
            f"{settings.component_annotators[worst]} annotators in one component, which needs {links[worst]}; "
            "raise votes_per_item or n_components, or lower n_annotators"
        )
    kept = responses.sum() - settings.n_abstentions
    if kept < links.sum():
        raise UsageError(
            f"abstention_rate {settings.abstention_rate} leaves {kept} votes, and {links.sum()} are needed so that "
            "every component stays connected; lower it or raise votes_per_item"
        )


def _check_experts(settings: SimulationSettings) -> None:
    for rate in settings.expert_errors:
        check_in_range(rate, 0, 1, "each of expert_errors")
    if settings.expert_ability is not None:
        check_in_range(settings.expert_ability, 0, LARGEST, "expert_ability", ends="open")
    if settings.n_expert_items is not None:
        number = check_positive_int(settings.n_expert_items, "n_expert_items")
        if number > settings.n_items:
            raise UsageError(f"n_expert_items must be at most n_items, {settings.n_items}, got {number}")


def _check_models(settings: SimulationSettings) -> None:
    if len(settings.model_aurocs) != len(settings.model_ambiguity):
        raise UsageError(
            f"model_aurocs and model_ambiguity must have one entry per model, got {len(settings.model_aurocs)} "
            f"and {len(settings.model_ambiguity)}"
        )
    for auroc in settings.model_aurocs:
        if check_in_range(auroc, 0.5, 1, "each of model_aurocs") == 1:
            raise UsageError("each of model_aurocs must be below 1, got 1")
    for share in settings.model_ambiguity:
        check_in_range(share, 0, 1, "each of model_ambiguity")
