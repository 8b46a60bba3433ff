"""Whatever soft labels and experts there are: a calibration that keeps its promises, or a sentence."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgold.errors import SoftgoldError, SoftgoldWarning
from softgold.experts import RULES, calibrate
from softgold.output import json_text
from softgold.readers import read_experts, read_soft_labels

soft = st.lists(st.sampled_from([0.0, 1e-9, 0.2, 0.5, 0.50001, 0.9, 1.0]) | st.floats(0, 1), min_size=1, max_size=60)
answers = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 3), st.booleans()), min_size=1, max_size=150)
choices = st.fixed_dictionaries(
    {
        "rule": st.sampled_from(RULES),
        "bins": st.integers(0, 12),
        "scheme": st.sampled_from(["rank", "width"]),
        "of": st.sampled_from(["all", "sampled"]),
        "tie": st.sampled_from(["negative", "positive"]),
        "ignore_unknown": st.booleans(),
        "seed": st.integers(0, 5),
    }
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(soft, answers, choices)
def test_a_calibration_or_a_sentence(
    p: list[float], said: list[tuple[int, int, bool]], options: dict[str, object]
) -> None:
    frame = pd.DataFrame(said, columns=["item", "expert", "label"]).drop_duplicates(["item", "expert"])
    labels = read_soft_labels(pd.DataFrame({"item": np.arange(len(p)), "p": p}))
    target = 0.6 if options["rule"] in ("precision", "recall") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SoftgoldWarning)
        try:
            result = calibrate(labels, read_experts(frame), target=target, replicates=20, **options)
        except SoftgoldError:
            return
    assert 0 <= result.threshold <= 1
    np.testing.assert_array_equal(result.labels.label, (np.array(p) >= result.threshold).astype(int))
    known = frame[frame["item"] < len(p)]
    assert result.bins["labelled"].sum() == known["item"].nunique()
    assert result.bins["items"].sum() == len(p)
    for interval in result.intervals:
        assert np.isnan(interval.low) or 0 <= interval.low <= interval.high <= 1
        assert interval.positives_low <= interval.positives_high
    mapped = result.labels.p_calibrated
    if result.soft_map.fit is not None:
        assert ((mapped > 0) & (mapped < 1)).all()
        assert (np.diff(mapped[np.argsort(p, kind="stable")]) >= 0).all()
    assert json.loads(json_text(result.to_dict()))["threshold"] == result.threshold
