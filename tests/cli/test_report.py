"""`softgold report`: where the page goes, and the sentences for what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    pd.DataFrame({"item": ["a", "b"], "p": [0.1, 0.9]}).to_csv(folder / "soft_labels.csv", index=False)
    return folder


def test_it_writes_into_the_run(cli: Callable, run: Path) -> None:
    answer = cli("report", run)
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == f"written: {run / 'report.html'}\n"
    assert (run / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_it_writes_elsewhere_and_replaces_when_told(cli: Callable, run: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert cli("report", run, "-o", target, "--quiet").code == 0
    again = cli("report", run, "-o", target)
    assert again.code == 2
    assert "exists already; give --force" in again.err
    assert cli("report", run, "-o", target, "--force").code == 0


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_what_is_no_run(cli: Callable, tmp_path: Path, name: str) -> None:
    answer = cli("report", tmp_path / name)
    assert answer.code == 2
    assert answer.err.startswith("error: ")


def test_damaged_files_are_named(cli: Callable, run: Path) -> None:
    (run / "calibration.json").write_text("[]")
    answer = cli("report", run)
    assert answer.code == 2
    assert "calibration.json is not a record of softgold" in answer.err
    assert not (run / "report.html").exists()


def test_a_run_that_is_not_there_is_named(cli: Callable, tmp_path: Path) -> None:
    answer = cli("report", tmp_path / "typo")
    assert (answer.code, answer.err) == (2, f"error: there is no run {tmp_path / 'typo'}; 'softgold fit' makes one\n")
