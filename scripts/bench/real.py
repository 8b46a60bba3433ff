"""Run every aggregator over real vote tables with a known truth, and print how far each is right.

    python scripts/bench/real.py DIR [--json FILE] [--markdown FILE]

DIR has one folder a data set with votes.csv and truth.csv (`item,label`; may cover some of the items only). Repeated
votes of an annotator on an item are kept as votes of their own. Log losses clip p to [1e-6, 1 - 1e-6]: a method that
says 0 or 1 and is wrong pays 13.8 nats for it.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import softgold
from softgold.metrics import brier_score, log_loss, soft_auroc
from softgold.votes import VoteTable

FloatArray = NDArray[np.float64]
METRICS = ("accuracy", "AUROC", "log loss", "Brier")


def model(**settings: object) -> Callable[[VoteTable], FloatArray]:
    """Return a method that fits the model."""
    return lambda votes: softgold.fit(votes, **settings).posterior.soft_labels().p


def methods(paper_steps: int) -> dict[str, Callable[[VoteTable], FloatArray]]:
    """Return every method by name; crowd-kit's where it is installed."""
    found: dict[str, Callable[[VoteTable], FloatArray]] = {
        "majority": lambda votes: softgold.Majority().aggregate(votes).p,
        "mean": lambda votes: softgold.Mean().aggregate(votes).p,
        "smoothed mean": lambda votes: softgold.Mean(smoothing=(1, 1)).aggregate(votes).p,
        "coordinate": model(engine="coordinate"),
        "svi": model(engine="svi"),
        "paper": model(engine="svi", init="paper", prior="paper", max_steps=paper_steps),
    }
    try:
        from crowdkit.aggregation import GLAD, DawidSkene
    except ImportError:
        return found

    def crowdkit(method: object) -> Callable[[VoteTable], FloatArray]:
        def run(votes: VoteTable) -> FloatArray:
            frame = votes.to_frame().set_axis(["task", "worker", "label"], axis=1)
            shares = method.fit_predict_proba(frame).reindex(votes.item_ids)  # type: ignore[attr-defined]
            return shares.get(1, pd.Series(0.0, index=votes.item_ids)).to_numpy(dtype=np.float64)

        return run

    return {
        **found,
        "crowd-kit DawidSkene": crowdkit(DawidSkene(n_iter=100)),
        "crowd-kit GLAD": crowdkit(GLAD(n_iter=20)),
    }


def judge(p: FloatArray, truth: NDArray[np.int8]) -> dict[str, float]:
    """Return the metrics of soft labels against the truth; p = 0.5 counts as half right."""
    right = np.where(p == 0.5, 0.5, (p > 0.5) == truth)
    clipped = np.clip(p, 1e-6, 1 - 1e-6)
    values = (right.mean(), soft_auroc(truth, p), log_loss(truth, clipped), brier_score(truth, p))
    return dict(zip(METRICS, map(float, values), strict=True))


def bench(folder: Path, paper_steps: int, only: list[str] | None = None) -> pd.DataFrame:
    """Return one row a method and data set."""
    rows = []
    for table in sorted(folder.glob("*/votes.csv")):
        if not (table.parent / "truth.csv").is_file():
            continue
        votes = softgold.read_votes(table, duplicates="all")
        truth = softgold.read_experts(table.parent / "truth.csv")
        where = votes.item_ids.get_indexer(truth.item_ids[truth.item_codes])
        known = where >= 0
        for name, method in methods(paper_steps).items():
            if only and name not in only:
                continue
            p = method(votes)[where[known]]
            rows.append({"data set": table.parent.name, "method": name, **judge(p, truth.labels[known])})
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def markdown(results: pd.DataFrame) -> str:
    """Return a table a metric, methods down, data sets across, with the mean."""
    parts = []
    for metric in METRICS:
        wide = results.pivot(index="method", columns="data set", values=metric)
        wide = wide.reindex(results["method"].unique())
        wide["mean"] = wide.mean(axis=1)
        head = f"| {metric} | " + " | ".join(wide.columns) + " |"
        rule = "|" + "---|" * (len(wide.columns) + 1)
        body = [f"| {name} | " + " | ".join(f"{value:.3f}" for value in row) + " |" for name, row in wide.iterrows()]
        parts.append("\n".join([head, rule, *body]))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--paper-steps", type=int, default=10_000)
    parser.add_argument("--method", action="append", help="only this row; may be repeated (crowd-kit's GLAD is slow)")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    results = bench(options.folder, options.paper_steps, options.method)
    print(markdown(results))
    if options.json:
        options.json.write_text(json.dumps(results.to_dict(orient="records"), indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(results))


if __name__ == "__main__":
    main()
