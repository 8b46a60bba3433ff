"""The options of the crowd models: what decides the result of a fit, besides the votes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal, get_args

from softgold.checks import check_choice, check_positive_int
from softgold.errors import UsageError
from softgold.models.crowd.priors import CrowdPrior, GladPrior, Prevalence, TwoClassPrior

Engine = Literal["svi", "coordinate"]
Init = Literal["coordinate", "paper"]


@dataclass(frozen=True)
class CrowdSettings(ABC):
    """What decides the result of a fit, besides the votes.

    Attributes:
        engine: "svi" (Pyro) or "coordinate" (deterministic, no torch).
        seed: Seed of `svi`; the coordinate engine draws no random numbers.
        max_steps: Cap on steps (`svi`) or sweeps (`coordinate`); None for the engine's own.
        batch_items: Items per step of `svi`; None for as many as have about 10,000 votes.
        device: Where `svi` computes.
    """

    engine: Engine = "svi"
    seed: int = 0
    max_steps: int | None = None
    batch_items: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_choice(self.engine, get_args(Engine), "engine")
        check_positive_int(self.seed, "seed", minimum=0)
        for name in ("max_steps", "batch_items"):
            if getattr(self, name) is not None:
                check_positive_int(getattr(self, name), name)
        if not re.fullmatch(r"cpu|cuda(:\d+)?", self.device):
            raise UsageError(f"device must be cpu or cuda, got {self.device!r}")
        for field in fields(self) if self.engine == "coordinate" else ():
            value = getattr(self, field.name)
            if field.name in {"batch_items", "device", "init"} and value != field.default:
                raise UsageError(f"{field.name}={value!r} has no meaning for the coordinate engine")
        _ = self.crowd_prior  # which checks its own options

    @property
    @abstractmethod
    def crowd_prior(self) -> CrowdPrior:
        """The prior over (z, b)."""


@dataclass(frozen=True)
class TwoClassSettings(CrowdSettings):
    """Settings of the two-class model.

    Attributes:
        prevalence: How the share of positive items is found; see `TwoClassPrior`.
    """

    prevalence: Prevalence | float = "able"

    @property
    def crowd_prior(self) -> TwoClassPrior:
        """The mixture of two classes."""
        return TwoClassPrior(self.prevalence)


@dataclass(frozen=True)
class GladSettings(CrowdSettings):
    """Settings of the published model.

    Attributes:
        prior: "default" (sigma_b learned) or "paper" (sigma_b = 1000).
        init: Where `svi` starts: "coordinate", or "paper" to run the published recipe as published.
        ability_mean: Prior mean of the abilities, in place of 0.
        ability_scale: Prior spread of the abilities, in place of 1.
        difficulty_scale: Prior spread of the difficulties, fixed at this.
    """

    prior: str = "default"
    init: Init = "coordinate"
    ability_mean: float | None = None
    ability_scale: float | None = None
    difficulty_scale: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.init, get_args(Init), "init")
        super().__post_init__()
        if self.init == "paper" and self.batch_items is not None:
            raise UsageError("the published recipe (init='paper') has no batches; leave batch_items out")

    @property
    def crowd_prior(self) -> GladPrior:
        """The Normal prior of the signed difficulty."""
        given = ("ability_mean", "ability_scale", "difficulty_scale")
        return GladPrior.named(self.prior, **{name: getattr(self, name) for name in given})
