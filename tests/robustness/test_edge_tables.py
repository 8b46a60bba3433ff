"""Unanimous, single-class, constant-score and one-item tables: a result or a sentence from every command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robustness.conftest import Server

LINES = [
    "calibrate run --experts experts.csv --n-bootstrap 20",
    "evaluate run --scores scores.csv --n-bootstrap 20 --n-vote-bootstrap 5",
    "report run",
    "sample-experts run -o sheet.csv",
    "predict run votes.csv -o predicted.csv",
]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("model", ["two-class", "mean"])
@pytest.mark.parametrize("kind", ["unanimous", "single class", "constant score", "one item", "one annotator"])
def test_a_result_or_a_sentence(server: Server, tmp_path: Path, kind: str, model: str) -> None:
    random = np.random.default_rng(0)
    items = [f"i{n}" for n in range(1 if kind == "one item" else 12)]
    truth = {item: 1 if kind == "single class" else n % 2 for n, item in enumerate(items)}
    noise = 0.2 if kind in ("constant score", "one annotator") else 0.0
    people = ["a"] if kind == "one annotator" else list("abcd")
    votes = [(i, a, truth[i] ^ int(random.random() < noise)) for i in items for a in people]
    pd.DataFrame(votes, columns=["item", "annotator", "vote"]).to_csv(tmp_path / "votes.csv", index=False)
    experts = [(i, e, truth[i]) for i in items for e in "xy"]
    pd.DataFrame(experts, columns=["item", "annotator", "label"]).to_csv(tmp_path / "experts.csv", index=False)
    scores = {m: 0.5 if kind == "constant score" else random.random(len(items)) for m in ("one", "two")}
    pd.DataFrame({"item": items, **scores}).to_csv(tmp_path / "scores.csv", index=False)
    engine = "--engine coordinate" if model == "two-class" else ""
    for line in (f"fit votes.csv -o run --model {model} {engine}", *LINES):
        done = server.run(*line.split(), folder=tmp_path)
        assert done.code in (0, 2), (line, done.err)
        assert "Traceback" not in done.err
    assert (tmp_path / "run" / "report.html").is_file()
