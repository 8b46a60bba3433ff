"""Uses of uncertainty: detecting images from outside the training distribution, and active learning."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from softgold.checks import as_probabilities, check_in_range
from softgold.errors import InputError
from softgold.metrics import soft_auroc


def al_improvement(dice_t1: float, dice_t2_method: float, dice_t2_random: float) -> float:
    """Gain of an active-learning query over a random one: C_method - C_random, with C = (Dice_t2 - Dice_t1) / Dice_t1.

    Args:
        dice_t1: Dice before the query, in [0, 1].
        dice_t2_method: Dice after retraining with the images that the method chose.
        dice_t2_random: Dice after retraining with as many random images.

    Returns:
        The difference of relative gains; NaN when the first Dice is 0.

    Reference:
        Kahl et al., ValUES, equations 9 and 10.

    >>> round(al_improvement(0.62, 0.68, 0.655), 6)
    0.040323
    """
    before = check_in_range(dice_t1, 0, 1, "dice_t1")
    method = check_in_range(dice_t2_method, 0, 1, "dice_t2_method")
    random = check_in_range(dice_t2_random, 0, 1, "dice_t2_random")
    return (method - before) / before - (random - before) / before if before > 0 else math.nan


def ood_auroc(is_ood: ArrayLike, uncertainty: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """AUROC of detecting images from outside the training distribution by their uncertainty.

    Args:
        is_ood: 1 for an image from outside, 0 otherwise, shape (n,).
        uncertainty: Uncertainty of each image, shape (n,).
        sample_weight: Weight of each image, shape (n,).

    Returns:
        The AUROC; NaN without images of both kinds.

    Reference:
        Kahl et al., ValUES, appendix A.2.

    >>> ood_auroc([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.4])
    0.875
    """
    labels = as_probabilities(is_ood, "is_ood")
    if not np.isin(labels, (0, 1)).all():
        raise InputError(f"is_ood must be 0 or 1, got {labels[~np.isin(labels, (0, 1))][0]}")
    return soft_auroc(labels, uncertainty, sample_weight=sample_weight)
