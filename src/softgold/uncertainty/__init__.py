"""Uncertainty of predictions and of items: entropies and their causes, and pixel maps made into one number an image."""

from softgold.uncertainty.entropy import EntropyDecomposition, entropy_decomposition, one_minus_max_probability
from softgold.uncertainty.items import item_uncertainty, item_uncertainty_on_grid
from softgold.uncertainty.maps import (
    PatchMaximum,
    aggregate_image,
    aggregate_patch,
    aggregate_threshold,
    foreground_threshold,
)
from softgold.uncertainty.tasks import al_improvement, ood_auroc

__all__ = [
    "EntropyDecomposition",
    "PatchMaximum",
    "aggregate_image",
    "aggregate_patch",
    "aggregate_threshold",
    "al_improvement",
    "entropy_decomposition",
    "foreground_threshold",
    "item_uncertainty",
    "item_uncertainty_on_grid",
    "one_minus_max_probability",
    "ood_auroc",
]
