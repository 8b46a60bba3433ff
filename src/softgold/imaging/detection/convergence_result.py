"""What is asked of label convergence, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from softgold.checks import check_choice
from softgold.imaging.detection.lines import Line
from softgold.imaging.detection.precision import Confidence
from softgold.imaging.detection.subsets import SubsetInterval

__all__ = ["AlphaKind", "Basis", "Convergence", "ConvergenceSettings", "InferredInterval", "UpperBound"]

AlphaKind = Literal["mean_image", "pooled"]
Basis = Literal["two raters", "refitted line", "published line"]


@dataclass(frozen=True)
class ConvergenceSettings:
    """How label convergence is measured.

    Attributes:
        confidence: What stands for the confidence that raters do not state; see `modified_map`.
        alpha: Alpha per image, averaged, or of all units pooled.
        empty: What an image is on which no rater drew; see `detection_alpha`.
        legacy: Alpha as the published code has it.
        fraction: Share of the images in a subset.
        n_subsets: Number of subsets.
        seed: Seed of the subsets.
    """

    confidence: Confidence = "tied"
    alpha: AlphaKind = "mean_image"
    empty: Literal["one", "skip"] = "one"
    legacy: bool = False
    fraction: float = 0.1
    n_subsets: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.confidence, ("tied", "coco"), "confidence")
        check_choice(self.alpha, ("mean_image", "pooled"), "alpha")
        check_choice(self.empty, ("one", "skip"), "empty")


@dataclass(frozen=True)
class InferredInterval:
    """Mean average precision inferred from alpha by a line.

    Attributes:
        line: The line.
        raw: Intervals of the line's own values, which can leave [0, 1].
        clipped: Intervals of the same values within [0, 1].
    """

    line: Line
    raw: SubsetInterval
    clipped: SubsetInterval


@dataclass(frozen=True)
class UpperBound:
    """How high a model can score before it fits one rater's habits.

    Attributes:
        basis: What it rests on: the mAP between the "two raters" of every image, a "refitted line" of this data that
            its points determine well, or else the "published line".
        interval: Intervals of that mAP.
    """

    basis: Basis
    interval: SubsetInterval


@dataclass(frozen=True, eq=False)
class Convergence:
    """What the raters' disagreement leaves for a model to reach.

    Attributes:
        settings: How it was measured.
        n_images: Images.
        n_annotations: Annotations.
        raters: Rater ids.
        masks: Whether masks were compared, not boxes.
        subset_size: Images in a subset.
        thresholds: One row per threshold: `threshold, alpha_mean_image, alpha_pooled`, and where every image has two
            raters `map_first_truth, map_second_truth, map`.
        alpha: Alpha of the full data, averaged over the thresholds.
        map: Mean average precision between the two raters on the full data; None unless every image has two.
        alpha_interval: Intervals of alpha from subsets.
        map_interval: Intervals of the mean average precision from subsets; None unless every image has two raters.
        published: mAP inferred from alpha by the published line.
        refitted: mAP inferred by a line fitted on this data; None if its points do not determine a line.
        pairs: One row per pair of raters: `rater_a, rater_b, n_images, alpha, map`, averaged over the thresholds.
        subsets: One row per subset: `alpha`, and `map` where every image has two raters.
        bound: The upper bound, with what it rests on.
    """

    settings: ConvergenceSettings
    n_images: int
    n_annotations: int
    raters: tuple[str, ...]
    masks: bool
    subset_size: int
    thresholds: pd.DataFrame
    alpha: float
    map: float | None
    alpha_interval: SubsetInterval
    map_interval: SubsetInterval | None
    published: InferredInterval
    refitted: InferredInterval | None
    pairs: pd.DataFrame
    subsets: pd.DataFrame
    bound: UpperBound

    @property
    def upper_bound(self) -> float:
        """Upper end of the 95 % interval of the full data."""
        return min(self.bound.interval.full_normal[1], 1.0)

    @property
    def subset_upper_bound(self) -> float:
        """Upper end of the 95 % interval of subsets, which the published tables give."""
        return min(self.bound.interval.normal[1], 1.0)

    @property
    def sentence(self) -> str:
        """The upper bound in words."""
        if self.bound.basis == "published line":
            return self._sentence_of_pairs()
        return (
            f"A model above {100 * self.upper_bound:.1f} mAP is fitting one annotator's habits "
            f"(upper end of the 95 % interval of the full data, from {self._basis_words()}; subsets of "
            f"{100 * self.alpha_interval.fraction:.0f} % of the images reach {100 * self.subset_upper_bound:.1f})."
        )

    def _basis_words(self) -> str:
        if self.bound.basis == "two raters" or self.refitted is None:
            return "the mAP between the two raters"
        return (
            f"alpha by a line fitted on {len(self.pairs)} pairs of raters, {self.refitted.line.n_points} points, "
            f"R^2 {self.refitted.line.r2:.2f}"
        )

    def _sentence_of_pairs(self) -> str:
        """Name what was measured and what was inferred: a line from elsewhere is no measurement of this data."""
        scores = 100 * self.pairs["map"]
        n_pairs = "the pair" if len(scores) == 1 else f"{len(scores)} pairs"
        return (
            f"Measured directly, raters reach {scores.mean():.1f} mAP against each other (mean over {n_pairs} of "
            f"raters, from {scores.min():.1f} to {scores.max():.1f}); the published line infers "
            f"{100 * self.published.clipped.mean:.1f} mAP from alpha, at most {100 * self.upper_bound:.1f} "
            "(upper end of the 95 % interval of the full data). A model above both is fitting one annotator's habits."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without the subsets; undefined numbers stay NaN."""
        values = {name: value for name, value in vars(self).items() if name not in ("subsets", "bound")}
        tables = {name: values[name].to_dict(orient="records") for name in ("thresholds", "pairs")}
        words = {name: getattr(self, name) for name in ("upper_bound", "subset_upper_bound", "sentence")}
        return {**values, **tables, "basis": self.bound.basis, **words}
