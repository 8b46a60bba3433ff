"""Calibrated soft labels: a monotone map from the crowd's p to the rate at which experts say yes.

A crowd that shares a bias is confident and wrong together, and no model of its votes alone can know. Expert labels can
say it. The logit map works from the first label on; the isotonic one needs more labels and assumes less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, logit

from softgold.checks import (
    FloatArray,
    as_probabilities,
    as_weights,
    check_choice,
    check_positive_int,
    check_same_length,
)
from softgold.errors import InputError
from softgold.experts.cross_validation import fold_masks, mean_over_folds
from softgold.experts.logit_map import NEVER, LogitMap, effective_weight, fit_logit_maps, log_odds

MIN_PER_CLASS = 10
"""Expert positives and negatives that the isotonic map needs, each."""
ISOTONIC_RESAMPLES = 200
# Soft labels are kept this far from 0 and 1 before their own log loss is taken.
SMALLEST_P = 1e-6
# A difference from p counts as more than noise beyond this many standard errors.
NOISE = 1.96

MapName = Literal["logit", "isotonic"]
MapChoice = Literal["logit", "isotonic", "auto"]


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """The best non-decreasing step function, with straight lines between its steps.

    Steps of only negatives or only positives would say 0 or 1, so half a positive label is added at the lowest p and
    half a negative one at the highest: a lowest step of n negatives says 0.5 / (n + 0.5).

    Attributes:
        knots: Soft labels at which the value is given, ascending, shape (J,).
        values: The values there, shape (J,).
        band_knots: Soft labels at which the band is given, shape (B,).
        band_low: Lower end of the bootstrap band there, shape (B,).
        band_high: Upper end, shape (B,).
    """

    knots: FloatArray
    values: FloatArray
    band_knots: FloatArray
    band_low: FloatArray
    band_high: FloatArray

    def apply(self, p: ArrayLike) -> FloatArray:
        """Return p_calibrated, same shape as p; beyond the knots the first and last value go on."""
        return np.asarray(np.interp(np.asarray(p, dtype=np.float64), self.knots, self.values))

    def band(self, p: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return both ends of the band, each of the shape of p."""
        at = np.asarray(p, dtype=np.float64)
        low, high = (np.asarray(np.interp(at, self.band_knots, end)) for end in (self.band_low, self.band_high))
        return low, high

    def crossing(self, cut: float) -> float:
        """Return the threshold: the lowest p with p_calibrated >= cut."""
        return isotonic_crossing(self.knots, self.values, cut)


@dataclass(frozen=True)
class MapLosses:
    """Log loss against the experts, weighted by the design: of p, and of the maps on labels that they did not see.

    NaN where it is not defined: fewer than two labels, or too few for the isotonic map. `logit_z` and `isotonic_z` are
    how far each map is above p, in standard errors.
    """

    p: float
    logit: float
    isotonic: float
    logit_z: float
    isotonic_z: float

    def of(self, name: MapName) -> float:
        """Return the loss of a map."""
        return self.logit if name == "logit" else self.isotonic

    def is_worse(self, name: MapName) -> bool:
        """Whether a map does worse than p, beyond noise."""
        return (self.logit_z if name == "logit" else self.isotonic_z) > NOISE


