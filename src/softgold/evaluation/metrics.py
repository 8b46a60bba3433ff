"""The metrics of an evaluation: names, labels that they are measured against, and whether less is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from softgold.checks import check_choice, check_positive_int
from softgold.errors import UsageError

MetricName = Literal[
    "auroc",
    "ap",
    "precision_at_k",
    "recall_at_k",
    "soft_auroc",
    "soft_ap",
    "soft_precision_at_k",
    "brier",
    "balanced_brier",
    "log_loss",
    "ece",
]
METRICS: tuple[MetricName, ...] = get_args(MetricName)
LENGTHS = (100, 500, 1000)


@dataclass(frozen=True)
class MetricSpec:
    """One metric of an evaluation.

    Attributes:
        name: Name in tables, such as `soft_precision_at_100`.
        title: Name for people.
        engine: Name of the metric in `softgold.metrics`.
        labels: Whether it is measured against hard or soft labels.
        lower_is_better: Whether it is a loss.
        needs_probability: Whether scores must lie in [0, 1].
        length: Length of the list for precision and recall at k, else 0.
        soft_twin: Name of the same metric against soft labels; empty without one.
    """

    name: str
    title: str
    engine: str
    labels: Literal["hard", "soft"]
    lower_is_better: bool = False
    needs_probability: bool = False
    length: int = 0
    soft_twin: str = ""


_PLAIN = {
    "auroc": MetricSpec("auroc", "AUROC", "soft_auroc", "hard", soft_twin="soft_auroc"),
    "ap": MetricSpec("ap", "AP", "soft_average_precision", "hard", soft_twin="soft_ap"),
    "soft_auroc": MetricSpec("soft_auroc", "soft AUROC", "soft_auroc", "soft"),
    "soft_ap": MetricSpec("soft_ap", "soft AP", "soft_average_precision", "soft"),
    "brier": MetricSpec("brier", "Brier", "brier_score", "soft", True, True),
    "balanced_brier": MetricSpec("balanced_brier", "balanced Brier", "balanced_brier", "soft", True, True),
    "log_loss": MetricSpec("log_loss", "log loss", "log_loss", "soft", True, True),
    "ece": MetricSpec("ece", "ECE", "expected_calibration_error", "soft", True, True),
}


def metric_specs(metrics: Sequence[str], lengths: Sequence[int], n_items: int) -> tuple[MetricSpec, ...]:
    """Return the metrics by name, in the order of `METRICS`, lists only where they are shorter than the data.

    A list of all items says nothing about the model that made it.

    >>> [spec.title for spec in metric_specs(["auroc", "precision_at_k"], (100, 500), 500)]
    ['AUROC', 'P@100']
    """
    if not metrics or isinstance(metrics, str):
        raise UsageError(f"metrics must be a list of some of {', '.join(METRICS)}; got {metrics!r}")
    for name in metrics:
        check_choice(name, METRICS, "metrics")
    fitting = [k for k in sorted({check_positive_int(k, "k") for k in lengths}) if k < n_items]
    specs: list[MetricSpec] = []
    for name in METRICS:
        if name not in metrics:
            continue
        specs += [_PLAIN[name]] if name in _PLAIN else [_listed(name, k) for k in fitting]
    return tuple(specs)


def _listed(name: str, k: int) -> MetricSpec:
    if name == "precision_at_k":
        twin = f"soft_precision_at_{k}"
        return MetricSpec(f"precision_at_{k}", f"P@{k}", f"precision_at_{k}", "hard", length=k, soft_twin=twin)
    if name == "recall_at_k":
        return MetricSpec(f"recall_at_{k}", f"R@{k}", f"recall_at_{k}", "hard", length=k)
    return MetricSpec(f"soft_precision_at_{k}", f"soft P@{k}", f"precision_at_{k}", "soft", length=k)
