"""Sampling items for experts, and thresholds and calibrated soft labels from their answers."""

from softgold.experts.calibration import calibrate
from softgold.experts.choice import RULES, ThresholdRule
from softgold.experts.detectors import hierarchical_bootstrap, leave_one_expert_out, min_vote_cutoffs
from softgold.experts.intervals import ThresholdInterval
from softgold.experts.panel import ExpertPanel
from softgold.experts.result import Calibration, LabelQuality, ReleasedLabels
from softgold.experts.sampling import ExpertSample, read_key, sample_for_experts
from softgold.experts.soft_map import IsotonicMap, LogitMap, SoftMapFit, fit_soft_map
from softgold.experts.thresholds import changepoint_bins, largest_jump_bins, onset_bins

__all__ = [
    "RULES",
    "Calibration",
    "ExpertPanel",
    "ExpertSample",
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
    "read_key",
    "sample_for_experts",
]
