"""Evaluate a folder of cases on the tasks of ValUES: one row per case; one row per task, metric and measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgold.checks import check_positive_int
from softgold.errors import InputError, warn
from softgold.imaging.segmentation.cases import CaseFile, Split, split_of
from softgold.imaging.segmentation.entropy import Roles
from softgold.imaging.segmentation.maps import (
    aggregate_image,
    aggregate_patch,
    aggregate_threshold,
    foreground_threshold,
)
from softgold.imaging.segmentation.measures import MEASURES, CaseMaps
from softgold.imaging.segmentation.tasks import ood_auroc
from softgold.metrics import PlattScaling, aurc, average_calibration_error, excess_aurc, platt_scaling

FloatArray = NDArray[np.float64]
Progress = Callable[[int], None]

AGGREGATIONS = ("image", "patch", "threshold")
PLATT_PIXELS = 1_000_000


@dataclass(frozen=True)
class StudySettings:
    """How a study is evaluated.

    Attributes:
        roles: Which part of the entropy is aleatoric; see `entropy_decomposition`.
        patch_size: Length of the window of the patch aggregation along each axis.
        n_bins: Bins of the calibration error.
        platt: `pooled`, one fit to all validation pixels, or `legacy`, the mean of one fit per image.
        seed: Seed of the pixels that the calibration is fitted on, where there are more than a million.
    """

    roles: Roles = "bayesian"
    patch_size: int = 10
    n_bins: int = 20
    platt: Literal["pooled", "legacy"] = "pooled"
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive_int(self.patch_size, "patch_size")
        check_positive_int(self.n_bins, "n_bins")


@dataclass(frozen=True, eq=False)
class SegmentationStudy:
    """Result of a study.

    Attributes:
        settings: How it was evaluated.
        cases: One row per test case: `case, split, n_samples, n_raters, dice, ged`, then for each measure
            `ncc_..., ace_...` and the scores `image_..., patch_..., threshold_...`.
        tasks: One row per value: `task, metric, measure, aggregation, split, value, n_cases, n_undefined`.
        thresholds: Threshold of the threshold aggregation for each measure.
        platt: Calibration of each measure.
        fitted_on: Split on which thresholds and calibration were fitted, `validation` or `iid`.
    """

    settings: StudySettings
    cases: pd.DataFrame
    tasks: pd.DataFrame
    thresholds: dict[str, float]
    platt: dict[str, PlattScaling]
    fitted_on: str

    def value(self, metric: str, *, measure: str = "", aggregation: str = "", split: str = "") -> float:
        """Return one value of the table of tasks."""
        table = self.tasks
        found = table[
            (table["metric"] == metric)
            & (table["measure"] == measure)
            & (table["aggregation"] == aggregation)
            & (table["split"] == split)
        ]
        return float(found["value"].iloc[0])


def evaluate_cases(
    files: Sequence[CaseFile], settings: StudySettings | None = None, *, progress: Progress | None = None
) -> SegmentationStudy:
    """Judge the uncertainty of a segmentation model on a folder of cases.

    Each case is read twice, so that no more than one is in memory: once for what depends on it alone, and, after
    threshold and calibration are known from the validation cases, once more for what depends on those.

    Tasks, as in ValUES: detecting out-of-distribution cases (AUROC of the score), failure detection (AURC and excess
    AURC of the score, the risk being 1 - Dice), calibration (average calibration error after Platt scaling, per image),
    ambiguity (correlation with the raters' variance; generalised energy distance), and the segmentation itself (Dice).
    Active learning needs a model that is trained again; see `al_improvement`.

    Args:
        files: The cases, from `case_files`.
        settings: How to evaluate.
        progress: Called with 1 for each case that was read.
    """
    settings = settings or StudySettings()
    step = progress or (lambda steps: None)
    fitted_on = _split_to_fit_on(files)
    fit = _Fit(settings)
    first = [_first_pass(file, settings, fit if file.split == fitted_on else None, step) for file in files]
    thresholds, platt = fit.thresholds(), fit.platt()
    rows = []
    for file, row in zip(files, first, strict=True):
        if file.split != "validation":
            rows.append(row | _second_pass(file, settings, thresholds, platt, step))
    cases = pd.DataFrame(rows)
    return SegmentationStudy(settings, cases, pd.DataFrame(list(_tasks(cases))), thresholds, platt, fitted_on)


def _split_to_fit_on(files: Sequence[CaseFile]) -> Split:
    if not split_of(files, "iid", "ood"):
        raise InputError("there is no case to judge: all are in the split 'validation'")
    if split_of(files, "validation"):
        return "validation"
    if not split_of(files, "iid"):
        raise InputError("threshold and calibration need cases in the split 'validation' or 'iid', and all are 'ood'")
    warn("no case is in the split 'validation': threshold and calibration are fitted on the i.i.d. cases themselves")
    return "iid"


class _Fit:
    """Collects the pixels of the cases on which threshold and calibration are fitted."""

    def __init__(self, settings: StudySettings) -> None:
        self.settings = settings
        self.maps: dict[str, list[FloatArray]] = {measure: [] for measure in MEASURES}
        self.correct: list[FloatArray] = []
        self.ratios: list[float] = []

    def add(self, maps: CaseMaps) -> None:
        for measure in MEASURES:
            self.maps[measure].append(maps.map(measure).ravel())
        self.correct.append(maps.correct.ravel())
        self.ratios.append(maps.foreground_ratio)

    def thresholds(self) -> dict[str, float]:
        ratio = float(np.mean(self.ratios))
        return {measure: foreground_threshold(self.maps[measure], ratio) for measure in MEASURES}

    def platt(self) -> dict[str, PlattScaling]:
        image = np.repeat(np.arange(len(self.correct)), [len(part) for part in self.correct])
        chosen = np.random.default_rng(self.settings.seed).permutation(len(image))[:PLATT_PIXELS]
        correct = np.concatenate(self.correct)[chosen]
        images = image[chosen] if self.settings.platt == "legacy" else None
        return {
            measure: platt_scaling(
                correct, -np.concatenate(self.maps[measure])[chosen], pooling=self.settings.platt, images=images
            )
            for measure in MEASURES
        }


def _first_pass(file: CaseFile, settings: StudySettings, fit: _Fit | None, step: Progress) -> dict[str, Any]:
    maps = CaseMaps.of(file.load(), settings.roles)
    if fit is not None:
        fit.add(maps)
    step(1)
    if file.split == "validation":
        return {}
    row: dict[str, Any] = {
        "case": file.name,
        "split": file.split,
        "n_samples": len(maps.case.probabilities),
        "n_raters": len(maps.case.masks),
        "dice": maps.dice(),
        "ged": maps.ged(),
    }
    return row | {f"ncc_{measure}": maps.ncc(measure) for measure in MEASURES}


def _second_pass(
    file: CaseFile,
    settings: StudySettings,
    thresholds: dict[str, float],
    platt: dict[str, PlattScaling],
    step: Progress,
) -> dict[str, float]:
    maps = CaseMaps.of(file.load(), settings.roles)
    row = {}
    for measure in MEASURES:
        values = maps.map(measure)
        confidence = platt[measure].transform(-values).ravel()
        row[f"ace_{measure}"] = average_calibration_error(maps.correct.ravel(), confidence, n_bins=settings.n_bins)
        row[f"image_{measure}"] = aggregate_image(values)
        row[f"patch_{measure}"] = aggregate_patch(values, size=settings.patch_size).total
        row[f"threshold_{measure}"] = aggregate_threshold(values, thresholds[measure])
    step(1)
    return row


@dataclass(frozen=True)
class _Entry:
    task: str
    metric: str
    measure: str
    aggregation: str
    split: str
    value: float
    n_cases: int
    n_undefined: int = 0


def _tasks(cases: pd.DataFrame) -> Iterator[_Entry]:
    """Every row of the table of tasks."""
    for measure in MEASURES:
        for aggregation in AGGREGATIONS:
            score = cases[f"{aggregation}_{measure}"]
            value = ood_auroc(cases["split"] == "ood", score)
            yield _Entry("out-of-distribution", "auroc", measure, aggregation, "all", value, len(cases))
    for split, rows in cases.groupby("split", sort=True):
        yield from _tasks_of_split(str(split), rows)


def _tasks_of_split(split: str, rows: pd.DataFrame) -> Iterator[_Entry]:
    n = len(rows)
    risk = 1 - rows["dice"].to_numpy()
    blank = _Entry("segmentation", "dice", "", "", split, float(rows["dice"].mean()), n)
    yield blank
    yield replace(blank, task="ambiguity", metric="ged", value=float(rows["ged"].mean()))
    for measure in MEASURES:
        entry = replace(blank, measure=measure)
        yield _mean("ambiguity", "ncc", rows[f"ncc_{measure}"], entry)
        yield _mean("calibration", "ace", rows[f"ace_{measure}"], entry)
        for aggregation in AGGREGATIONS:
            confidence = -rows[f"{aggregation}_{measure}"].to_numpy()
            failure = replace(entry, task="failure", aggregation=aggregation)
            yield replace(failure, metric="aurc", value=aurc(risk, confidence))
            yield replace(failure, metric="e-aurc", value=excess_aurc(risk, confidence))


def _mean(task: str, metric: str, values: pd.Series, entry: _Entry) -> _Entry:
    known = values.dropna()
    mean = float(known.mean()) if len(known) else math.nan
    return replace(entry, task=task, metric=metric, value=mean, n_undefined=len(values) - len(known))
