"""Models, posteriors and the registry of models: the contract on one page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_choice, check_positive_int
from softgold.errors import ConvergenceWarning, DataWarning, InputError, SoftgoldWarning, UsageError, warn
from softgold.models.summaries import FitSummary
from softgold.readers import read_votes
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable

FloatArray = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]

DEFAULT_MODEL = "two-class"
ADVERSARIAL = 0.95  # an annotator with a larger probability of being adversarial counts as one

# Every model by name, as "module:attribute"; a model is imported when it is used.
MODELS: dict[str, str] = {
    "two-class": "softgold.models.crowd.models:TWO_CLASS",
    "glad": "softgold.models.crowd.models:GLAD_MODEL",
    "majority": "softgold.models.baselines:MAJORITY",
    "mean": "softgold.models.baselines:MEAN",
}


class Posterior(ABC):
    """Results of a fitted model for items and annotators."""

    item_ids: pd.Index[str]
    annotator_ids: pd.Index[str]

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {len(self.item_ids):,} items, {len(self.annotator_ids):,} annotators"

    @abstractmethod
    def soft_labels(self) -> SoftLabels:
        """Return the soft labels of the fitted items."""

    @abstractmethod
    def annotators(self) -> pd.DataFrame:
        """Return one row per annotator: `annotator`, what the model says, `n_votes`, `agreement`."""

    @abstractmethod
    def predict(self, votes: VoteTable) -> SoftLabels:
        """Return soft labels of the items of `votes`, known or new, with what was learned held fixed."""

    def sample_soft_labels(self, n_samples: int = 1000, *, seed: int = 0) -> SoftLabels:
        """Return soft labels whose p is the share of `n_samples` draws that are positive, CleanPatrick's p-bar.

        In the posterior the class of an item is a coin with its p, so the number of positive draws is binomial: drawn
        as such, it has the same distribution as counting the draws.
        """
        count, labels = check_positive_int(n_samples, "n_samples"), self.soft_labels()
        return replace(labels, p=np.random.default_rng(seed).binomial(count, labels.p) / count)

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything but the ids and the settings as arrays of numbers."""


@dataclass(frozen=True)
class ComponentReport:
    """A connected component of the vote graph.

    Attributes:
        items: Number of items.
        annotators: Number of annotators.
        votes: Number of votes.
        certainty: Probability that its annotators are helpful as fitted, not adversarial; below 1, p mixes both.
    """

    items: int
    annotators: int
    votes: int
    certainty: float


@dataclass(frozen=True)
class Notice:
    """A problem found: by the reader of the votes, in the votes, in telling which annotators help, in convergence."""

    kind: Literal["reader", "data", "orientation", "convergence", "stale"]
    text: str

    @property
    def category(self) -> type[SoftgoldWarning]:
        """The warning that goes with it."""
        return ConvergenceWarning if self.kind == "convergence" else DataWarning


