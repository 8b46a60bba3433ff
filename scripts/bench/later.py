"""Peak memory of the commands that come after a fit of votes on disk, each in its own process.

    python scripts/bench/later.py --votes 1e7 --markdown docs/scale.md
    python scripts/bench/later.py --votes 1e7 --repeat 10

Votes are those of `scale.py`, fitted with `--memory 2GB` by the coordinate engine. `--repeat N` makes a run of N times
as many items of it: the same items under other names, without another fit. 100 items have an expert's answer, and two
models score every item. Peak memory is that of the process and its children together, looked at ten times per second.
`--run FOLDER` keeps the fit there, or takes the one that is there; with `--repeat N`, the repeated one is kept beside
it, in FOLDER-xN. `--markdown FILE` puts the peaks between the marks `<!-- later -->` and `<!-- /later -->` of a page.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from scale import MEMORY, PART, simulate, tree_bytes

LABELLED, BUDGET = 100, 10_000


def softgold(*arguments: object) -> list[str]:
    """Return the command line of a command."""
    return [sys.executable, "-m", "softgold", *map(str, arguments)]


def measure(command: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds and the peak of its memory in GB."""
    began, peak = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, tree_bytes(process.pid))
            time.sleep(0.1)
        said = process.stderr.read() if process.stderr is not None else ""
    if process.returncode:
        raise SystemExit(f"{' '.join(command[2:])} failed: {said}")
    return time.perf_counter() - began, peak / 1e9


def make_run(run: Path, folder: Path, votes: int) -> None:
    """Simulate votes and fit them on disk."""
    path = folder / "votes.parquet"
    simulate(path, votes, shuffled=False)
    measure(softgold("fit", path, "-o", run, "--engine", "coordinate", "--memory", MEMORY, "--quiet"))
    path.unlink()


def repeat_run(run: Path, target: Path, times: int) -> None:
    """Write a run with the items of another, each several times."""
    target.mkdir()
    for name in ("annotators.csv", "posterior.npz"):
        shutil.copy(run / name, target / name)
    record = json.loads((run / "run.json").read_text())
    record["input"] |= {name: record["input"][name] * times for name in ("items", "votes")}
    (target / "run.json").write_text(json.dumps(record))
    for name in ("soft_labels.parquet", "votes.parquet"):
        source = arrow_parquet.ParquetFile(run / name)
        with arrow_parquet.ParquetWriter(target / name, source.schema_arrow) as writer:
            for number in range(times):
                for group in range(source.num_row_groups):
                    rows = source.read_row_group(group)
                    ids = pc.binary_join_element_wise(rows["item"].cast(pa.string()), f"{number}", "-")
                    column = source.schema_arrow.field("item")
                    writer.write_table(rows.set_column(0, column, ids.cast(column.type)))


def make_inputs(run: Path, folder: Path) -> tuple[Path, Path]:
    """Write the answers of one expert on some items, and the scores of two models on all, from the soft labels."""
    rng = np.random.default_rng(0)
    source = arrow_parquet.ParquetFile(run / "soft_labels.parquet")
    step = max(1, source.metadata.num_rows // LABELLED)
    experts, scores = folder / "experts.csv", folder / "scores.parquet"
    rows, seen, writer = ["item,expert,answer"], 0, None
    for batch in source.iter_batches(batch_size=PART // 8, columns=["item", "p"]):
        p = batch.column("p").to_numpy()
        for at in range(-seen % step, len(p), step):
            rows.append(f"{batch.column('item')[at]},ann,{'yes' if rng.random() < p[at] else 'no'}")
        noise = rng.normal(size=(2, len(p)))
        models = {"near": np.clip(p + 0.1 * noise[0], 0, 1), "far": np.clip(p + 0.3 * noise[1], 0, 1)}
        table = pa.table({"item": batch.column("item"), **models})
        writer = writer or arrow_parquet.ParquetWriter(scores, table.schema)
        writer.write_table(table)
        seen += len(p)
    if writer is not None:
        writer.close()
    experts.write_text("\n".join(rows) + "\n")
    return experts, scores


def commands(run: Path, folder: Path, resamples: int) -> dict[str, list[str]]:
    """Return the command lines by name."""
    experts, scores = make_inputs(run, folder)
    draws = ("--n-bootstrap", resamples, "--n-vote-bootstrap", resamples)
    return {
        "sample-experts": softgold("sample-experts", run, "-o", folder / "sheet.csv", "--force"),
        "calibrate": softgold("calibrate", run, "--experts", experts, "--force"),
        "evaluate": softgold("evaluate", run, "--scores", scores, "--force", *draws),
        "next --budget": softgold("next", run, "--budget", BUDGET, "-o", folder / "next.csv", "--force"),
        "next --forecast": softgold("next", run, "--forecast", "-o", folder / "forecast.csv", "--force"),
        "report": softgold("report", run, "--force"),
    }


def bench(run: Path, folder: Path, only: list[str], resamples: int) -> str:
    """Measure every command; return the peaks."""
    n_votes = json.loads((run / "run.json").read_text())["input"]["votes"]
    n_items = arrow_parquet.ParquetFile(run / "soft_labels.parquet").metadata.num_rows
    found = []
    for name, command in commands(run, folder, resamples).items():
        if only and not any(name.startswith(start) for start in only):
            continue
        seconds, peak = measure(command)
        found.append(f"`{name}` {peak:.2f}")
        print(f"{found[-1]} GB, {seconds:.1f} s", file=sys.stderr)
    return f"{n_votes:,} votes on {n_items:,} items, peak memory in GB: {', '.join(found)}."


def into_page(page: Path, text: str) -> None:
    """Replace what is between the marks of a page."""
    begin, end = "<!-- later -->", "<!-- /later -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=float, default=1e7)
    parser.add_argument("--repeat", type=int, default=1, help="repeat the items so many times")
    parser.add_argument("--resamples", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=[], metavar="COMMAND")
    parser.add_argument("--run", type=Path, help="the run; a temporary one if left out")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run = given.run or folder / "run"
        if not run.exists():
            make_run(run, folder, int(given.votes))
        if given.repeat > 1:
            repeated = run.with_name(f"{run.name}-x{given.repeat}")
            if not repeated.exists():
                repeat_run(run, repeated, given.repeat)
            run = repeated
        text = bench(run, folder, given.only, given.resamples)
    print(text)
    if given.markdown is not None:
        into_page(given.markdown, text)


if __name__ == "__main__":
    main()
