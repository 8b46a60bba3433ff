"""Measures of one case: maps of uncertainty, and how well samples and maps agree with the raters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softgold.imaging.segmentation.cases import Case
from softgold.imaging.segmentation.entropy import EntropyDecomposition, Roles, entropy_decomposition
from softgold.metrics import dice, generalized_energy_distance, ncc

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MEASURES = ("predictive", "aleatoric", "epistemic")


@dataclass(frozen=True, eq=False)
class CaseMaps:
    """The uncertainty maps of a case.

    Attributes:
        case: The case.
        entropies: Predictive entropy, expected entropy and mutual information of each pixel.
    """

    case: Case
    entropies: EntropyDecomposition

    @classmethod
    def of(cls, case: Case, roles: Roles = "bayesian") -> CaseMaps:
        """Decompose the entropy of each pixel."""
        return cls(case, entropy_decomposition(case.probabilities, roles=roles))

    def map(self, measure: str) -> FloatArray:
        """Return the map of a measure: `predictive`, `aleatoric` or `epistemic`."""
        maps = (self.entropies.predictive_entropy, self.entropies.aleatoric, self.entropies.epistemic)
        return dict(zip(MEASURES, maps, strict=True))[measure]

    @cached_property
    def prediction(self) -> IntArray:
        """Most probable class of each pixel."""
        return self.case.prediction

    @cached_property
    def correct(self) -> FloatArray:
        """Share of raters who agree with the prediction at each pixel."""
        return np.asarray((self.case.masks == self.prediction).mean(axis=0))

    @property
    def foreground_ratio(self) -> float:
        """Share of the pixels that are predicted to be foreground."""
        return float((self.prediction > 0).mean())

    def dice(self) -> float:
        """Dice of the mean prediction, averaged over the raters (ValUES, equation 3)."""
        return float(np.mean([foreground_dice(self.prediction, mask, self.case.n_classes) for mask in self.case.masks]))

    def ged(self) -> float:
        """Generalised energy distance between the samples' and the raters' segmentations."""
        return foreground_ged(self.case.probabilities.argmax(axis=-1), self.case.masks, self.case.n_classes)

    def ncc(self, measure: str) -> float:
        """Correlation of a map with the variance of the raters; NaN if one of them is constant."""
        return ncc(reference_variance(self.case.masks, self.case.n_classes), self.map(measure))


def foreground_dice(a: IntArray, b: IntArray, n_classes: int) -> float:
    """Dice of two segmentations: of class 1, or the mean over the foreground classes that occur in either; 1 if none.

    >>> foreground_dice(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 2]), 3) == (2 / 3 + 2 / 3) / 2
    True
    """
    present = [label for label in range(1, n_classes) if (a == label).any() or (b == label).any()]
    return float(np.mean([dice(a == label, b == label) for label in present])) if present else 1.0


def foreground_ged(samples: IntArray, raters: IntArray, n_classes: int) -> float:
    """Generalised energy distance, averaged over the foreground classes.

    >>> masks = np.array([[1, 1, 0], [0, 1, 0]])
    >>> foreground_ged(masks, masks, 2)
    0.0
    """
    classes = range(1, n_classes)
    return float(np.mean([generalized_energy_distance(samples == label, raters == label) for label in classes]))


def reference_variance(masks: IntArray, n_classes: int) -> FloatArray:
    """Variance of the raters at each pixel (ValUES, equation 13), shape (...).

    For two classes that of the label 0 or 1; for more, half the sum of the variances of "is it this class".

    >>> reference_variance(np.array([[0, 1, 1], [0, 1, 0]]), 2).tolist()
    [0.0, 0.0, 0.25]
    """
    shares = [(masks == label).mean(axis=0) for label in range(n_classes)]
    return np.asarray(sum(share * (1 - share) for share in shares)) / 2
