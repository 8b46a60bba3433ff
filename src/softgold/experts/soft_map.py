"""Calibrated soft labels: a monotone map from the crowd's p to the rate at which experts say yes.

A crowd that shares a bias is confident and wrong together, and no model of its votes alone can know. A few hundred
expert labels can say it: they give the map from p to p_calibrated. Both maps are monotone and stay inside (0, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from softgold.checks import FloatArray, as_probabilities, as_weights, check_choice, check_same_length
from softgold.errors import InputError
from softgold.metrics.platt import platt_scaling
from softgold.metrics.scores import log_loss

__all__ = ["EPSILON", "FOLDS", "MIN_PER_CLASS", "IsotonicMap", "LogitMap", "MapName", "SoftMapFit", "fit_soft_map"]

EPSILON = 1e-6
"""Soft labels are kept this far from 0 and 1 before their logit or their log loss is taken."""
MIN_PER_CLASS = 10
"""Expert positives and negatives that a map needs, each."""
FOLDS = 5

MapName = Literal["auto", "logit", "isotonic"]


@dataclass(frozen=True)
class LogitMap:
    """p_calibrated = sigmoid(intercept + slope logit(p)), slope >= 0: Platt's two parameters on the log odds of p.

    Intercept 0 and slope 1 leave p as it is; a slope below 1 takes back confidence, the intercept takes back bias.
    """

    intercept: float
    slope: float

    def apply(self, p: ArrayLike) -> FloatArray:
        """Return p_calibrated, same shape as p."""
        return np.asarray(expit(self.intercept + self.slope * logit(_inside(np.asarray(p, dtype=np.float64)))))

    def to_dict(self) -> dict[str, Any]:
        """Return name and parameters."""
        return {"name": "logit", "intercept": self.intercept, "slope": self.slope, "epsilon": EPSILON}


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """The best non-decreasing step function, with straight lines between its steps.

    Steps of only negatives or only positives would say 0 or 1, so half a positive label is added at the lowest p and
    half a negative one at the highest: a lowest step of n negatives says 0.5 / (n + 0.5).

    Attributes:
        knots: Soft labels at which the value is given, ascending, shape (J,).
        values: The values there, shape (J,).
    """

    knots: FloatArray
    values: FloatArray

    def apply(self, p: ArrayLike) -> FloatArray:
        """Return p_calibrated, same shape as p; beyond the knots the first and last value go on."""
        return np.asarray(np.interp(np.asarray(p, dtype=np.float64), self.knots, self.values))

    def to_dict(self) -> dict[str, Any]:
        """Return name and knots."""
        return {"name": "isotonic", "knots": self.knots.tolist(), "values": self.values.tolist()}


@dataclass(frozen=True, eq=False)
class SoftMapFit:
    """A fitted map and what it is worth on labels that it has not seen.

    Attributes:
        map: The map.
        chosen_by: "log loss" when both maps were tried, "request" when one was asked for.
        n_positive: Expert positives that it was fitted on.
        n_negative: Expert negatives.
        log_loss_before: Mean log loss of p itself, weighted by the design.
        log_loss_after: Cross-validated log loss of each map, by name.
    """

    map: LogitMap | IsotonicMap
    chosen_by: str
    n_positive: int
    n_negative: int
    log_loss_before: float
    log_loss_after: dict[str, float]

    @property
    def improves(self) -> bool:
        """Whether the map has the lower log loss."""
        return self.log_loss_after[self.name] < self.log_loss_before

    @property
    def name(self) -> str:
        """Name of the map."""
        return "logit" if isinstance(self.map, LogitMap) else "isotonic"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values = {key: value for key, value in vars(self).items() if key != "map"}
        return {"map": self.map.to_dict(), "improves": self.improves, "folds": FOLDS, **values}


def fit_soft_map(
    p: ArrayLike, labels: ArrayLike, *, weight: ArrayLike | None = None, method: MapName = "auto", seed: int = 0
) -> SoftMapFit:
    """Fit the map from soft labels to the experts' rate.

    Args:
        p: Soft labels of expert-labelled items, shape (N,).
        labels: Their expert labels, 0 or 1, shape (N,).
        weight: Weights of the sampling design, shape (N,).
        method: "logit" (two parameters, Platt's smoothed targets), "isotonic", or "auto": whichever has the lower
            cross-validated log loss, the logit map at a tie.
        seed: Seed of the folds.

    Raises:
        InputError: Fewer than `MIN_PER_CLASS` labels of either class.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> honest = rng.random(1000)
        >>> labels = rng.random(1000) < honest
        >>> overconfident = expit(3 * logit(honest))
        >>> fit = fit_soft_map(overconfident, labels, method="logit")
        >>> round(fit.map.slope, 1), fit.improves
        (0.3, True)
    """
    check_choice(method, get_args(MapName), "method")
    values = as_probabilities(p, "p")
    targets = as_probabilities(labels, "labels")
    check_same_length(len(values), labels=targets)
    given = as_weights(weight, len(values), "weight")
    weights = np.ones(len(values)) if given is None else given / given.mean()
    _refuse_few(targets)
    names = ("logit", "isotonic") if method == "auto" else (method,)
    losses = {name: _cross_validated(name, values, targets, weights, seed) for name in names}
    best = min(names, key=losses.__getitem__)
    return SoftMapFit(
        map=_FITTERS[best](values, targets, weights),
        chosen_by="log loss" if method == "auto" else "request",
        n_positive=int(targets.sum()),
        n_negative=int(len(targets) - targets.sum()),
        log_loss_before=_log_loss(values, targets, weights),
        log_loss_after=losses,
    )


def _refuse_few(targets: FloatArray) -> None:
    if not np.isin(targets, (0.0, 1.0)).all():
        raise InputError("expert labels must be 0 or 1")
    positive = int(targets.sum())
    for name, count in (("positive", positive), ("negative", len(targets) - positive)):
        if count < MIN_PER_CLASS:
            raise InputError(
                f"too few expert labels to calibrate soft labels: {count} {name}, and {MIN_PER_CLASS} are needed"
            )


def _fit_logit(p: FloatArray, targets: FloatArray, weights: FloatArray) -> LogitMap:
    fit = platt_scaling(targets, logit(_inside(p)), sample_weight=weights)
    if fit.a > 0:  # the experts' rate falls with p: the best monotone map is a constant
        fit = platt_scaling(targets, np.zeros_like(p), sample_weight=weights)
    return LogitMap(intercept=-fit.b, slope=max(0.0, -fit.a))


def _fit_isotonic(p: FloatArray, targets: FloatArray, weights: FloatArray) -> IsotonicMap:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True, out_of_bounds="clip")
    # Half a positive at the lowest p and half a negative at the highest: pooling spreads them as far as they reach.
    model.fit(
        np.concatenate([[p.min()], p, [p.max()]]),
        np.concatenate([[1.0], targets, [0.0]]),
        sample_weight=np.concatenate([[0.5], weights, [0.5]]),
    )
    return IsotonicMap(model.X_thresholds_, model.y_thresholds_)


_FITTERS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], LogitMap | IsotonicMap]] = {
    "logit": _fit_logit,
    "isotonic": _fit_isotonic,
}


def _cross_validated(name: str, p: FloatArray, targets: FloatArray, weights: FloatArray, seed: int) -> float:
    fold = _folds(targets, seed)
    predicted = np.empty_like(p)
    for number in range(FOLDS):
        held_out = fold == number
        seen = ~held_out
        predicted[held_out] = _FITTERS[name](p[seen], targets[seen], weights[seen]).apply(p[held_out])
    return _log_loss(predicted, targets, weights)


def _folds(targets: FloatArray, seed: int) -> NDArray[np.int64]:
    """Assign each label to a fold, at random and evenly within each class."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(targets), dtype=np.int64)
    for label in (0.0, 1.0):
        members = rng.permutation(np.flatnonzero(targets == label))
        fold[members] = np.arange(len(members)) % FOLDS
    return fold


def _log_loss(p: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
    return log_loss(targets, _inside(p), sample_weight=weights)


def _inside(p: FloatArray) -> FloatArray:
    return np.asarray(np.clip(p, EPSILON, 1 - EPSILON))