@dataclass(frozen=True, eq=False)
class SoftMapFit:
    """The fitted maps, and their log loss on held-out labels.

    Attributes:
        name: The map that gives p_calibrated.
        logit: The logit map, always fitted.
        isotonic: The isotonic map where it was chosen, else None.
        n_positive: Expert positives.
        n_negative: Expert negatives.
        n_effective: What the labels are worth under their design weights, (sum w)^2 / sum w^2.
        level: Level of the band.
        log_loss: Log loss of p and of both maps.
    """

    name: MapName
    logit: LogitMap
    isotonic: IsotonicMap | None
    n_positive: int
    n_negative: int
    n_effective: float
    level: float
    log_loss: MapLosses

    @property
    def improves(self) -> bool:
        """Whether the map has a lower log loss than p."""
        return self.log_loss.of(self.name) < self.log_loss.p

    def apply(self, p: ArrayLike) -> FloatArray:
        """Return p_calibrated, same shape as p; p itself without labels."""
        if not self.n_positive + self.n_negative:
            return np.array(p, dtype=np.float64)
        return self.logit.apply(p) if self._isotonic is None else self._isotonic.apply(p)

    def band(self, p: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return both ends of the credible band of p_calibrated, each of the shape of p."""
        return self.logit.band(p, self.level) if self._isotonic is None else self._isotonic.band(p)

    def crossing(self, cut: float) -> float:
        """Return the lowest p with p_calibrated >= cut."""
        return self.logit.crossing(cut) if self._isotonic is None else self._isotonic.crossing(cut)

    @property
    def _isotonic(self) -> IsotonicMap | None:
        return self.isotonic if self.name == "isotonic" else None


def fit_soft_map(
    p: ArrayLike,
    labels: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    method: MapChoice = "logit",
    level: float = 0.95,
    seed: int = 0,
) -> SoftMapFit:
    """Fit the map from soft labels to the experts' rate; any number of labels will do, none gives the identity.

    Args:
        p: Soft labels of expert-labelled items, shape (N,).
        labels: Their expert labels, 0 or 1, shape (N,).
        weight: Weights of the sampling design, shape (N,).
        method: Which map gives p_calibrated. "logit"; "isotonic", where there are `MIN_PER_CLASS` labels of both
            classes (the logit map otherwise); "auto": the one with the lower cross-validated log loss.
        level: Level of the band.
        seed: Seed of the folds.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> honest = rng.random(1000)
        >>> labels = rng.random(1000) < honest
        >>> overconfident = 1 / (1 + np.exp(-3 * np.log(honest / (1 - honest))))
        >>> fit = fit_soft_map(overconfident, labels)
        >>> round(fit.logit.slope, 2), fit.improves
        (0.38, True)
    """
    check_choice(method, get_args(MapChoice), "method")
    check_positive_int(seed, "seed", minimum=0)
    values, targets = as_probabilities(p, "p"), as_probabilities(labels, "labels")
    check_same_length(len(values), labels=targets)
    if not np.isin(targets, (0.0, 1.0)).all():
        raise InputError("expert labels must be 0 or 1")
    given = as_weights(weight, len(values), "weight")
    weights = np.ones(len(values)) if given is None else given
    losses = _losses(values, targets, weights, seed)
    name = _chosen(method, losses)
    scaled = effective_weight(weights[None, :], np.ones((1, len(weights))))
    return SoftMapFit(
        name=name,
        logit=_fit_logit(values, targets, scaled),
        isotonic=fit_isotonic_band(values, targets, weights, level, seed) if name == "isotonic" else None,
        n_positive=int(targets.sum()),
        n_negative=int(len(targets) - targets.sum()),
        n_effective=float(scaled.sum()),
        level=level,
        log_loss=losses,
    )


def isotonic_crossing(knots: FloatArray, values: FloatArray, cut: float) -> float:
    """Return the lowest p at which the line through the knots reaches `cut`; 0 if everywhere, `NEVER` if nowhere."""
    if values[-1] < cut:
        return NEVER
    at = int(np.argmax(values >= cut))
    if at == 0:
        return 0.0
    rise = values[at] - values[at - 1]
    return float(knots[at - 1] + (knots[at] - knots[at - 1]) * (cut - values[at - 1]) / rise)


def fit_isotonic(p: FloatArray, targets: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots and values of the isotonic map; `weights` with a mean of 1."""
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True, out_of_bounds="clip")
    # Half a positive at the lowest p and half a negative at the highest: pooling spreads them as far as they reach.
    model.fit(
        np.concatenate([[p.min()], p, [p.max()]]),
        np.concatenate([[1.0], targets, [0.0]]),
        sample_weight=np.concatenate([[0.5], weights, [0.5]]),
    )
    return model.X_thresholds_, model.y_thresholds_


