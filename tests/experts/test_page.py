"""The script that puts measured tables into docs/measured.md."""

from __future__ import annotations

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
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    tables = re.findall(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert {name for name, _ in tables} == {"budgets", "tables", "findings", "simulated"}
    assert all(body.startswith("| ") for _, body in tables)


def test_tables_go_between_their_marks(script: ModuleType) -> None:
    page = "before\n<!-- table: a -->\nold\n<!-- end -->\nbetween\n<!-- table: b -->\n<!-- end -->\n"
    table = script.markdown([{"x": 1, "y": "two"}])
    new = script.insert(page, "a", table)
    assert new == page.replace("old\n", "| x | y |\n|---|---|\n| 1 | two |\n")
    assert script.insert(new, "a", table) == new
    with pytest.raises(SystemExit):
        script.insert(page, "c", table)


def row(data: str, **changes: object) -> dict[str, object]:
    rules = dict.fromkeys(("map", "bins", "changepoint", "largest_jump", "onset", "f1", "youden"), 0.9)
    losses = {"log loss of p": 0.3, "log loss of p_calibrated": 0.2}
    return {
        "data": data,
        "items": 500,
        "budget": 100,
        "sheet": "neyman",
        "draw": 0,
        "0.5": 0.8,
        **rules,
        **losses,
        **changes,
    }


def test_budgets_are_means_over_tables_of_means_over_draws(script: ModuleType) -> None:
    first = [row("a"), row("a", map=0.7, draw=1), row("b", map=1.0), row("b", map=0.2, sheet="paper")]
    rows = [{**part, "budget": 50} for part in first]
    ours, paper = script.budget_table(rows)
    assert (ours["sheet"], ours["labels"]) == ("neyman", 50)
    assert ours["map"] == "0.900"
    assert paper["map"] == "0.200"


def test_one_row_per_table(script: ModuleType) -> None:
    (found,) = script.data_table([row("a"), row("a", map=0.7, draw=1), row("a", budget=25)])
    assert (found["data"], found["accuracy at 0.5"], found["map"]) == ("a", "0.800", "0.800")


def test_findings_end_with_their_mean(script: ModuleType) -> None:
    rows = [{**row("x"), "split": 0}, {**row("y", map=0.5), "split": 0}]
    table = script.finding_table(rows)
    assert [line["finding"] for line in table] == ["x", "y", "mean"]
    assert table[-1]["map"] == "0.700"


def test_simulated_studies_are_summed_up(script: ModuleType) -> None:
    study = {
        "issue": "easy",
        "accuracy_at_half": 0.9,
        "accuracy_at_t": 0.95,
        "threshold": 0.7,
        "accuracy_low": 0.9,
        "accuracy_high": 0.96,
        "log_loss_p": 0.3,
        "log_loss_p_calibrated": 0.2,
    }
    (found,) = script.simulated_table([study, {**study, "accuracy_at_t": 0.8}])
    assert (found["at t"], found["interval of the accuracy holds it"]) == ("0.875", 1)
