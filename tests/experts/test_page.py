"""The script that re-makes the tables of docs/calibration.md, as far as it goes without the data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("make_calibration_page")


def test_every_table_of_the_page_is_filled() -> None:
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    tables = re.findall(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert {name for name, _ in tables} == {
        "simulated",
        "chexpert",
        "chexpert-held-out",
        "relex",
        "relex-log-loss",
        "relex-held-out",
    }
    assert all(body.startswith("| ") for _, body in tables)


def test_tables_go_between_their_marks(script: ModuleType) -> None:
    page = "before\n<!-- table: a -->\nold\n<!-- end -->\nbetween\n<!-- table: b -->\n<!-- end -->\n"
    table = script.markdown([{"x": 1, "y": "two"}])
    new = script.insert(page, "a", table)
    assert new == page.replace("old\n", "| x | y |\n|---|---|\n| 1 | two |\n")
    assert script.insert(new, "a", table) == new
    with pytest.raises(SystemExit):
        script.insert(page, "c", table)


def test_simulated_studies_are_summed_up(script: ModuleType, tmp_path: Path) -> None:
    row = {
        "issue": "easy",
        "accuracy_at_half": 0.9,
        "accuracy_at_t": 0.95,
        "panel_low": 0.7,
        "panel_high": 0.7,
        "threshold": 0.7,
        "alpha": 0.8,
        "log_loss_p": 0.3,
        "log_loss_p_calibrated": 0.2,
    }
    path = tmp_path / "bench.json"
    path.write_text(json.dumps([row, {**row, "accuracy_at_t": 0.8, "panel_high": 0.9}]))
    (summary,) = script.bench_table(path)["simulated"]
    assert (summary["studies"], summary["labels at t no worse"], summary["panel interval is a point"]) == (2, 1, 1)
    assert summary["its width, median"] == "0.100"
