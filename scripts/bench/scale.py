"""Time fits of a million to a hundred million votes in memory, on disk and on a Dask cluster, each in its own process.

    python scripts/bench/scale.py --sizes 1e6 1e7
    python scripts/bench/scale.py --sizes 1e8 --drivers disk --results scale.json --markdown docs/scale.md

Votes are simulated in parts, into one Parquet file per size: 20,000 annotators, 8 votes per item, an item's votes one
after the other (`--shuffled`: in random order within each million). A fit is the coordinate engine, from the file to a
written run. Peak memory is that of the process and its children together, looked at ten times per second. crowd-kit's
Dawid-Skene gets the same votes as a frame, for ten iterations. `--results FILE` keeps every row in a JSON file as soon
as it is measured, and the tables show all rows of that file, so that a bench can be run in pieces; `--sizes` without a
number measures nothing. `--markdown FILE` puts the tables between the marks `<!-- bench -->` and `<!-- /bench -->` of a
page.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

ANNOTATORS, VOTES_PER_ITEM, PART = 20_000, 8, 1_000_000
LARGEST = {"memory": 10**7, "dask": 10**7, "crowd-kit": 10**7}
MEMORY, ITERATIONS = "2GB", 10
SUMS = 12  # tables of sums that a worker gives on, its share beginning and ending amid the tree of sums
COLUMNS = ("votes", "driver", "whole (s)", "to the first sweep (s)", "per sweep (s)", "sweeps", "peak memory (GB)", "p")


def simulate(path: Path, votes: int, *, shuffled: bool) -> None:
    """Write votes to a Parquet file, a part at a time."""
    rng = np.random.default_rng(0)
    sensitivity, specificity = rng.beta(8, 2, ANNOTATORS), rng.beta(8, 2, ANNOTATORS)
    names = pc.binary_join_element_wise("w", pc.cast(pa.array(np.arange(ANNOTATORS)), pa.string()), "")
    writer = None
    for first in range(0, votes // VOTES_PER_ITEM, PART // VOTES_PER_ITEM):
        count = min(PART, votes - first * VOTES_PER_ITEM) // VOTES_PER_ITEM
        steps = rng.integers(1, ANNOTATORS // VOTES_PER_ITEM, size=(count, VOTES_PER_ITEM))
        who = (rng.integers(ANNOTATORS, size=(count, 1)) + np.cumsum(steps, axis=1)) % ANNOTATORS
        positive, luck = rng.random((count, 1)) < 0.3, rng.random(who.shape)
        said = np.where(positive, luck < sensitivity[who], luck >= specificity[who])
        order = rng.permutation(who.size) if shuffled else slice(None)
        items = pc.binary_join_element_wise("i", pc.cast(pa.array(first + np.arange(count)), pa.string()), "")
        rows = np.repeat(np.arange(count, dtype=np.int32), VOTES_PER_ITEM)[order]
        table = pa.table(
            {
                "item": items.take(pa.array(rows)),
                "annotator": names.take(pa.array(who.ravel()[order])),
                "vote": said.ravel()[order].astype(np.int8),
            }
        )
        writer = writer or arrow_parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


# --- one fit, in a process of its own ---


class Clock:
    """Seconds until the first sweep has ended, and between sweeps."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.times: list[float] = []

    def __call__(self, progress: Any) -> None:
        self.times.append(time.perf_counter())

    def figures(self) -> dict[str, float]:
        """Return what the table shows."""
        gaps = np.diff(self.times)
        per_sweep = statistics.median(gaps) if len(gaps) else float("nan")
        before = self.times[0] - self.began
        whole = time.perf_counter() - self.began
        return {"whole": whole, "before": before, "per_sweep": per_sweep, "sweeps": len(self.times)}


def digest(parts: Any) -> str:
    """Return the start of a digest of all p, to compare bits."""
    found = hashlib.sha256()
    for p in parts:
        found.update(np.ascontiguousarray(p).data)
    return found.hexdigest()[:8]


def in_memory(path: Path, run: Path) -> dict[str, Any]:
    """Fit a table in memory."""
    import softgold

    clock = Clock()
    found = softgold.fit(softgold.read_votes(path), engine="coordinate", on_progress=clock)
    found.save(run)
    return clock.figures() | {"p": digest([found.posterior.soft_labels().p])}


