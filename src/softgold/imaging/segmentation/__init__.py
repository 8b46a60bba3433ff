"""Uncertainty of segmentation models on cases with several samples and several raters (ValUES)."""

from softgold.imaging.segmentation.cases import Case, CaseFile, case_files
from softgold.imaging.segmentation.entropy import EntropyDecomposition, entropy_decomposition, one_minus_max_probability
from softgold.imaging.segmentation.maps import (
    PatchMaximum,
    aggregate_image,
    aggregate_patch,
    aggregate_threshold,
    foreground_threshold,
)
from softgold.imaging.segmentation.measures import (
    MEASURES,
    CaseMaps,
    foreground_dice,
    foreground_ged,
    reference_variance,
)
from softgold.imaging.segmentation.study import AGGREGATIONS, SegmentationStudy, StudySettings, evaluate_cases
from softgold.imaging.segmentation.tasks import al_improvement, ood_auroc

__all__ = [
    "AGGREGATIONS",
    "MEASURES",
    "Case",
    "CaseFile",
    "CaseMaps",
    "EntropyDecomposition",
    "PatchMaximum",
    "SegmentationStudy",
    "StudySettings",
    "aggregate_image",
    "aggregate_patch",
    "aggregate_threshold",
    "al_improvement",
    "case_files",
    "entropy_decomposition",
    "evaluate_cases",
    "foreground_dice",
    "foreground_ged",
    "foreground_threshold",
    "one_minus_max_probability",
    "ood_auroc",
    "reference_variance",
]
