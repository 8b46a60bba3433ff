"""Reading votes from Parquet, beside `pandas.read_parquet` and `factorize` of both id columns, in one run.

Prints the time of each, their ratio, and the bytes a vote that the table holds:

    python scripts/bench/read.py --votes 10000000
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from softgold import read_votes


def make_votes(n_votes: int, *, votes_per_item: int, n_annotators: int, text_ids: bool, seed: int) -> pd.DataFrame:
    """Return shuffled votes in which no annotator votes twice on an item."""
    rng = np.random.default_rng(seed)
    items = np.repeat(np.arange(n_votes // votes_per_item), votes_per_item)
    start = np.repeat(rng.integers(n_annotators, size=len(items) // votes_per_item), votes_per_item)
    annotators = (start + 7 * np.tile(np.arange(votes_per_item), len(items) // votes_per_item)) % n_annotators
    order = rng.permutation(len(items))
    frame = pd.DataFrame({"item": items, "annotator": annotators, "vote": rng.integers(2, size=len(items))})
    if text_ids:
        frame["item"] = "image_" + frame["item"].astype("str")
        frame["annotator"] = "a" + frame["annotator"].astype("str")
    return frame.iloc[order]


def read_with_pandas(path: Path) -> None:
    """Do what the ratio is measured against."""
    frame = pd.read_parquet(path)
    frame["item"].factorize()
    frame["annotator"].factorize()


def seconds(action: Callable[[Path], object], path: Path) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action(path)
    return time.perf_counter() - start


def measure(path: Path, rounds: int) -> dict[str, float]:
    """Time both in turn, so that a busy machine slows both, and compare the medians."""
    times = [(seconds(read_with_pandas, path), seconds(read_votes, path)) for _ in range(rounds)]
    pandas_time, our_time = np.median(times, axis=0)
    votes = read_votes(path)
    return {
        "votes": votes.n_votes,
        "pandas_seconds": round(float(pandas_time), 3),
        "read_votes_seconds": round(float(our_time), 3),
        "ratio": round(float(our_time / pandas_time), 3),
        "bytes_per_vote": round(votes.nbytes / votes.n_votes, 2),
    }


def main() -> None:
    """Parse the options, measure text and integer ids, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=10_000_000)
    parser.add_argument("--votes-per-item", type=int, default=10)
    parser.add_argument("--annotators", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("text", "integer"):
            path = Path(folder) / f"{kind}.parquet"
            make_votes(
                options.votes,
                votes_per_item=options.votes_per_item,
                n_annotators=options.annotators,
                text_ids=kind == "text",
                seed=options.seed,
            ).to_parquet(path, index=False)
            results[f"{kind}_ids"] = measure(path, options.rounds)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
