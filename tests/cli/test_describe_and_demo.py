"""`softgold describe` and `softgold demo`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softgold.readers import read_votes

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_describe_as_text_and_json(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,vote\nx,a,1\nx,b,1\ny,a,0\ny,b,\n")
    text, as_json = cli("describe", path), cli("describe", path, "--json")
    description = read_votes(path).describe()
    assert (text.code, as_json.code) == (0, 0)
    assert text.out == f"{description}\n"
    assert text.err == as_json.err == ""
    value = json.loads(as_json.out)
    assert (value["n_items"], value["n_votes"], value["n_abstentions"]) == (2, 3, 1)
    assert value["agreement"]["share"] == 1.0
    assert value["warnings"] == list(description.warnings)


@pytest.mark.slow
def test_demo(cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    answer = cli("demo", "-o", folder)
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.splitlines()[-1] == f"report: {folder / 'report.html'}"
    shown = re.search(r"```text\n(.*?)^report: ", README, flags=re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown.group(1) in answer.err  # the figures of the README are those of the demo
    made = [
        "annotators.csv",
        "calibration.json",
        "evaluation.json",
        "labels.csv",
        "metrics.csv",
        "report.html",
        "run.json",
    ]
    assert set(made) <= {path.name for path in folder.iterdir()}
    frame = pd.read_csv(folder / "soft_labels.csv", dtype={"item": "str"})
    assert len(frame) == 2000
    assert frame["p"].between(0, 1).all()
    assert json.loads((folder / "run.json").read_text())["format"]
    # An existing run is replaced with --force only. That the study gives the same figures each time is known from those
    # of the README; here another stands in for it.
    before = (folder / "soft_labels.csv").read_bytes()
    refused = cli("demo", "-o", folder)
    assert refused.code == 2
    assert "--force" in refused.err
    assert (folder / "soft_labels.csv").read_bytes() == before
    monkeypatch.setattr("softgold.cli.demo.run_study", lambda _, there, **__: [(there / "run.json").write_text("")])
    again = cli("demo", "-o", folder, "--force", "-q")
    assert (again.code, again.err) == (0, "")
    assert [path.name for path in folder.iterdir()] == ["run.json"]
