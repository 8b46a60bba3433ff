"""Put the tables on expert labels into docs/measured.md; the text around them is left alone.

python scripts/bench/experts.py DATA --json experts.json
python scripts/bench/calibration.py --json simulated.json
python scripts/make_calibration_page.py --experts experts.json --simulated simulated.json
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# The rules that the page shows; the others are rows of the JSON only.
RULES = ("map", "bins", "changepoint")
LOSSES = ("log loss of p", "log loss of p_calibrated")
AT = 100
BUDGETS = (10, 50, 400)

Rows = list[dict[str, Any]]


def budget_table(rows: Rows) -> Rows:
    """Return one row per sheet and budget: means over the tables of their means over draws."""
    frame = pd.DataFrame(rows)
    frame = frame[frame["budget"].isin(BUDGETS)]
    per_table = frame.groupby(["sheet", "budget", "data"]).mean(numeric_only=True)
    return [
        {
            "sheet": sheet,
            "labels": budget,
            "accuracy at 0.5": _three(part["0.5"].mean()),
            **{rule: _three(part[rule].mean()) for rule in RULES},
            "log loss of p": _three(part[LOSSES[0]].mean()),
            "of p_calibrated": _three(part[LOSSES[1]].mean()),
        }
        for (sheet, budget), part in per_table.groupby(level=["sheet", "budget"])
    ]


def data_table(rows: Rows) -> Rows:
    """Return one row per data set with our sheet of 100 labels."""
    frame = pd.DataFrame(rows)
    chosen = frame[(frame["sheet"] == "neyman") & (frame["budget"] == AT)]
    means = chosen.groupby("data", sort=False).mean(numeric_only=True)
    return [
        {
            "data": name,
            "accuracy at 0.5": _three(row["0.5"]),
            "map": _three(row["map"]),
            "log loss of p": _three(row[LOSSES[0]]),
            "of p_calibrated": _three(row[LOSSES[1]]),
        }
        for name, row in means.iterrows()
    ]


def finding_table(rows: Rows) -> Rows:
    """Return one row per finding, and their mean."""
    means = pd.DataFrame(rows).groupby("data", sort=False).mean(numeric_only=True)
    means.loc["mean"] = means.mean()
    return [
        {
            "finding": name,
            "accuracy at 0.5": _three(row["0.5"]),
            **{rule: _three(row[rule]) for rule in RULES},
            "log loss of p": _three(row[LOSSES[0]]),
            "of p_calibrated": _three(row[LOSSES[1]]),
        }
        for name, row in means.iterrows()
    ]


def simulated_table(rows: Rows) -> Rows:
    """Return one row per issue type."""
    table: Rows = []
    for issue, part in pd.DataFrame(rows).groupby("issue", sort=False):
        holds = (part["accuracy_low"] <= part["accuracy_at_t"]) & (part["accuracy_at_t"] <= part["accuracy_high"])
        table.append(
            {
                "issue type": issue,
                "accuracy at 0.5": _three(part["accuracy_at_half"].mean()),
                "at t": _three(part["accuracy_at_t"].mean()),
                "t, median": _three(part["threshold"].median()),
                "interval of the accuracy holds it": int(holds.sum()),
                "log loss of p": _three(part["log_loss_p"].mean()),
                "of p_calibrated": _three(part["log_loss_p_calibrated"].mean()),
            }
        )
    return table


def _three(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}".replace("-0.000", "0.000")


def markdown(rows: Rows) -> str:
    """Return a table in Markdown."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def insert(page: str, name: str, table: str) -> str:
    """Put a table between its marks."""
    pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"the page has no marks for the table {name!r}")
    return pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)


def main() -> None:
    """Parse the options, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experts", type=Path, help="rows of scripts/bench/experts.py")
    parser.add_argument("--simulated", type=Path, help="rows of scripts/bench/calibration.py")
    parser.add_argument("--page", type=Path, default=Path(__file__).parents[1] / "docs" / "measured.md")
    options = parser.parse_args()
    tables: dict[str, Rows] = {}
    if options.experts:
        measured = json.loads(options.experts.read_text())
        tables |= {"budgets": budget_table(measured["budgets"]), "tables": data_table(measured["budgets"])}
        # The page has the mean over findings only.
        tables |= {"findings": finding_table(measured["tasks"])[-1:]}
    if options.simulated:
        tables |= {"simulated": simulated_table(json.loads(options.simulated.read_text()))}
    page = options.page.read_text(encoding="utf-8")
    for name, rows in tables.items():
        page = insert(page, name, markdown(rows))
    options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
