"""Metrics of models against soft labels: ranking, scores, reliability, selection, ambiguity, and resampling."""

from softgold.metrics.ambiguity import ImageMean, dice, generalized_energy_distance, ncc, over_images, rater_variance
from softgold.metrics.bootstrap.engine import METRIC_NAMES
from softgold.metrics.bootstrap.functions import AnnotationBootstrap, annotation_bootstrap, bootstrap, bootstrap_metrics
from softgold.metrics.bootstrap.result import BootstrapResult, PairedComparison
from softgold.metrics.intervals import Interval, wilson_interval
from softgold.metrics.platt import PlattScaling, platt_scaling
from softgold.metrics.ranked import PrecisionRecallCurve, Ranking, RocCurve
from softgold.metrics.ranking import (
    auc_pr,
    precision_at_k,
    recall_at_k,
    soft_auroc,
    soft_average_precision,
    soft_precision_recall_curve,
    soft_roc_curve,
)
from softgold.metrics.reliability import (
    CalibrationCurve,
    average_calibration_error,
    calibration_curve,
    expected_calibration_error,
)
from softgold.metrics.scores import (
    F1Threshold,
    StratifiedBrier,
    balanced_brier,
    best_f1_threshold,
    brier_score,
    log_loss,
    stratified_brier,
)
from softgold.metrics.selective import RiskCoverageCurve, aurc, excess_aurc, risk_coverage_curve
from softgold.metrics.stability import RankingStability, r_squared, ranking_stability

__all__ = [
    "METRIC_NAMES",
    "AnnotationBootstrap",
    "BootstrapResult",
    "CalibrationCurve",
    "F1Threshold",
    "ImageMean",
    "Interval",
    "PairedComparison",
    "PlattScaling",
    "PrecisionRecallCurve",
    "Ranking",
    "RankingStability",
    "RiskCoverageCurve",
    "RocCurve",
    "StratifiedBrier",
    "annotation_bootstrap",
    "auc_pr",
    "aurc",
    "average_calibration_error",
    "balanced_brier",
    "best_f1_threshold",
    "bootstrap",
    "bootstrap_metrics",
    "brier_score",
    "calibration_curve",
    "dice",
    "excess_aurc",
    "expected_calibration_error",
    "generalized_energy_distance",
    "log_loss",
    "ncc",
    "over_images",
    "platt_scaling",
    "precision_at_k",
    "r_squared",
    "ranking_stability",
    "rater_variance",
    "recall_at_k",
    "risk_coverage_curve",
    "soft_auroc",
    "soft_average_precision",
    "soft_precision_recall_curve",
    "soft_roc_curve",
    "stratified_brier",
    "wilson_interval",
]
