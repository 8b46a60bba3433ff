"""What is asked of label convergence, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from softgold.checks import check_choice
from softgold.imaging.detection.lines import Line
from softgold.imaging.detection.precision import Confidence
from softgold.imaging.detection.subsets import SubsetInterval

__all__ = ["AlphaKind", "Convergence", "ConvergenceSettings", "InferredInterval"]

AlphaKind = Literal["mean_image", "pooled"]


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
        thresholds: One row a threshold: `threshold, alpha_mean_image, alpha_pooled`, and where every image has two
            raters `map_first_truth, map_second_truth, map`.
        alpha: Alpha of the full data, averaged over the thresholds.
        map: Mean average precision between the two raters on the full data; None unless every image has two.
        alpha_interval: Intervals of alpha from subsets.
        map_interval: Intervals of the mean average precision from subsets; None unless every image has two raters.
        published: mAP inferred from alpha by the published line.
        refitted: mAP inferred by a line fitted on this data; None if its points do not determine a line.
        pairs: One row a pair of raters: `rater_a, rater_b, n_images, alpha, map`, averaged over the thresholds.
        subsets: One row a subset: `alpha`, and `map` where every image has two raters.
        basis: What the upper bound rests on.
        upper_bound: Upper end of the 95 % interval of the full data.
        subset_upper_bound: Upper end of the 95 % interval of subsets, which the published tables give.
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
    basis: str
    upper_bound: float
    subset_upper_bound: float

    @property
    def sentence(self) -> str:
        """The upper bound in words."""
        return (
            f"A model above {100 * self.upper_bound:.1f} mAP is fitting one annotator's habits "
            f"(upper end of the 95 % interval of the full data, from {self.basis}; subsets of "
            f"{100 * self.alpha_interval.fraction:.0f} % of the images reach {100 * self.subset_upper_bound:.1f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without the subsets; undefined numbers stay NaN."""
        values = {name: value for name, value in vars(self).items() if name != "subsets"}
        tables = {name: values[name].to_dict(orient="records") for name in ("thresholds", "pairs")}
        return {**values, **tables, "sentence": self.sentence}
