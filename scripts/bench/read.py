"""Reading votes: from CSV, beside Arrow; from Parquet, beside pandas; from a Label Studio export, beside `json.loads`.

Prints JSON. For CSV: the time beside `pyarrow.csv.read_csv` and `dictionary_encode` of both id columns. For Parquet:
the time beside `pandas.read_parquet` and `factorize` of both id columns. For both, seconds of a processor as well,
which depend less on what else the machine does, and the bytes per vote that the table holds. For the export: the time
beside `json.loads`, and the peak of memory beside the size of the file, each measured in processes of their own:

    python scripts/bench/read.py --votes 10000000
    python scripts/bench/read.py --votes 10000000 --csv
    python scripts/bench/read.py --export 1000000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv as arrow_csv

from softgold import read_votes

CHOICES = ("Positive", "Negative", "Neutral")
# What each process does, with its peak of memory above that of the imports, and its time; kilobytes are Linux's unit.
READ_EXPORT = """
import resource, sys, time
from softgold.readers import read_votes
import pyarrow.compute, json
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
votes = read_votes(sys.argv[1], positive="Positive")
seconds = time.perf_counter() - start
print(json.dumps([seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, votes.n_votes]))
"""
LOAD_JSON = """
import json, resource, sys, time
from pathlib import Path
data = Path(sys.argv[1]).read_bytes()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
value = json.loads(data)
seconds = time.perf_counter() - start
print(json.dumps([seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, len(value)]))
"""


def make_votes(n_votes: int, *, votes_per_item: int, n_annotators: int, text_ids: bool, seed: int) -> pd.DataFrame:
    """Return shuffled votes in which no annotator votes twice on an item."""
    rng = np.random.default_rng(seed)
    items = np.repeat(np.arange(n_votes // votes_per_item), votes_per_item)
    start = np.repeat(rng.integers(n_annotators, size=len(items) // votes_per_item), votes_per_item)
    annotators = (start + 7 * np.tile(np.arange(votes_per_item), len(items) // votes_per_item)) % n_annotators
    order = rng.permutation(len(items))
    frame = pd.DataFrame({"item": items, "annotator": annotators, "vote": rng.integers(2, size=len(items))})
    if text_ids:
        frame["item"] = "item_" + frame["item"].astype("str").str.zfill(7)
        frame["annotator"] = "worker_" + frame["annotator"].astype("str").str.zfill(5)
    return frame.iloc[order]


def write_export(path: Path, n_annotations: int, *, per_task: int, n_annotators: int, seed: int) -> None:
    """Write a Label Studio export with the fields that its server writes."""
    rng = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for task in range(n_annotations // per_task):
            first = int(rng.integers(n_annotators))
            chosen = rng.integers(len(CHOICES), size=per_task)
            annotations = [
                _annotation(task, place, (first + 7 * place) % n_annotators, CHOICES[choice])
                for place, choice in enumerate(chosen)
            ]
            record = {
                "id": task,
                "annotations": annotations,
                "drafts": [],
                "predictions": [],
                "data": {"text": "A sentence of some forty words " * 8},
                "meta": {},
                "created_at": "2025-01-11T18:50:53.405601Z",
                "total_annotations": per_task,
                "project": 75,
            }
            file.write(("," if task else "") + json.dumps(record))
        file.write("]")


def _annotation(task: int, place: int, annotator: int, choice: str) -> dict[str, object]:
    value = {"choices": [choice]}
    result = {"value": value, "id": "mEo2OVUKuC", "from_name": "sentiment", "to_name": "text", "type": "choices"}
    return {
        "id": task * 10 + place,
        "completed_by": annotator,
        "result": [{**result, "origin": "manual"}],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2025-01-11T18:53:45.949733Z",
        "updated_at": "2025-01-11T18:53:45.949908Z",
        "lead_time": 161.508,
        "prediction": {},
        "task": task,
        "updated_by": 1,
        "parent_prediction": None,
    }


def read_with_pandas(path: Path) -> None:
    """Do what the ratio is measured against."""
    frame = pd.read_parquet(path)
    frame["item"].factorize()
    frame["annotator"].factorize()


def read_with_arrow(path: Path) -> None:
    """Do what the ratio is measured against."""
    table = arrow_csv.read_csv(path)
    table.column("item").dictionary_encode()
    table.column("annotator").dictionary_encode()


def seconds(action: Callable[[Path], object], path: Path) -> tuple[float, float]:
    """Return how long an action takes, and how long it kept processors busy."""
    start = time.perf_counter(), time.process_time()
    action(path)
    return time.perf_counter() - start[0], time.process_time() - start[1]


def measure(path: Path, rounds: int, other: Callable[[Path], object], name: str) -> dict[str, float]:
    """Time both in turn, so that a busy machine slows both, and compare the medians."""
    times = [(seconds(other, path), seconds(read_votes, path)) for _ in range(rounds)]
    (their_time, their_work), (our_time, our_work) = np.median(times, axis=0)
    votes = read_votes(path)
    return {
        "votes": votes.n_votes,
        f"{name}_seconds": round(float(their_time), 3),
        "read_votes_seconds": round(float(our_time), 3),
        "ratio": round(float(our_time / their_time), 3),
        f"{name}_processor_seconds": round(float(their_work), 3),
        "read_votes_processor_seconds": round(float(our_work), 3),
        "processor_ratio": round(float(our_work / their_work), 3),
        "bytes_per_vote": round(votes.nbytes / votes.n_votes, 2),
    }


def _in_a_process(script: str, path: Path) -> list[float]:
    answer = subprocess.run([sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True)
    return [float(number) for number in json.loads(answer.stdout)]


def measure_export(path: Path, rounds: int) -> dict[str, float]:
    """Time both in turn, each in a process of its own, and compare medians of time and peaks of memory."""
    ours, theirs = zip(
        *((_in_a_process(READ_EXPORT, path), _in_a_process(LOAD_JSON, path)) for _ in range(rounds)), strict=True
    )
    size = path.stat().st_size
    our_time, our_memory, n_votes = np.median(ours, axis=0)
    json_time, json_memory, _ = np.median(theirs, axis=0)
    return {
        "votes": int(n_votes),
        "megabytes": round(size / 1e6, 1),
        "json_loads_seconds": round(float(json_time), 2),
        "read_votes_seconds": round(float(our_time), 2),
        "ratio": round(float(our_time / json_time), 2),
        "json_loads_memory_by_size": round(float(json_memory / size), 2),
        "read_votes_memory_by_size": round(float(our_memory / size), 2),
    }


def main() -> None:
    """Parse the options, measure CSV, Parquet with text and integer ids, or an export, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=10_000_000)
    parser.add_argument("--votes-per-item", type=int, default=10)
    parser.add_argument("--annotators", type=int, default=20_000)
    parser.add_argument("--csv", action="store_true", help="measure CSV instead of Parquet, shuffled and by item")
    parser.add_argument("--export", type=int, metavar="N", help="measure an export of N annotations instead")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sizes = {"n_annotators": options.annotators, "seed": options.seed}
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.export:
            path = Path(folder) / "export.json"
            write_export(path, options.export, per_task=options.votes_per_item, **sizes)
            results["label_studio"] = measure_export(path, options.rounds)
        elif options.csv:
            votes = make_votes(options.votes, votes_per_item=options.votes_per_item, text_ids=True, **sizes)
            path = Path(folder) / "votes.csv"
            for order, table in (("shuffled", votes), ("by_item", votes.sort_index())):
                table.to_csv(path, index=False)
                results[f"csv_{order}"] = measure(path, options.rounds, read_with_arrow, "arrow")
        for kind in () if options.export or options.csv else ("text", "integer"):
            path = Path(folder) / f"{kind}.parquet"
            votes = make_votes(options.votes, votes_per_item=options.votes_per_item, text_ids=kind == "text", **sizes)
            votes.to_parquet(path, index=False)
            results[f"{kind}_ids"] = measure(path, options.rounds, read_with_pandas, "pandas")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
