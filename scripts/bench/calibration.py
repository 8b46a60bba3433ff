"""Calibrated labels against the truth of simulated studies: do they beat p >= 0.5, and how sure is the threshold?

For each issue type of the `cleanpatrick` preset and each seed: simulate, aggregate the votes, draw a sheet of 400 items
for three simulated experts, calibrate, and compare labels with the truth. Prints one row per study and a summary per
issue type, and writes the rows as JSON if asked:

    python scripts/bench/calibration.py --seeds 10 --rule map --scheme neyman --json FILE
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgold.errors import SoftgoldWarning
from softgold.experts import calibrate
from softgold.experts.sampling import sample_for_experts
from softgold.models.baselines import Mean
from softgold.simulation import CLEANPATRICK_ISSUES, Simulation, ask_experts, simulate
from softgold.simulation.presets import preset_settings
from softgold.tables.experts import ExpertLabels
from softgold.tables.soft_labels import SoftLabels
from softgold.tables.votes import VoteTable


def aggregate(votes: VoteTable, aggregator: str) -> SoftLabels:
    """Return soft labels by the vote share or by the model."""
    if aggregator == "mean":
        return Mean().aggregate(votes)
    from softgold.models.base import fit

    return fit(votes, engine="coordinate").posterior.soft_labels()


def study(issue: str, seed: int, aggregator: str, rule: str, scheme: str, **changes: float) -> dict[str, Any]:
    """Simulate and calibrate one study, and compare the labels with the truth; `changes` are settings of the preset."""
    simulation = simulate(
        "cleanpatrick", issue=issue, seed=seed, expert_errors=(), model_aurocs=(), model_ambiguity=(), **changes
    )
    soft_labels = aggregate(simulation.votes, aggregator)
    sample = sample_for_experts(soft_labels, scheme=scheme, seed=seed)
    experts = ask_panel(simulation, sample.item_ids, issue, seed)
    result = calibrate(soft_labels, experts, sample=sample, rule=rule, seed=seed)
    truth = simulation.truth.label[simulation.truth.item_ids.get_indexer(soft_labels.item_ids)]
    panel, both = result.interval("panel"), result.interval("both")
    return {
        "issue": issue,
        "seed": seed,
        "threshold": result.threshold,
        "accuracy_at_half": float(np.mean((soft_labels.p >= 0.5) == truth)),
        "accuracy_at_t": float(np.mean(result.labels.label == truth)),
        "prevalence": float(truth.mean()),
        "prevalence_at_t": result.after.prevalence,
        "panel_low": panel.low,
        "panel_high": panel.high,
        "panel_is_point": panel.is_point,
        "both_low": both.low,
        "both_high": both.high,
        "alpha": result.agreement.alpha if result.agreement else float("nan"),
        "expert_positives": int(result.bins["positives"].sum()),
        "log_loss_p": log_loss(soft_labels.p, truth),
        "log_loss_p_calibrated": log_loss(result.labels.p_calibrated, truth),
        "accuracy": result.error_rates.accuracy.value,
        "accuracy_low": result.error_rates.accuracy.low,
        "accuracy_high": result.error_rates.accuracy.high,
    }


def ask_panel(simulation: Simulation, items: pd.Index, issue: str, seed: int) -> ExpertLabels:
    """Let the three experts of the preset label the sampled items."""
    settings = preset_settings("cleanpatrick", issue=issue)
    return ask_experts(
        simulation.truth, items, errors=settings.expert_errors, ability=settings.expert_ability, seed=seed
    )


def log_loss(p: np.ndarray, truth: np.ndarray) -> float:
    """Return the log loss against the truth, p kept 1e-6 from 0 and 1."""
    inside = np.clip(p, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(truth == 1, np.log(inside), np.log1p(-inside))))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per issue type."""
    grouped = rows.assign(
        not_worse=rows["accuracy_at_t"] >= rows["accuracy_at_half"],
        panel_width=rows["panel_high"] - rows["panel_low"],
        p_calibrated_better=rows["log_loss_p_calibrated"] < rows["log_loss_p"],
    ).groupby("issue", sort=False)
    return grouped.agg(
        seeds=("seed", "size"),
        not_worse=("not_worse", "sum"),
        threshold=("threshold", "median"),
        accuracy_at_half=("accuracy_at_half", "mean"),
        accuracy_at_t=("accuracy_at_t", "mean"),
        panel_points=("panel_is_point", "sum"),
        panel_width=("panel_width", "median"),
        alpha=("alpha", "median"),
        log_loss_p=("log_loss_p", "mean"),
        log_loss_p_calibrated=("log_loss_p_calibrated", "mean"),
        p_calibrated_better=("p_calibrated_better", "sum"),
    )


def main() -> None:
    """Parse the options, run the studies, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--aggregator", choices=["coordinate", "mean"], default="coordinate")
    parser.add_argument("--rule", default="map")
    parser.add_argument("--scheme", choices=["neyman", "paper"], default="neyman")
    parser.add_argument("--issue", choices=list(CLEANPATRICK_ISSUES), action="append")
    parser.add_argument("--difficulty-scale", type=float, help="in place of the preset's: larger is easier")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SoftgoldWarning)
    scale = options.difficulty_scale
    changes = {} if scale is None else {"model": "glad", "difficulty_scale": scale}
    rows = []
    for issue in options.issue or CLEANPATRICK_ISSUES:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            rows.append(study(issue, seed, options.aggregator, options.rule, options.scheme, **changes))
            print(json.dumps(rows[-1]), flush=True)
    table = pd.DataFrame(rows)
    print(summary(table).round(4).T.to_string())
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
