"""Risk-coverage curves and their areas: worked examples, all orders of ties, the oracle."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from softgold.errors import InputError, UsageError
from softgold.metrics import aurc, excess_aurc, risk_coverage_curve

# risk, confidence, trapezoid, riemann, excess by trapezoid, excess by riemann
WORKED = [
    (
        [0.1, 0.4, 0.2, 0.8, 0.05],
        [5, 3, 4, 1, 2],
        (0.17516666666666666, 0.19616666666666666, 0.05333333333333334, 0.04833333333333333),
    ),
    (
        [0.1, 0.4, 0.2, 0.8, 0.05],
        [5, 3, 3, 3, 1],
        (0.231, 0.28255555555555556, 0.10916666666666666, 0.13472222222222222),
    ),
    ([0.1, 0.2, 0.3, 0.9], [4, 3, 2, 1], (0.171875, 0.20625, 0, 0)),
    ([0.3], [1], (0.3, 0.3, 0, 0)),
    ([0, 0, 0], [1, 2, 3], (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("risk", "confidence", "expected"), WORKED)
def test_worked_examples(risk, confidence, expected):
    values = [metric(risk, confidence, integral=i) for metric in (aurc, excess_aurc) for i in ("trapezoid", "riemann")]
    assert_allclose(values, expected, rtol=0, atol=1e-12)
    assert aurc(risk, confidence) == values[1]
    assert excess_aurc(risk, confidence) == values[3]


def test_riemann_is_the_mean_over_all_orders_of_ties():
    risk, confidence = np.array([0.3, 0.9, 0.1, 0.5, 0.0]), np.array([1, 1, 2, 1, 0])
    areas = []
    for order in itertools.permutations(range(5)):
        ordered = np.array(order)
        if (np.diff(confidence[ordered]) <= 0).all():
            areas.append((risk[ordered].cumsum() / np.arange(1, 6)).mean())
    assert len(areas) == 6
    assert_allclose(aurc(risk, confidence), np.mean(areas), rtol=1e-12)


CASES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=30)


@given(cases=CASES)
@settings(max_examples=200)
def test_excess_is_never_negative_and_zero_for_the_oracle(cases):
    risk, confidence = (np.array(column, dtype=float) for column in zip(*cases, strict=True))
    assert excess_aurc(risk, confidence) >= 0
    assert excess_aurc(risk, -risk) == 0
    assert risk.min() - 1e-12 <= aurc(risk, confidence) <= risk.max() + 1e-12
    # The clipping hides rounding, not a wrong formula.
    assert aurc(risk, confidence) - aurc(risk, -risk) >= -1e-12


def test_trapezoid_can_reward_ties():
    """A confidence that cannot tell two cases apart beats the oracle: why `riemann` is the default."""
    risk, confidence = [0.0, 0.5, 0.51], [3, 1, 1]
    assert excess_aurc(risk, confidence, integral="trapezoid") < -0.02
    assert excess_aurc(risk, confidence) > 0


def test_curve_ends_at_the_mean_risk():
    curve = risk_coverage_curve([0.1, 0.4, 0.2], [3, 1, 1])
    assert_allclose(curve.coverage, [1 / 3, 1])
    assert_allclose(curve.risk, [0.1, 0.7 / 3])
    assert curve.thresholds.tolist() == [3, 1]


@pytest.mark.parametrize("integral", ["riemann", "trapezoid"])
def test_nothing_is_undefined_and_nonsense_is_named(integral):
    assert math.isnan(aurc([], [], integral=integral))
    assert math.isnan(excess_aurc([], [], integral=integral))
    with pytest.raises(InputError, match="risk must be finite, got nan at position 0"):
        aurc([math.nan], [1], integral=integral)
    with pytest.raises(InputError, match="confidence must have 1 rows"):
        aurc([0.5], [1, 2], integral=integral)
    with pytest.raises(UsageError, match="integral must be one of riemann, trapezoid"):
        aurc([0.5], [1], integral="simpson")