def fit_isotonic_band(p: FloatArray, targets: FloatArray, weights: FloatArray, level: float, seed: int) -> IsotonicMap:
    """Fit the isotonic map, with a band from resampled labels."""
    scaled = weights / weights.mean()
    nodes = np.unique(np.concatenate([np.linspace(0.0, 1.0, 101), p]))
    rng = np.random.default_rng(seed)
    copies = rng.multinomial(len(p), np.full(len(p), 1 / len(p)), size=ISOTONIC_RESAMPLES)
    drawn = [np.interp(nodes, *fit_isotonic(p[row > 0], targets[row > 0], (scaled * row)[row > 0])) for row in copies]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return IsotonicMap(*fit_isotonic(p, targets, scaled), nodes, low, high)


def _fit_logit(p: FloatArray, targets: FloatArray, weight: FloatArray) -> LogitMap:
    theta, precision = fit_logit_maps(p, targets[None, :], weight)
    covariance = np.linalg.inv(precision[0])
    sd = np.sqrt(np.diag(covariance))
    intercept, log_slope = theta[0]
    correlation = covariance[0, 1] / (sd[0] * sd[1])
    return LogitMap(float(intercept), float(np.exp(log_slope)), float(sd[0]), float(sd[1]), float(correlation))


def _enough(targets: FloatArray) -> bool:
    return bool(min(targets.sum(), len(targets) - targets.sum()) >= MIN_PER_CLASS)


def _chosen(method: MapChoice, losses: MapLosses) -> MapName:
    if np.isnan(losses.isotonic) or method == "logit":
        return "logit"
    return "isotonic" if method == "isotonic" or losses.isotonic < losses.logit else "logit"


def _losses(p: FloatArray, targets: FloatArray, weights: FloatArray, seed: int) -> MapLosses:
    """Cross-validate the maps on the same folds, so that their losses compare."""
    masks = fold_masks(targets, seed)
    unknown = np.full(len(p), np.nan)
    by_p, by_logit, by_isotonic = -_terms(logit(np.clip(p, SMALLEST_P, 1 - SMALLEST_P)), targets), unknown, unknown
    if len(masks):
        seen = effective_weight(np.where(masks, 0.0, weights), (~masks).astype(np.float64))
        theta, _ = fit_logit_maps(p, np.broadcast_to(targets, masks.shape), seen)
        odds = theta[:, :1] + np.exp(theta[:, 1:]) * log_odds(p)
        by_logit = mean_over_folds(-_terms(odds, targets), masks)
    if len(masks) and _enough(targets):
        fits = [fit_isotonic(p[~mask], targets[~mask], weights[~mask] / weights[~mask].mean()) for mask in masks]
        mapped = np.stack([np.interp(p, *fit) for fit in fits])
        by_isotonic = mean_over_folds(-_terms(log_odds(mapped), targets), masks)
    return MapLosses(
        p=_mean(by_p, weights),
        logit=_mean(by_logit, weights),
        isotonic=_mean(by_isotonic, weights),
        logit_z=_z(by_logit - by_p, weights),
        isotonic_z=_z(by_isotonic - by_p, weights),
    )


def _mean(losses: FloatArray, weights: FloatArray) -> float:
    return float(np.average(losses, weights=weights)) if len(losses) else float("nan")


def _z(difference: FloatArray, weights: FloatArray) -> float:
    scale = float(np.sqrt(((weights * difference) ** 2).sum()))
    return float((weights * difference).sum() / scale) if scale > 0 else scale


def _terms(odds: FloatArray, targets: FloatArray) -> FloatArray:
    """Log likelihood of each label under given log odds, same shape as `odds`."""
    return np.asarray(np.where(targets == 1, log_expit(odds), log_expit(-odds)))
