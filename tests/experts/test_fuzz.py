"""Whatever soft labels and answers there are: a calibration that keeps its promises, or a sentence."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgold.errors import SoftgoldError, SoftgoldWarning
from softgold.experts import RULES, calibrate, sample_for_experts
from softgold.output import json_text
from softgold.readers import read_soft_labels
from softgold.runs.results import plain_result

FILES = int(os.environ.get("SOFTGOLD_EXPERT_FILES", "100"))
"""Random expert files to try; 10,000 take about half an hour."""

soft = st.lists(st.sampled_from([0.0, 1e-9, 0.2, 0.5, 0.50001, 0.9, 1.0]) | st.floats(0, 1), min_size=1, max_size=60)
words = st.sampled_from(["yes", "no", "1", "0", "unsure", "", "Yes", "?", "perhaps"])
answers = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 3), words), min_size=0, max_size=150)
choices = st.fixed_dictionaries(
    {
        "rule": st.sampled_from(RULES),
        "bins": st.none() | st.integers(0, 25),
        "scheme": st.sampled_from(["rank", "width", "neyman"]),
        "soft_map": st.sampled_from(["logit", "isotonic", "auto"]),
        "of": st.sampled_from(["all", "sampled"]),
        "tie": st.sampled_from(["negative", "positive"]),
        "cost": st.none() | st.sampled_from([(1, 1), (1, 20), (7, 1)]),
        "ignore_unknown": st.booleans(),
        "seed": st.integers(0, 5),
    }
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(soft, answers, choices)
def test_a_calibration_or_a_sentence(
    p: list[float], said: list[tuple[int, int, str]], options: dict[str, object]
) -> None:
    frame = pd.DataFrame(said, columns=["item", "expert", "answer"])
    labels = read_soft_labels(pd.DataFrame({"item": np.arange(len(p)), "p": p}))
    target = 0.6 if options["rule"] in ("precision", "recall") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SoftgoldWarning)
        try:
            result = calibrate(labels, frame, target=target, n_bootstrap=20, **options)
        except SoftgoldError:
            return
    assert 0 <= result.threshold <= np.nextafter(1, 2)
    np.testing.assert_array_equal(result.labels.label, (np.array(p) >= result.threshold).astype(int))
    decided = frame[frame["answer"].isin(["yes", "no", "1", "0", "Yes"]) & (frame["item"] < len(p))]
    assert result.n_labelled == decided["item"].nunique()
    assert result.bins["items"].sum() == len(p)
    for interval in result.intervals:
        assert np.isnan(interval.low) or 0 <= interval.low <= interval.high <= np.nextafter(1, 2)
        assert interval.positives_low <= interval.positives_high
    mapped = result.labels.p_calibrated
    assert ((mapped >= 0) & (mapped <= 1)).all()
    assert (np.diff(mapped[np.argsort(p, kind="stable")]) >= -1e-12).all()
    assert json.loads(json_text(plain_result(result)))["threshold"] == result.threshold


def random_file(rng: np.random.Generator, path: Path, n_items: int) -> Path:
    """Write answers as people send them back: few, one class, one expert, all unsure, unknown items, contradictions."""
    n = int(rng.choice([0, 1, 2, 5, 20, 80]))
    kind = rng.choice(["plain", "one class", "unsure", "unknown", "contradictions", "noise"])
    words = {"one class": ["yes"], "unsure": ["unsure"], "noise": ["yes", "no", "maybe", "x", "2", "", "-1"]}
    items = rng.integers(0, n_items * (2 if kind == "unknown" else 1), n)
    if kind != "contradictions":
        items = np.unique(items)
    said = rng.choice(words.get(str(kind), ["yes", "no", "unsure", ""]), len(items))
    columns = {"item": [f"i{number}" for number in items], "answer": said}
    if rng.random() < 0.6:
        columns["expert"] = rng.choice(["ann", "bob", "cem"][: rng.integers(1, 4)], len(items))
    frame = pd.DataFrame(columns)[list(rng.permutation(list(columns)))]
    text = frame.to_csv(index=False, sep=rng.choice([",", ";"]), lineterminator=str(rng.choice(["\n", "\r\n"])))
    if rng.random() < 0.1:  # a file that was cut off, or has something typed into it
        text = text[: rng.integers(0, len(text) + 1)] + str(rng.choice(["", '"', ";;;", "\x00", "\n,,\n"]))
    path.write_bytes(("\ufeff" if rng.random() < 0.3 else "").encode() + text.encode())
    return path


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_random_expert_files_give_an_answer_or_a_sentence(part: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(part)
    answered = 0
    for _ in range(FILES // 10):
        n_items = int(rng.choice([3, 30, 120]))
        values = rng.beta(0.5, 0.9, n_items) if rng.random() < 0.6 else rng.choice([0.0, 1 / 3, 2 / 3, 1.0], n_items)
        labels = read_soft_labels(pd.DataFrame({"item": [f"i{number}" for number in range(n_items)], "p": values}))
        rule = str(rng.choice(RULES))
        settings = {
            "rule": rule,
            "target": 0.5 if rule in ("precision", "recall") else None,
            "soft_map": str(rng.choice(["logit", "isotonic"])),
            "ignore_unknown": bool(rng.random() < 0.7),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SoftgoldWarning)
            if rng.random() < 0.3 and rule != "paper":
                settings["sample"] = sample_for_experts(labels, min(20, n_items), seed=part)
            try:
                path = random_file(rng, tmp_path / "answers.csv", n_items)
                result = calibrate(labels, path, n_bootstrap=10, **settings)
            except SoftgoldError:
                continue
        answered += 1
        np.testing.assert_array_equal(result.labels.label, (labels.p >= result.threshold).astype(int))
        assert np.isfinite(result.labels.p_calibrated).all()
        assert result.error_rates.sentence
    assert answered
