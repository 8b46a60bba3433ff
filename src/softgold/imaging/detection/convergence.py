"""Label convergence: how high a model can score on labels on which the raters themselves disagree.

Tschirschwitz and Rodehorst, Label Convergence: Defining an Upper Performance Bound in Object Recognition through
Contradictory Annotations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from softgold.imaging.detection.agreement import IOU_THRESHOLDS, AlphaSums, DetectionAlpha, as_thresholds
from softgold.imaging.detection.boxes import DetectionTable, find_overlaps
from softgold.imaging.detection.convergence_result import (
    AlphaKind,
    Convergence,
    ConvergenceSettings,
    InferredInterval,
    NoLine,
    RaterPairs,
    TwoRaters,
    UpperBound,
)
from softgold.imaging.detection.lines import PUBLISHED_LINE, Line, alpha_to_map, fit_line
from softgold.imaging.detection.precision import ModifiedMap, map_of_matches, match_pairs, mean_directions
from softgold.imaging.detection.subsets import draw_subsets, subset_interval, subset_size

__all__ = ["Convergence", "ConvergenceSettings", "InferredInterval", "label_convergence"]

FloatArray = NDArray[np.float64]
Progress = Callable[[int], None]

_STEPS = 20


def label_convergence(
    table: DetectionTable,
    thresholds: ArrayLike = IOU_THRESHOLDS,
    settings: ConvergenceSettings | None = None,
    *,
    progress: Progress | None = None,
) -> Convergence:
    """Estimate how high a model can score before it fits one rater's habits instead of the task.

    Where every image has two raters, that is the mean average precision between them; with more raters it is inferred
    from alpha by a line, published or fitted on pairs of raters (Label Convergence, section 4). Both come with
    intervals from subsets of the images: of a *subset*, as published, and of the full data. The boxes are matched once;
    the subsets only sum counts.

    Args:
        table: What was drawn, with two raters or more on every image.
        thresholds: Overlaps, each in (0, 1].
        settings: How to measure.
        progress: Called with the number of subsets done.

    Example:
        >>> box = [(1, [0, 0, 10, 10])]
        >>> images = {i: {"ann": box, "bob": box if i % 4 else [(1, [0, 0, 10, 7])]} for i in range(40)}
        >>> result = label_convergence(DetectionTable.from_boxes(images), settings=ConvergenceSettings(n_subsets=50))
        >>> round(result.measured.map, 3), round(result.alpha, 3)
        (0.782, 0.775)
    """
    settings = settings or ConvergenceSettings()
    cuts = as_thresholds(thresholds)
    size = subset_size(table.n_images, settings.fraction)
    subsets = draw_subsets(table.n_images, size, settings.n_subsets, settings.seed)
    measured = _measure(table, cuts, subsets, settings, progress or (lambda steps: None))
    return _summarise(table, settings, size, measured, _rater_pairs(table, cuts, settings, measured))


@dataclass(frozen=True, eq=False)
class _Measured:
    """Alpha of the full data, and of each subset at each threshold, shape (B, T)."""

    alpha: DetectionAlpha
    alphas: FloatArray

    def alpha_of(self, kind: AlphaKind) -> FloatArray:
        return self.alpha.mean_image if kind == "mean_image" else self.alpha.pooled


@dataclass(frozen=True, eq=False)
class _MeasuredTwo(_Measured):
    """The same, and mAP likewise, where every image has two raters."""

    map: ModifiedMap
    maps: FloatArray


def _measure(
    table: DetectionTable,
    cuts: FloatArray,
    subsets: sparse.csr_array,
    settings: ConvergenceSettings,
    progress: Progress,
) -> _Measured:
    overlaps = find_overlaps(table)
    sums = AlphaSums.of(table, overlaps, cuts, legacy=settings.legacy)
    alpha = sums.alpha(settings.empty)
    alphas = sums.pooled(subsets) if settings.alpha == "pooled" else _mean_over_images(alpha.per_image, subsets)
    if (table.raters_per_image != 2).any():
        progress(subsets.shape[0])
        return _Measured(alpha, alphas)
    matches = match_pairs(table, overlaps, cuts, settings.confidence)
    parts = []
    for rows in np.array_split(np.arange(subsets.shape[0]), min(_STEPS, subsets.shape[0])):
        parts.append(mean_directions(matches.directions(subsets[rows])))
        progress(len(rows))
    return _MeasuredTwo(alpha, alphas, map_of_matches(matches, table.n_images), np.concatenate(parts))


def _mean_over_images(per_image: FloatArray, subsets: sparse.csr_array) -> FloatArray:
    known = np.isfinite(per_image)
    total = subsets @ np.where(known, per_image, 0.0).T
    count = subsets @ known.T.astype(np.float64)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _rater_pairs(
    table: DetectionTable, cuts: FloatArray, settings: ConvergenceSettings, measured: _Measured
) -> pd.DataFrame:
    """Return one row per pair of raters who share images, averaged over the thresholds."""
    codes = _pairs_that_meet(table)
    if len(codes) == 1 and isinstance(measured, _MeasuredTwo):
        of_pairs = [(table.n_images, measured.alpha_of(settings.alpha), measured.map.mean)]
    else:
        of_pairs = [_measure_pair(table.take_raters(a, b), cuts, settings) for a, b in codes]
    return pd.DataFrame({
        "rater_a": table.rater_ids.take([a for a, _ in codes]),
        "rater_b": table.rater_ids.take([b for _, b in codes]),
        "n_images": [n_images for n_images, _, _ in of_pairs],
        "alpha": [float(alpha.mean()) for _, alpha, _ in of_pairs],
        "map": [float(precision.mean()) for _, _, precision in of_pairs],
    })  # fmt: skip


def _measure_pair(
    pair: DetectionTable, cuts: FloatArray, settings: ConvergenceSettings
) -> tuple[int, FloatArray, FloatArray]:
    overlaps = find_overlaps(pair)
    alpha = AlphaSums.of(pair, overlaps, cuts, legacy=settings.legacy).alpha(settings.empty)
    precision = map_of_matches(match_pairs(pair, overlaps, cuts, settings.confidence), pair.n_images)
    return pair.n_images, alpha.mean_image if settings.alpha == "mean_image" else alpha.pooled, precision.mean


def _pairs_that_meet(table: DetectionTable) -> list[tuple[int, int]]:
    first_look = np.cumsum(table.raters_per_image)[:-1]
    met = {pair for raters in np.split(table.looked_rater, first_look) for pair in combinations(raters.tolist(), 2)}
    return sorted(met)


def _summarise(
    table: DetectionTable,
    settings: ConvergenceSettings,
    size: int,
    measured: _Measured,
    pairs: pd.DataFrame,
) -> Convergence:
    fraction = size / table.n_images
    subsets = pd.DataFrame({"alpha": measured.alphas.mean(axis=1)})
    between: TwoRaters | RaterPairs
    if isinstance(measured, _MeasuredTwo):
        subsets["map"] = measured.maps.mean(axis=1)
        between = TwoRaters(measured.map.map, subset_interval(subsets["map"], fraction))
        line = _fit_own_line(measured.alphas, measured.maps)
    else:
        scores = pairs["map"]
        between = RaterPairs(len(pairs), float(scores.mean()), float(scores.min()), float(scores.max()))
        # One point per pair: thresholds of one pair are not further evidence.
        line = _fit_own_line(pairs["alpha"].to_numpy(), scores.where(scores >= 0).to_numpy())
    alphas = subsets["alpha"].to_numpy()
    full_alpha = float(measured.alpha_of(settings.alpha).mean())
    # Both lines are lines of pairs. With three raters or more, two who drew nothing agree, which lifts alpha above the
    # pairs': the subsets' alphas are moved to the pairs' level before a line is applied.
    of_pairs = alphas + (float(pairs["alpha"].mean()) - full_alpha)
    published = _infer(of_pairs, PUBLISHED_LINE, fraction)
    refitted = line if isinstance(line, NoLine) else _infer(of_pairs, line, fraction)
    return Convergence(
        settings=settings,
        n_images=table.n_images,
        n_annotations=len(table),
        raters=tuple(table.rater_ids),
        masks=table.masks is not None,
        subset_size=size,
        thresholds=_threshold_frame(measured),
        alpha=full_alpha,
        measured=between,
        alpha_interval=subset_interval(alphas, fraction),
        published=published,
        refitted=refitted,
        pairs=pairs,
        subsets=subsets,
        bound=_upper_bound(between, published, refitted),
    )


def _threshold_frame(measured: _Measured) -> pd.DataFrame:
    columns = {
        "threshold": measured.alpha.thresholds,
        "alpha_mean_image": measured.alpha.mean_image,
        "alpha_pooled": measured.alpha.pooled,
    }
    if isinstance(measured, _MeasuredTwo):
        columns["map_first_truth"] = measured.map.first_truth
        columns["map_second_truth"] = measured.map.second_truth
        columns["map"] = measured.map.mean
    return pd.DataFrame(columns)


def _fit_own_line(alphas: FloatArray, maps: FloatArray) -> Line | NoLine:
    known = np.isfinite(alphas) & np.isfinite(maps)
    x, y = alphas[known], maps[known]
    return fit_line(x, y) if len(x) > 2 and np.ptp(x) > 0 else NoLine(len(x))


def _infer(alphas: FloatArray, line: Line, fraction: float) -> InferredInterval:
    inferred = alpha_to_map(alphas, line)
    return InferredInterval(line, subset_interval(inferred.raw, fraction), subset_interval(inferred.clipped, fraction))


def _upper_bound(
    measured: TwoRaters | RaterPairs, published: InferredInterval, refitted: InferredInterval | NoLine
) -> UpperBound:
    """Choose what was measured, then a line that this data determines, then the published line."""
    if isinstance(measured, TwoRaters):
        return UpperBound("two raters", measured.interval)
    if isinstance(refitted, InferredInterval) and refitted.line.is_determined:
        return UpperBound("refitted line", refitted.clipped)
    return UpperBound("published line", published.clipped)
