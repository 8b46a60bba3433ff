"""Settings and result of label convergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from softgold.checks import check_choice
from softgold.imaging.detection.lines import Line
from softgold.imaging.detection.precision import Confidence
from softgold.imaging.detection.subsets import SubsetInterval

AlphaKind = Literal["mean_image", "pooled"]
Basis = Literal["two raters", "refitted line", "published line"]


@dataclass(frozen=True)
class ConvergenceSettings:
    """How label convergence is measured.

    Attributes:
        confidence: How annotations are ranked, since raters state no confidence; see `modified_map`.
        alpha: Alpha per image, averaged, or of all units pooled.
        empty: How an image on which no rater drew counts; see `detection_alpha`.
        legacy: Alpha as in the published code.
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
class TwoRaters:
    """Mean average precision measured between the two raters of every image.

    Attributes:
        map: The value on the full data.
        interval: Its intervals from subsets.
    """

    map: float
    interval: SubsetInterval


@dataclass(frozen=True)
class RaterPairs:
    """Mean average precision measured between pairs of raters, where some image has more than two.

    Attributes:
        n_pairs: Pairs of raters who share images.
        mean: Mean over the pairs.
        low: The pair that agrees least.
        high: The pair that agrees most.
    """

    n_pairs: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class NoLine:
    """Points through which no line can be fitted: fewer than three, or all with the same alpha."""

    n_points: int


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
        basis: The mAP between the "two raters" of every image; a "refitted line" that enough points of this data
            determine (`Line.is_determined`); or else the "published line".
        interval: Intervals of that mAP.
    """

    basis: Basis
    interval: SubsetInterval


@dataclass(frozen=True, eq=False)
class Convergence:
    """How high a model can score on labels on which the raters disagree.

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
        alpha_interval: Intervals of alpha from subsets.
        measured: Mean average precision measured between raters: the two of every image, or pairs of them.
        published: mAP inferred from alpha by the published line.
        refitted: mAP inferred by a line fitted on this data: on the subsets at each threshold where every image has
            two raters, else on the pairs of raters, one point per pair.
        pairs: One row per pair of raters: `rater_a, rater_b, n_images, alpha, map`, averaged over the thresholds.
        subsets: One row per subset: `alpha`, and `map` where every image has two raters.
        bound: The upper bound, and what it is based on.
    """

    settings: ConvergenceSettings
    n_images: int
    n_annotations: int
    raters: tuple[str, ...]
    masks: bool
    subset_size: int
    thresholds: pd.DataFrame
    alpha: float
    measured: TwoRaters | RaterPairs
    alpha_interval: SubsetInterval
    published: InferredInterval
    refitted: InferredInterval | NoLine
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
        if isinstance(self.measured, RaterPairs) and self.bound.basis == "published line":
            return self._sentence_of_pairs(self.measured)
        return (
            f"A model above {100 * self.upper_bound:.1f} mAP is fitting one annotator's habits "
            f"(upper end of the 95 % interval of the full data, from {self._basis_words()}; subsets of "
            f"{100 * self.alpha_interval.fraction:.0f} % of the images reach {100 * self.subset_upper_bound:.1f})."
        )

    def _basis_words(self) -> str:
        if isinstance(self.measured, TwoRaters) or isinstance(self.refitted, NoLine):
            return "the mAP between the two raters"
        line = self.refitted.line
        return f"alpha by a line fitted on {line.n_points} pairs of raters, R^2 {line.r2:.2f}"

    def _sentence_of_pairs(self, measured: RaterPairs) -> str:
        """Name what was measured and what was inferred: a line from elsewhere is no measurement of this data."""
        n_pairs = "the pair" if measured.n_pairs == 1 else f"{measured.n_pairs} pairs"
        return (
            f"Measured directly, raters reach {100 * measured.mean:.1f} mAP against each other (mean over {n_pairs} of "
            f"raters, from {100 * measured.low:.1f} to {100 * measured.high:.1f}); the published line infers "
            f"{100 * self.published.clipped.mean:.1f} mAP from alpha, at most {100 * self.upper_bound:.1f} "
            "(upper end of the 95 % interval of the full data). A model above both is fitting one annotator's habits."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without the subsets; undefined numbers stay NaN, and what was not measured is None."""
        values = {name: value for name, value in vars(self).items() if name not in ("measured", "subsets", "bound")}
        two = self.measured if isinstance(self.measured, TwoRaters) else None
        values["map"] = None if two is None else two.map
        values["map_interval"] = None if two is None else two.interval
        values["refitted"] = None if isinstance(self.refitted, NoLine) else self.refitted
        tables = {name: values[name].to_dict(orient="records") for name in ("thresholds", "pairs")}
        words = {name: getattr(self, name) for name in ("upper_bound", "subset_upper_bound", "sentence")}
        return {**values, **tables, "basis": self.bound.basis, **words}
