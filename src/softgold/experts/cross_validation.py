"""Folds for judging maps and thresholds on labels that they have not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softgold.checks import FloatArray

FOLDS = 5
REPEATS = 5

BoolArray = NDArray[np.bool_]


def fold_masks(labels: NDArray[np.generic], seed: int) -> BoolArray:
    """Return which labels each fold holds out, shape (folds, N); no folds for fewer than two labels.

    Five folds, drawn five times; stratified by label where every class has enough labels for it.

    >>> fold_masks(np.array([0, 1] * 10), 0).sum(axis=0).tolist() == [5] * 20
    True
    """
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    n = len(labels)
    if n < 2:
        return np.zeros((0, n), dtype=np.bool_)
    folds = min(FOLDS, n)
    _, counts = np.unique(labels, return_counts=True)
    kind = RepeatedStratifiedKFold if counts.min() >= folds else RepeatedKFold
    splits = kind(n_splits=folds, n_repeats=REPEATS, random_state=seed).split(np.zeros(n), labels)
    masks = np.zeros((folds * REPEATS, n), dtype=np.bool_)
    for row, (_, held_out) in enumerate(splits):
        masks[row, held_out] = True
    return masks


def mean_over_folds(values: FloatArray, masks: BoolArray) -> FloatArray:
    """Return the mean of each label's value over the folds that hold it out, shape (N,); NaN values are left out.

    >>> mean_over_folds(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[True, False], [False, True]])).tolist()
    [1.0, 4.0]
    """
    counted = masks & ~np.isnan(values)
    total = np.where(counted, values, 0.0).sum(axis=0)
    count = counted.sum(axis=0)
    return np.asarray(np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0))
