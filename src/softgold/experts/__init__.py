"""Stratified sampling for expert review; calibrated soft labels and thresholds from the experts' answers."""

from softgold.experts.answers import read_answers
from softgold.experts.bins import assign_bins
from softgold.experts.calibration import calibrate
from softgold.experts.detectors import hierarchical_bootstrap, leave_one_expert_out, min_vote_cutoffs
from softgold.experts.expectation import Expectation, expect
from softgold.experts.intervals import ThresholdInterval
from softgold.experts.logit_map import LogitMap
from softgold.experts.notices import CalibrationNotice
from softgold.experts.panel import ExpertPanel
from softgold.experts.quality import Comparison, ErrorRates, LabelQuality, Rate
from softgold.experts.result import Calibration, CalibrationSettings, DetectorChecks, ReleasedLabels
from softgold.experts.rules import RULES, ThresholdRule
from softgold.experts.sampling import ExpertSample, read_key, sample_classes, sample_for_experts
from softgold.experts.soft_map import IsotonicMap, MapLosses, SoftMapFit, fit_soft_map
from softgold.experts.thresholds import changepoint_bins, largest_jump_bins, onset_bins

__all__ = [
    "RULES",
    "Calibration",
    "CalibrationNotice",
    "CalibrationSettings",
    "Comparison",
    "DetectorChecks",
    "ErrorRates",
    "Expectation",
    "ExpertPanel",
    "ExpertSample",
    "IsotonicMap",
    "LabelQuality",
    "LogitMap",
    "MapLosses",
    "Rate",
    "ReleasedLabels",
    "SoftMapFit",
    "ThresholdInterval",
    "ThresholdRule",
    "assign_bins",
    "calibrate",
    "changepoint_bins",
    "expect",
    "fit_soft_map",
    "hierarchical_bootstrap",
    "largest_jump_bins",
    "leave_one_expert_out",
    "min_vote_cutoffs",
    "onset_bins",
    "read_answers",
    "read_key",
    "sample_classes",
    "sample_for_experts",
]
