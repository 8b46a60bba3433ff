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
    UpperBound,
)
from softgold.imaging.detection.lines import PUBLISHED_LINE, Line, alpha_to_map, fit_line
from softgold.imaging.detection.precision import ModifiedMap, map_of_matches, match_pairs, mean_directions
from softgold.imaging.detection.subsets import SubsetInterval, draw_subsets, subset_interval, subset_size

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
    intervals from subsets of the images: the published kind, which is of *subsets*, and that of the full data beside
    it. The boxes are matched once; the subsets only sum counts.

    Args:
        table: What was drawn, with two raters or more on every image.
        thresholds: Overlaps, each in (0, 1].
        settings: How to measure.
        progress: Called with the number of subsets done.

    Example:
        >>> box = [(1, [0, 0, 10, 10])]
        >>> images = {i: {"ann": box, "bob": box if i % 4 else [(1, [0, 0, 10, 7])]} for i in range(40)}
        >>> result = label_convergence(DetectionTable.from_boxes(images), settings=ConvergenceSettings(n_subsets=50))
        >>> round(result.map, 3), round(result.alpha, 3)
        (0.782, 0.775)
    """
    settings = settings or ConvergenceSettings()
    cuts = as_thresholds(thresholds)
    size = subset_size(table.n_images, settings.fraction)
    subsets = draw_subsets(table.n_images, size, settings.n_subsets, settings.seed)
    measured = _measure(table, cuts, subsets, settings, progress or (lambda steps: None))
    pairs, points = _rater_pairs(table, cuts, settings, measured)
    return _summarise(table, settings, size, measured, pairs, points)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Alpha and mAP of the full data, and of each subset at each threshold, shape (B, T)."""

    alpha: DetectionAlpha
    map: ModifiedMap | None
    alphas: FloatArray
    maps: FloatArray | None

    def alpha_of(self, kind: AlphaKind) -> FloatArray:
        return self.alpha.mean_image if kind == "mean_image" else self.alpha.pooled


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
        return _Measured(alpha, None, alphas, None)
    matches = match_pairs(table, overlaps, cuts, settings.confidence)
    parts = []
    for rows in np.array_split(np.arange(subsets.shape[0]), min(_STEPS, subsets.shape[0])):
        parts.append(mean_directions(matches.directions(subsets[rows])))
        progress(len(rows))
    return _Measured(alpha, map_of_matches(matches, table.n_images), alphas, np.concatenate(parts))


def _mean_over_images(per_image: FloatArray, subsets: sparse.csr_array) -> FloatArray:
    known = np.isfinite(per_image)
    total = subsets @ np.where(known, per_image, 0.0).T
    count = subsets @ known.T.astype(np.float64)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _rater_pairs(
    table: DetectionTable, cuts: FloatArray, settings: ConvergenceSettings, measured: _Measured
) -> tuple[pd.DataFrame, tuple[FloatArray, FloatArray]]:
    """Each pair of raters who share images, and the alphas and mAPs of the pairs, shape (P, T) each."""
    codes = _pairs_that_meet(table)
    if len(codes) == 1 and measured.map is not None:
        of_pairs = [(table.n_images, measured.alpha_of(settings.alpha), measured.map.mean)]
    else:
        of_pairs = [_measure_pair(table.take_raters(a, b), cuts, settings) for a, b in codes]
    alphas, maps = (np.array([values[place] for values in of_pairs]) for place in (1, 2))
    frame = pd.DataFrame({
        "rater_a": table.rater_ids.take([a for a, _ in codes]),
        "rater_b": table.rater_ids.take([b for _, b in codes]),
        "n_images": [n_images for n_images, _, _ in of_pairs],
        "alpha": alphas.mean(axis=1),
        "map": maps.mean(axis=1),
    })  # fmt: skip
    return frame, (alphas, np.where(maps < 0, np.nan, maps))


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
    points: tuple[FloatArray, FloatArray],
) -> Convergence:
    fraction = size / table.n_images
    subsets = pd.DataFrame({"alpha": measured.alphas.mean(axis=1)})
    if measured.maps is not None:
        subsets["map"] = measured.maps.mean(axis=1)
        points = measured.alphas, measured.maps
    alphas = subsets["alpha"].to_numpy()
    line = _fit_own_line(*points)
    full_alpha = float(measured.alpha_of(settings.alpha).mean())
    # Both lines are lines of pairs. With three raters or more, two who drew nothing agree, which lifts alpha above the
    # pairs': the subsets' alphas are moved to the pairs' level before a line is applied.
    of_pairs = alphas + (float(pairs["alpha"].mean()) - full_alpha)
    published = _infer(of_pairs, PUBLISHED_LINE, fraction)
    refitted = None if line is None else _infer(of_pairs, line, fraction)
    map_interval = subset_interval(subsets["map"], fraction) if "map" in subsets else None
    return Convergence(
        settings=settings,
        n_images=table.n_images,
        n_annotations=len(table),
        raters=tuple(table.rater_ids),
        masks=table.masks is not None,
        subset_size=size,
        thresholds=_threshold_frame(measured),
        alpha=full_alpha,
        map=None if measured.map is None else measured.map.map,
        alpha_interval=subset_interval(alphas, fraction),
        map_interval=map_interval,
        published=published,
        refitted=refitted,
        pairs=pairs,
        subsets=subsets,
        bound=_upper_bound(map_interval, published, refitted),
    )


def _threshold_frame(measured: _Measured) -> pd.DataFrame:
    columns = {
        "threshold": measured.alpha.thresholds,
        "alpha_mean_image": measured.alpha.mean_image,
        "alpha_pooled": measured.alpha.pooled,
    }
    if measured.map is not None:
        columns["map_first_truth"] = measured.map.first_truth
        columns["map_second_truth"] = measured.map.second_truth
        columns["map"] = measured.map.mean
    return pd.DataFrame(columns)


def _fit_own_line(alphas: FloatArray, maps: FloatArray) -> Line | None:
    known = np.isfinite(alphas) & np.isfinite(maps)
    x, y = alphas[known], maps[known]
    return fit_line(x, y) if len(x) > 2 and np.ptp(x) > 0 else None


def _infer(alphas: FloatArray, line: Line, fraction: float) -> InferredInterval:
    inferred = alpha_to_map(alphas, line)
    return InferredInterval(line, subset_interval(inferred.raw, fraction), subset_interval(inferred.clipped, fraction))


def _upper_bound(
    map_interval: SubsetInterval | None, published: InferredInterval, refitted: InferredInterval | None
) -> UpperBound:
    """Choose what was measured, then a line that this data determines, then the published line."""
    if map_interval is not None:
        return UpperBound("two raters", map_interval)
    if refitted is not None and refitted.line.is_determined:
        return UpperBound("refitted line", refitted.clipped)
    return UpperBound("published line", published.clipped)
