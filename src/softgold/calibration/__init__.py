"""Thresholds and calibrated soft labels from expert labels, and how sure they are."""

from softgold.calibration.choice import RULES, ThresholdRule
from softgold.calibration.detectors import hierarchical_bootstrap, leave_one_expert_out, min_vote_cutoffs
from softgold.calibration.intervals import ThresholdInterval
from softgold.calibration.panel import ExpertPanel
from softgold.calibration.result import Calibration, LabelQuality, ReleasedLabels
from softgold.calibration.run import calibrate
from softgold.calibration.softmap import IsotonicMap, LogitMap, SoftMapFit, fit_soft_map
from softgold.calibration.thresholds import changepoint_bins, largest_jump_bins, onset_bins

__all__ = [
    "RULES",
    "Calibration",
    "ExpertPanel",
    "IsotonicMap",
    "LabelQuality",
    "LogitMap",
    "ReleasedLabels",
    "SoftMapFit",
    "ThresholdInterval",
    "ThresholdRule",
    "calibrate",
    "changepoint_bins",
    "fit_soft_map",
    "hierarchical_bootstrap",
    "largest_jump_bins",
    "leave_one_expert_out",
    "min_vote_cutoffs",
    "onset_bins",
]