def on_disk(path: Path, run: Path) -> dict[str, Any]:
    """Fit votes on disk."""
    from softgold.models.base import find_model
    from softgold.runs import save_streamed
    from softgold.scale import build_votes, choose_plan, fit_store, workspace

    clock = Clock()
    plan = choose_plan(str(path), MEMORY)
    assert plan is not None
    settings = find_model("two-class").settings(engine="coordinate")
    with workspace(run) as folder:
        store = build_votes(plan, folder)
        found = fit_store(store, settings=settings, on_progress=clock, part_votes=plan.part_votes)
        save_streamed(found, run)
        figures = clock.figures()
        return figures | {"p": digest(soft.p for _, _, soft in found.soft_labels())}


def on_dask(path: Path, run: Path) -> dict[str, Any]:
    """Fit votes on local Dask workers, one per processor."""
    import softgold.dask as sgd
    from softgold.scale.cluster import connect

    clock = Clock()
    with connect("local") as client:
        found = sgd.fit(str(path), client=client, on_progress=clock).to_local()
        found.save(run)
        return clock.figures() | {"p": digest([found.posterior.soft_labels().p])}


def crowd_kit(path: Path, run: Path) -> dict[str, Any]:
    """Fit crowd-kit's Dawid-Skene for some iterations."""
    from crowdkit.aggregation import DawidSkene

    begin = time.perf_counter()
    names = {"item": "task", "annotator": "worker", "vote": "label"}
    frame = arrow_parquet.read_table(path).to_pandas().rename(columns=names)
    before = time.perf_counter() - begin
    DawidSkene(n_iter=ITERATIONS, tol=0.0).fit(frame)
    whole = time.perf_counter() - begin
    per_sweep = (whole - before) / ITERATIONS
    return {"whole": whole, "before": before, "per_sweep": per_sweep, "sweeps": ITERATIONS, "p": ""}


WORK: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "memory": in_memory,
    "disk": on_disk,
    "dask": on_dask,
    "crowd-kit": crowd_kit,
}


# --- the process tree, from outside ---


def tree_bytes(pid: int) -> int:
    """Return the resident memory of a process and its descendants."""
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        try:
            total += 4096 * int(Path(f"/proc/{one}/statm").read_text().split()[1])
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, IndexError):  # it has ended meanwhile
            continue
    return total


def measure(driver: str, path: Path, run: Path, *, keep: bool) -> dict[str, Any]:
    """Run one fit in a process of its own, and return its figures with the peak of its memory."""
    command = [sys.executable, __file__, "--one", driver, str(path), str(run)]
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, tree_bytes(process.pid))
            time.sleep(0.1)
        out = process.stdout.read() if process.stdout is not None else ""
    if not keep:
        shutil.rmtree(run, ignore_errors=True)
    if process.returncode:
        raise SystemExit(f"{driver} at {path.name} failed")
    figures: dict[str, Any] = json.loads(out.splitlines()[-1])
    return figures | {"peak": peak / 1e9}


# --- tables ---