@dataclass(frozen=True)
class Diagnostics:
    """How a fit went.

    Attributes:
        steps: Steps or sweeps of the engine; 0 for models without one.
        sweeps: Sweeps of the coordinate engine, also where they were only the start of `svi`.
        seconds: Time that the fit took.
        converged: Whether it stopped because it had settled.
        reason: Why it stopped, in words.
        elbo: Evidence lower bound after each step or sweep (for `svi`, an estimate).
        learned: Hyper-parameters in force, by name.
        components: Connected components of the vote graph.
        notices: Problems found.
    """

    steps: int = 0
    sweeps: int = 0
    seconds: float = 0.0
    converged: bool = True
    reason: str = "computed directly"
    elbo: tuple[float, ...] = ()
    learned: Mapping[str, float] | None = None
    components: tuple[ComponentReport, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems found, one sentence each."""
        return tuple(notice.text for notice in self.notices)


class FitState(Protocol):
    """State of an interrupted fit."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays of numbers."""
        ...


@dataclass(frozen=True)
class Progress:
    """Where a fit is: the stage, steps done in it, their cap, the bound, and a way to get the state to resume from."""

    stage: str
    step: int
    cap: int
    elbo: float
    snapshot: Callable[[], FitState]


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A fitted model: posterior, diagnostics, settings and votes.

    Attributes:
        model: Name of the model in the registry.
        settings: The model's settings, a frozen dataclass of plain values.
        votes: The votes that it was fitted to.
        posterior: Items and annotators.
        diagnostics: How it went.

    Example:
        >>> from softgold.simulation import simulate
        >>> found = fit(simulate(n_items=50, n_annotators=12, seed=0).votes, model="mean")
        >>> found.model, len(found.posterior.soft_labels()), found.diagnostics.converged
        ('mean', 50, True)
    """

    model: str
    settings: Any
    votes: VoteTable
    posterior: Posterior
    diagnostics: Diagnostics

    def summary(self) -> FitSummary:
        """Return the main facts; they print as a few lines."""
        labels, annotators, found = self.posterior.soft_labels(), self.posterior.annotators(), self.diagnostics
        adversarial = annotators["p_adversarial"] > ADVERSARIAL if "p_adversarial" in annotators else pd.Series([False])
        return FitSummary(
            model=self.model,
            engine=getattr(self.settings, "engine", ""),
            items=self.votes.n_items,
            annotators=self.votes.n_annotators,
            votes=self.votes.n_votes,
            positives=int((labels.p >= 0.5).sum()),
            expected_wrong=float(labels.uncertainty.mean()),
            adversaries=int(adversarial.sum()),
            converged=found.converged,
            reason=found.reason,
            seconds=found.seconds,
            warnings=found.warnings,
        )

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def save(
        self,
        path: str | PathLike[str],
        *,
        samples: int | None = None,
        source: str | None = None,
        force: bool = False,
    ) -> None:
        """Write a run directory, atomically; `softgold.open_run` reads it.

        Args:
            path: Directory to write.
            samples: Write p as the share of this many posterior draws instead of exactly.
            source: File that the votes came from, for the record.
            force: Replace an existing run.
        """
        # Storage comes after the models and knows them; only its name is known here.
        import_module("softgold.runs").save_fit(self, path, samples=samples, source=source, force=force)


class Model(ABC):
    """A way to get soft labels from votes."""

    name: str
    options: tuple[str, ...]

    @abstractmethod
    def settings(self, **options: Any) -> Any:
        """Return the settings, a frozen dataclass of plain values; what is left out has its default."""

    @abstractmethod
    def fit(self, votes: VoteTable, settings: Any, on_progress: OnProgress, resume: FitState | None) -> Fit:
        """Fit the model; `resume` goes on from a state of the same fit."""

    @abstractmethod
    def posterior(
        self, arrays: Arrays, item_ids: pd.Index[str], annotator_ids: pd.Index[str], settings: Any
    ) -> Posterior:
        """Return the posterior that `Posterior.to_arrays` stored; a ValueError says what does not fit together."""

    def warm_start(self, votes: VoteTable, posterior: Posterior) -> FitState | None:
        """Return the state from which a fit of `votes` goes on where an earlier one stood; None to start afresh."""
        return None

    def state(self, arrays: Arrays) -> FitState:
        """Return the state that `FitState.to_arrays` stored."""
        raise UsageError(f"a fit of {self.name} cannot be resumed")

    def checked_settings(self, **options: Any) -> Any:
        """Return the settings; an option that the model does not have raises."""
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            owners = [name for name in MODELS if unknown[0] in find_model(name).options]
            others = f", and {unknown[0]} belongs to {' and '.join(owners)}" if owners else ""
            has = f"it has {', '.join(self.options)}" if self.options else "it has no options"
            raise UsageError(f"{unknown[0]} has no meaning for the model {self.name}; {has}{others}")
        return self.settings(**options)


def find_model(name: str) -> Model:
    """Return a registered model.

    >>> find_model("majority").name
    'majority'
    """
    check_choice(name, tuple(MODELS), "model")
    module, _, attribute = MODELS[name].partition(":")
    model: Model = getattr(import_module(module), attribute)
    return model


def fit(
    votes: VoteTable | Any,
    *,
    model: str = DEFAULT_MODEL,
    on_progress: OnProgress | None = None,
    resume: FitState | None = None,
    start: Posterior | None = None,
    **options: Any,
) -> Fit:
    """Fit a model to votes.

    Args:
        votes: A `VoteTable`, or anything that `read_votes` takes.
        model: "two-class" (the default), "glad" (the published model), "majority" or "mean".
        on_progress: Called after every sweep or step.
        resume: State to go on from: what `Progress.snapshot` gave in an interrupted fit with the same arguments.
        start: Posterior of an earlier fit with some of these votes, to start from where it stood.
        **options: Settings of the model. Both crowd models take `engine` ("svi" or "coordinate"), `seed`, `max_steps`,
            `batch_items` and `device`; "two-class" takes `prevalence`, "glad" takes `prior`, `init`, `ability_mean`,
            `ability_scale` and `difficulty_scale`.

    Returns:
        The fit, with `.posterior` and `.diagnostics`.

    Example:
        >>> from softgold.simulation import simulate
        >>> study = simulate(n_items=200, n_annotators=20, seed=0)
        >>> result = fit(study.votes, engine="coordinate")
        >>> result.posterior.soft_labels().p[:4].round(2).tolist(), study.truth.label[:4].tolist()
        ([0.87, 0.16, 0.24, 0.28], [1, 0, 0, 0])
    """
    chosen = find_model(model)
    settings = chosen.checked_settings(**options)
    table = votes if isinstance(votes, VoteTable) else read_votes(votes)
    if table.n_votes == 0:
        raise InputError("the table has no votes to fit; it needs at least one vote that is not an abstention")
    if resume is None and start is not None:
        resume = chosen.warm_start(table, start)
    result = chosen.fit(table, settings, on_progress or (lambda progress: None), resume)
    for notice in result.diagnostics.notices:
        if notice.kind != "reader":  # the reader has warned already
            warn(notice.text, notice.category)
    return result
