"""A toy segmentation study with known causes of uncertainty (ValUES, appendix B.1).

Blurred spheres whose border three raters draw at different places: their uncertainty is aleatoric. Shifted cases -
cubes, spheres of another grey, spheres that are partly outside - on which the members of the ensemble disagree: their
uncertainty is epistemic. The samples are drawn from an ensemble that is known, so that each measure can be judged by
what was put in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.special import expit, logit

from softgold.checks import check_in_range, check_positive_int
from softgold.errors import UsageError
from softgold.output import atomic_directory, write_table

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Kind = Literal["blurred", "clear", "cube", "grey", "outside"]

SHIFTS: tuple[Kind, ...] = ("cube", "grey", "outside")
RATER_VOLUMES = (0.10, 0.55, 1.0)
"""What the three raters segment of a blurred sphere, as shares of the largest."""


@dataclass(frozen=True)
class ToySettings:
    """What to draw; the numbers of cases are those of that paper's scenario 3b.

    Attributes:
        n_validation: Cases for threshold and calibration, half of them blurred.
        n_blurred: I.i.d. test cases with an ambiguous border.
        n_clear: I.i.d. test cases without.
        n_shifted: Shifted test cases, cubes, other greys and partly outside in turn.
        n_members: Members of the ensemble.
        size: Length of the image along each axis.
        dimensions: 2 or 3.
        known_spread: Standard deviation of the members' log odds where the model knows the data.
        shifted_spread: The same within a shifted object, which members take for the object or not.
        error_rate: Chance that a member gives to the class that no rater saw.
    """

    n_validation: int = 10
    n_blurred: int = 21
    n_clear: int = 21
    n_shifted: int = 21
    n_members: int = 10
    size: int = 32
    dimensions: int = 3
    known_spread: float = 0.2
    shifted_spread: float = 6.0
    error_rate: float = 0.02

    def __post_init__(self) -> None:
        for name in ("n_validation", "n_blurred", "n_clear", "n_shifted"):
            check_positive_int(getattr(self, name), name, minimum=0)
        check_positive_int(self.n_members, "n_members", minimum=2)
        check_positive_int(self.size, "size", minimum=12)
        check_in_range(self.error_rate, 0, 0.5, "error_rate", ends="open")
        if self.dimensions not in (2, 3):
            raise UsageError(f"dimensions must be 2 or 3, got {self.dimensions!r}")
        if min(self.known_spread, self.shifted_spread) < 0:
            raise UsageError("known_spread and shifted_spread must not be negative")


@dataclass(frozen=True, eq=False)
class ToyCase:
    """One case.

    Attributes:
        name: Its name.
        split: `validation`, `iid` or `ood`.
        kind: What was drawn.
        image: Grey values, shape (size, ...).
        probabilities: Softmax of the members, shape (S, 2, size, ...), float32.
        masks: Segmentations of the three raters, shape (3, size, ...), uint8.
    """

    name: str
    split: Literal["validation", "iid", "ood"]
    kind: Kind
    image: FloatArray
    probabilities: NDArray[np.float32]
    masks: NDArray[np.uint8]


def toy_cases(settings: ToySettings | None = None, *, seed: int = 0) -> Iterator[ToyCase]:
    """Draw the cases of a toy study one at a time.

    Example:
        >>> cases = list(toy_cases(ToySettings(n_validation=0, n_blurred=1, n_clear=0, n_shifted=1, size=16)))
        >>> [(case.kind, case.split, case.probabilities.shape) for case in cases]
        [('blurred', 'iid', (10, 2, 16, 16, 16)), ('cube', 'ood', (10, 2, 16, 16, 16))]
        >>> [int(mask.sum() < cases[0].masks[2].sum()) for mask in cases[0].masks]
        [1, 1, 0]
    """
    settings = settings or ToySettings()
    rng = np.random.default_rng(seed)
    for place in range(settings.n_validation):
        kind: Kind = "blurred" if place % 2 == 0 else "clear"
        yield replace(_draw(kind, settings, rng, f"validation{place:03d}"), split="validation")
    for place in range(settings.n_blurred):
        yield _draw("blurred", settings, rng, f"blurred{place:03d}")
    for place in range(settings.n_clear):
        yield _draw("clear", settings, rng, f"clear{place:03d}")
    for place in range(settings.n_shifted):
        yield _draw(SHIFTS[place % len(SHIFTS)], settings, rng, f"shifted{place:03d}")


def write_toy_study(
    folder: str | os.PathLike[str], settings: ToySettings | None = None, *, seed: int = 0, force: bool = False
) -> None:
    """Write a toy study atomically: one `.npz` per case, and `splits.csv` with `case, split, kind`."""
    rows = []
    with atomic_directory(folder, force=force, marker="splits.csv") as target:
        for case in toy_cases(settings, seed=seed):
            np.savez_compressed(
                target / f"{case.name}.npz",
                probabilities=case.probabilities,
                masks=case.masks,
                image=case.image.astype(np.float32),
            )
            rows.append((case.name, case.split, case.kind))
        write_table(pd.DataFrame(rows, columns=["case", "split", "kind"]), target / "splits.csv")


def _draw(kind: Kind, settings: ToySettings, rng: np.random.Generator, name: str) -> ToyCase:
    radius = settings.size * rng.uniform(0.22, 0.3)
    centre = _centre(kind, radius, settings, rng)
    raters = _raters(kind, centre, radius, settings)
    image = _image(kind, raters, settings, rng)
    probabilities = _members(kind, raters, settings, rng)
    split: Literal["iid", "ood"] = "ood" if kind in SHIFTS else "iid"
    return ToyCase(name, split, kind, image, probabilities, raters.astype(np.uint8))


def _centre(kind: Kind, radius: float, settings: ToySettings, rng: np.random.Generator) -> FloatArray:
    # Spheres that the model knows lie wholly inside; the shifted kind crosses the edge along the first axis.
    centre = rng.uniform(radius + 1, settings.size - radius - 1, settings.dimensions)
    if kind == "outside":
        centre[0] = rng.uniform(0, radius / 2)
    return centre


def _raters(kind: Kind, centre: FloatArray, radius: float, settings: ToySettings) -> BoolArray:
    """Masks of the three raters, shape (3, size, ...)."""
    grid = np.stack(np.meshgrid(*[np.arange(settings.size)] * settings.dimensions, indexing="ij"), axis=-1)
    offset = grid - centre
    if kind == "cube":
        shape = np.abs(offset).max(axis=-1) <= radius * 0.8
        return np.stack([shape] * len(RATER_VOLUMES))
    distance = np.sqrt((offset**2).sum(axis=-1))
    volumes = RATER_VOLUMES if kind == "blurred" else (1.0,) * len(RATER_VOLUMES)
    return np.stack([distance <= radius * volume ** (1 / settings.dimensions) for volume in volumes])


def _image(kind: Kind, raters: BoolArray, settings: ToySettings, rng: np.random.Generator) -> FloatArray:
    grey = rng.uniform(0.3, 0.6) if kind in ("grey", "cube") else 1.0
    noise = 0.1 * rng.random(raters.shape[1:])
    if kind == "blurred":
        return np.asarray(gaussian_filter(raters[0].astype(np.float64), settings.size / 12) + noise)
    return np.asarray(grey * raters[-1] + noise)


def _members(kind: Kind, raters: BoolArray, settings: ToySettings, rng: np.random.Generator) -> NDArray[np.float32]:
    """Softmax of each member: the log odds of the raters' share, and an opinion of its own about the object."""
    share = np.clip(raters.mean(axis=0), settings.error_rate, 1 - settings.error_rate)
    spread = settings.shifted_spread if kind in SHIFTS else settings.known_spread
    opinion = rng.normal(0, spread, (settings.n_members, *[1] * settings.dimensions))
    background = rng.normal(0, settings.known_spread, opinion.shape)
    foreground = expit(logit(share) + np.where(raters[-1], opinion, background)).astype(np.float32)
    return np.stack([1 - foreground, foreground], axis=1)
