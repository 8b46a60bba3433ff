"""Run every aggregator over real vote tables with a known truth, and print how far each is right.

    python scripts/bench/real.py DIR [--subsets 15 50] [--json FILE] [--markdown FILE]

DIR has one folder per data set with votes.csv and truth.csv (`item,label`; may cover some of the items only). Repeated
votes of an annotator on an item are kept as votes of their own. Log losses clip p to [1e-4, 1 - 1e-4]: a method that
says 0 or 1 and is wrong pays 9.2 nats for it. `--subsets` adds fits of random subsets of so many items, ten per table.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import softgold
from softgold.metrics import brier_score, log_loss, soft_auroc
from softgold.tables.votes import VoteTable

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
        "two-class, coordinate": model(engine="coordinate"),
        "two-class, svi": model(engine="svi"),
        "glad, coordinate": model(model="glad", engine="coordinate"),
        "glad, svi": model(model="glad", engine="svi"),
        "published recipe": model(model="glad", init="paper", prior="paper", max_steps=paper_steps),
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
    clipped = np.clip(p, 1e-4, 1 - 1e-4)
    values = (right.mean(), soft_auroc(truth, p), log_loss(truth, clipped), brier_score(truth, p))
    return dict(zip(METRICS, map(float, values), strict=True))


def tables(folder: Path) -> Iterator[tuple[str, VoteTable, NDArray[np.intp], NDArray[np.int8]]]:
    """Give each data set: its name, its votes, the items with a known truth, and their labels."""
    for table in sorted(folder.glob("*/votes.csv")):
        if not (table.parent / "truth.csv").is_file():
            continue
        votes = softgold.read_votes(table, duplicates="all")
        truth = softgold.read_experts(table.parent / "truth.csv")
        where = votes.item_ids.get_indexer(truth.item_ids[truth.item_codes])
        yield table.parent.name, votes, where[where >= 0], truth.labels[where >= 0]


def subset(votes: VoteTable, items: NDArray[np.intp]) -> VoteTable:
    """Return the votes on some items."""
    chosen = np.isin(votes.item_codes, items)
    frame = votes.to_frame()[chosen]
    return softgold.read_votes(frame, duplicates="all")


def bench_subsets(folder: Path, sizes: list[int], draws: int = 10) -> pd.DataFrame:
    """Return the log loss of the two-class model and of the smoothed mean on random subsets of items."""
    rows = []
    chosen = ("smoothed mean", "two-class, coordinate", "two-class, svi")
    for name, votes, where, labels in tables(folder):
        for size in sizes:
            for draw in range(draws):
                rng = np.random.default_rng([size, draw])
                picked = rng.choice(len(where), min(size, len(where)), replace=False)
                part = subset(votes, where[picked])
                places = part.item_ids.get_indexer(votes.item_ids[where[picked]])
                for method in chosen if draw < 2 else chosen[:2]:  # svi takes seconds however small the table
                    p = methods(1)[method](part)[places]
                    rows.append({"data set": name, "items": size, "method": method, **judge(p, labels[picked])})
    return pd.DataFrame(rows)


def bench(folder: Path, paper_steps: int, only: list[str] | None = None) -> pd.DataFrame:
    """Return one row per method and data set."""
    rows = []
    for table, votes, where, labels in tables(folder):
        for name, method in methods(paper_steps).items():
            if only and name not in only:
                continue
            p = method(votes)[where]
            rows.append({"data set": table, "method": name, **judge(p, labels)})
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def markdown(results: pd.DataFrame) -> str:
    """Return one table per metric, methods down, data sets across, with the mean."""
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
    parser.add_argument(
        "--subsets", type=int, nargs="*", default=[], metavar="N", help="also random subsets of N items"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    results = bench(options.folder, options.paper_steps, options.method)
    print(markdown(results))
    if options.subsets:
        parts = bench_subsets(options.folder, options.subsets)
        print("log loss on random subsets of items, mean over tables and draws")
        print(parts.groupby(["items", "method"], sort=False)["log loss"].mean().round(3).to_string())
    if options.json:
        options.json.write_text(json.dumps(results.to_dict(orient="records"), indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(results))


if __name__ == "__main__":
    main()
