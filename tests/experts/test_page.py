"""The script that puts measured tables into docs/calibration.md."""

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
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    tables = re.findall(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert {name for name, _ in tables} == {"budgets", "tables", "findings", "simulated", "priors", "maps"}
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
    rows = [row("a"), row("a", map=0.7, draw=1), row("b", map=1.0), row("b", map=0.2, sheet="paper")]
    ours, paper = script.budget_table(rows)
    assert (ours["sheet"], ours["labels"], ours["tables"]) == ("neyman", 100, 2)
    assert ours["map"] == "0.900"
    assert paper["map"] == "0.200"


def test_one_row_per_table_with_the_gain(script: ModuleType) -> None:
    (found,) = script.data_table([row("a"), row("a", map=0.7, draw=1), row("a", budget=25)])
    assert (found["data"], found["accuracy at 0.5"], found["map"], found["gain"]) == ("a", "0.800", "0.800", "0.000")


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
    assert (found["studies"], found["labels at t no worse"], found["interval of the accuracy holds it"]) == (2, 1, 1)


def test_priors_are_compared_by_the_change_of_the_log_loss(script: ModuleType) -> None:
    rows = [
        {"data": data, "prior": prior, "budget": 10, "draw": 0, "change": change}
        for data, prior, change in (("a", [1, 0.5], -0.02), ("b", [1, 0.5], 0.01), ("a", [2, 0.7], 0.03))
    ]
    table = script.prior_table(rows)
    assert [line["10 labels"] for line in table] == ["-0.0050", "+0.0300"]
    (found,) = script.map_table([{"data": "a", "a": 3.0, "log_s": 0.1}, {"data": "b", "a": -4.0, "log_s": 0.1}])
    assert found["root mean square of a"] == "3.54"
