"""Refit tables with 5 % new votes from where the fit of the others stood, beside a cold fit: sweeps, time, labels.

    python scripts/bench/update.py DIR [--tables NAME ...] [--seeds 3] [--share 0.05]

DIR has one folder per data set with votes.csv. The new votes are drawn from all votes, or from those on a fifth of the
items. "p" is the largest difference of the two fits' soft labels. Both are fits of the coordinate engine.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import softgold
from softgold.models.base import Fit
from softgold.planning.rounds import merge_votes
from softgold.tables.votes import VoteTable

WAYS = {"anywhere": 1.0, "on a fifth of the items": 0.2}


def split(votes: VoteTable, open_share: float, late_share: float, seed: int) -> tuple[VoteTable, VoteTable]:
    """Return the votes of the first fit, and those that are new, on a share of the items."""
    rng, frame = np.random.default_rng(seed), votes.to_frame()
    is_open = rng.random(votes.n_items) < open_share
    rows = rng.permutation(np.flatnonzero(is_open[votes.item_codes]))[: round(late_share * votes.n_votes)]
    late = np.isin(np.arange(votes.n_votes), rows)
    first, new = (softgold.read_votes(frame[part], duplicates="all") for part in (~late, late))
    return first, new


def timed(votes: VoteTable, start: Fit | None = None) -> tuple[Fit, float]:
    """Fit, and return how long it took."""
    began = time.perf_counter()
    found = softgold.fit(votes, engine="coordinate", start=None if start is None else start.posterior)
    return found, time.perf_counter() - began


def measure(votes: VoteTable, way: str, share: float, seed: int) -> dict[str, float]:
    """Return sweeps, seconds and the largest difference of p of one cold and one warm fit."""
    first, late = split(votes, WAYS[way], share, seed)
    start, whole = timed(first)[0], merge_votes(first, late, "all")
    (cold, cold_time), (warm, warm_time) = timed(whole), timed(whole, start)
    gap = np.abs(cold.posterior.soft_labels().p - warm.posterior.soft_labels().p).max()
    sweeps = cold.diagnostics.sweeps, warm.diagnostics.sweeps
    return {
        "cold": sweeps[0],
        "warm": sweeps[1],
        "share": sweeps[1] / sweeps[0],
        "time": warm_time / cold_time,
        "p": float(gap),
    }


def main() -> None:
    """Parse the options, measure every table, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.05)
    options = parser.parse_args()
    warnings.simplefilter("ignore", softgold.errors.SoftgoldWarning)
    rows = []
    for path in sorted(options.folder.glob("*/votes.csv")):
        if options.tables and path.parent.name not in options.tables:
            continue
        votes = softgold.read_votes(path, duplicates="all")
        for way in WAYS:
            for seed in range(options.seeds):
                found = measure(votes, way, options.share, seed)
                rows.append({"table": path.parent.name, "new votes": way, "seed": seed, **found})
                print(rows[-1], flush=True)
    if not rows:
        parser.error(f"{options.folder} has no folder with votes.csv")
    table = pd.DataFrame(rows)
    print(table.groupby(["table", "new votes"])[["cold", "warm", "share", "time", "p"]].mean().to_string())
    print(f"share of the cold sweeps: mean {table['share'].mean():.3f}, largest {table['share'].max():.3f}")
    print(f"share of the cold fit's time: mean {table['time'].mean():.2f}")
    print(f"largest difference of p: {table['p'].max():.1e}")


if __name__ == "__main__":
    main()