def row(votes: int, driver: str, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    cells = (
        f"{votes:,}",
        driver,
        f"{found['whole']:.1f}",
        f"{found['before']:.1f}",
        f"{found['per_sweep']:.2f}",
        f"{found['sweeps']}",
        f"{found['peak']:.2f}",
        f"`{found['p']}`" if found["p"] else "",
    )
    return f"|{'|'.join(cells)}|"


Rows = dict[tuple[int, str], dict[str, Any]]


def ratios(found: Rows) -> list[str]:
    """Return the ratios that matter."""

    def line(here: tuple[int, str], other: tuple[int, str], what: str, name: str) -> str:
        whole, sweep = (found[here][figure] / found[other][figure] for figure in ("whole", "per_sweep"))
        return f"- {what}: {whole:.2f} times {name} ({sweep:.2f} per sweep)"

    lines = []
    for votes, driver in found:
        tenth = votes // 10
        for other, name in (((votes, "memory"), "in memory"), ((tenth, driver), "a tenth")):
            if other in found and other != (votes, driver) and driver != "crowd-kit":
                lines.append(line((votes, driver), other, f"{votes:,}, {driver}", name))
        if driver == "disk" and (tenth, "memory") in found and (votes, "memory") not in found:
            lines.append(line((votes, driver), (tenth, "memory"), f"{votes:,}, disk", f"{tenth:,} in memory"))
    return lines


def estimate(found: Rows, states: int = 63) -> list[str]:
    """Return a paper estimate of a sweep over 1e10 votes on a cluster, from the largest sweep on this machine."""
    votes, driver = max(key for key in found if key[1] != "crowd-kit")
    cores, workers, wire, target = 2, 64, 1e9, 10**10
    speed = votes / found[votes, driver]["per_sweep"] / cores
    down, up = ANNOTATORS * (states + 5) * 8, ANNOTATORS * (states + 2) * 8
    # Workers pass the table on to each other, and join their sums in pairs: both take a round per doubling.
    rounds = math.ceil(math.log2(workers))
    compute, move = target / (speed * workers * 16), rounds * (down + SUMS * up) / wire
    return [
        f"Votes per second and core in a sweep: {speed:,.0f} ({votes:,} votes, {driver}).",
        f"Per sweep, a worker gets {down / 1e6:.1f} MB and gives on some {SUMS} tables of {up / 1e6:.1f} MB.",
        f"{target:.0e} votes on {workers} workers of 16 cores: about {compute:.0f} s of work per sweep,",
        f"{move:.2f} s on a network of 8 Gbit/s ({rounds} rounds),",
        f"{target * 8 / workers / 1e9:.2f} GB of chunks per worker.",
    ]


def into_page(page: Path, text: str) -> None:
    """Replace what is between the marks of a page."""
    begin, end = "<!-- bench -->", "<!-- /bench -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def load_rows(path: Path | None, *, shuffled: bool) -> Rows:
    """Return the rows that earlier runs left in a file."""
    if path is None or not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["shuffled"] != shuffled:
        raise SystemExit(f"{path} has votes that are{'' if stored['shuffled'] else ' not'} shuffled; name another file")
    return {(row["votes"], row["driver"]): row for row in stored["rows"]}


def store_rows(path: Path | None, found: Rows, *, shuffled: bool) -> None:
    """Write all rows to a file."""
    if path is not None:
        text = json.dumps({"shuffled": shuffled, "rows": [found[key] for key in in_table_order(found)]}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


def in_table_order(found: Rows) -> list[tuple[int, str]]:
    """Return the rows by size, then in the order of the drivers."""
    return sorted(found, key=lambda key: (key[0], list(WORK).index(key[1])))


def tables(found: Rows) -> str:
    """Return the page's tables."""
    found = {key: found[key] for key in in_table_order(found)}
    lines = [f"|{'|'.join(COLUMNS)}|", f"|{'---|' * len(COLUMNS)}"]
    lines += [row(votes, driver, here) for (votes, driver), here in found.items()]
    runs = len({here["run"] for here in found.values()})
    about = [f"These rows were measured in {runs} runs.", ""] if runs > 1 else []
    return "\n".join([*lines, "", *about, *ratios(found), "", *estimate(found)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=float, default=[1e6, 1e7])
    parser.add_argument("--drivers", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the votes go; a temporary folder if left out")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the runs there, for later.py --run")
    parser.add_argument("--results", type=Path, metavar="FILE", help="rows of earlier runs, to which these are added")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--one", nargs=3, metavar=("DRIVER", "VOTES", "RUN"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        warnings.simplefilter("ignore")
        driver, path, run = given.one
        print(json.dumps(WORK[driver](Path(path), Path(run))))
        return
    if "crowd-kit" in given.drivers and given.sizes and find_spec("crowdkit") is None:
        parser.error("crowd-kit cannot be imported; install it, or name --drivers without it")
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        found = bench(Path(place), given)
    if not found:
        parser.error("there are no rows yet: name --sizes")
    print(tables(found))
    if given.markdown is not None:
        into_page(given.markdown, tables(found))


def bench(folder: Path, given: argparse.Namespace) -> Rows:
    """Measure every driver at every size; return their rows beside those of earlier runs."""
    found, when = load_rows(given.results, shuffled=given.shuffled), time.strftime("%Y-%m-%dT%H:%M:%S")
    for votes in map(int, given.sizes):
        path = folder / f"votes-{votes}.parquet"
        simulate(path, votes, shuffled=given.shuffled)
        for driver in given.drivers:
            if votes <= LARGEST.get(driver, votes):
                run = (given.keep or folder) / f"run-{driver}-{votes}"
                figures = measure(driver, path, run, keep=given.keep is not None)
                found[votes, driver] = {"votes": votes, "driver": driver, "run": when, **figures}
                store_rows(given.results, found, shuffled=given.shuffled)
                print(row(votes, driver, found[votes, driver]), file=sys.stderr)
        path.unlink()
    return found


if __name__ == "__main__":
    main()
