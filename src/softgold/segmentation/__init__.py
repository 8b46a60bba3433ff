"""Uncertainty of segmentation models on cases with several samples and several raters (ValUES)."""

from softgold.segmentation.cases import Case, CaseFile, case_files
from softgold.segmentation.measures import MEASURES, CaseMaps, foreground_dice, foreground_ged, reference_variance
from softgold.segmentation.study import AGGREGATIONS, SegmentationStudy, StudySettings, evaluate_cases

__all__ = [
    "AGGREGATIONS",
    "MEASURES",
    "Case",
    "CaseFile",
    "CaseMaps",
    "SegmentationStudy",
    "StudySettings",
    "case_files",
    "evaluate_cases",
    "foreground_dice",
    "foreground_ged",
    "reference_variance",
]
